/*
 * odd_families DIR: captures itself into DIR, and reports records that no file of a capture has a place for: of levels
 * and types that readers do not know, and of types whose names mean something as file names.  Good ones are among them.
 * Says how many were of each sort.
 */
#include "family.h"

enum { FIRST_TYPE = 50000, VARIABLE = 400, BATCH = 3 };

static int g_unreadable;
static int g_named;

/* One record by each call, of a level or type that is not known. */
static void unknown_level(uint16_t level)
{
    struct MsprofApi api = api_now(1);
    api.level = level;
    EXPECT(MsprofReportApi(AGING, &api), 0);
    struct MsprofEvent event = {
        .magicNumber = MSPROF_MAGIC,
        .level = level,
        .type = 1,
        .threadId = g_thread,
        .timeStamp = MsprofSysCycleTime(),
    };
    EXPECT(MsprofReportEvent(UNAGING, &event), 0);
    begin(level, 0, 40, MsprofSysCycleTime());
    EXPECT(MsprofReportCompactInfo(AGING, g_record, COMPACT), 0);
    EXPECT(MsprofReportAdditionalInfo(UNAGING, g_record, ADDITIONAL), 0);
    EXPECT(MsprofReportAdditionalInfo(UNAGING, g_record, VARIABLE), 0);
    for (int i = 1; i < BATCH; i++) {
        memcpy(g_record + i * ADDITIONAL, g_record, ADDITIONAL);
    }
    EXPECT(MsprofReportBatchAdditionalInfo(AGING, g_record, BATCH * ADDITIONAL), 0);
    g_unreadable += 5 + BATCH;
}

static void aicpu_of(uint32_t type, int is_known)
{
    begin(MSPROF_LEVEL_AICPU, type, 120, MsprofSysCycleTime());
    U64(40, MsprofSysCycleTime());
    U64(80, MsprofSysCycleTime());
    EXPECT(MsprofReportAdditionalInfo(AGING, g_record, ADDITIONAL), 0);
    g_unreadable += !is_known;
}

/* More entries than a record has room for. */
static void overstated(uint16_t level, uint32_t type, size_t offset, uint32_t count)
{
    begin(level, type, 232, MsprofSysCycleTime());
    U32(offset, count);
    EXPECT(MsprofReportAdditionalInfo(AGING, g_record, ADDITIONAL), 0);
    g_unreadable++;
}

static void good(void)
{
    EXPECT(report(1), 0);
    begin(MSPROF_LEVEL_NODE, 0, 28, MsprofSysCycleTime());
    EXPECT(MsprofReportCompactInfo(AGING, g_record, COMPACT), 0);
    begin(MSPROF_LEVEL_NODE, 4, 232, MsprofSysCycleTime());
    EXPECT(MsprofReportAdditionalInfo(AGING, g_record, ADDITIONAL), 0);
    for (uint32_t type = 0; type < 6; type++) {
        aicpu_of(type, 1);
    }
    for (uint32_t type = 10; type < 14; type++) {
        aicpu_of(type, 1);
    }
}

/* A record of each sort whose type has this name, numbered in the order of the names. */
static void named(const char *name)
{
    uint32_t type = FIRST_TYPE + (uint32_t)g_named;
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_NODE, type, name), 0);
    begin(MSPROF_LEVEL_NODE, type, 40, MsprofSysCycleTime());
    U64(24, (uint64_t)g_named);
    EXPECT(MsprofReportCompactInfo(UNAGING, g_record, COMPACT), 0);
    EXPECT(MsprofReportAdditionalInfo(AGING, g_record, ADDITIONAL), 0);
    g_named++;
}

int main(int count, char **words)
{
    static const uint16_t levels[] = {0, 1, 3000, 3500, 4000, 4500, 4999, 5001, 12345, 65535};
    static const char *names[] = {
        "a/b",
        "/etc/passwd",
        "..",
        "../../../outside",
        ".",
        "hash_dic",
        "type_info_dic",
        "api_event.data",
        "task_track.slice_0",
        "task_track.slice_0.done",
        "cut\0off",
        "gr\xC3\xB6\xC3\x9F" "e",
        "tensor_info ",
        "invalid",
    };
    static char longest[301];
    if (count != 2) {
        return 2;
    }
    g_thread = thread_id();
    EXPECT(MsprofNotifySetDevice(0, 0, true), 0);
    say_result("start", msprof_agent_start("--runtime-api=on --model-execution=on --aicpu=on", words[1]));
    good();
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        unknown_level(levels[i]);
    }
    for (uint32_t type = 6; type < 10; type++) {
        aicpu_of(type, 0);
    }
    aicpu_of(14, 0);
    aicpu_of(UINT32_MAX, 0);
    overstated(MSPROF_LEVEL_NODE, 1, 32, 6);
    overstated(MSPROF_LEVEL_NODE, 2, 32, 1000);
    overstated(MSPROF_LEVEL_NODE, 4, 32, 56);
    overstated(MSPROF_LEVEL_MODEL, 7, 28, 57);
    overstated(MSPROF_LEVEL_RUNTIME, 805, 84, 5);
    begin(MSPROF_LEVEL_RUNTIME, 805, VARIABLE - HEAD, MsprofSysCycleTime());
    U32(84, 1000);
    EXPECT(MsprofReportAdditionalInfo(UNAGING, g_record, VARIABLE), 0);
    g_unreadable++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        named(names[i]);
    }
    memset(longest, 'x', sizeof longest - 1);
    named(longest);
    good();
    say_result("stop", msprof_agent_stop(NULL, 0));
    printf("unreadable %d\nnamed %d\nwrong %d\n", g_unreadable, g_named, g_wrong);
    return g_wrong != 0;
}
