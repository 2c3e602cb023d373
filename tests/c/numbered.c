/*
 * Reports numbered records until it is killed, and keeps its own account where
 * a kill cannot take it: in a file that it has mapped.
 *
 *   numbered OUTPUT ACCOUNT THREADS BURST PAUSE_US
 *
 * Each thread has a slot in the account: its id, how many reports have
 * returned, and when each of the latest began.
 */
#include "account.h"
#include "reports.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { TIMES = 1 << 18, THREADS_MAX = 16 };

typedef struct Slot {
    _Atomic uint64_t thread;
    _Atomic uint64_t count;
    uint64_t times[TIMES];
} Slot;

static Slot *g_slots;
static unsigned g_burst;
static unsigned g_pause_us;

static void *report_for_ever(void *argument)
{
    Slot *slot = argument;
    uint32_t thread = thread_id();
    atomic_store(&slot->thread, thread);
    for (uint64_t n = 1;; n++) {
        struct MsprofApi api = {
            .magicNumber = MSPROF_MAGIC,
            .level = MSPROF_LEVEL_RUNTIME,
            .type = KERNEL_LAUNCH,
            .threadId = thread,
            .beginTime = MsprofSysCycleTime(),
            .itemId = n,
        };
        slot->times[n % TIMES] = api.beginTime;
        api.endTime = MsprofSysCycleTime();
        if (MsprofReportApi(1, &api) != 0) {
            abort();
        }
        atomic_store_explicit(&slot->count, n, memory_order_release);
        if (n % g_burst == 0) {
            usleep(g_pause_us);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        return 2;
    }
    g_slots = map_account(argv[2], sizeof(Slot) * THREADS_MAX);
    if (g_slots == NULL) {
        return 2;
    }
    int threads = atoi(argv[3]);
    g_burst = (unsigned)atoi(argv[4]);
    g_pause_us = (unsigned)atoi(argv[5]);
    MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch");
    if (msprof_agent_start("--runtime-api=on", argv[1]) != 0) {
        return 3;
    }
    for (int i = 0; i < threads && i < THREADS_MAX; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, report_for_ever, &g_slots[i]) != 0) {
            return 4;
        }
    }
    puts("capturing");
    fflush(stdout);
    for (;;) {
        pause();
    }
}
