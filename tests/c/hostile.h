/* What the programs of tests/hostile.rs share. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <msprof_agent.h>

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KERNEL_LAUNCH = 1003 };

static inline uint32_t thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static inline struct MsprofApi api_now(uint64_t item)
{
    uint64_t begin = MsprofSysCycleTime();
    return (struct MsprofApi){
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_RUNTIME,
        .type = KERNEL_LAUNCH,
        .threadId = thread_id(),
        .beginTime = begin,
        .endTime = MsprofSysCycleTime(),
        .itemId = item,
    };
}

static inline int32_t report(uint64_t item)
{
    struct MsprofApi api = api_now(item);
    return MsprofReportApi(1, &api);
}

/* Prints the result of a call and, if it failed, why. */
static inline void say_result(const char *call, int32_t result)
{
    char why[512] = "";
    if (result != 0) {
        msprof_agent_last_error(why, sizeof why);
    }
    printf("%s %d %s\n", call, result, why);
    fflush(stdout);
}

#endif
