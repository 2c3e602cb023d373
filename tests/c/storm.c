/*
 * storm COUNT: on a line on stdin, lets SIGALRM, SIGPROF and SIGCHLD rain a thousand times a second each on
 * threads that report, until each has come COUNT times; their handlers report too.  Says how many records there
 * were: of the threads, and of each handler.  Every record has a number of its own.  Ends with its stdin.
 */
#include "reports.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { KINDS = 3, REPORTERS = 2, PERIOD_US = 1000, PAUSE_NS = 20000 };

static const int g_signals[KINDS] = {SIGALRM, SIGPROF, SIGCHLD};
/* Records by who reported them: the threads, then each handler. */
static _Atomic uint64_t g_counts[KINDS + 1];
static _Atomic int g_failed;
static _Atomic int g_over;

static void report_as(int who)
{
    uint64_t number = atomic_fetch_add(&g_counts[who], 1) + 1;
    if (report((uint64_t)(who + 1) << ITEM_BITS | number) != 0) {
        atomic_store(&g_failed, 1);
    }
}

static void on_signal(int number)
{
    int before = errno;
    for (int i = 0; i < KINDS; i++) {
        if (g_signals[i] == number) {
            report_as(i + 1);
        }
    }
    errno = before;
}

static void *report_on(void *unused)
{
    (void)unused;
    while (!atomic_load(&g_over)) {
        struct timespec pause = {.tv_nsec = PAUSE_NS};
        /* What a handler may find a program in the middle of. */
        free(malloc(100));
        for (int i = 0; i < 10; i++) {
            report_as(0);
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void *send_sigchld(void *unused)
{
    sigset_t all;
    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!atomic_load(&g_over)) {
        struct timespec pause = {.tv_nsec = PERIOD_US * 1000};
        nanosleep(&pause, NULL);
        kill(getpid(), SIGCHLD);
    }
    return NULL;
}

/* By real time, also where the system's own timers count in ticks. */
static timer_t rain(int number)
{
    timer_t timer;
    struct timespec period = {.tv_nsec = PERIOD_US * 1000};
    struct itimerspec times = {.it_interval = period, .it_value = period};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
        exit(5);
    }
    timer_settime(timer, 0, &times, NULL);
    return timer;
}

static void storm(uint64_t wanted)
{
    pthread_t reporters[REPORTERS];
    pthread_t sender;
    struct timespec pause = {.tv_nsec = PERIOD_US * 1000};
    report_as(0);
    for (int i = 0; i < REPORTERS; i++) {
        pthread_create(&reporters[i], NULL, report_on, NULL);
    }
    pthread_create(&sender, NULL, send_sigchld, NULL);
    timer_t timers[] = {rain(SIGALRM), rain(SIGPROF)};
    for (int i = 1; i <= KINDS; i++) {
        while (atomic_load(&g_counts[i]) < wanted) {
            nanosleep(&pause, NULL);
        }
    }
    timer_delete(timers[0]);
    timer_delete(timers[1]);
    atomic_store(&g_over, 1);
    pthread_join(sender, NULL);
    for (int i = 0; i < REPORTERS; i++) {
        pthread_join(reporters[i], NULL);
    }
}

int main(int count, char **words)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    char line[64];
    if (count != 2) {
        return 2;
    }
    for (int i = 0; i < KINDS; i++) {
        sigaction(g_signals[i], &action, NULL);
    }
    /* Some hosts let only parents debug otherwise. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        storm(strtoull(words[1], NULL, 0));
        for (int i = 0; i < KINDS; i++) {
            signal(g_signals[i], SIG_IGN);
        }
        printf("records %d %llu %llu %llu %llu\n", atomic_load(&g_failed),
               (unsigned long long)g_counts[0], (unsigned long long)g_counts[1],
               (unsigned long long)g_counts[2], (unsigned long long)g_counts[3]);
        fflush(stdout);
    }
    return 0;
}
