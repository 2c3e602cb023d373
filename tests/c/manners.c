/*
 * Remembers what a library must leave alone, and says what has changed since.
 * A line on stdin is an order, a line on stdout its answer.
 *
 *   remember       what everything is like now
 *   load PATH      dlopen, with all symbols for everybody
 *   report N       N api records, by the loaded library
 *   compare        "same", or the name of the first thing that differs
 */
#include "../../include/msprof_agent.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

enum { SIGNALS = 65, STREAMS = 3, LIMITS = RLIM_NLIMITS, TEXT = 1 << 16, KERNEL_LAUNCH = 1003 };

typedef struct Stream {
    int open;
    int flags;
    int descriptor_flags;
    dev_t device;
    ino_t inode;
} Stream;

typedef struct Looks {
    struct sigaction actions[SIGNALS];
    sigset_t mask;
    stack_t stack;
    mode_t umask;
    char directory[4096];
    char environment[TEXT];
    char locale[1024];
    Stream streams[STREAMS];
    struct rlimit limits[LIMITS];
    struct itimerval timers[3];
    fenv_t floating;
    char name[16];
    int dumpable;
    int subreaper;
    int no_new_privileges;
    int nice;
    pid_t group;
    pid_t session;
} Looks;

extern char **environ;

static void look_at_environment(char *text)
{
    size_t used = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        size_t len = strlen(*entry) + 1;
        if (used + len < TEXT) {
            memcpy(text + used, *entry, len);
            used += len;
        }
    }
}

static void look(Looks *looks)
{
    /* Padding too, since it is compared byte by byte. */
    memset(looks, 0, sizeof *looks);
    for (int number = 1; number < SIGNALS; number++) {
        (void)sigaction(number, NULL, &looks->actions[number]);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &looks->mask);
    sigaltstack(NULL, &looks->stack);
    looks->umask = umask(0);
    umask(looks->umask);
    if (getcwd(looks->directory, sizeof looks->directory) == NULL) {
        exit(3);
    }
    look_at_environment(looks->environment);
    snprintf(looks->locale, sizeof looks->locale, "%s", setlocale(LC_ALL, NULL));
    for (int number = 0; number < STREAMS; number++) {
        struct stat found;
        Stream *stream = &looks->streams[number];
        stream->open = fstat(number, &found) == 0;
        if (stream->open) {
            stream->flags = fcntl(number, F_GETFL);
            stream->descriptor_flags = fcntl(number, F_GETFD);
            stream->device = found.st_dev;
            stream->inode = found.st_ino;
        }
    }
    for (int number = 0; number < LIMITS; number++) {
        getrlimit((__rlimit_resource_t)number, &looks->limits[number]);
    }
    for (int number = 0; number < 3; number++) {
        getitimer((__itimer_which_t)number, &looks->timers[number]);
    }
    fegetenv(&looks->floating);
    prctl(PR_GET_NAME, looks->name);
    looks->dumpable = prctl(PR_GET_DUMPABLE);
    prctl(PR_GET_CHILD_SUBREAPER, &looks->subreaper);
    looks->no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    looks->nice = getpriority(PRIO_PROCESS, 0);
    looks->group = getpgrp();
    looks->session = getsid(0);
}

#define DIFFERS(field)                                                                             \
    (memcmp(&now->field, &before->field, sizeof now->field) != 0 ? #field : NULL)

static const char *difference(const Looks *now, const Looks *before)
{
    for (int number = 1; number < SIGNALS; number++) {
        /* What the kernel says of a set of signals has its own size; the rest is the C library's. */
        const struct sigaction *one = &now->actions[number];
        const struct sigaction *other = &before->actions[number];
        if (one->sa_handler != other->sa_handler || one->sa_flags != other->sa_flags) {
            static char text[32];
            snprintf(text, sizeof text, "action of signal %d", number);
            return text;
        }
    }
    const char *found[] = {
        DIFFERS(mask),       DIFFERS(stack),     DIFFERS(umask),    DIFFERS(directory),
        DIFFERS(environment), DIFFERS(locale),   DIFFERS(streams),  DIFFERS(limits),
        DIFFERS(timers),     DIFFERS(floating),  DIFFERS(name),     DIFFERS(dumpable),
        DIFFERS(subreaper),  DIFFERS(no_new_privileges),            DIFFERS(nice),
        DIFFERS(group),      DIFFERS(session),
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        if (found[i] != NULL) {
            return found[i];
        }
    }
    return NULL;
}

static int report(void *library, unsigned long count)
{
    int32_t (*report_api)(uint32_t, const void *) = NULL;
    uint64_t (*ticks)(void) = NULL;
    *(void **)&report_api = dlsym(library, "MsprofReportApi");
    *(void **)&ticks = dlsym(library, "MsprofSysCycleTime");
    if (report_api == NULL || ticks == NULL) {
        return -2;
    }
    for (unsigned long i = 0; i < count; i++) {
        uint64_t begin = ticks();
        struct MsprofApi api = {
            .magicNumber = MSPROF_MAGIC,
            .level = MSPROF_LEVEL_RUNTIME,
            .type = KERNEL_LAUNCH,
            .threadId = (uint32_t)gettid(),
            .beginTime = begin,
            .endTime = ticks(),
            .itemId = i,
        };
        if (report_api(1, &api) != 0) {
            return -1;
        }
    }
    return 0;
}

static void on_signal(int number)
{
    (void)number;
}

/* Nothing is as it is by default, so that a change back to the default is one too. */
static void settle(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigset_t blocked;
    struct itimerval far = {.it_value.tv_sec = 100000};
    static char stack[1 << 16];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigaddset(&blocked, SIGRTMIN + 3);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    sigaltstack(&alternative, NULL);
    umask(0137);
    setenv("MANNERS", "good", 1);
    setlocale(LC_ALL, "C.UTF-8");
    (void)setitimer(ITIMER_VIRTUAL, &far, NULL);
    fesetround(FE_UPWARD);
    prctl(PR_SET_NAME, "manners");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (nice(1) == -1) {
        exit(4);
    }
}

int main(void)
{
    static Looks before;
    static Looks now;
    static char line[8192];
    void *library = NULL;
    settle();
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "remember") == 0) {
            look(&before);
            puts("0");
        } else if (strncmp(line, "load ", 5) == 0) {
            library = dlopen(line + 5, RTLD_NOW | RTLD_GLOBAL);
            puts(library != NULL ? "0" : dlerror());
        } else if (strncmp(line, "report ", 7) == 0) {
            printf("%d\n", report(library, strtoul(line + 7, NULL, 0)));
        } else if (strcmp(line, "compare") == 0) {
            look(&now);
            /* A timer that runs is later by itself. */
            now.timers[1].it_value = before.timers[1].it_value;
            const char *found = difference(&now, &before);
            puts(found != NULL ? found : "same");
        } else {
            printf("unknown order %s\n", line);
        }
        fflush(stdout);
    }
    return 0;
}
