/*
 * late_names DIR ACCOUNT: captures itself into DIR, and reports records whose types are named before the capture, in
 * it, after it and never; ACCOUNT gets what belongs where.  Then a second capture, in DIR/second, of a type whose name
 * changes all the time; how often is said on stdout.
 */
#include "family.h"

enum { FIRST_TYPE = 700, RACED = 2000, RACED_TYPE = 900 };

static void compact_of(uint16_t level, uint32_t type, const char *family)
{
    begin(level, type, 40, MsprofSysCycleTime());
    U64(24, type);
    report_compact(UNAGING, family);
}

static void additional_of(uint16_t level, uint32_t type, const char *family)
{
    begin(level, type, 232, MsprofSysCycleTime());
    /* Counts of entries lie here or there; the type says so as well. */
    U64(124, type);
    report_additional(UNAGING, family);
}

/* Waits until all that was reported is on disk: from then on it is filed. */
static void settle(void)
{
    enum { PATIENCE_MS = 60000 };
    MsprofAgentStatus status = {.size = sizeof status};
    for (int waited = 0; status.written < g_accounted && waited < PATIENCE_MS; waited++) {
        usleep(1000);
        EXPECT(msprof_agent_status(&status), 0);
    }
    EXPECT(status.written, g_accounted);
}

/* Each of the runtime's and of HCCL's own kinds, which nobody has named yet. */
static void known_without_a_name(void)
{
    compact_of(MSPROF_LEVEL_RUNTIME, 801, "memcpy_info");
    compact_of(MSPROF_LEVEL_RUNTIME, 802, "task_track");
    compact_of(MSPROF_LEVEL_RUNTIME, 803, "capture_stream_info");
    compact_of(MSPROF_LEVEL_RUNTIME, 804, "expand_stream_spec");
    additional_of(MSPROF_LEVEL_RUNTIME, 805, "capture_op_info");
    compact_of(MSPROF_LEVEL_NODE, 0, "node_basic_info");
    additional_of(MSPROF_LEVEL_NODE, 1, "tensor_info");
    additional_of(MSPROF_LEVEL_NODE, 2, "fusion_op_info");
    additional_of(MSPROF_LEVEL_NODE, 4, "context_id_info");
    additional_of(MSPROF_LEVEL_NODE, 6, "task_memory_info");
    compact_of(MSPROF_LEVEL_NODE, 9, "node_attr_info");
    compact_of(MSPROF_LEVEL_NODE, 10, "hccl_op_info");
    additional_of(MSPROF_LEVEL_NODE, 11, "static_op_mem");
    additional_of(MSPROF_LEVEL_NODE, 12, "mc2_comm_info");
    additional_of(MSPROF_LEVEL_MODEL, 0, "graph_id_map");
    additional_of(MSPROF_LEVEL_MODEL, 7, "logic_stream_info");
    additional_of(MSPROF_LEVEL_MODEL, 8, "model_exeom");
    settle();
    /* Another release may have another name for a number. */
    name_type(MSPROF_LEVEL_RUNTIME, 804, "renamed");
    compact_of(MSPROF_LEVEL_RUNTIME, 804, "renamed");
}

static void named_in_the_capture(void)
{
    compact_of(MSPROF_LEVEL_NODE, FIRST_TYPE, "named_before");
    additional_of(MSPROF_LEVEL_NODE, FIRST_TYPE, "named_before");
    compact_of(MSPROF_LEVEL_NODE, FIRST_TYPE + 1, "invalid");
    additional_of(MSPROF_LEVEL_NODE, FIRST_TYPE + 1, "invalid");
    /* Never, and only after the capture. */
    compact_of(MSPROF_LEVEL_NODE, FIRST_TYPE + 2, "invalid");
    additional_of(MSPROF_LEVEL_NODE, FIRST_TYPE + 3, "invalid");
    settle();
    name_type(MSPROF_LEVEL_NODE, FIRST_TYPE + 1, "named_in_it");
    compact_of(MSPROF_LEVEL_NODE, FIRST_TYPE + 1, "named_in_it");
    additional_of(MSPROF_LEVEL_NODE, FIRST_TYPE + 1, "named_in_it");
}

/* One type that is renamed again and again, and reports at once each time: with the number of its name. */
static void race(void)
{
    enum { WORK = 60000 };
    for (uint32_t round = 0; round < RACED; round++) {
        char name[32];
        snprintf(name, sizeof name, "raced_%u", round);
        EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_NODE, RACED_TYPE, name), 0);
        begin(MSPROF_LEVEL_NODE, RACED_TYPE, 40, MsprofSysCycleTime());
        U64(24, round);
        EXPECT(MsprofReportCompactInfo(UNAGING, g_record, COMPACT), 0);
        /* So that this takes as long as many passes of the writer. */
        for (volatile int work = 0; work < WORK; work++) {
        }
    }
    printf("raced %d\n", RACED);
}

int main(int count, char **words)
{
    char second[4096];
    if (count != 3 || (g_account = fopen(words[2], "w")) == NULL) {
        return 2;
    }
    g_thread = thread_id();
    name_type(MSPROF_LEVEL_NODE, FIRST_TYPE, "named_before");
    say_result("start", msprof_agent_start(NULL, words[1]));
    known_without_a_name();
    named_in_the_capture();
    say_result("stop", msprof_agent_stop(NULL, 0));
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_NODE, FIRST_TYPE + 3, "named_after"), 0);
    snprintf(second, sizeof second, "%s/second", words[1]);
    say_result("start", msprof_agent_start(NULL, second));
    begin(MSPROF_LEVEL_NODE, FIRST_TYPE + 3, 232, MsprofSysCycleTime());
    EXPECT(MsprofReportAdditionalInfo(UNAGING, g_record, ADDITIONAL), 0);
    race();
    say_result("stop", msprof_agent_stop(NULL, 0));
    printf("wrong %d\n", g_wrong);
    return fclose(g_account) != 0 || g_wrong != 0;
}
