/*
 * interrupted DIR: reports in a loop while a signal handler on the same thread
 * reports too, and says how many calls there were.
 */
#include "reports.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>

enum { OF_MAIN = 300000, PERIOD_US = 200 };

static volatile sig_atomic_t g_of_handler;

static void on_alarm(int signal)
{
    int before = errno;
    (void)signal;
    for (int i = 0; i < 2; i++) {
        (void)report(1);
        g_of_handler = g_of_handler + 1;
    }
    errno = before;
}

static void set_timer(int period)
{
    struct itimerval timer = {.it_interval.tv_usec = period, .it_value.tv_usec = period};
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int count, char **words)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    if (count != 2 || sigaction(SIGALRM, &action, NULL) != 0) {
        return 2;
    }
    say_result("start", msprof_agent_start("--runtime-api=on", words[1]));
    set_timer(PERIOD_US);
    for (int i = 0; i < OF_MAIN; i++) {
        (void)report(2);
    }
    set_timer(0);
    signal(SIGALRM, SIG_IGN);
    say_result("stop", msprof_agent_stop(NULL, 0));
    printf("calls %d %d\n", OF_MAIN, (int)g_of_handler);
    return 0;
}
