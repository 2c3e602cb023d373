/*
 * Has one write of a thread of a given name say that it has written more than it was given, which is a thing that
 * cannot be and that the agent's code panics at.  A line on stdin is an order, a line on stdout its answer.
 *
 *   break NAME       the next write on a thread with that name does so
 *   broken           1 when that has happened
 *   api N TAG | state | init | finalize | start DIR | stop | device ID OPEN
 */
#include "reports.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { NAME = 16 };

static char g_name[NAME];
static _Atomic int g_armed;

/* In place of the C library's, for the agent too. */
ssize_t write(int file, const void *bytes, size_t count)
{
    ssize_t written = (ssize_t)syscall(SYS_write, file, bytes, count);
    if (atomic_load(&g_armed)) {
        char name[NAME] = "";
        prctl(PR_GET_NAME, name);
        int armed = 1;
        if (strcmp(name, g_name) == 0 && atomic_compare_exchange_strong(&g_armed, &armed, 0)) {
            return written + 1;
        }
    }
    return written;
}

static void say_state(void)
{
    char why[512] = "";
    struct MsprofAgentStatus status = {.size = sizeof status};
    int32_t result = msprof_agent_status(&status);
    msprof_agent_last_error(why, sizeof why);
    printf("%d %u %s\n", result, status.state, why);
}

static void say_captured(int32_t result)
{
    char why[512] = "";
    msprof_agent_last_error(why, sizeof why);
    printf("%d %s\n", result, why);
}

int main(void)
{
    static char line[4096];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *rest = line + strcspn(line, " ");
        rest += *rest == ' ';
        char *end;
        unsigned long first = strtoul(rest, &end, 0);
        unsigned long second = strtoul(end, NULL, 0);
        if (strncmp(line, "break ", 6) == 0) {
            snprintf(g_name, sizeof g_name, "%s", rest);
            atomic_store(&g_armed, 1);
            puts("0");
        } else if (strcmp(line, "broken") == 0) {
            printf("%d\n", !atomic_load(&g_armed));
        } else if (strncmp(line, "api ", 4) == 0) {
            printf("%d\n", report_numbers(first, second));
        } else if (strcmp(line, "state") == 0) {
            say_state();
        } else if (strcmp(line, "init") == 0) {
            printf("%d\n", MsprofInit(0xFF, NULL, 0));
        } else if (strcmp(line, "finalize") == 0) {
            printf("%d\n", MsprofFinalize());
        } else if (strncmp(line, "device ", 7) == 0) {
            printf("%d\n", MsprofNotifySetDevice(0, (uint32_t)first, second != 0));
        } else if (strncmp(line, "start ", 6) == 0) {
            say_captured(msprof_agent_start("--runtime-api=on", rest));
        } else if (strcmp(line, "stop") == 0) {
            say_captured(msprof_agent_stop(NULL, 0));
        } else {
            printf("unknown order %s\n", line);
        }
        fflush(stdout);
    }
    return 0;
}
