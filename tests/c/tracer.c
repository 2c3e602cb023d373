/*
 * tracer PID ROUNDS: attaches to every thread of a process as a debugger does, holds them for a moment, looks at
 * each, and lets them go; so often.  Ends with 77 where that is not permitted.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum { THREADS_MAX = 256, NOT_PERMITTED = 77, HELD_NS = 3000000, FREE_NS = 10000000 };

static int threads_of(const char *pid, pid_t *threads)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL) {
        return 0;
    }
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (task->d_name[0] != '.' && count < THREADS_MAX) {
            threads[count++] = (pid_t)atoi(task->d_name);
        }
    }
    closedir(tasks);
    return count;
}

/* Waits until the thread has stopped for us; a signal of its own that comes first is handed on. */
static int wait_stopped(pid_t thread)
{
    for (;;) {
        int status;
        if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
            return 0;
        }
        if (WSTOPSIG(status) == SIGSTOP) {
            return 1;
        }
        ptrace(PTRACE_CONT, thread, NULL, (void *)(long)WSTOPSIG(status));
    }
}

static void rest(long nanoseconds)
{
    struct timespec pause = {.tv_nsec = nanoseconds};
    nanosleep(&pause, NULL);
}

int main(int count, char **words)
{
    static pid_t threads[THREADS_MAX];
    static int held[THREADS_MAX];
    int looked_at = 0;
    if (count != 3) {
        return 2;
    }
    for (int round = 0; round < atoi(words[2]); round++) {
        int found = threads_of(words[1], threads);
        for (int i = 0; i < found; i++) {
            held[i] = ptrace(PTRACE_ATTACH, threads[i], NULL, NULL) == 0;
            if (!held[i] && errno == EPERM) {
                return NOT_PERMITTED;
            }
            held[i] = held[i] && wait_stopped(threads[i]);
        }
        rest(HELD_NS);
        for (int i = 0; i < found; i++) {
            siginfo_t info;
            if (held[i] && ptrace(PTRACE_GETSIGINFO, threads[i], NULL, &info) == 0) {
                looked_at++;
            }
            if (held[i]) {
                ptrace(PTRACE_DETACH, threads[i], NULL, NULL);
            }
        }
        rest(FREE_NS);
    }
    printf("looked at %d\n", looked_at);
    return 0;
}
