/*
 * Records of every layout, written field by field at the offsets that readers of captures know, and reported.
 *
 * What was reported goes to an account too, for the test to compare: the file that each record belongs to with the
 * record's own bytes, the names of types and the strings behind ids.
 */
#ifndef FAMILY_H
#define FAMILY_H

#include "expect.h"
#include "reports.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMPACT = 64, ADDITIONAL = 256, HEAD = 24, RECORD_MAX = 4096 };
enum { UNAGING = 0, AGING = 1 };

static FILE *g_account; /* NULL: none is kept */
static uint64_t g_accounted; /* records in it */
/* The record that is being made. */
static uint8_t g_record[RECORD_MAX];
/* What times of records count from. */
static uint64_t g_base;
static uint32_t g_thread;

static inline uint64_t at(uint64_t microseconds)
{
    return g_base + microseconds * 1000;
}

/* ---- the account ----------------------------------------------------------- */

static inline void account_for(const char *place, const char *family, const void *record, size_t size)
{
    fprintf(g_account, "record %s %s ", place, family);
    for (size_t i = 0; i < size; i++) {
        fprintf(g_account, "%02x", ((const uint8_t *)record)[i]);
    }
    fputc('\n', g_account);
    g_accounted++;
}

static inline void account_for_kind(uint32_t aging, const char *kind, const void *record, size_t size)
{
    char family[128];
    snprintf(family, sizeof family, "%saging.%s", aging == AGING ? "" : "un", kind);
    account_for("host", family, record, size);
}

static inline void name_type(uint16_t level, uint32_t type, const char *name)
{
    EXPECT(MsprofRegTypeInfo(level, type, name), 0);
    fprintf(g_account, "type %u %u %s\n", level, type, name);
}

/* The id of a string, by both of the calls for it. */
static inline uint64_t id_of(const char *text)
{
    uint64_t id = MsprofGetHashId(text, strlen(text));
    EXPECT(MsprofStr2Id(text, strlen(text)) == id, 1);
    fprintf(g_account, "string %" PRIu64 " %s\n", id, text);
    return id;
}

/* ---- fields ---------------------------------------------------------------- */

static inline void put(size_t offset, uint64_t value, size_t size)
{
    memcpy(g_record + offset, &value, size); /* the machine is little-endian, as the layouts are */
}
#define U8(offset, value) put((offset), (value), 1)
#define U16(offset, value) put((offset), (value), 2)
#define U32(offset, value) put((offset), (value), 4)
#define U64(offset, value) put((offset), (value), 8)

static inline void u32s(size_t offset, const uint32_t *values, size_t count)
{
    memcpy(g_record + offset, values, count * sizeof *values);
}

static inline void text(size_t offset, const char *value, size_t room)
{
    memcpy(g_record + offset, value, strnlen(value, room));
}

/* Begins a record: all zero behind its head. */
static inline void begin(uint16_t level, uint32_t type, uint32_t data_len, uint64_t time)
{
    memset(g_record, 0, sizeof g_record);
    U16(0, MSPROF_MAGIC);
    U16(2, level);
    U32(4, type);
    U32(8, g_thread);
    U32(12, data_len);
    U64(16, time);
}

/* ---- reports --------------------------------------------------------------- */

static inline void report_compact(uint32_t aging, const char *family)
{
    char kind[96];
    snprintf(kind, sizeof kind, "compact.%s", family);
    EXPECT(MsprofReportCompactInfo(aging, g_record, COMPACT), 0);
    account_for_kind(aging, kind, g_record, COMPACT);
}

static inline void report_additional(uint32_t aging, const char *family)
{
    char kind[96];
    snprintf(kind, sizeof kind, "additional.%s", family);
    EXPECT(MsprofReportAdditionalInfo(aging, g_record, ADDITIONAL), 0);
    account_for_kind(aging, kind, g_record, ADDITIONAL);
}

/* A call: what `type` says at `level`, of the item with this id. */
static inline void call(uint16_t level, uint32_t type, uint64_t from, uint64_t to, uint64_t item)
{
    struct MsprofApi api = {
        .magicNumber = MSPROF_MAGIC,
        .level = level,
        .type = type,
        .threadId = g_thread,
        .beginTime = at(from),
        .endTime = at(to),
        .itemId = item,
    };
    /* Both halves of the family have some. */
    uint32_t aging = from % 20 == 0 ? UNAGING : AGING;
    EXPECT(MsprofReportApi(aging, &api), 0);
    account_for_kind(aging, "api_event.data", &api, sizeof api);
}

static inline void event(uint32_t aging, uint32_t type, uint32_t request, uint64_t time, uint64_t item)
{
    struct MsprofEvent record = {
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_MODEL,
        .type = type,
        .threadId = g_thread,
        .requestId = request,
        .timeStamp = at(time),
        .itemId = item,
    };
    EXPECT(MsprofReportEvent(aging, &record), 0);
    record.eventFlag = UINT64_MAX;
    account_for_kind(aging, "api_event.data", &record, sizeof record);
}

#endif
