/*
 * libprofapi.so of the stand-in: the ABI without anybody behind it.
 *
 * It defines what the other three libraries import, so that the demo task runs
 * unprofiled when no agent is there.  Every call succeeds and nothing is kept.
 * An agent that is preloaded, linked first, or put in this file's place wins
 * over it by ordinary symbol lookup.
 */
#include "export.h"
#include "prof_abi.h"

#include <time.h>

CANN_EXPORT int32_t MsprofInit(uint32_t type, void *data, uint32_t len)
{
    (void)type;
    (void)data;
    (void)len;
    return 0;
}

CANN_EXPORT int32_t MsprofFinalize(void)
{
    return 0;
}

CANN_EXPORT int32_t MsprofRegisterCallback(uint32_t module, ProfHandler handler)
{
    (void)module;
    return handler == NULL ? -1 : 0;
}

CANN_EXPORT int32_t MsprofNotifySetDevice(uint32_t chip, uint32_t device, bool open)
{
    (void)chip;
    (void)device;
    (void)open;
    return 0;
}

CANN_EXPORT int32_t MsprofReportData(uint32_t module, uint32_t type, void *data, uint32_t len)
{
    (void)module;
    (void)type;
    (void)data;
    (void)len;
    return 0;
}

CANN_EXPORT int32_t MsprofReportApi(uint32_t aging, const ProfApi *api)
{
    (void)aging;
    (void)api;
    return 0;
}

CANN_EXPORT int32_t MsprofReportEvent(uint32_t aging, const ProfEvent *event)
{
    (void)aging;
    (void)event;
    return 0;
}

CANN_EXPORT int32_t MsprofReportCompactInfo(uint32_t aging, const void *data, uint32_t len)
{
    (void)aging;
    (void)data;
    (void)len;
    return 0;
}

CANN_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t aging, const void *data, uint32_t len)
{
    (void)aging;
    (void)data;
    (void)len;
    return 0;
}

CANN_EXPORT int32_t MsprofRegTypeInfo(uint16_t level, uint32_t type, const char *name)
{
    (void)level;
    (void)type;
    (void)name;
    return 0;
}

/* Bytes count as plain `char`, whose sign differs between the two architectures. */
CANN_EXPORT uint64_t MsprofGetHashId(const char *text, size_t len)
{
    if (text == NULL || len == 0) {
        return UINT64_MAX;
    }
    uint32_t high = 0;
    uint32_t low = 0;
    for (size_t i = 0; i < len; i++) {
        high = high * 29u + (uint32_t)text[i];
        low = low * 131u + (uint32_t)text[i];
    }
    return (uint64_t)high << 32 | low;
}

CANN_EXPORT uint64_t MsprofStr2Id(const char *text, size_t len)
{
    return MsprofGetHashId(text, len);
}

CANN_EXPORT uint64_t MsprofSysCycleTime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

CANN_EXPORT int32_t MsprofSetDeviceIdByGeModelIdx(uint32_t model, uint32_t device)
{
    (void)model;
    (void)device;
    return 0;
}

CANN_EXPORT int32_t MsprofUnsetDeviceIdByGeModelIdx(uint32_t model, uint32_t device)
{
    (void)model;
    (void)device;
    return 0;
}
