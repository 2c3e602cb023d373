/*
 * Calls every function of the header with good and with bad arguments and checks
 * what the header says of the results: while nothing is captured, while a capture
 * runs, and after it.
 *
 *   every_call <output directory>     the capture is the program's own
 *   every_call                        nothing is captured at any time
 *
 * Prints the PROF directory.  Exit status 0, or 1 with a line for each wrong result.
 */
#include "expect.h"
#include "layouts.h"
#include "report_calls.h"

#include <stdlib.h>

enum { ERROR = 5, MODE_CONFLICT = 100042 };

/* ---- names, devices, clocks ---------------------------------------------- */

static uint64_t expected_id(const char *text)
{
    uint32_t high = 0;
    uint32_t low = 0;
    for (const char *c = text; *c != '\0'; c++) {
        high = high * 29u + (uint32_t)*c;
        low = low * 131u + (uint32_t)*c;
    }
    return (uint64_t)high << 32 | low;
}

static void name_calls(void)
{
    const char *names[] = {"item", "a", "conv1/kernel:0", "\xC3\xA4\xFF", "a,\"b\"\r\nc:"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t id = MsprofGetHashId(names[i], strlen(names[i]));
        EXPECT(id == expected_id(names[i]), 1);
        EXPECT(MsprofStr2Id(names[i], strlen(names[i])) == id, 1);
        EXPECT(ProfStr2Id(names[i], strlen(names[i])) == id, 1);
        EXPECT(AdprofGetHashId(names[i], strlen(names[i])) == id, 1);
        EXPECT_TEXT(MsprofId2Str(id), names[i]);
    }
    EXPECT(MsprofGetHashId(NULL, 5) == UINT64_MAX, 1);
    EXPECT(MsprofGetHashId("", 0) == UINT64_MAX, 1);
    EXPECT(MsprofGetHashId("item", 0) == UINT64_MAX, 1);
    EXPECT_TEXT(MsprofId2Str(0x0123456789ABCDEF), "");
    EXPECT_TEXT(MsprofId2Str(0), "");

    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch"), 0);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch"), 0);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_MODEL, 1, "ModelExecute"), 0);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, 1098, "a,\"b\"\n1:2"), 0);
    EXPECT(MsprofRegTypeInfo(UNKNOWN_LEVEL, 1, "of an unknown level"), 0);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, 1099, ""), 0);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, NULL), BAD);
    EXPECT(MsprofRegDataFormat(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "u32:a"), 0);
    EXPECT(MsprofRegDataFormat(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, NULL), BAD);
}

static int32_t handler(uint32_t type, void *data, uint32_t len)
{
    (void)type;
    (void)data;
    (void)len;
    return 507000; /* ignored */
}

static int32_t receive_raw(void *data)
{
    (void)data;
    return 0;
}

static void device_calls(int others)
{
    EXPECT(MsprofRegisterCallback(7, handler), 0);
    EXPECT(MsprofRegisterCallback(7, handler), 0);
    EXPECT(MsprofRegisterCallback(123456, handler), 0);
    EXPECT(MsprofRegisterCallback(7, NULL), BAD);
    EXPECT(ProfAclDrvGetDevNum(), others);
    EXPECT(MsprofNotifySetDevice(0, 63, true), 0);
    EXPECT(MsprofNotifySetDevice(0, 63, true), 0);
    EXPECT(ProfAclDrvGetDevNum(), others + 1);
    EXPECT(MsprofNotifySetDevice(0, 64, true), BAD);
    EXPECT(MsprofNotifySetDevice(0, 0x7FFFFFFF, true), BAD);
    EXPECT(MsprofNotifySetDevice(0, 0x80000001, true), 0);
    EXPECT(ProfAclDrvGetDevNum(), others + 1);
    EXPECT(MsprofNotifySetDevice(0, 63, false), 0);
    EXPECT(MsprofNotifySetDevice(0, 63, false), 0);
    EXPECT(MsprofNotifySetDevice(0, 0x80000001, false), 0);
    EXPECT(ProfAclDrvGetDevNum(), others);
    EXPECT(MsprofSetDeviceIdByGeModelIdx(1, 0), 0);
    EXPECT(MsprofUnsetDeviceIdByGeModelIdx(1, 0), 0);
    EXPECT(MsprofUnsetDeviceIdByGeModelIdx(1, 0), 0);
}

static void clock_calls(void)
{
    EXPECT(MsprofHostFreqIsEnable(), false);
    uint64_t before = MsprofSysCycleTime();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = MsprofSysCycleTime();
        EXPECT(now >= before, 1);
        before = now;
    }
}

/* ---- calls of other profiling modes --------------------------------------- */

static void other_mode_calls(void)
{
    EXPECT(MsprofInit(0xFF, NULL, 0), 0);
    EXPECT(MsprofInit(1, (void *)"{}", 2), 0);
    EXPECT(MsprofInit(12345, NULL, 99), 0);
    EXPECT(MsprofStart(0, NULL, 0), 0);
    EXPECT(MsprofStop(0, NULL, 0), 0);
    EXPECT(MsprofSetConfig(0, NULL, 7), 0);
    EXPECT(profSetProfCommand(NULL, 0), 0);
    EXPECT(profSetStepInfo(1, 2, NULL), 0);
    EXPECT(MsprofRegisterProfileCallback(9, NULL, 0), BAD);
    EXPECT(MsprofSubscribeRawData(NULL), BAD);
    EXPECT(MsprofSubscribeRawData(receive_raw), 0);
    EXPECT(MsprofUnSubscribeRawData(), 0);
    EXPECT(MsprofCheckOpSwitch(0, NULL, 0), false);
    EXPECT(MsprofCheckOpSwitch(0, "MatMul", 6), false);
    EXPECT(MsprofCheckOpSwitch(1, "MatMul", 6), false);

    EXPECT(ProfAclInit(0, NULL, 0), MODE_CONFLICT);
    EXPECT(ProfAclWarmup(0, NULL), MODE_CONFLICT);
    EXPECT(ProfAclStart(0, NULL), MODE_CONFLICT);
    EXPECT(ProfAclStop(0, NULL), MODE_CONFLICT);
    EXPECT(ProfAclFinalize(0), MODE_CONFLICT);
    EXPECT(ProfAclSetConfig(0, NULL, 0), MODE_CONFLICT);
    EXPECT(ProfAclSubscribe(0, 0, NULL), MODE_CONFLICT);
    EXPECT(ProfAclUnSubscribe(0, 0), MODE_CONFLICT);
    EXPECT(ProfOpSubscribe(0, NULL), MODE_CONFLICT);
    EXPECT(ProfOpUnSubscribe(0), MODE_CONFLICT);
    EXPECT(ProfAclGetOpVal(0, NULL, 0, 0, NULL, 0), MODE_CONFLICT);
    EXPECT(ProfAclGetOpTime(0, NULL, 0, 0), 0);
    EXPECT(ProfAclGetId(0, NULL, 0, 0), 0);
    EXPECT(ProfAclGetOpAttriVal(0, NULL, 0, 0, 0) == NULL, 1);
    EXPECT(ProfGetOpExecutionTime(NULL, 0, 0), 0);
    size_t count = 99;
    void *features = &count;
    EXPECT(ProfAclGetCompatibleFeatures(&count, &features), 0);
    EXPECT(count, 0);
    EXPECT(features == NULL, 1);
    EXPECT(ProfAclGetCompatibleFeatures(NULL, &features), BAD);
    EXPECT(ProfAclGetCompatibleFeatures(&count, NULL), BAD);
    EXPECT(ProfAclGetCompatibleFeaturesV2(&count, &features), 0);
    EXPECT(ProfAclGetCompatibleFeaturesV2(NULL, NULL), BAD);
    EXPECT(ProfAclRegisterDeviceCallback(), 0);
}

static void stamp_calls(void)
{
    void *stamp = ProfAclCreateStamp();
    EXPECT(stamp != NULL, 1);
    uint32_t range = 0;
    EXPECT(ProfAclRangeStart(stamp, &range), 0);
    EXPECT(range != 0, 1);
    EXPECT(ProfAclRangeStart(stamp, NULL), -1);
    ProfAclDestroyStamp(stamp);
    ProfAclDestroyStamp(NULL);
    ProfEnableMstxFunc(0);
    ProfRegisterMstxFunc(NULL, 0);
    EXPECT(InitInjectionMstx(NULL) != 0, 1);
}

/* ---- the agent's own API ------------------------------------------------- */

static void status_calls(uint32_t state)
{
    struct MsprofAgentStatus status;
    memset(&status, 0xEE, sizeof status);
    status.size = sizeof status;
    EXPECT(msprof_agent_status(&status), 0);
    EXPECT(status.state, state);
    EXPECT(status.pid, getpid());
    EXPECT(status.lost, 0);
    memset(&status, 0xEE, sizeof status);
    status.size = 16; /* of a program built with an older header */
    EXPECT(msprof_agent_status(&status), 0);
    EXPECT(status.state, state);
    EXPECT(status.captures == 0xEEEEEEEEEEEEEEEE, 1);
    status.size = 15;
    EXPECT(msprof_agent_status(&status), BAD);
    status.size = 0;
    EXPECT(msprof_agent_status(&status), BAD);
    EXPECT(msprof_agent_status(NULL), BAD);
    struct {
        struct MsprofAgentStatus known;
        uint64_t of_a_later_version;
    } later;
    memset(&later, 0xEE, sizeof later);
    later.known.size = sizeof later;
    EXPECT(msprof_agent_status(&later.known), 0);
    EXPECT(later.of_a_later_version == 0xEEEEEEEEEEEEEEEE, 1);
    EXPECT(strlen(msprof_agent_version()) >= 5, 1);
}

static void error_calls(void)
{
    char text[256];
    EXPECT(msprof_agent_start("--no-such-option=on", NULL), BAD);
    size_t len = msprof_agent_last_error(text, sizeof text);
    EXPECT(len, strlen(text));
    EXPECT(strstr(text, "no-such-option") != NULL, 1);
    EXPECT(msprof_agent_last_error(NULL, 0), len);
    memset(text, 'x', sizeof text);
    EXPECT(msprof_agent_last_error(text, 5), len);
    EXPECT(text[4], '\0');
    EXPECT(text[5], 'x');
    EXPECT(msprof_agent_start("--runtime-api=perhaps", NULL), BAD);
    EXPECT(msprof_agent_start("\xFF\xFE", NULL), BAD);
    EXPECT(msprof_agent_start("--storage-limit=1MB", NULL), BAD);
    EXPECT(msprof_agent_start("", "/dev/null/nowhere"), ERROR);
    EXPECT(msprof_agent_last_error(text, sizeof text) > 0, 1);
}

static void range_calls(int bad_pop)
{
    EXPECT(msprof_agent_push(NULL), BAD);
    EXPECT(msprof_agent_push(""), BAD);
    EXPECT(msprof_agent_push("outer"), 0);
    EXPECT(msprof_agent_push("inner, \"quoted\""), 0);
    EXPECT(msprof_agent_pop(), 0);
    EXPECT(msprof_agent_pop(), 0);
    EXPECT(msprof_agent_pop(), bad_pop);
    int deepest = 0;
    while (deepest < 100 && msprof_agent_push("deep") == 0) {
        deepest++;
    }
    EXPECT(deepest, bad_pop == 0 ? 100 : 64);
    for (int i = 0; i < deepest; i++) {
        EXPECT(msprof_agent_pop(), 0);
    }
    EXPECT(msprof_agent_pop(), bad_pop);
}

/* ---- phases -------------------------------------------------------------- */

static void every_call(const char *phase, int bad_report, uint32_t state)
{
    int capturing = bad_report != 0;
    g_phase = phase;
    status_calls(state);
    name_calls();
    device_calls(capturing);
    clock_calls();
    report_calls(bad_report);
    additional_calls(bad_report, MsprofReportAdditionalInfo);
    additional_calls(bad_report, AdprofReportAdditionalInfo);
    batch_calls(bad_report, MsprofReportBatchAdditionalInfo);
    batch_calls(bad_report, AdprofReportBatchAdditionalInfo);
    variable_call();
    EXPECT(MsprofGetBatchReportMaxSize(0), BATCH_MAX);
    EXPECT(MsprofGetBatchReportMaxSize(1), 0);
    EXPECT(AdprofGetBatchReportMaxSize(0), BATCH_MAX);
    EXPECT(AdprofGetBatchReportMaxSize(77), 0);
    EXPECT(AdprofCheckFeatureIsOn(0x8), capturing);
    EXPECT(AdprofCheckFeatureIsOn(0), 0);
    EXPECT(AdprofCheckFeatureIsOn(0x4), 0);
    old_reporter_calls(bad_report);
    other_mode_calls();
    stamp_calls();
    error_calls();
    range_calls(capturing ? ERROR : 0);
    status_calls(state);
}

static void own_capture(const char *output)
{
    EXPECT(MsprofNotifySetDevice(0, 0, true), 0);
    EXPECT(msprof_agent_start("--runtime-api=on --model-execution=on --aicpu=on", output), 0);
    EXPECT(msprof_agent_start(NULL, output), ERROR);
    char inside[4096];
    snprintf(inside, sizeof inside, "%s", MsprofGetPath());
    EXPECT(strncmp(inside, output, strlen(output)), 0);

    every_call("capturing", BAD, MSPROF_AGENT_CAPTURING);

    char path[4096];
    g_phase = "stop";
    EXPECT(msprof_agent_stop(path, sizeof path), 0);
    EXPECT_TEXT(path, inside);
    EXPECT_TEXT(MsprofGetPath(), "");
    EXPECT(msprof_agent_stop(path, sizeof path), ERROR);
    EXPECT(MsprofNotifySetDevice(0, 0, false), 0);
    puts(inside);

    EXPECT(msprof_agent_start(NULL, output), 0);
    char cut[8] = "xxxxxxx";
    EXPECT(msprof_agent_stop(cut, 6), 0);
    EXPECT(strlen(cut), 5);
    EXPECT(cut[6], 'x');
    EXPECT(msprof_agent_start(NULL, output), 0);
    EXPECT(msprof_agent_stop(NULL, 0), 0);
}

int main(int argc, char **argv)
{
    const char *mode = getenv("PROFILING_MODE");
    int dynamic = mode != NULL && strcmp(mode, "dynamic") == 0;
    uint32_t idle = dynamic ? MSPROF_AGENT_IDLE : MSPROF_AGENT_INERT;
    every_call("idle", 0, idle);
    EXPECT_TEXT(MsprofGetPath(), "");
    EXPECT(msprof_agent_stop(NULL, 0), ERROR);
    if (argc > 1) {
        own_capture(argv[1]);
        every_call("after", 0, idle);
    }
    EXPECT(MsprofFinalize(), 0);
    EXPECT(MsprofFinalize(), 0);
    if (argc > 1) {
        every_call("finalized", 0, idle);
    }
    return g_wrong == 0 ? 0 : 1;
}
