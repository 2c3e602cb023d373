/*
 * pool THREADS CHILDREN USE: each of THREADS threads forks CHILDREN children, one after the other, and
 * reports a numbered record before each.  Most children end at once, by exit(); every USE-th reports
 * records of its own first.  A child that has not ended in time is killed by its alarm.
 * Waits for a line on stdin before, and before its end.  Says how many children ended badly, and the
 * longest life of one in microseconds.
 */
#include "reports.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

enum { THREADS_MAX = 64, CHILD_BIT = 62, OF_CHILD = 100, LIMIT_S = 20 };

static _Atomic unsigned g_bad;
static _Atomic long g_longest;
static unsigned g_children;
static unsigned g_use;

static long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void be_a_child(int uses)
{
    alarm(LIMIT_S);
    for (unsigned i = 0; uses && i < OF_CHILD; i++) {
        if (report((uint64_t)1 << CHILD_BIT | i) != 0) {
            _exit(1);
        }
    }
    exit(0);
}

static void note_life(long life)
{
    long longest = atomic_load(&g_longest);
    while (life > longest && !atomic_compare_exchange_weak(&g_longest, &longest, life)) {
    }
}

static void *fork_children(void *argument)
{
    uint64_t tag = (uint64_t)(size_t)argument;
    for (unsigned i = 1; i <= g_children; i++) {
        int status = -1;
        int uses = g_use != 0 && i % g_use == 0;
        (void)report(tag << ITEM_BITS | i);
        long begin = microseconds();
        pid_t child = fork();
        if (child == 0) {
            be_a_child(uses);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            atomic_fetch_add(&g_bad, 1);
        }
        if (!uses) {
            note_life(microseconds() - begin);
        }
    }
    return NULL;
}

int main(int count, char **words)
{
    static pthread_t threads[THREADS_MAX];
    char line[64];
    if (count != 4 || atoi(words[1]) > THREADS_MAX) {
        return 2;
    }
    size_t wanted = (size_t)atoi(words[1]);
    g_children = (unsigned)atoi(words[2]);
    g_use = (unsigned)atoi(words[3]);
    puts("ready");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) {
        return 3;
    }
    for (size_t i = 0; i < wanted; i++) {
        if (pthread_create(&threads[i], NULL, fork_children, (void *)(i + 1)) != 0) {
            return 4;
        }
    }
    for (size_t i = 0; i < wanted; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("children %u %ld\n", atomic_load(&g_bad), atomic_load(&g_longest));
    fflush(stdout);
    (void)fgets(line, sizeof line, stdin);
    return 0;
}
