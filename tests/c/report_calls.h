/* Every call that reports, with good and with bad arguments. */
#ifndef REPORT_CALLS_H
#define REPORT_CALLS_H

#include "expect.h"
#include "good_records.h"

enum { BAD = -1 };
enum { UNKNOWN_LEVEL = 4500 };
enum { BATCH = 4, BATCH_MAX = 131072, VARIABLE_MAX = 65536 };

/* ---- reports ------------------------------------------------------------- */

/* `bad` is what a wrong argument gives: 0 while nothing is captured. */
static void report_calls(int bad)
{
    struct MsprofApi api = good_api();
    EXPECT(MsprofReportApi(0, &api), 0);
    EXPECT(MsprofReportApi(1, &api), 0);
    EXPECT(MsprofReportApi(0xFFFFFFFF, &api), 0);
    EXPECT(MsprofReportApi(0, NULL), bad);
    api.magicNumber = 0x1234;
    EXPECT(MsprofReportApi(0, &api), bad);
    api = good_api();
    api.level = UNKNOWN_LEVEL; /* refused in silence: no fault of the caller's */
    EXPECT(MsprofReportApi(0, &api), 0);
    api.level = 0xFFFF;
    EXPECT(MsprofReportApi(0, &api), 0);

    struct MsprofEvent event = good_event();
    EXPECT(MsprofReportEvent(0, &event), 0);
    EXPECT(MsprofReportEvent(0, &event), 0);
    EXPECT(MsprofReportEvent(0, NULL), bad);
    event.magicNumber = 0;
    EXPECT(MsprofReportEvent(0, &event), bad);

    struct MsprofCompactInfo compact = good_compact();
    EXPECT(MsprofReportCompactInfo(0, &compact, sizeof compact), 0);
    EXPECT(MsprofReportCompactInfo(0, &compact, 63), bad);
    EXPECT(MsprofReportCompactInfo(0, &compact, 65), bad);
    EXPECT(MsprofReportCompactInfo(0, &compact, 0), bad);
    EXPECT(MsprofReportCompactInfo(0, NULL, 64), bad);
    compact.magicNumber = 0xA5A5;
    EXPECT(MsprofReportCompactInfo(0, &compact, sizeof compact), bad);
}

static void additional_calls(int bad, int32_t (*report)(uint32_t, const void *, uint32_t))
{
    static struct MsprofAdditionalInfo large[VARIABLE_MAX / 256 + 1];
    large[0] = good_additional();
    EXPECT(report(0, large, 256), 0);
    EXPECT(report(1, large, 256), 0);
    EXPECT(report(0, large, 144), 0); /* one record all the same */
    EXPECT(report(0, large, 24), 0);
    EXPECT(report(0, large, 23), bad);
    EXPECT(report(0, large, 0), bad);
    EXPECT(report(0, large, VARIABLE_MAX + 1), bad);
    EXPECT(report(0, large, 0xFFFFFFFF), bad);
    EXPECT(report(0, NULL, 256), bad);
    EXPECT(report(0, NULL, 0), bad);
    large[0].magicNumber = 1;
    EXPECT(report(0, large, 256), bad);
}

static void batch_calls(int bad, int32_t (*report)(uint32_t, const void *, uint32_t))
{
    static struct MsprofAdditionalInfo records[BATCH_MAX / 256 + 1];
    for (int i = 0; i < BATCH; i++) {
        records[i] = good_additional();
    }
    EXPECT(report(0, records, BATCH * 256), 0);
    EXPECT(report(0, records, BATCH * 256 + 1), bad);
    EXPECT(report(0, records, 0), bad);
    EXPECT(report(0, records, 255), bad);
    EXPECT(report(0, records, BATCH_MAX + 256), bad);
    EXPECT(report(0, NULL, 256), bad);
}

static void variable_call(void)
{
    static struct MsprofAdditionalInfo large[2];
    large[0] = good_additional();
    large[0].level = MSPROF_LEVEL_NODE;
    large[0].dataLen = 300 - 24;
    EXPECT(MsprofReportAdditionalInfo(0, large, 300), 0);
}

/* ---- the old reporter interface ------------------------------------------ */

typedef struct OldReport {
    char tag[64];
    int32_t device;
    uint64_t len;
    const void *data;
} OldReport;

typedef struct OldHash {
    int32_t device;
    uint64_t len;
    const char *text;
    uint64_t id;
} OldHash;
_Static_assert(sizeof(OldReport) == 88 && sizeof(OldHash) == 32, "old reporter");

static void old_reporter_calls(int bad)
{
    uint32_t most = 0;
    EXPECT(MsprofReportData(0, 1, NULL, 0), 0);
    EXPECT(MsprofReportData(0, 3, &most, sizeof most), 0);
    EXPECT(most, VARIABLE_MAX);
    EXPECT(MsprofReportData(0, 3, &most, 3), BAD);
    EXPECT(MsprofReportData(0, 3, NULL, 4), BAD);

    OldHash hash = {.len = 4, .text = "item"};
    EXPECT(MsprofReportData(0, 4, &hash, sizeof hash), 0);
    EXPECT(hash.id == MsprofGetHashId("item", 4), 1);
    EXPECT(MsprofReportData(0, 4, &hash, 31), BAD);
    hash.text = NULL;
    EXPECT(MsprofReportData(0, 4, &hash, sizeof hash), BAD);

    static uint8_t dp[128] = {0x5A, 0x5A, 100};
    OldReport report = {.tag = "DP", .device = 0, .len = sizeof dp, .data = dp};
    EXPECT(MsprofReportData(0, 0, &report, sizeof report), 0);
    EXPECT(MsprofReportData(0, 0, &report, 87), bad);
    EXPECT(MsprofReportData(0, 0, NULL, 88), bad);
    report.data = NULL;
    EXPECT(MsprofReportData(0, 0, &report, sizeof report), bad);
    report.data = dp;
    report.len = VARIABLE_MAX + 1;
    EXPECT(MsprofReportData(0, 0, &report, sizeof report), bad);
    report.len = 0;
    EXPECT(MsprofReportData(0, 0, &report, sizeof report), bad);
    report.len = sizeof dp;
    memset(report.tag, 'x', sizeof report.tag); /* without an end */
    EXPECT(MsprofReportData(0, 0, &report, sizeof report), 0);

    for (uint32_t module = 1; module <= 4; module++) {
        for (uint32_t type = 0; type <= 5; type++) {
            EXPECT(MsprofReportData(module, type, NULL, 0), 0);
        }
    }
    EXPECT(MsprofReportData(0, 9, NULL, 0), BAD);
    EXPECT(MsprofReportData(6, 1, NULL, 0), BAD);
    EXPECT(MsprofReportData(0xFFFFFFFF, 1, NULL, 0), BAD);
    EXPECT(MsprofReportData(0, 2, NULL, 0), 0);
}

#endif
