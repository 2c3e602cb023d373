/* What is known of the device's CPU: records that came from it, and those of the old interface. */
#ifndef FAMILY_AICPU_H
#define FAMILY_AICPU_H

#include "family.h"

enum { MODEL = 1 };

/* ---- the device's CPU ------------------------------------------------------ */

static inline void of_aicpu(uint32_t device)
{
    char family[32];
    snprintf(family, sizeof family, "aicpu.data.%u", device);
    EXPECT(MsprofReportAdditionalInfo(AGING, g_record, ADDITIONAL), 0);
    account_for(device == 0 ? "device_0" : "device_1", family, g_record, ADDITIONAL);
}

static inline void aicpu(void)
{
    begin(MSPROF_LEVEL_AICPU, 0, 120, at(690));
    U16(24, 2);
    U16(26, 12);
    U64(32, 1000000);
    U64(40, at(640));
    U64(48, 1000010);
    U64(56, 1000510);
    U64(64, 1000710);
    U64(72, 1000720);
    U64(80, at(680));
    U32(88, g_thread);
    U32(92, 0);
    U64(96, at(636));
    U64(104, at(637));
    U64(112, at(638));
    U64(120, at(686));
    U32(128, 1);
    U32(132, 25);
    U32(136, 50);
    U8(142, 1);
    of_aicpu(0);
    /* Those below name no device: of two open ones the first. */
    begin(MSPROF_LEVEL_AICPU, 1, 112, at(1600));
    text(24, "Last queue deque", 16);
    text(40, "iterator_default", 64);
    U64(104, 1);
    U64(112, 131);
    of_aicpu(0);
    begin(MSPROF_LEVEL_AICPU, 2, 24, at(1610));
    U64(24, 9);
    U32(32, MODEL);
    U16(36, 3);
    U64(40, 88);
    of_aicpu(0);
    begin(MSPROF_LEVEL_AICPU, 3, 32, at(1620));
    U32(24, 1);
    U64(32, 4);
    U64(40, 1000800);
    U64(48, 1000900);
    of_aicpu(0);
}

/* ---- the old interface ----------------------------------------------------- */

static inline void report_old(const char *tag, int32_t device, const void *data, size_t size)
{
    struct {
        char tag[64];
        int32_t device;
        uint64_t len;
        const void *data;
    } report = {.device = device, .len = size, .data = data};
    _Static_assert(sizeof report == 88, "the layout of the call");
    snprintf(report.tag, sizeof report.tag, "%s", tag);
    EXPECT(MsprofReportData(0, 0, &report, sizeof report), 0);
    char family[96];
    snprintf(family, sizeof family, "DATA_PREPROCESS.%s.%d", tag, device);
    account_for(device == 1 ? "device_1" : "host", family, data, size);
}

static inline void old_head(uint16_t tag)
{
    memset(g_record, 0, sizeof g_record);
    U16(0, MSPROF_MAGIC);
    U16(2, tag);
}

static inline void by_the_old_interface(void)
{
    old_head(60);
    U16(4, 3);
    U16(6, 14);
    U64(8, 2000000);
    U64(16, at(1640));
    U64(24, 2000010);
    U64(32, 2000310);
    U64(40, 2000410);
    U64(48, 2000420);
    U64(56, at(1670));
    U32(64, g_thread);
    U32(68, 1);
    U64(72, at(1630));
    U64(80, at(1631));
    U64(88, at(1632));
    U64(96, at(1680));
    U32(104, 1);
    U32(108, 35);
    U32(112, 60);
    U8(118, 1);
    report_old("AICPU", 1, g_record, 128);
    old_head(100);
    U64(8, at(1700));
    text(16, "Last queue deque", 16);
    text(32, "iterator_binary", 64);
    U64(96, 2);
    U64(104, 17);
    report_old("DP", 1, g_record, 128);
    old_head(61);
    U64(8, at(1710));
    U64(16, 10);
    U32(24, MODEL);
    U16(28, 3);
    U64(32, 99);
    report_old("AICPU_MODEL", 1, g_record, 64);
    static const char waited[] = "Node:GetNext_dequeue_wait, queue size:6, run start:1001000, run end:1001100\n";
    report_old("AICPUMI", 1, waited, sizeof waited);
    char line[128];
    int len = snprintf(line, sizeof line, "[%" PRIu64 "] Last queue dequeue, source:iterator_text, index:3, size:23\n",
                       at(1720));
    report_old("DP", 64, line, (size_t)len + 1);
}

#endif
