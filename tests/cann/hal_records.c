/*
 * Records as a device's AICPU makes them, cheap enough for hundreds of thousands a second.
 */
#include "hal.h"

#include "prof_abi.h"

#include <string.h>

enum { TYPE_NODE, TYPE_DP, TYPE_MODEL, TYPE_MI };
enum { STREAM = 7, AICPU_VERSION = 1, US = 1000 };

/* When a record's parts are, from its begin on. */
enum { SUBMITTED_NS = 0, STARTED_NS = 20000, ENDED_NS = 80000, LEFT_NS = 90000 };
enum { COPIED_US = 40, ENDED_US = 60 };

typedef struct DpRecord {
    char action[16];
    char source[64];
    uint64_t index;
    uint64_t size;
    uint8_t reserved[16];
} DpRecord;

typedef struct ModelRecord {
    uint64_t index;
    uint32_t model;
    uint16_t tag;
    uint16_t reserved;
    uint64_t event;
} ModelRecord;

typedef struct MiRecord {
    uint32_t node_tag;
    uint32_t reserved;
    uint64_t queue_size;
    uint64_t run_start; /* us, as the one below */
    uint64_t run_end;
} MiRecord;

typedef struct DeviceRecord {
    ProfHead head;
    union {
        ProfAicpu node;
        DpRecord dp;
        ModelRecord model;
        MiRecord mi;
        uint8_t bytes[224];
    } data;
    uint64_t number;
} DeviceRecord;

_Static_assert(sizeof(DeviceRecord) == HAL_RECORD, "record size");
_Static_assert(offsetof(DeviceRecord, data.dp.source) == 40, "dp source");
_Static_assert(offsetof(DeviceRecord, data.dp.index) == 104, "dp index");
_Static_assert(offsetof(DeviceRecord, data.dp.size) == 112, "dp size");
_Static_assert(offsetof(DeviceRecord, data.model.tag) == 36, "model tag");
_Static_assert(offsetof(DeviceRecord, data.model.event) == 40, "model event");
_Static_assert(offsetof(DeviceRecord, data.mi.queue_size) == 32, "mi queue size");
_Static_assert(offsetof(DeviceRecord, data.mi.run_end) == 48, "mi run end");
_Static_assert(offsetof(DeviceRecord, number) == 248, "number");

uint64_t hal_ticks(uint32_t device, uint64_t host_ns, uint32_t mhz)
{
    if (mhz == 0) {
        return host_ns;
    }
    uint64_t second = (uint64_t)mhz * 1000000u;
    /* Whole and rest apart, since their product with the frequency would not fit. */
    uint64_t ticks = host_ns / 1000000000u * second + host_ns % 1000000000u * mhz / 1000u;
    return ticks + HAL_COUNTER_OFFSET + device * second;
}

static void fill_node(ProfAicpu *node, const HalMoment *moment, uint32_t mhz)
{
    uint64_t begin = moment->begin_ns;
    uint64_t begin_us = begin / US;
    *node = (ProfAicpu){
        .stream_id = (uint16_t)(STREAM + moment->device),
        .task_id = (uint16_t)moment->number,
        .run_start_time = begin_us,
        .run_start_tick = hal_ticks(moment->device, begin + STARTED_NS, mhz),
        .compute_start = begin_us,
        .memcpy_start = begin_us + COPIED_US,
        .memcpy_end = begin_us + ENDED_US,
        .run_end_time = begin_us + ENDED_US,
        .run_end_tick = hal_ticks(moment->device, begin + ENDED_NS, mhz),
        .thread_id = (uint32_t)(moment->number % 4),
        .device_id = moment->device,
        .submit_tick = hal_ticks(moment->device, begin + SUBMITTED_NS, mhz),
        .schedule_tick = moment->number,
        .tick_after_run = hal_ticks(moment->device, begin + LEFT_NS, mhz),
        .dispatch_time = (uint32_t)(moment->number % 100),
        .total_time = LEFT_NS / US,
        .version = AICPU_VERSION,
    };
}

void hal_record(const HalMoment *moment, uint32_t type, uint32_t mhz, void *to)
{
    DeviceRecord record;
    memset(&record, 0, sizeof record);
    record.head = (ProfHead){
        .magic = PROF_MAGIC,
        .level = PROF_LEVEL_AICPU,
        .type = type,
        .thread_id = 1000 * moment->channel + moment->device,
        .time = hal_ticks(moment->device, moment->begin_ns, mhz),
    };
    record.number = moment->number;
    switch (type) {
    case TYPE_DP:
        record.head.data_len = sizeof record.data.dp;
        /* Of all times in a data channel this one alone is the host's. */
        record.head.time = moment->begin_ns;
        memcpy(record.data.dp.action, "Last queue deque", sizeof record.data.dp.action);
        memcpy(record.data.dp.source, "iterator_standin", sizeof "iterator_standin");
        record.data.dp.index = moment->number;
        record.data.dp.size = moment->number % 1000;
        break;
    case TYPE_MODEL:
        record.head.data_len = sizeof record.data.model;
        record.data.model.index = moment->number;
        record.data.model.model = 1;
        record.data.model.event = moment->number;
        break;
    case TYPE_MI:
        record.head.data_len = sizeof record.data.mi;
        record.data.mi.node_tag = 1;
        record.data.mi.queue_size = moment->number % 1000;
        record.data.mi.run_start = moment->begin_ns / US;
        record.data.mi.run_end = moment->begin_ns / US + ENDED_US;
        break;
    default:
        record.head.data_len = sizeof record.data.node;
        fill_node(&record.data.node, moment, mhz);
        break;
    }
    memcpy(to, &record, sizeof record);
}

/* Of the words one after the other, so that their order counts. */
uint64_t hal_digest(uint64_t digest, const void *record)
{
    const unsigned char *bytes = record;
    for (size_t at = 0; at < HAL_RECORD; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        digest = (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    }
    return digest;
}
