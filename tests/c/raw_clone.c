/*
 * Threads and processes that the C library knows nothing of, as a runtime with its own threads makes them (Go's in a
 * static program): raw clone with shared memory, which allocates nothing, reports nothing and ends by a raw exit.
 *
 *   clone N       N such threads, one after the other, each of which counts; answers the sum
 *   vfork N       N children that share the memory until they end, as posix_spawn makes them; answers their statuses
 *   report N TAG  reports N numbered calls on the main thread
 */
#include "orders.h"
#include "reports.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { STACK = 64 << 10, STATUS = 9 };

static _Alignas(16) char g_stack[STACK];
static _Atomic unsigned long g_count;

static int thread_body(void *unused)
{
    (void)unused;
    atomic_fetch_add(&g_count, 1);
    /* Not exit(): there is no thread of the C library's here to end. */
    (void)syscall(SYS_exit, 0);
    return 0;
}

static unsigned long clone_threads(unsigned long count)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    for (unsigned long i = 0; i < count; i++) {
        static pid_t tid;
        tid = 1;
        /* The kernel clears the number when the thread is gone, and its stack is free. */
        if (clone(thread_body, g_stack + STACK, flags | CLONE_CHILD_CLEARTID, NULL, NULL, NULL, &tid) < 0) {
            return 0;
        }
        while (*(volatile pid_t *)&tid != 0) {
            usleep(50);
        }
    }
    return atomic_load(&g_count);
}

static int child_body(void *unused)
{
    (void)unused;
    atomic_fetch_add(&g_count, 1);
    (void)syscall(SYS_exit_group, STATUS);
    return 0;
}

static unsigned long clone_children(unsigned long count)
{
    unsigned long right = 0;
    for (unsigned long i = 0; i < count; i++) {
        int status = -1;
        pid_t child = clone(child_body, g_stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
        right += waitpid(child, &status, 0) == child && status == STATUS << 8;
    }
    return right;
}

int main(void)
{
    Order order;
    say_ready();
    while (next_order(&order)) {
        if (is_order(&order, "clone")) {
            printf("%lu\n", clone_threads(order.first));
        } else if (is_order(&order, "vfork")) {
            printf("%lu\n", clone_children(order.first));
        } else if (is_order(&order, "report")) {
            printf("%d\n", report_numbers(order.first, order.second));
        } else {
            printf("unknown order %s\n", order.word);
        }
    }
    return 0;
}
