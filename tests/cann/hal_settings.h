/* What the environment asks of the driver; see hal.h. */
#ifndef CANN_HAL_SETTINGS_H
#define CANN_HAL_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { HAL_TYPES_MAX = 16 };

typedef struct HalSettings {
    bool devices[64];
    uint32_t late_ms[64];
    bool channels[2]; /* 143, 144 */
    uint64_t rate;
    uint64_t total;
    uint32_t types[HAL_TYPES_MAX];
    uint32_t type_count;
    uint64_t read_max; /* bytes */
    uint64_t hold;     /* records, as the one below */
    uint64_t buffer;
    uint32_t clock_mhz; /* 0: none */
    uint32_t chip;
    int32_t empty_code;
    int32_t start_code;
    uint32_t start_failures;
    bool garbage_magic;
    bool garbage_level;
    bool garbage_length;
    bool garbage_count;
    bool garbage_code;
    bool garbage_codes;
    bool keeps_bytes;
    const char *dir; /* NULL: none */
} HalSettings;

extern HalSettings g_hal;

/* Once, at load. */
void hal_read_settings(void);

#endif
