/*
 * same_device BATCHES CALLS: opens device 3 once, and then again and again, as some programs do in every step.
 * Says how often a component heard of it, and the CPU time of a repeat in nanoseconds: that of the fastest batch,
 * which nothing disturbed.  Waits for a line on stdin before its end.
 */
#include "reports.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { DEVICE = 3, COMPONENT = 7 };

static _Atomic unsigned g_heard;

static int32_t hear(uint32_t type, void *command, uint32_t len)
{
    (void)type;
    (void)command;
    (void)len;
    atomic_fetch_add(&g_heard, 1);
    return 0;
}

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int count, char **words)
{
    char line[64];
    double best = 1e18;
    int failed = 0;
    if (count != 3) {
        return 2;
    }
    int calls = atoi(words[2]);
    MsprofRegisterCallback(COMPONENT, hear);
    failed |= MsprofNotifySetDevice(0, DEVICE, true);
    unsigned first = atomic_load(&g_heard);
    for (int batch = 0; batch < atoi(words[1]); batch++) {
        double begin = nanoseconds();
        for (int i = 0; i < calls; i++) {
            failed |= MsprofNotifySetDevice(0, DEVICE, true);
        }
        double each = (nanoseconds() - begin) / calls;
        best = each < best ? each : best;
    }
    printf("repeats %d %u %.1f\n", failed, atomic_load(&g_heard) - first, best);
    fflush(stdout);
    (void)fgets(line, sizeof line, stdin);
    return 0;
}
