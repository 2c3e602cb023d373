/*
 * poisoned DIR: reports records that an exporter would choke on among good ones.
 * Says how many of the bad ones there were.
 */
#include "reports.h"

#include <string.h>

enum { GOOD = 20, NODE_BASIC_INFO = 0, TENSOR_INFO = 1, CONTEXT_ID_INFO = 4 };
enum { OF_TENSOR_COUNT = 8 };

#define FAR (UINT64_C(1) << 63)

static unsigned g_bad;

static void bad_api(uint64_t begin, uint64_t end)
{
    struct MsprofApi api = api_now(7);
    api.beginTime = begin;
    api.endTime = end;
    g_bad++;
    (void)MsprofReportApi(0, &api);
}

static void compact(uint64_t time)
{
    struct MsprofCompactInfo info = {
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_NODE,
        .type = NODE_BASIC_INFO,
        .threadId = thread_id(),
        .dataLen = MSPROF_COMPACT_DATA,
        .timeStamp = time,
    };
    g_bad += time >= FAR;
    (void)MsprofReportCompactInfo(0, &info, sizeof info);
}

static void additional(uint32_t type, uint64_t time, uint32_t tensors)
{
    struct MsprofAdditionalInfo info = {
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_NODE,
        .type = type,
        .threadId = thread_id(),
        .dataLen = MSPROF_ADDITIONAL_DATA,
        .timeStamp = time,
    };
    memcpy(info.data + OF_TENSOR_COUNT, &tensors, sizeof tensors);
    g_bad += time >= FAR || (type == TENSOR_INFO && tensors > 5);
    (void)MsprofReportAdditionalInfo(0, &info, sizeof info);
}

static void good(void)
{
    for (int i = 0; i < GOOD; i++) {
        (void)report(1);
        compact(MsprofSysCycleTime());
        additional(CONTEXT_ID_INFO, MsprofSysCycleTime(), 0);
        additional(TENSOR_INFO, MsprofSysCycleTime(), 1);
    }
}

int main(int count, char **words)
{
    if (count != 2) {
        return 2;
    }
    say_result("start", msprof_agent_start("--runtime-api=on --task-time=l1", words[1]));
    good();
    bad_api(FAR, FAR + 5);
    bad_api(UINT64_MAX, MsprofSysCycleTime());
    bad_api(MsprofSysCycleTime(), FAR);
    bad_api(MsprofSysCycleTime(), UINT64_MAX - 1);
    /* With the mark of an event it would be one, if its time were possible. */
    bad_api(FAR, UINT64_MAX);
    compact(FAR);
    compact(UINT64_MAX);
    additional(CONTEXT_ID_INFO, FAR, 0);
    additional(CONTEXT_ID_INFO, UINT64_MAX, 0);
    additional(TENSOR_INFO, MsprofSysCycleTime(), UINT32_MAX);
    good();
    say_result("stop", msprof_agent_stop(NULL, 0));
    printf("bad %u\n", g_bad);
    return 0;
}
