/*
 * starved DIR: uses up its address space in a capture and then does all that
 * would have the library grow; afterwards it has memory again and is captured.
 */
#include "expect.h"
#include "reports.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { PIECES = 1 << 20, THREADS = 4, CALLS = 20000, REFUSED = 5 };

static void *g_pieces[PIECES];
static void *g_stamp;
static pthread_barrier_t g_barrier;

static void use_up(void)
{
    grow_stack();
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1) {
        exit(2);
    }
    fclose(file);
    struct rlimit limit = {pages * (rlim_t)sysconf(_SC_PAGESIZE), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    int count = 0;
    for (size_t size = 1 << 20; size >= 16; size /= 2) {
        while (count < PIECES && (g_pieces[count] = malloc(size)) != NULL) {
            count++;
        }
    }
}

static void give_back(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    for (int i = 0; i < PIECES && g_pieces[i] != NULL; i++) {
        free(g_pieces[i]);
    }
}

/* A thread that has not reported before there was no memory. */
static void *late(void *unused)
{
    pthread_barrier_wait(&g_barrier);
    pthread_barrier_wait(&g_barrier);
    (void)report(1);
    (void)ProfAclMark(g_stamp);
    return unused;
}

static void grow_everything(void)
{
    uint32_t range = 0;
    int refused = 0;
    for (int i = 0; i < CALLS; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "name%d", i);
        EXPECT(MsprofGetHashId(name, (size_t)length) != 0, 1);
        (void)MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, (uint32_t)(50000 + i), name);
        (void)ProfAclSetStampTraceMessage(ProfAclCreateStamp(), name, (uint32_t)length);
        (void)ProfAclPush(g_stamp);
        refused += ProfAclRangeStart(g_stamp, &range) == REFUSED;
        (void)report(2);
    }
    EXPECT(refused > 0, 1);
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    g_stamp = ProfAclCreateStamp();
    if (count != 2 || g_stamp == NULL) {
        return 2;
    }
    EXPECT(ProfAclSetStampTraceMessage(g_stamp, "step", 4), 0);
    pthread_barrier_init(&g_barrier, NULL, THREADS + 1);
    say_result("start", msprof_agent_start("--runtime-api=on", words[1]));
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, late, NULL);
    }
    pthread_barrier_wait(&g_barrier);
    (void)report(3);
    g_phase = "starved";
    use_up();
    pthread_barrier_wait(&g_barrier);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    grow_everything();
    give_back();
    g_phase = "again";
    say_result("stop", msprof_agent_stop(NULL, 0));
    say_result("start again", msprof_agent_start("--runtime-api=on", words[1]));
    (void)report(4);
    EXPECT(ProfAclMark(g_stamp), 0);
    EXPECT(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, 49999, "late"), 0);
    say_result("stop again", msprof_agent_stop(NULL, 0));
    printf("wrong %d\n", g_wrong);
    return 0;
}
