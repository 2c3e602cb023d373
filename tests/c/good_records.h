/* A record of each kind as it should be. */
#ifndef GOOD_RECORDS_H
#define GOOD_RECORDS_H

#include "reports.h"

enum { NODE_TYPE = 0, AICPU_TYPE = 0 };

static inline struct MsprofApi good_api(void)
{
    uint64_t now = MsprofSysCycleTime();
    return (struct MsprofApi){
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_RUNTIME,
        .type = KERNEL_LAUNCH,
        .threadId = thread_id(),
        .beginTime = now,
        .endTime = now + 10,
        .itemId = MsprofGetHashId("item", 4),
    };
}

static inline struct MsprofEvent good_event(void)
{
    return (struct MsprofEvent){
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_MODEL,
        .type = 1,
        .threadId = thread_id(),
        .requestId = 7,
        .timeStamp = MsprofSysCycleTime(),
        .itemId = 1,
    };
}

static inline struct MsprofCompactInfo good_compact(void)
{
    return (struct MsprofCompactInfo){
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_NODE,
        .type = NODE_TYPE,
        .threadId = thread_id(),
        .dataLen = 28,
        .timeStamp = MsprofSysCycleTime(),
    };
}

static inline struct MsprofAdditionalInfo good_additional(void)
{
    return (struct MsprofAdditionalInfo){
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_AICPU,
        .type = AICPU_TYPE,
        .threadId = thread_id(),
        .dataLen = 120,
        .timeStamp = MsprofSysCycleTime(),
    };
}

#endif
