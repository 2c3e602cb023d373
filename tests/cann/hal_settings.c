#include "hal_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HalSettings g_hal;

static const char *text_of(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* A wrong setting would make a test pass for nothing. */
static void refuse(const char *name, const char *value)
{
    fprintf(stderr, "libascend_hal.so of the stand-in: %s=%s is wrong\n", name, value);
    abort();
}

static uint64_t number_of(const char *name, uint64_t low, uint64_t missing)
{
    const char *text = text_of(name);
    if (text == NULL) {
        return missing;
    }
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 10);
    if (*end != '\0' || value < low) {
        refuse(name, text);
    }
    return value;
}

/* Calls `take` with each word of "1:300,2": its number, and the one behind the colon or 0. */
static void words_of(const char *name, void (*take)(const char *name, long first, long second))
{
    const char *text = text_of(name);
    for (const char *at = text; at != NULL && *at != '\0';) {
        char *end = NULL;
        long first = strtol(at, &end, 10);
        long second = 0;
        if (end != at && *end == ':') {
            at = end + 1;
            second = strtol(at, &end, 10);
        }
        if (end == at || (*end != ',' && *end != '\0')) {
            refuse(name, text);
        }
        take(name, first, second);
        at = *end == ',' ? end + 1 : end;
    }
}

static void take_device(const char *name, long device, long late_ms)
{
    if (device < 0 || device >= 64 || late_ms < 0) {
        refuse(name, "a device or time");
    }
    g_hal.devices[device] = true;
    g_hal.late_ms[device] = (uint32_t)late_ms;
}

static void take_channel(const char *name, long channel, long unused)
{
    (void)unused;
    if (channel != 143 && channel != 144) {
        refuse(name, "a channel");
    }
    g_hal.channels[channel - 143] = true;
}

static void take_type(const char *name, long type, long unused)
{
    (void)unused;
    if (type < 0 || g_hal.type_count == HAL_TYPES_MAX) {
        refuse(name, "a type");
    }
    g_hal.types[g_hal.type_count++] = (uint32_t)type;
}

static void take_start(const char *name, long code, long times)
{
    (void)name;
    g_hal.start_code = (int32_t)code;
    g_hal.start_failures = (uint32_t)times;
}

static void take_empty(const char *name, long code, long unused)
{
    (void)name;
    (void)unused;
    g_hal.empty_code = (int32_t)code;
}

static bool is_asked(const char *name, const char *word)
{
    const char *text = text_of(name);
    size_t len = strlen(word);
    for (const char *at = text; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

void hal_read_settings(void)
{
    words_of("STANDIN_HAL_DEVICES", take_device);
    words_of("STANDIN_HAL_CHANNELS", take_channel);
    words_of("STANDIN_HAL_TYPES", take_type);
    words_of("STANDIN_HAL_START", take_start);
    words_of("STANDIN_HAL_EMPTY", take_empty);
    if (!g_hal.channels[0] && !g_hal.channels[1]) {
        g_hal.channels[0] = true;
    }
    if (g_hal.type_count == 0) {
        g_hal.type_count = 1; /* type 0 */
    }
    g_hal.rate = number_of("STANDIN_HAL_RATE", 0, 1000);
    g_hal.total = number_of("STANDIN_HAL_TOTAL", 0, UINT64_MAX);
    g_hal.read_max = number_of("STANDIN_HAL_READ_MAX", 1, UINT64_MAX);
    g_hal.hold = number_of("STANDIN_HAL_HOLD", 1, 1);
    g_hal.buffer = number_of("STANDIN_HAL_BUFFER", 1, 131072);
    g_hal.clock_mhz = (uint32_t)number_of("STANDIN_HAL_CLOCK", 1, 0);
    g_hal.chip = (uint32_t)number_of("STANDIN_HAL_CHIP", 0, 5);
    g_hal.garbage_magic = is_asked("STANDIN_HAL_GARBAGE", "magic");
    g_hal.garbage_level = is_asked("STANDIN_HAL_GARBAGE", "level");
    g_hal.garbage_length = is_asked("STANDIN_HAL_GARBAGE", "length");
    g_hal.garbage_count = is_asked("STANDIN_HAL_GARBAGE", "count");
    g_hal.garbage_code = is_asked("STANDIN_HAL_GARBAGE", "code");
    g_hal.garbage_codes = is_asked("STANDIN_HAL_GARBAGE", "codes");
    g_hal.keeps_bytes = is_asked("STANDIN_HAL_SERVED", "bytes");
    g_hal.dir = text_of("STANDIN_HAL_DIR");
    if (g_hal.dir != NULL) {
        g_hal.dir = strdup(g_hal.dir);
    }
}
