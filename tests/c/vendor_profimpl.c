/* A stand-in for the vendor's libprofimpl.so: says what it was told. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

enum { FREE_RAM = 1 << 20 };

struct impl_info {
    size_t free_ram;
    uint32_t kind;
    bool init;
};

static uint32_t g_kind;
static int g_devices;
static bool g_has_pop;

EXPORT int32_t MsprofInit(uint32_t kind, void *data, uint32_t len)
{
    (void)data;
    (void)len;
    g_kind = kind;
    return 0;
}

EXPORT int32_t MsprofFinalize(void)
{
    return 0;
}

EXPORT int32_t MsprofRegisterCallback(uint32_t module, void *handler)
{
    (void)module;
    (void)handler;
    return 0;
}

EXPORT int32_t MsprofNotifySetDevice(uint32_t chip, uint32_t device, bool open)
{
    (void)chip;
    (void)device;
    g_devices += open ? 1 : -1;
    return 0;
}

EXPORT void ProfImplGetImplInfo(struct impl_info *info)
{
    info->free_ram = FREE_RAM;
    info->init = true;
}

EXPORT void ProfImplSetApiBufPop(void *pop)
{
    g_has_pop = pop != NULL;
}

EXPORT const char *impl_said(void)
{
    static char text[64];
    snprintf(text, sizeof text, "init %u, %d device, api pop %d", g_kind, g_devices, g_has_pop);
    return text;
}
