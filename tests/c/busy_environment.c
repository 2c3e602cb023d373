/*
 * Changes its environment all the time, on two threads, so that it moves in memory; reports meanwhile.  A line on
 * stdin is an order, a line on stdout its answer.  Its own accesses are behind a lock, as a careful program's are.
 *
 *   api N TAG | init | finalize | state
 *   changes      how often the environment was changed so far
 */
#include "orders.h"
#include "reports.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 2, VARIABLES = 200 };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned long g_changes;

static void *change(void *unused)
{
    (void)unused;
    for (unsigned round = 0;; round++) {
        char name[32];
        char value[256];
        snprintf(name, sizeof name, "VARIABLE_%u", round % VARIABLES);
        memset(value, 'v', sizeof value);
        value[round % sizeof value] = 0;
        pthread_mutex_lock(&g_lock);
        if (round % (5 * VARIABLES) == 0) {
            /* What follows then goes to new memory. */
            clearenv();
        }
        (void)setenv(name, value, 1);
        (void)setenv("HOME", value, 1);
        (void)setenv("PROFILING_MODE", value, 1);
        (void)unsetenv("MSPROF_AGENT_SOCKET_DIR");
        pthread_mutex_unlock(&g_lock);
        atomic_fetch_add(&g_changes, 1);
    }
    return NULL;
}

int main(void)
{
    static Order order;
    say_ready();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, change, NULL) != 0) {
            return 3;
        }
        pthread_detach(thread);
    }
    while (next_order(&order)) {
        if (is_order(&order, "api")) {
            printf("%d\n", report_numbers(order.first, order.second));
        } else if (is_order(&order, "init")) {
            printf("%d\n", MsprofInit(0xFF, NULL, 0));
        } else if (is_order(&order, "finalize")) {
            printf("%d\n", MsprofFinalize());
        } else if (is_order(&order, "state")) {
            struct MsprofAgentStatus status = {.size = sizeof status};
            int32_t result = msprof_agent_status(&status);
            printf("%d %u\n", result, status.state);
        } else if (is_order(&order, "changes")) {
            printf("%lu\n", atomic_load(&g_changes));
        } else {
            printf("unknown order %s\n", order.word);
        }
    }
    return 0;
}
