/*
 * Counting, window by window.
 *
 * The invariant that makes the counts an oracle: a call that reports was counted
 * in exactly one window before that window's JSON was made.  It holds because a
 * call first counts itself, then looks whether the window is still the one it
 * counted in, and takes the count back and stays silent when it is not; closing
 * changes the window word before it reads the counts.
 *
 * Counters are spread over shards so that streams do not fight for one line.
 */
#include "counts.h"

#include "acl.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARDS = 8,
    SLOTS = 64,
    REMEMBERED = 32,    /* windows back that a slow call may have begun in */
    HISTORY = 1024,     /* finished windows kept as JSON */
    JSON_BYTES = 8192,  /* one window's JSON is about 2 KB */
    STAMP_BITS = 40,
};

typedef struct Shard {
    _Alignas(128) _Atomic uint64_t began[TRACED_COUNT];
    _Atomic uint64_t reported[TRACED_COUNT];
    _Atomic uint64_t carried[TRACED_COUNT];
} Shard;

/* Reports that are inside a report call at this moment. */
typedef struct InFlight {
    _Alignas(128) _Atomic uint64_t reports[TRACED_COUNT];
} InFlight;

typedef struct Row {
    enum Traced what;
    const char *name;
} Row;

typedef struct Group {
    const char *name;
    enum Traced first;
    enum Traced last;
} Group;

#define CALL_ROW(id, type, name) [id] = {id, name},
#define FAMILY_ROW(id, level, type, name) [id] = {id, name},
static const Row g_rows[TRACED_COUNT] = {
    RUNTIME_APIS(CALL_ROW) ACL_APIS(CALL_ROW) NODE_APIS(CALL_ROW)
    MODEL_APIS(CALL_ROW) RECORD_FAMILIES(FAMILY_ROW)
};

static const Group g_groups[] = {
    {"runtime", RT_KERNEL_LAUNCH, RT_MEMCPY_ASYNC},
    {"acl", ACL_MDL_LOAD, ACL_MALLOC},
    {"node", NODE_LAUNCH, NODE_LAUNCH},
    {"model", MODEL_EXECUTE, MODEL_OUTPUT_COPY},
    {"records", RECORD_TASK_TRACK, RECORD_AICPU},
};
enum { GROUPS = sizeof g_groups / sizeof g_groups[0], CALL_GROUPS = GROUPS - 1 };

static const char *const g_component_names[COMPONENT_COUNT] = {"runtime", "acl", "ge"};
static const char *const g_command_names[] = {"init", "start", "stop", "finalize"};
enum { COMMANDS = sizeof g_command_names / sizeof g_command_names[0] };

/* Number of the latest window << 1, lowest bit set while it is open. */
static _Atomic uint64_t g_window;
static Shard g_slots[SLOTS][SHARDS]; /* by window number */
static InFlight g_in_flight[SHARDS];
static _Atomic uint64_t g_stamp;
static _Atomic uint32_t g_next_shard;
static _Atomic uint64_t g_commands[COMPONENT_COUNT][COMMANDS];
static _Atomic uint64_t g_bad_commands;
static bool g_stamping;

/* Cold state, under the lock. */
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t g_device_starts;
static uint64_t g_switches;
static uint64_t g_switches_hi;
static uint64_t g_stamp_first;
static uint64_t g_finished;
static char *g_history[HISTORY];

static uint32_t shard_of_thread(void)
{
    static _Thread_local uint32_t own; /* 0: not chosen yet */
    if (own == 0) {
        own = atomic_fetch_add_explicit(&g_next_shard, 1, memory_order_relaxed) % SHARDS + 1;
    }
    return own - 1;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *value = getenv("CANN_STANDIN_STAMP");
    g_stamping = value != NULL && strcmp(value, "1") == 0;
}

/* ---- one call ----------------------------------------------------------- */

uint64_t cannCountBegin(enum Traced what)
{
    uint64_t word = atomic_load(&g_window);
    if ((word & 1) == 0) {
        return 0;
    }
    uint64_t window = word >> 1;
    _Atomic uint64_t *count = &g_slots[window % SLOTS][shard_of_thread()].began[what];
    atomic_fetch_add(count, 1);
    if (atomic_load(&g_window) != word) {
        atomic_fetch_sub(count, 1);
        return 0;
    }
    return window;
}

/*
 * Where a report made now lands, as far as can be known: in the open window, or
 * with none open perhaps in the capture whose window is about to open.
 */
static uint64_t landing(void)
{
    uint64_t word = atomic_load(&g_window);
    return (word & 1) != 0 ? word >> 1 : (word >> 1) + 1;
}

static void carry(enum Traced what, uint64_t window, uint64_t lands)
{
    if (lands != window) {
        atomic_fetch_add(&g_slots[lands % SLOTS][shard_of_thread()].carried[what], 1);
    }
}

uint64_t cannReportBegin(enum Traced what, uint64_t window)
{
    /* In flight first, then a look at the window; cannWindowOpen has the other order. */
    atomic_fetch_add(&g_in_flight[shard_of_thread()].reports[what], 1);
    uint64_t lands = landing();
    carry(what, window, lands);
    return lands;
}

void cannReportEnd(enum Traced what, uint64_t window, uint64_t lands)
{
    uint64_t landed = landing();
    if (landed != lands) { /* a stop, and perhaps a start, came between */
        carry(what, window, landed);
    }
    atomic_fetch_sub(&g_in_flight[shard_of_thread()].reports[what], 1);
}

void cannCountEnd(enum Traced what, uint64_t window)
{
    uint64_t current = atomic_load(&g_window) >> 1;
    if (current - window < REMEMBERED) {
        atomic_fetch_add(&g_slots[window % SLOTS][shard_of_thread()].reported[what], 1);
    }
}

uint64_t cannStamp(uint64_t window)
{
    if (!g_stamping) {
        return 0;
    }
    uint64_t number = atomic_fetch_add(&g_stamp, 1) + 1;
    return window << STAMP_BITS | number;
}

/* ---- JSON --------------------------------------------------------------- */

typedef struct Text {
    char bytes[JSON_BYTES];
    size_t len;
} Text;

__attribute__((format(printf, 2, 3))) static void add(Text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text->bytes + text->len, sizeof text->bytes - text->len, format, arguments);
    va_end(arguments);
    if (n > 0) {
        text->len += (size_t)n;
    }
    if (text->len >= sizeof text->bytes) {
        text->len = sizeof text->bytes - 1;
    }
}

/* What the shards held when the window closed. */
typedef struct Totals {
    uint64_t reported[TRACED_COUNT];
    uint64_t began[TRACED_COUNT];
    uint64_t open[TRACED_COUNT];
    uint64_t carried[TRACED_COUNT];
} Totals;

static uint64_t sum(uint64_t window, size_t member, int what)
{
    uint64_t result = 0;
    for (int shard = 0; shard < SHARDS; shard++) {
        char *one = (char *)&g_slots[window % SLOTS][shard];
        result += atomic_load((_Atomic uint64_t *)(one + member) + what);
    }
    return result;
}

static uint64_t unreported(uint64_t window, int what)
{
    uint64_t reported = sum(window, offsetof(Shard, reported), what);
    return sum(window, offsetof(Shard, began), what) - reported;
}

/*
 * The first half, while the window is still open.  What reports between the halves
 * may or may not be in the capture: it stays `open`, or was `carried` here already.
 */
static void total_before_close(uint64_t window, Totals *totals)
{
    for (int what = 0; what < TRACED_COUNT; what++) {
        totals->reported[what] = sum(window, offsetof(Shard, reported), what);
        totals->carried[what] = 0;
        for (uint64_t back = 1; back < REMEMBERED && back < window; back++) {
            totals->carried[what] += unreported(window - back, what);
        }
    }
}

static void total_after_close(uint64_t window, Totals *totals)
{
    for (int what = 0; what < TRACED_COUNT; what++) {
        totals->began[what] = sum(window, offsetof(Shard, began), what);
        totals->open[what] = totals->began[what] - totals->reported[what];
        totals->carried[what] += sum(window, offsetof(Shard, carried), what);
    }
}

static void add_group(Text *text, const Group *group, const uint64_t *counts)
{
    add(text, "\"%s\":{", group->name);
    for (unsigned what = group->first; what <= (unsigned)group->last; what++) {
        add(text, "%s\"%s\":%llu", what == (unsigned)group->first ? "" : ",", g_rows[what].name,
            (unsigned long long)counts[what]);
    }
    add(text, "}");
}

static void add_sums(Text *text, const char *name, const uint64_t *counts)
{
    add(text, ",\"%s\":{", name);
    for (int i = 0; i < GROUPS; i++) {
        uint64_t sum = 0;
        for (unsigned what = g_groups[i].first; what <= (unsigned)g_groups[i].last; what++) {
            sum += counts[what];
        }
        add(text, "%s\"%s\":%llu", i == 0 ? "" : ",", g_groups[i].name, (unsigned long long)sum);
    }
    add(text, "}");
}

/* Commands since the window before, so that init and start of this one are in. */
static void add_commands(Text *text)
{
    add(text, ",\"commands\":{");
    for (int component = 0; component < COMPONENT_COUNT; component++) {
        add(text, "%s\"%s\":{", component == 0 ? "" : ",", g_component_names[component]);
        for (int kind = 0; kind < COMMANDS; kind++) {
            uint64_t n = atomic_exchange(&g_commands[component][kind], 0);
            add(text, "%s\"%s\":%llu", kind == 0 ? "" : ",", g_command_names[kind],
                (unsigned long long)n);
        }
        add(text, "}");
    }
    add(text, "},\"bad_commands\":%llu",
        (unsigned long long)atomic_exchange(&g_bad_commands, 0));
}

static void write_json(uint64_t window, const Totals *totals, Text *text)
{
    add(text, "{\"window\":%llu,\"device_starts\":%llu,\"switch\":\"0x%llx\",\"switch_hi\":\"0x%llx\"",
        (unsigned long long)window, (unsigned long long)g_device_starts,
        (unsigned long long)g_switches, (unsigned long long)g_switches_hi);
    uint64_t stamps = atomic_load(&g_stamp);
    add(text, ",\"stamps\":{\"first\":%llu,\"last\":%llu}", (unsigned long long)g_stamp_first,
        (unsigned long long)stamps);
    add(text, ",\"api\":{");
    for (int i = 0; i < CALL_GROUPS; i++) {
        add(text, "%s", i == 0 ? "" : ",");
        add_group(text, &g_groups[i], totals->began);
    }
    add(text, "},");
    add_group(text, &g_groups[CALL_GROUPS], totals->began);
    add_sums(text, "open", totals->open);
    add_sums(text, "carried", totals->carried);
    add_commands(text);
    add(text, "}");
}

/* ---- windows ------------------------------------------------------------ */

void cannWindowOpen(uint64_t switches, uint64_t switches_hi)
{
    pthread_mutex_lock(&g_lock);
    uint64_t window = (atomic_load(&g_window) >> 1) + 1;
    for (int shard = 0; shard < SHARDS; shard++) {
        Shard *one = &g_slots[window % SLOTS][shard];
        Shard *next = &g_slots[(window + 1) % SLOTS][shard];
        for (int what = 0; what < TRACED_COUNT; what++) {
            atomic_store(&one->began[what], 0);
            atomic_store(&one->reported[what], 0);
            /* Not its own: since the last window closed, reports are carried into this one. */
            atomic_store(&next->carried[what], 0);
            /* What is inside a report call now may come out in this window's capture. */
            atomic_fetch_add(&one->carried[what],
                             atomic_load(&g_in_flight[shard].reports[what]));
        }
    }
    g_device_starts = 0;
    g_switches = switches;
    g_switches_hi = switches_hi;
    g_stamp_first = atomic_load(&g_stamp) + 1;
    atomic_store(&g_window, window << 1 | 1);
    pthread_mutex_unlock(&g_lock);
}

void cannWindowDevice(void)
{
    pthread_mutex_lock(&g_lock);
    g_device_starts++;
    pthread_mutex_unlock(&g_lock);
}

void cannWindowClose(void)
{
    pthread_mutex_lock(&g_lock);
    uint64_t word = atomic_load(&g_window);
    if ((word & 1) != 0) {
        uint64_t window = word >> 1;
        Totals totals;
        total_before_close(window, &totals);
        atomic_store(&g_window, window << 1);
        total_after_close(window, &totals);
        Text text = {.len = 0};
        write_json(window, &totals, &text);
        char **place = &g_history[window % HISTORY];
        free(*place);
        *place = strdup(text.bytes);
        g_finished = window;
    }
    pthread_mutex_unlock(&g_lock);
}

void cannCountCommand(enum Component component, uint32_t kind)
{
    if (kind < COMMANDS) {
        atomic_fetch_add(&g_commands[component][kind], 1);
    }
}

void cannCountBadCommand(void)
{
    atomic_fetch_add(&g_bad_commands, 1);
}

/* ---- for the application ------------------------------------------------ */

unsigned cannCountsWindows(void)
{
    pthread_mutex_lock(&g_lock);
    unsigned finished = (unsigned)g_finished;
    pthread_mutex_unlock(&g_lock);
    return finished;
}

int cannCountsWindowJson(unsigned window, char *text, size_t size)
{
    pthread_mutex_lock(&g_lock);
    bool kept = window >= 1 && window <= g_finished && g_finished - window < HISTORY;
    const char *json = kept ? g_history[window % HISTORY] : NULL;
    int len = json == NULL ? -1 : snprintf(text, size, "%s", json);
    pthread_mutex_unlock(&g_lock);
    return len;
}

int cannCountsJson(char *text, size_t size)
{
    return cannCountsWindowJson(cannCountsWindows(), text, size);
}
