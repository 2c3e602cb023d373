/*
 * Reports numbered records of all sizes until it dies, and keeps its own account where a death cannot take it: in
 * a file that it has mapped.
 *
 *   mortal ACCOUNT THREADS BURST PAUSE_US LIFE [DEATH AFTER]
 *
 * Begins when it is told so on stdin. After LIFE records of each size (0: never) a thread ends and another one
 * takes its place. The thread that reports number AFTER dies of DEATH: abort, segv or exit.
 */
#include "account.h"
#include "reports.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 8192, SIZES = 4, TYPES = 3, DEVICE_OFFSET = 92 };
enum { API, COMPACT, ADDITIONAL, AICPU };

typedef struct Slot {
    _Atomic uint64_t thread;
    /* Reports that have returned, by size. */
    _Atomic uint64_t returned[SIZES];
} Slot;

static Slot *g_slots;
static _Atomic unsigned g_taken;
static unsigned g_burst;
static unsigned g_pause_us;
static uint64_t g_life;
static const char *g_death = "";
static uint64_t g_after;

static void die(void)
{
    if (strcmp(g_death, "abort") == 0) {
        abort();
    }
    if (strcmp(g_death, "segv") == 0) {
        raise(SIGSEGV);
    }
    if (strcmp(g_death, "exit") == 0) {
        _exit(7);
    }
}

static void report_sized(uint32_t thread, int size, uint64_t n)
{
    int result = 0;
    if (size == API) {
        struct MsprofApi api = {
            .magicNumber = MSPROF_MAGIC,
            .level = MSPROF_LEVEL_RUNTIME,
            .type = 1,
            .threadId = thread,
            .beginTime = MsprofSysCycleTime(),
            .itemId = n,
        };
        api.endTime = api.beginTime + 1;
        result = MsprofReportApi(0, &api);
    } else if (size == COMPACT) {
        struct MsprofCompactInfo info = {
            .magicNumber = MSPROF_MAGIC,
            .level = MSPROF_LEVEL_NODE,
            .type = 1 + n % TYPES,
            .threadId = thread,
            .dataLen = sizeof n,
            .timeStamp = MsprofSysCycleTime(),
        };
        memcpy((char *)&info + 24, &n, sizeof n);
        result = MsprofReportCompactInfo(1, &info, sizeof info);
    } else {
        struct MsprofAdditionalInfo info = {
            .magicNumber = MSPROF_MAGIC,
            .level = size == AICPU ? MSPROF_LEVEL_AICPU : MSPROF_LEVEL_NODE,
            .type = size == AICPU ? 0 : 10 + n % TYPES,
            .threadId = thread,
            .dataLen = sizeof n,
            .timeStamp = MsprofSysCycleTime(),
        };
        memcpy((char *)&info + 24, &n, sizeof n);
        uint32_t device = n % 2;
        memcpy((char *)&info + DEVICE_OFFSET, &device, sizeof device);
        result = MsprofReportAdditionalInfo(size == AICPU, &info, sizeof info);
    }
    if (result != 0) {
        _exit(9);
    }
}

static void begin(void);

static void *live(void *argument)
{
    Slot *slot = argument;
    uint32_t thread = thread_id();
    atomic_store(&slot->thread, thread);
    for (uint64_t n = 1;; n++) {
        for (int size = 0; size < SIZES; size++) {
            report_sized(thread, size, n);
            atomic_store_explicit(&slot->returned[size], n, memory_order_release);
        }
        if (n == g_after) {
            die();
        }
        if (n % g_burst == 0) {
            usleep(g_pause_us);
        }
        if (n == g_life && atomic_load(&g_taken) < THREADS_MAX) {
            begin();
            return NULL;
        }
    }
}

static void begin(void)
{
    pthread_t thread;
    unsigned slot = atomic_fetch_add(&g_taken, 1);
    if (slot >= THREADS_MAX || pthread_create(&thread, NULL, live, &g_slots[slot]) != 0) {
        _exit(8);
    }
    pthread_detach(thread);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        return 2;
    }
    g_slots = map_account(argv[1], sizeof(Slot) * THREADS_MAX);
    if (g_slots == NULL) {
        return 2;
    }
    int threads = atoi(argv[2]);
    g_burst = (unsigned)atoi(argv[3]);
    g_pause_us = (unsigned)atoi(argv[4]);
    g_life = strtoul(argv[5], NULL, 0);
    if (argc > 7) {
        g_death = argv[6];
        g_after = strtoul(argv[7], NULL, 0);
    }
    MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, 1, "KernelLaunch");
    MsprofRegTypeInfo(MSPROF_LEVEL_NODE, 1, "node_basic_info");
    MsprofRegTypeInfo(MSPROF_LEVEL_NODE, 2, "memcpy_info");
    MsprofRegTypeInfo(MSPROF_LEVEL_NODE, 10, "context_id_info");
    MsprofRegTypeInfo(MSPROF_LEVEL_NODE, 11, "graph_id_map");
    puts("ready");
    fflush(stdout);
    while (getchar() != '\n') {
    }
    for (int i = 0; i < threads; i++) {
        begin();
    }
    for (;;) {
        pause();
    }
}
