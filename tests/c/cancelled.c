/*
 * cancelled DIR: cancels threads at different moments of their starts and stops,
 * and then captures itself once more.
 */
#include "reports.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 30, STEP_NS = 400000, RECORDS = 100 };

static const char *g_dir;
static _Atomic unsigned g_rounds;

static void *capture_for_ever(void *unused)
{
    for (;;) {
        atomic_fetch_add(&g_rounds, 1);
        (void)msprof_agent_start("--runtime-api=on", g_dir);
        (void)report(1);
        (void)msprof_agent_stop(NULL, 0);
        pthread_testcancel();
    }
    return unused;
}

/* The moment of the cancellation is a matter of time: nothing tells where the other thread is. */
static void spin(uint64_t duration)
{
    uint64_t end = MsprofSysCycleTime() + duration;
    while (MsprofSysCycleTime() < end) {
    }
}

int main(int count, char **words)
{
    if (count != 2) {
        return 2;
    }
    g_dir = words[1];
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *result = NULL;
        unsigned before = atomic_load(&g_rounds);
        if (pthread_create(&thread, NULL, capture_for_ever, NULL) != 0) {
            return 2;
        }
        while (atomic_load(&g_rounds) == before) {
        }
        spin((uint64_t)i * STEP_NS);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED) {
            return 3;
        }
    }
    (void)msprof_agent_stop(NULL, 0); /* of a capture that a cancelled thread may have left */
    say_result("start", msprof_agent_start("--runtime-api=on", g_dir));
    for (uint64_t i = 0; i < RECORDS; i++) {
        (void)report(2);
    }
    char path[4096] = "";
    say_result("stop", msprof_agent_stop(path, sizeof path));
    printf("path %s\n", path);
    return 0;
}
