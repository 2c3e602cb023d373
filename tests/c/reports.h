/* Reports, and what else several of these programs do with the library. */
#ifndef REPORTS_H
#define REPORTS_H

#include <msprof_agent.h>

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The number of a record lies in the low bits of its item, what it belongs to above. */
enum { KERNEL_LAUNCH = 1003, ITEM_BITS = 40 };

/* Of the command that a component's handler gets. */
enum { OF_COMMAND_KIND = 280, KIND_START = 1, KIND_STOP = 2 };

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

/* Reports numbers 1 to count; the worst result. */
static inline int32_t report_numbers(uint64_t count, uint64_t tag)
{
    int32_t worst = 0;
    for (uint64_t i = 1; i <= count; i++) {
        int32_t result = report(tag << ITEM_BITS | i);
        worst = result != 0 ? result : worst;
    }
    return worst;
}

static inline uint32_t kind_of(const void *command)
{
    uint32_t kind;
    memcpy(&kind, (const char *)command + OF_COMMAND_KIND, sizeof kind);
    return kind;
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

/* Has the stack as large as calls will want it: a process is killed where it grows when its address space is used up. */
static inline void grow_stack(void)
{
    enum { ROOM = 1 << 20 };
    char room[ROOM];
    memset(room, 0, sizeof room);
    /* Else the compiler may leave it out. */
    __asm__ volatile("" : : "r"(room) : "memory");
}

#endif
