/*
 * third_party DIR: another tool in the process asks for reports, names, strings and devices.  Four captures into DIR:
 *   1  every kind of report is asked for, which changes nothing for batches and names
 *   2  the kinds are given back, in mid capture
 *   3  a callback reports, names, registers and stops the capture
 *   4  a callback that does not return
 */
#include "expect.h"
#include "good_records.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { COMPACT = 4, ADDITIONAL = 5, API = 9, EVENT = 10, TYPE_INFO = 11, HASH_ID = 12, HOST_FREQ = 13, DEVICE = 16 };
enum { BAD = -1, BATCH = 4 };
enum { KINDS = 17, THEIRS = 4711, DEVICES_MAX = 8 };

static int g_calls[KINDS];
static uint32_t g_aging, g_len;
static const void *g_data;
static struct {
    uint32_t chip, device;
    bool open;
} g_devices[DEVICES_MAX];
static char g_name[64], g_text[64];
static int32_t (*g_inner)(void);

static int32_t called(int kind, uint32_t aging, const void *data, uint32_t len)
{
    g_calls[kind]++;
    g_aging = aging;
    g_data = data;
    g_len = len;
    return g_inner != NULL ? g_inner() : THEIRS;
}

static int32_t on_api(uint32_t aging, const struct MsprofApi *api)
{
    return called(API, aging, api, 0);
}

static int32_t on_event(uint32_t aging, const struct MsprofEvent *event)
{
    return called(EVENT, aging, event, 0);
}

static int32_t on_compact(uint32_t aging, const void *data, uint32_t len)
{
    return called(COMPACT, aging, data, len);
}

static int32_t on_additional(uint32_t aging, const void *data, uint32_t len)
{
    return called(ADDITIONAL, aging, data, len);
}

static int32_t on_type_info(uint16_t level, uint32_t type, const char *name, size_t len)
{
    g_calls[TYPE_INFO]++;
    EXPECT(level, MSPROF_LEVEL_RUNTIME);
    EXPECT(type, KERNEL_LAUNCH);
    snprintf(g_name, sizeof g_name, "%.*s", (int)len, name);
    return THEIRS;
}

static uint64_t on_hash_id(const char *text, size_t len)
{
    g_calls[HASH_ID]++;
    snprintf(g_text, sizeof g_text, "%.*s", (int)len, text);
    return THEIRS;
}

static int8_t on_host_freq(void)
{
    g_calls[HOST_FREQ]++;
    return 1;
}

static int32_t on_device(void *data, uint32_t len)
{
    int number = g_calls[DEVICE]++;
    EXPECT(len, 12);
    if (number < DEVICES_MAX) {
        memcpy(&g_devices[number], data, 9);
    }
    return THEIRS;
}

static int32_t register_one(int kind, void *callback)
{
    return MsprofRegisterProfileCallback(kind, callback, sizeof callback);
}

static void *const g_reports[KINDS] = {
    [COMPACT] = (void *)on_compact,
    [ADDITIONAL] = (void *)on_additional,
    [API] = (void *)on_api,
    [EVENT] = (void *)on_event,
};

static void register_reports(bool wanted)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (g_reports[kind] != NULL) {
            EXPECT(register_one(kind, wanted ? g_reports[kind] : NULL), 0);
        }
    }
}

/* One report of each kind; `result` is what each gives. */
static void report_each(int32_t result)
{
    static struct MsprofAdditionalInfo large[2];
    struct MsprofApi api = good_api();
    struct MsprofEvent event = good_event();
    struct MsprofCompactInfo compact = good_compact();
    struct MsprofAdditionalInfo additional = good_additional();
    bool theirs = result != 0;
    large[0] = additional;
    large[0].level = MSPROF_LEVEL_NODE;
    large[0].dataLen = 276;
    EXPECT(MsprofReportApi(1, &api), result);
    EXPECT(!theirs || (g_data == &api && g_aging == 1), 1);
    EXPECT(MsprofReportEvent(0, &event), result);
    EXPECT(!theirs || (g_data == &event && g_aging == 0), 1);
    EXPECT(MsprofReportCompactInfo(1, &compact, sizeof compact), result);
    EXPECT(!theirs || (g_data == &compact && g_aging == 1 && g_len == 64), 1);
    EXPECT(MsprofReportAdditionalInfo(0, &additional, sizeof additional), result);
    EXPECT(!theirs || (g_data == &additional && g_len == 256), 1);
    EXPECT(MsprofReportAdditionalInfo(0, large, 300), result);
    EXPECT(!theirs || (g_data == large && g_len == 300), 1);
    EXPECT(AdprofReportAdditionalInfo(0, &additional, 100), result);
    EXPECT(!theirs || (g_data == &additional && g_len == 100), 1);
}

static void expect_calls(int api, int event, int compact, int additional)
{
    EXPECT(g_calls[API], api);
    EXPECT(g_calls[EVENT], event);
    EXPECT(g_calls[COMPACT], compact);
    EXPECT(g_calls[ADDITIONAL], additional);
    g_calls[API] = g_calls[EVENT] = g_calls[COMPACT] = g_calls[ADDITIONAL] = 0;
}

/* Reports that no callback gets: batches, and nothing at all. */
static void report_others(void)
{
    static struct MsprofAdditionalInfo batch[BATCH];
    for (int i = 0; i < BATCH; i++) {
        batch[i] = good_additional();
    }
    EXPECT(MsprofReportBatchAdditionalInfo(0, batch, sizeof batch), 0);
}

static void report_nulls(int bad)
{
    EXPECT(MsprofReportApi(0, NULL), bad);
    EXPECT(MsprofReportEvent(0, NULL), bad);
    EXPECT(MsprofReportCompactInfo(0, NULL, 64), bad);
    EXPECT(MsprofReportAdditionalInfo(0, NULL, 256), bad);
}

static void register_all(void)
{
    g_phase = "register";
    EXPECT(MsprofNotifySetDevice(3, 0, true), 0);
    EXPECT(MsprofNotifySetDevice(3, 1, true), 0);
    EXPECT(MsprofNotifySetDevice(3, 1, false), 0);
    EXPECT(register_one(-1, (void *)on_api), BAD);
    EXPECT(register_one(KINDS, (void *)on_api), BAD);
    for (int kind = 0; kind < KINDS; kind++) {
        EXPECT(register_one(kind, NULL), BAD);
    }
    /* Those that are not called, whatever they are. */
    for (int kind = 0; kind < KINDS; kind++) {
        bool is_called = g_reports[kind] != NULL || kind == TYPE_INFO || kind == HASH_ID || kind == DEVICE;
        if (!is_called) {
            EXPECT(register_one(kind, (void *)on_host_freq), 0);
        }
    }
    EXPECT(register_one(TYPE_INFO, (void *)on_type_info), 0);
    EXPECT(register_one(HASH_ID, (void *)on_hash_id), 0);
    EXPECT(register_one(DEVICE, (void *)on_device), 0);
    EXPECT(g_calls[DEVICE], 2);
    EXPECT(g_devices[0].chip == 3 && g_devices[0].device == 0 && g_devices[0].open, 1);
    EXPECT(g_devices[1].chip == 3 && g_devices[1].device == 1 && !g_devices[1].open, 1);
    register_reports(true);
}

static void observed_calls(void)
{
    g_calls[TYPE_INFO] = g_calls[HASH_ID] = g_calls[DEVICE] = 0;
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch"), 0);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, NULL), BAD);
    EXPECT(g_calls[TYPE_INFO], 1);
    EXPECT_TEXT(g_name, "KernelLaunch");
    uint64_t id = MsprofGetHashId("conv1 and more", 5);
    EXPECT(id != THEIRS && id == MsprofStr2Id("conv1", 5), 1);
    EXPECT(id == ProfStr2Id("conv1", 5) && id == AdprofGetHashId("conv1", 5), 1);
    EXPECT_TEXT(MsprofId2Str(id), "conv1");
    EXPECT(g_calls[HASH_ID], 4);
    EXPECT_TEXT(g_text, "conv1");
    EXPECT(MsprofGetHashId(NULL, 5) == UINT64_MAX && MsprofGetHashId("x", 0) == UINT64_MAX, 1);
    EXPECT(g_calls[HASH_ID], 4);
    EXPECT(MsprofNotifySetDevice(3, 2, true), 0);
    EXPECT(MsprofNotifySetDevice(3, 2, true), 0);
    EXPECT(MsprofNotifySetDevice(3, 2, false), 0);
    EXPECT(g_calls[DEVICE], 3);
    EXPECT(MsprofHostFreqIsEnable(), false);
    EXPECT(g_calls[HOST_FREQ], 0);
}

static void start(const char *dir)
{
    EXPECT(msprof_agent_start("--runtime-api=on --model-execution=on --aicpu=on", dir), 0);
}

static void stop(void)
{
    char path[4096];
    EXPECT(msprof_agent_stop(path, sizeof path), 0);
    printf("capture %s\n", path);
}

/* In a child the other tool is as well. */
static void in_child(void)
{
    g_phase = "child";
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        report_each(THEIRS);
        expect_calls(1, 1, 1, 3);
        report_others();
        g_calls[DEVICE] = 0;
        EXPECT(register_one(DEVICE, (void *)on_device), 0);
        EXPECT(g_calls[DEVICE], 3);
        fflush(stdout);
        _exit(g_wrong != 0);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0), child);
    EXPECT(status, 0);
}

static int32_t inner(void)
{
    struct MsprofEvent event = good_event();
    g_inner = NULL; /* once */
    EXPECT(MsprofReportEvent(0, &event), THEIRS);
    report_others();
    (void)MsprofGetHashId("inner", 5);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch"), 0);
    EXPECT(MsprofNotifySetDevice(3, 3, true), 0);
    EXPECT(MsprofNotifySetDevice(3, 3, false), 0);
    EXPECT(register_one(COMPACT, NULL), 0);
    EXPECT(register_one(COMPACT, (void *)on_compact), 0);
    stop();
    return THEIRS;
}

static sem_t g_entered, g_go;

static int32_t hanging(void)
{
    g_inner = NULL;
    sem_post(&g_entered);
    sem_wait(&g_go);
    return THEIRS;
}

static void *report_one(void *unused)
{
    struct MsprofApi api = good_api();
    EXPECT(MsprofReportApi(1, &api), THEIRS);
    return unused;
}

static void hang(const char *dir)
{
    pthread_t thread;
    sem_init(&g_entered, 0, 0);
    sem_init(&g_go, 0, 0);
    g_inner = hanging;
    start(dir);
    EXPECT(pthread_create(&thread, NULL, report_one, NULL), 0);
    sem_wait(&g_entered);
    report_others();
    register_reports(false);
    EXPECT(report(1), 0);
    stop();
    sem_post(&g_go);
    pthread_join(thread, NULL);
}

int main(int argc, char **words)
{
    if (argc != 2) {
        return 2;
    }
    register_all();
    g_phase = "idle";
    report_each(THEIRS);
    expect_calls(1, 1, 1, 3);
    report_others();
    report_nulls(0);
    expect_calls(0, 0, 0, 0);
    observed_calls();

    g_phase = "capturing";
    start(words[1]);
    report_each(THEIRS);
    expect_calls(1, 1, 1, 3);
    report_others();
    report_nulls(BAD);
    expect_calls(0, 0, 0, 0);
    observed_calls();
    stop();
    in_child();

    g_phase = "given back";
    start(words[1]);
    report_each(THEIRS);
    expect_calls(1, 1, 1, 3);
    register_reports(false);
    report_each(0);
    expect_calls(0, 0, 0, 0);
    EXPECT(register_one(API, (void *)on_api), 0);
    EXPECT(report(1), THEIRS);
    EXPECT(register_one(API, NULL), 0);
    EXPECT(report(2), 0);
    stop();
    EXPECT(report(3), 0);
    expect_calls(1, 0, 0, 0);
    register_reports(true);

    g_phase = "inner";
    start(words[1]);
    g_inner = inner;
    EXPECT(report(1), THEIRS);
    expect_calls(1, 1, 0, 0);

    g_phase = "hanging";
    hang(words[1]);
    return g_wrong == 0 ? 0 : 1;
}
