/*
 * alternating DIR COUNT PER_SECOND: compact records of two types by turns, at a
 * rate or, with 0, as fast as it can.
 */
#include "reports.h"

#include <stdlib.h>

enum { EVEN = 9002, ODD = 9001 };

int main(int count, char **words)
{
    if (count != 4) {
        return 2;
    }
    uint64_t records = strtoul(words[2], NULL, 0);
    uint64_t rate = strtoul(words[3], NULL, 0);
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_NODE, EVEN, "even");
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_NODE, ODD, "odd");
    struct MsprofCompactInfo info = {
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_NODE,
        .threadId = thread_id(),
        .dataLen = MSPROF_COMPACT_DATA,
    };
    say_result("start", msprof_agent_start("--task-time=l1", words[1]));
    uint64_t begin = MsprofSysCycleTime();
    for (uint64_t i = 0; i < records; i++) {
        uint64_t due = rate == 0 ? 0 : begin + i * UINT64_C(1000000000) / rate;
        do {
            info.timeStamp = MsprofSysCycleTime();
        } while (info.timeStamp < due);
        info.type = i % 2 == 0 ? EVEN : ODD;
        (void)MsprofReportCompactInfo(0, &info, sizeof info);
    }
    say_result("stop", msprof_agent_stop(NULL, 0));
    return 0;
}
