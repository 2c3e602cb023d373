/*
 * handlers DIR: marks, asks for ids and names types in a loop while a signal
 * handler on the same thread does so too, first without a capture, then in one.
 */
#include "reports.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>

enum { ROUNDS = 20000, NAMES = 5000, PERIOD_US = 200, BUSY = 5 };

static void *g_stamp;
static volatile sig_atomic_t g_signals, g_refused, g_wrong;
/* Of marks that are written: those of the loop, those of handlers, and those of either that are not. */
static volatile sig_atomic_t g_of_main, g_of_handlers, g_lost;

static void count(int32_t result)
{
    if (result == BUSY) {
        g_refused = g_refused + 1;
    } else if (result != 0) {
        g_wrong = g_wrong + 1;
    }
}

static void count_mark(int32_t result, volatile sig_atomic_t *written)
{
    count(result);
    if (result == 0) {
        *written = *written + 1;
    } else {
        g_lost = g_lost + 1;
    }
}

static void everything(int number)
{
    uint32_t range = 0;
    char name[32];
    int length = snprintf(name, sizeof name, "name%d", number % NAMES);
    uint64_t id = MsprofGetHashId(name, (size_t)length);
    g_wrong = g_wrong + (id == 0 || id == UINT64_MAX);
    count(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, (uint32_t)(50000 + number % NAMES), name));
    count(ProfAclSetStampCategory(g_stamp, 1));
    count(ProfAclSetStampTraceMessage(g_stamp, "step", 4));
    count_mark(ProfAclMark(g_stamp), &g_of_main);
    count(ProfAclRangeStart(g_stamp, &range));
    count_mark(ProfAclRangeStop(range), &g_of_main);
}

/* Nothing that has not been seen before: a handler may not have memory made. */
static void on_alarm(int signal)
{
    int before = errno;
    (void)signal;
    g_signals = g_signals + 1;
    uint64_t id = MsprofGetHashId("name0", 5);
    g_wrong = g_wrong + (id == 0 || id == UINT64_MAX);
    count(MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, 50000, "name0"));
    count(ProfAclSetStampCategory(g_stamp, 2));
    count_mark(ProfAclMark(g_stamp), &g_of_handlers);
    errno = before;
}

static void set_timer(int period)
{
    struct itimerval timer = {.it_interval.tv_usec = period, .it_value.tv_usec = period};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void interrupted(void)
{
    set_timer(PERIOD_US);
    for (int i = 0; i < ROUNDS || g_refused == 0; i++) {
        everything(i);
    }
    set_timer(0);
}

int main(int argc, char **words)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    g_stamp = ProfAclCreateStamp();
    if (argc != 2 || g_stamp == NULL) {
        return 2;
    }
    everything(0);
    if (sigaction(SIGALRM, &action, NULL) != 0) {
        return 2;
    }
    interrupted();
    say_result("start", msprof_agent_start("--runtime-api=on", words[1]));
    g_refused = g_of_main = g_of_handlers = g_lost = 0;
    interrupted();
    signal(SIGALRM, SIG_IGN);
    say_result("stop", msprof_agent_stop(NULL, 0));
    printf("signals %d refused %d wrong %d main %d handlers %d lost %d\n", (int)g_signals,
           (int)g_refused, (int)g_wrong, (int)g_of_main, (int)g_of_handlers, (int)g_lost);
    return 0;
}
