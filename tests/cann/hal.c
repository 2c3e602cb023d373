/*
 * The calls of libascend_hal.so.  What they do is told in hal.h.
 *
 * Devices run on no thread: how many records a channel has by now follows from the
 * clock, and a read makes those that it returns.
 */
#include "hal.h"

#include "hal_files.h"
#include "hal_settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define HAL_EXPORT __attribute__((visibility("default")))

enum { CHANNELS = 2 };
enum { GARBAGE_EVERY = 10, BAD_MAGIC_AT = 3, BAD_LEVEL_AT = 7 };
enum { BAD_LISTS = 3, FIRST_BAD_READ = 2, LAST_BAD_READ = 4 };
enum { PERIPHERAL = 1, PERIOD_OF_NEWER_CHIPS = 5, PERIOD = 10 };
/* Channels of other kinds, which every device has. */
static const uint32_t g_others[] = {2, 44, 47, 132};
enum { OTHERS = sizeof g_others / sizeof g_others[0] };

typedef struct Channel {
    pthread_mutex_t lock;
    uint32_t device;
    uint32_t id;
    bool started;
    uint32_t starts; /* also those that failed */
    uint64_t begin_ns;
    uint64_t base;    /* records of the starts before this one */
    uint64_t taken;   /* of this start: made or lost so far */
    uint64_t lost;    /* of this start */
    uint64_t flushed; /* so many can be read whatever is held back */
    bool was_flushed;
    uint32_t reads;
    uint8_t record[HAL_RECORD]; /* the one that a read has cut */
    uint32_t cut;               /* bytes of it that were returned; 0: none is cut */
    HalServed served;
} Channel;

static Channel g_channels[HAL_DEVICES][CHANNELS];
static _Atomic uint64_t g_first_look[HAL_DEVICES];
static _Atomic uint32_t g_looks[HAL_DEVICES];

__attribute__((constructor)) static void load(void)
{
    hal_read_settings();
    hal_hang("dlopen", 0, 0);
    for (uint32_t device = 0; device < HAL_DEVICES; device++) {
        for (uint32_t i = 0; i < CHANNELS; i++) {
            Channel *channel = &g_channels[device][i];
            pthread_mutex_init(&channel->lock, NULL);
            channel->device = device;
            channel->id = i == 0 ? HAL_CHANNEL_AICPU : HAL_CHANNEL_CUSTOM_AICPU;
        }
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- what a device has -------------------------------------------------- */

static bool is_there(uint32_t device)
{
    if (device >= HAL_DEVICES || !g_hal.devices[device] || hal_is_gone(device)) {
        return false;
    }
    uint64_t none = 0;
    uint64_t now = now_ns();
    atomic_compare_exchange_strong(&g_first_look[device], &none, now);
    return now - atomic_load(&g_first_look[device]) >= g_hal.late_ms[device] * UINT64_C(1000000);
}

static Channel *channel_of(uint32_t device, uint32_t id)
{
    if (device >= HAL_DEVICES || !g_hal.devices[device]) {
        return NULL;
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        if (g_channels[device][i].id == id && g_hal.channels[i]) {
            return &g_channels[device][i];
        }
    }
    return NULL;
}

HAL_EXPORT int prof_drv_get_channels(unsigned device, HalChannelList *list)
{
    hal_enter("prof_drv_get_channels", device, 0);
    if (list == NULL) {
        return HAL_ERROR;
    }
    if (device >= HAL_DEVICES) {
        return HAL_ERROR;
    }
    uint32_t count = 0;
    for (; count < OTHERS; count++) {
        list->channels[count].id = g_others[count];
    }
    if (is_there(device)) {
        for (uint32_t i = 0; i < CHANNELS; i++) {
            if (g_hal.channels[i]) {
                list->channels[count++].id = g_channels[device][i].id;
            }
        }
    }
    bool garbage = g_hal.garbage_count && atomic_fetch_add(&g_looks[device], 1) < BAD_LISTS;
    if (garbage) {
        memset(list->channels, 0xFF, sizeof list->channels);
    }
    list->count = garbage ? UINT32_MAX : count;
    return HAL_OK;
}

/* ---- records ------------------------------------------------------------ */

/* Records that the device has made since the start. */
static uint64_t made(const Channel *channel)
{
    uint64_t since = now_ns() - channel->begin_ns;
    if (since < HAL_DELAY_NS || g_hal.rate == 0) {
        return 0;
    }
    uint64_t second = UINT64_C(1000000000);
    since -= HAL_DELAY_NS;
    uint64_t count = since / second * g_hal.rate + since % second * g_hal.rate / second;
    return count < g_hal.total ? count : g_hal.total;
}

/* Records that can be read, of all that were made; drops what the driver has no room for. */
static uint64_t readable(Channel *channel)
{
    uint64_t count = made(channel) / g_hal.hold * g_hal.hold;
    count = count > channel->flushed ? count : channel->flushed;
    if (count - channel->taken > g_hal.buffer) {
        uint64_t excess = count - channel->taken - g_hal.buffer;
        channel->lost += excess;
        channel->taken += excess;
    }
    return count;
}

static void make_record(Channel *channel, uint8_t *to)
{
    uint64_t second = UINT64_C(1000000000);
    uint64_t k = channel->taken++;
    uint64_t since = k / g_hal.rate * second + k % g_hal.rate * second / g_hal.rate;
    HalMoment moment = {
        .begin_ns = channel->begin_ns + since,
        .number = channel->base + k + 1,
        .device = channel->device,
        .channel = channel->id,
    };
    uint32_t type = g_hal.types[moment.number % g_hal.type_count];
    hal_record(&moment, type, g_hal.clock_mhz, to);
    if (g_hal.garbage_magic && moment.number % GARBAGE_EVERY == BAD_MAGIC_AT) {
        to[0] = 0xA5;
    }
    if (g_hal.garbage_level && moment.number % GARBAGE_EVERY == BAD_LEVEL_AT) {
        to[2] = 0x94; /* 4500 */
        to[3] = 0x11;
    }
    hal_count_served(&channel->served, to);
}

static uint32_t at_most(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

static uint32_t fill(Channel *channel, uint8_t *buffer, uint32_t size)
{
    uint64_t count = readable(channel);
    uint32_t filled = 0;
    size = at_most(g_hal.read_max, size);
    while (filled < size) {
        uint32_t room = size - filled;
        if (channel->cut == 0 && channel->taken >= count) {
            break;
        }
        if (channel->cut == 0 && room >= HAL_RECORD) {
            make_record(channel, buffer + filled);
            filled += HAL_RECORD;
            continue;
        }
        if (channel->cut == 0) {
            make_record(channel, channel->record);
        }
        uint32_t part = at_most(HAL_RECORD - channel->cut, room);
        memcpy(buffer + filled, channel->record + channel->cut, part);
        channel->cut = (channel->cut + part) % HAL_RECORD;
        filled += part;
    }
    hal_keep_served(&channel->served, buffer, filled, channel->lost);
    return filled;
}

static void end_locked(Channel *channel)
{
    (void)readable(channel); /* what the driver has lost since the last read */
    hal_close_served(&channel->served, channel->lost);
    channel->started = false;
}

static int read_locked(Channel *channel, char *buffer, uint32_t size)
{
    if (!channel->started) {
        return HAL_STOPPED_ALREADY;
    }
    uint32_t turn = ++channel->reads;
    bool is_bad = turn >= FIRST_BAD_READ && (turn <= LAST_BAD_READ || g_hal.garbage_codes);
    if (is_bad && (g_hal.garbage_code || g_hal.garbage_codes)) {
        return HAL_UNKNOWN;
    }
    if (g_hal.garbage_length && turn == LAST_BAD_READ) {
        return (int)size + HAL_RECORD;
    }
    int filled = (int)fill(channel, (uint8_t *)buffer, size);
    return filled != 0 ? filled : g_hal.empty_code;
}

HAL_EXPORT int prof_channel_read(unsigned device, unsigned id, char *buffer, unsigned size)
{
    hal_enter("prof_channel_read", device, id);
    Channel *channel = channel_of(device, id);
    if (channel == NULL || buffer == NULL || size == 0 || size > INT32_MAX - HAL_RECORD) {
        return HAL_ERROR;
    }
    if (channel->was_flushed) {
        hal_hang("prof_channel_read.flushed", device, id);
    }
    pthread_mutex_lock(&channel->lock);
    if (channel->started && hal_is_gone(device)) {
        end_locked(channel);
    }
    int result = read_locked(channel, buffer, size);
    pthread_mutex_unlock(&channel->lock);
    return result;
}

/* ---- from start to stop ------------------------------------------------- */

static int start_locked(Channel *channel)
{
    channel->starts++;
    if (channel->started) {
        return HAL_STARTED_ALREADY;
    }
    if (channel->starts <= g_hal.start_failures) {
        return g_hal.start_code;
    }
    channel->started = true;
    channel->begin_ns = now_ns();
    channel->base += channel->taken;
    channel->taken = channel->lost = channel->flushed = 0;
    channel->was_flushed = false;
    channel->cut = channel->reads = 0;
    hal_open_served(&channel->served, channel->device, channel->id);
    return HAL_OK;
}

static bool is_right(const HalStart *start)
{
    return start != NULL && start->channel_type == PERIPHERAL && start->real_time == 1 &&
           (start->sample_period == PERIOD || start->sample_period == PERIOD_OF_NEWER_CHIPS) &&
           start->user_data == NULL && start->user_data_size == 0;
}

HAL_EXPORT int prof_drv_start(unsigned device, unsigned id, HalStart *start)
{
    hal_enter("prof_drv_start", device, id);
    Channel *channel = channel_of(device, id);
    int result = HAL_ERROR;
    if (channel != NULL && is_right(start) && is_there(device)) {
        pthread_mutex_lock(&channel->lock);
        result = start_locked(channel);
        pthread_mutex_unlock(&channel->lock);
    }
    return hal_leave("prof_drv_start", device, id, result);
}

HAL_EXPORT int prof_stop(unsigned device, unsigned id)
{
    hal_enter("prof_stop", device, id);
    Channel *channel = channel_of(device, id);
    int result = HAL_ERROR;
    if (channel != NULL) {
        pthread_mutex_lock(&channel->lock);
        result = HAL_STOPPED_ALREADY;
        if (channel->started) {
            end_locked(channel);
            result = channel->lost != 0 ? HAL_DATA_LOST : HAL_OK;
        }
        pthread_mutex_unlock(&channel->lock);
    }
    return hal_leave("prof_stop", device, id, result);
}

#ifndef HAL_OLD
HAL_EXPORT int halProfDataFlush(unsigned device, unsigned id, unsigned *bytes)
{
    hal_enter("halProfDataFlush", device, id);
    Channel *channel = channel_of(device, id);
    int result = HAL_ERROR;
    if (channel != NULL && bytes != NULL && !hal_is_gone(device)) {
        pthread_mutex_lock(&channel->lock);
        result = channel->started ? HAL_OK : HAL_STOPPED_ALREADY;
        if (channel->started) {
            channel->flushed = made(channel);
            channel->was_flushed = true;
            *bytes = at_most((readable(channel) - channel->taken) * HAL_RECORD, UINT32_MAX);
        }
        pthread_mutex_unlock(&channel->lock);
    }
    return hal_leave("halProfDataFlush", device, id, result);
}
#endif

/* ---- polling ------------------------------------------------------------ */

static int poll_once(HalPoll *out, int max, bool *any_started)
{
    int found = 0;
    for (uint32_t device = 0; device < HAL_DEVICES; device++) {
        for (uint32_t i = 0; i < CHANNELS; i++) {
            Channel *channel = &g_channels[device][i];
            pthread_mutex_lock(&channel->lock);
            bool has_data = channel->started &&
                            (channel->cut != 0 || readable(channel) > channel->taken);
            *any_started = *any_started || channel->started;
            pthread_mutex_unlock(&channel->lock);
            if (has_data && found < max) {
                out[found++] = (HalPoll){.device = device, .channel = channel->id};
            }
        }
    }
    return found;
}

HAL_EXPORT int prof_channel_poll(HalPoll *out, int max, int timeout)
{
    enum { LONGEST_S = 5, LOOK_NS = 1000000 };
    hal_enter("prof_channel_poll", 0, 0);
    if (out == NULL || max <= 0) {
        return HAL_ERROR;
    }
    uint64_t seconds = timeout <= 0 || timeout > LONGEST_S ? LONGEST_S : (uint64_t)timeout;
    uint64_t end = now_ns() + seconds * 1000000000u;
    for (;;) {
        bool any_started = false;
        int found = poll_once(out, max, &any_started);
        if (!any_started) {
            return HAL_STOPPED_ALREADY;
        }
        if (found > 0 || now_ns() >= end) {
            return found;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

/* ---- facts -------------------------------------------------------------- */

HAL_EXPORT int halGetDeviceInfo(uint32_t device, int32_t module, int32_t kind, int64_t *value)
{
    hal_enter("halGetDeviceInfo", device, 0);
    if (device >= HAL_DEVICES || module != 0 || value == NULL) {
        return HAL_ERROR;
    }
    uint64_t now = now_ns();
    switch (kind) {
    case HAL_INFO_VERSION:
        *value = (int64_t)g_hal.chip << 8 | 1;
        return HAL_OK;
    case HAL_INFO_COUNTER:
        *value = (int64_t)hal_ticks(device, now, g_hal.clock_mhz);
        break;
    case HAL_INFO_MONOTONIC_RAW:
        *value = (int64_t)now - (int64_t)HAL_DEVICE_BEHIND_NS;
        break;
    case HAL_INFO_OSCILLATOR_KHZ:
        *value = (int64_t)g_hal.clock_mhz * 1000;
        break;
    default:
        return HAL_NOT_SUPPORTED;
    }
    return g_hal.clock_mhz == 0 ? HAL_NOT_SUPPORTED : HAL_OK;
}
