/*
 * families DIR ACCOUNT: a task whose components report a record of each kind that readers of captures know, into a
 * capture of its own in DIR, with the times, threads and ids by which readers join them.  ACCOUNT gets what was
 * reported.  Exits with 0 when every call did what it should.
 */
#include "family_aicpu.h"
#include "family_components.h"

enum { TX_LEVEL = 20500, MASTER = 0x10001 };

/* ---- kinds of records that several parts report ---------------------------- */

static void task(uint64_t time, uint16_t stream, uint16_t number, uint64_t type, const char *kernel)
{
    begin(MSPROF_LEVEL_RUNTIME, 802, 40, at(time));
    U16(26, stream);
    U16(28, number);
    U64(32, type);
    U64(40, kernel == NULL ? 0 : id_of(kernel));
    U16(48, 8);
    U16(50, 64);
    U8(52, 1);
    report_compact(AGING, "task_track");
}

static void copy(uint64_t time, uint64_t size, uint16_t direction)
{
    begin(MSPROF_LEVEL_RUNTIME, 801, 18, at(time) + 1);
    U64(24, size);
    U64(32, size + 1000);
    U16(40, direction);
    report_compact(AGING, "memcpy_info");
}

static void node(uint32_t aging, uint64_t time, const char *name, uint32_t type, const char *op, uint32_t blocks)
{
    begin(MSPROF_LEVEL_NODE, 0, 28, at(time));
    U64(24, id_of(name));
    U32(32, type);
    U64(36, id_of(op));
    U32(44, blocks);
    U32(48, aging == AGING);
    report_compact(aging, "node_basic_info");
}

enum { TENSOR = 44 };

static void tensor(size_t place, bool is_output, uint32_t rows, uint32_t columns)
{
    enum { FP16 = 1, ND = 2 };
    u32s(place, (const uint32_t[]){is_output, ND, FP16, rows, columns}, 5);
}

/* `count` tensors of a record, from number `first` of the operator's on: the last one of all is the output. */
static void tensors(uint32_t aging, uint64_t time, const char *name, uint32_t first, uint32_t count, uint32_t all)
{
    begin(MSPROF_LEVEL_NODE, 1, 232, at(time));
    U64(24, id_of(name));
    U32(32, count);
    for (uint32_t i = 0; i < count; i++) {
        tensor(36 + i * TENSOR, first + i + 1 == all, 16, first + i + 1);
    }
    report_additional(aging, "tensor_info");
}

static void contexts(uint16_t level, uint64_t time, const char *name, uint32_t from, uint32_t to)
{
    begin(level, 4, 232, at(time));
    U64(24, id_of(name));
    U32(32, 2);
    U32(36, from);
    U32(40, to);
    report_additional(AGING, "context_id_info");
}

static void launch(uint64_t from, uint64_t to, const char *name)
{
    call(MSPROF_LEVEL_NODE, 5, from, to, id_of(name));
}

/* ---- a model is loaded ----------------------------------------------------- */

static void load(void)
{
    call(MSPROF_LEVEL_ACL, ACL_MODEL_CLASS | 1, 10, 200, 0);
    event(UNAGING, 2, 0, 20, MODEL);
    call(MSPROF_LEVEL_RUNTIME, 1014, 100, 110, 0);
    begin(MSPROF_LEVEL_MODEL, 0, 16, at(30));
    U64(24, id_of("resnet50"));
    U32(32, 71);
    U32(36, MODEL);
    report_additional(UNAGING, "graph_id_map");
    begin(MSPROF_LEVEL_NODE, 2, 116, at(40));
    U64(24, id_of("fused_conv"));
    U32(32, 2);
    for (uint64_t i = 0; i < 5; i++) {
        U64(36 + i * 8, 1024 * (i + 1));
    }
    U64(76, id_of("conv1"));
    U64(84, id_of("relu0"));
    report_additional(UNAGING, "fusion_op_info");
    begin(MSPROF_LEVEL_MODEL, 7, 232, at(50));
    U32(24, 100);
    U32(28, 2);
    U32(32, 40);
    U32(36, 41);
    report_additional(UNAGING, "logic_stream_info");
    begin(MSPROF_LEVEL_NODE, 11, 52, at(60));
    U64(24, 4096);
    U64(32, id_of("conv1"));
    U64(40, 1);
    U64(48, 5);
    U64(56, 8192);
    U64(64, id_of("dynamic_root"));
    U32(72, 71);
    report_additional(UNAGING, "static_op_mem");
    begin(MSPROF_LEVEL_MODEL, 8, 16, at(70));
    U64(24, 3);
    U64(32, 4);
    report_additional(UNAGING, "model_exeom");
    /* Of chips other than the one that the parser is told of, so that it shows nothing of them. */
    static const char *const CHIP_SPECIFIC[] = {"ccu_task_info", "ccu_wait_signal_info", "ccu_group_info",
                                                "dpu_hccl_info", "memory_application"};
    for (uint32_t i = 0; i < sizeof CHIP_SPECIFIC / sizeof *CHIP_SPECIFIC; i++) {
        begin(MSPROF_LEVEL_NODE, 20 + i, 232, at(80 + i));
        U64(24, 100 + i);
        U64(248, 200 + i);
        report_additional(UNAGING, CHIP_SPECIFIC[i]);
    }
    event(UNAGING, 2, 0, 180, MODEL);
}

/* ---- a run of the model ---------------------------------------------------- */

static void run(void)
{
    call(MSPROF_LEVEL_ACL, ACL_MODEL_CLASS | 2, 300, 990, 0);
    call(MSPROF_LEVEL_MODEL, 3, 320, 340, MODEL);
    call(MSPROF_LEVEL_RUNTIME, 1103, 322, 338, 0);
    copy(322, 4096, 1);
    task(330, 2, 9, 5, NULL);

    event(AGING, 1, 1, 350, MODEL);
    launch(400, 500, "conv1");
    call(MSPROF_LEVEL_RUNTIME, 1003, 410, 450, 0);
    task(430, 2, 10, 0, "conv1_kernel");
    begin(MSPROF_LEVEL_NODE, 9, 20, at(497));
    U64(24, id_of("conv1"));
    U64(36, id_of("strides:1,1;pads:0,0"));
    report_compact(UNAGING, "node_attr_info");
    tensors(UNAGING, 498, "conv1", 0, 3, 3);
    node(UNAGING, 500, "conv1", 0, "Conv2D", 8 | 2 << 16);

    launch(520, 600, "concat1");
    call(MSPROF_LEVEL_RUNTIME, 1003, 530, 550, 0);
    task(540, 2, 11, 66, "concat1_kernel");
    /* More than there is room for in one record. */
    tensors(AGING, 599, "concat1", 0, 5, 7);
    tensors(AGING, 599, "concat1", 5, 2, 7);
    node(AGING, 600, "concat1", 2, "ConcatD", 4);

    launch(620, 700, "cast1");
    call(MSPROF_LEVEL_RUNTIME, 1003, 630, 640, 0);
    task(635, 2, 12, 1, "cast1_kernel");
    node(AGING, 700, "cast1", 1, "Cast", 1);

    launch(710, 760, "ffts1");
    contexts(MSPROF_LEVEL_NODE, 750, "ffts1", 5, 6);
    node(AGING, 755, "ffts1", 6, "Ffts", 1);
    event(AGING, 1, 1, 780, MODEL);

    call(MSPROF_LEVEL_MODEL, 4, 800, 850, MODEL);
    call(MSPROF_LEVEL_RUNTIME, 1103, 810, 840, 0);
    copy(810, 2048, 2);
    task(820, 2, 13, 5, NULL);
}

/* ---- communication --------------------------------------------------------- */

static void communicate(void)
{
    launch(1000, 1200, "hcom_allReduce_1");
    call(MSPROF_LEVEL_HCCL, MASTER, 1010, 1100, id_of("Memcpy"));
    task(1050, 4, 20, 5, NULL);
    begin(MSPROF_LEVEL_HCCL, 10, 120, at(1060));
    U64(24, id_of("Memcpy"));
    U64(32, id_of("allreduce_tag"));
    U64(40, id_of("hccl_world_group"));
    u32s(48, (const uint32_t[]){0, 1, 8, 3, 2, UINT32_MAX}, 6);
    U64(72, 77);
    U32(80, 4);
    U32(84, 1);
    double estimated = 12.5;
    uint64_t estimated_bits;
    memcpy(&estimated_bits, &estimated, sizeof estimated_bits);
    U64(88, estimated_bits);
    U64(96, 0x1000);
    U64(104, 0x2000);
    U64(112, 65536);
    u32s(120, (const uint32_t[]){0, 4, 1, 0, 255}, 5);
    report_additional(AGING, "hccl_info");
    begin(MSPROF_LEVEL_HCCL, 11, 104, at(1070));
    U32(24, 2);
    U32(28, g_thread + 1);
    U32(32, g_thread + 2);
    report_additional(AGING, "Multi_Thread");
    begin(MSPROF_LEVEL_NODE, 10, 26, at(1190));
    U8(24, 2);
    U8(25, 4);
    U64(26, id_of("MESH-RING"));
    U64(34, 16384);
    U64(42, id_of("hccl_world_group"));
    report_compact(AGING, "hccl_op_info");
    node(AGING, 1195, "hcom_allReduce_1", 9, "hcom_allReduce_", 1);
    call(MSPROF_LEVEL_HCCL, MASTER, 1210, 1215, id_of("Notify_Wait"));
    contexts(MSPROF_LEVEL_HCCL, 1213, "Notify_Wait", 0, 1);
    begin(MSPROF_LEVEL_NODE, 12, 56, at(1250));
    U64(24, id_of("mc2_group"));
    u32s(32, (const uint32_t[]){8, 1, 2, 90, 3, 91, 92, 93}, 8);
    report_additional(UNAGING, "mc2_comm_info");
}

/* ---- a recorded graph ------------------------------------------------------ */

static size_t captured(uint64_t time, uint32_t number, const char *name, uint32_t tensors_count)
{
    enum { FIXED = 88 };
    size_t size = FIXED + (size_t)tensors_count * TENSOR;
    begin(MSPROF_LEVEL_RUNTIME, 805, (uint32_t)(size - HEAD), at(time));
    U32(24, 500);
    U32(32, 6);
    U32(36, number);
    U32(40, 2);
    U32(44, 12 | 1 << 16);
    U64(48, id_of(name));
    U64(56, id_of("GraphAdd"));
    U64(64, id_of("graph_attributes"));
    U32(80, 1);
    U32(84, tensors_count);
    for (uint32_t i = 0; i < tensors_count; i++) {
        tensor(FIXED + i * TENSOR, i + 1 == tensors_count, 32, i + 1);
    }
    return size;
}

static void record_graph(void)
{
    for (uint16_t status = 0; status < 2; status++) {
        begin(MSPROF_LEVEL_RUNTIME, 803, 10, at(1300u + status * 400u));
        U16(24, status);
        U16(26, 6);
        U16(28, 2);
        U16(30, 500);
        U16(32, 0);
        report_compact(UNAGING, "capture_stream_info");
    }
    begin(MSPROF_LEVEL_RUNTIME, 804, 1, at(1310));
    report_compact(UNAGING, "expand_stream_spec");
    (void)captured(1320, 30, "graph_add_1", 3);
    report_additional(UNAGING, "capture_op_info");
    (void)captured(1330, 31, "graph_add_2", 3);
    report_additional(AGING, "capture_op_info");
    size_t size = captured(1340, 32, "graph_add_3", 7);
    EXPECT(MsprofReportAdditionalInfo(UNAGING, g_record, (uint32_t)size), 0);
    account_for("host", "unaging.variable.capture_op_info", g_record, size);
    for (uint16_t i = 0; i < 3; i++) {
        task(1350u + i * 10u, 6, 30 + i, 66, "graph_add_kernel");
    }
}

/* ---- memory and marks ------------------------------------------------------ */

static void memory(uint64_t time, int64_t size, uint64_t total)
{
    begin(MSPROF_LEVEL_NODE, 6, 48, at(time));
    U64(24, 0x12C000);
    U64(32, (uint64_t)size);
    U64(40, id_of("conv1"));
    U64(48, total);
    U64(56, 65536);
    U32(68, 20);
    report_additional(AGING, "task_memory_info");
}

static void mark(uint16_t info, uint32_t kind, uint64_t from, uint64_t to, uint64_t number, const char *message)
{
    begin(TX_LEVEL, 0, 232, at(to));
    U16(24, info);
    U16(32, MSPROF_MAGIC);
    U16(34, 11);
    U32(36, (uint32_t)getpid());
    U32(40, g_thread);
    U32(44, 7);
    U32(48, kind);
    U32(52, 2);
    U64(56, 5);
    U64(64, at(from));
    U64(72, at(to));
    U64(80, number);
    U64(88, id_of("a domain"));
    U32(96, 0);
    text(100, message, 155);
    report_additional(AGING, "msproftx");
}

/* ---- all together --------------------------------------------------------------- */

int main(int count, char **words)
{
    enum { ALL_US = 3000 };
    if (count != 3 || (g_account = fopen(words[2], "w")) == NULL) {
        return 2;
    }
    g_thread = thread_id();
    if (!start(words[1])) {
        return 1;
    }
    g_base = MsprofSysCycleTime();
    fprintf(g_account, "base %" PRIu64 " thread %u pid %d\n", g_base, g_thread, (int)getpid());
    load();
    run();
    communicate();
    record_graph();
    memory(1400, 4096, 4096);
    memory(1450, -4096, 0);
    mark(0, 1, 1500, 1540, 0, "a push");
    mark(1, 2, 1510, 1530, 1, "a range");
    aicpu();
    by_the_old_interface();
    while (MsprofSysCycleTime() < at(ALL_US)) {
        usleep(100);
    }
    say_result("stop", msprof_agent_stop(NULL, 0));
    printf("wrong %d\n", g_wrong);
    return fclose(g_account) != 0 || g_wrong != 0;
}
