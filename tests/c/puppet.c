/*
 * A program that does what it is told: a line on stdin is an order, a line on
 * stdout its answer.  Ends with exit(0) at the end of its stdin.
 *
 *   init | finalize | path | version         calls of the same name
 *   device ID OPEN                           MsprofNotifySetDevice
 *   name                                     names the records it reports
 *   api N TAG                                N api records, item id TAG << 40 | n
 *   flood THREADS N                          N api records on each of some threads at once
 *   brief THREADS N                          the same, one short-lived thread after the other
 *   variable LEN DATALEN                     a long additional record
 *   reporters N                              N threads that report for ever
 *   handler MODULE plain|hang|callback       registers a handler
 *   heard                                    starts and stops heard by `plain`
 *   release                                  lets `hang` return
 *   memory take|give                         takes all memory that there is, and gives it back
 *   start DIR | stop | state                 the agent's own API
 *   fork exit|_exit|report | vfork | double  children; answers their pids
 *   let                                      lets a forked reporter go and reaps it
 *   exit N | _exit N | abort
 */
#include "reports.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WORDS = 4, REPORT_US = 500 };

static int32_t report_variable(uint32_t len, uint32_t data_len)
{
    static struct MsprofAdditionalInfo record[8];
    record[0].magicNumber = MSPROF_MAGIC;
    record[0].level = MSPROF_LEVEL_NODE;
    record[0].threadId = thread_id();
    record[0].dataLen = data_len;
    record[0].timeStamp = MsprofSysCycleTime();
    return len <= sizeof record ? MsprofReportAdditionalInfo(0, record, len) : -2;
}

static void *report_for_ever(void *unused)
{
    (void)unused;
    for (uint64_t i = 1;; i++) {
        (void)report(i);
        usleep(REPORT_US);
    }
    return NULL;
}

static void add_reporters(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, report_for_ever, NULL);
        pthread_detach(thread);
    }
}

typedef struct Share {
    pthread_t thread;
    uint64_t count;
    uint64_t tag;
    int32_t result;
} Share;

static void *report_share(void *argument)
{
    Share *share = argument;
    share->result = report_numbers(share->count, share->tag);
    return NULL;
}

static int32_t report_on_threads(unsigned threads, uint64_t count, int at_once)
{
    static Share shares[64];
    int32_t worst = 0;
    for (unsigned i = 0; i < threads; i++) {
        Share *share = &shares[i % 64];
        *share = (Share){.count = count, .tag = i + 1};
        if (pthread_create(&share->thread, NULL, report_share, share) != 0) {
            return -2;
        }
        if (!at_once) {
            pthread_join(share->thread, NULL);
            worst = share->result != 0 ? share->result : worst;
        }
    }
    for (unsigned i = 0; at_once && i < threads; i++) {
        pthread_join(shares[i].thread, NULL);
        worst = shares[i].result != 0 ? shares[i].result : worst;
    }
    return worst;
}

/* ---- handlers ----------------------------------------------------------- */

static _Atomic unsigned g_starts;
static _Atomic unsigned g_stops;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_released = PTHREAD_COND_INITIALIZER;
static int g_is_released;

static int32_t plain(uint32_t type, void *command, uint32_t len)
{
    (void)type;
    (void)len;
    atomic_fetch_add(&g_starts, kind_of(command) == KIND_START);
    atomic_fetch_add(&g_stops, kind_of(command) == KIND_STOP);
    return 0;
}

static int32_t hang(uint32_t type, void *command, uint32_t len)
{
    (void)type;
    (void)len;
    if (kind_of(command) == KIND_START) {
        pthread_mutex_lock(&g_lock);
        while (!g_is_released) {
            pthread_cond_wait(&g_released, &g_lock);
        }
        pthread_mutex_unlock(&g_lock);
    }
    return 0;
}

static void release(void)
{
    pthread_mutex_lock(&g_lock);
    g_is_released = 1;
    pthread_cond_broadcast(&g_released);
    pthread_mutex_unlock(&g_lock);
}

/* Calls everything that a component may call from within its handler. */
static int32_t callback(uint32_t type, void *command, uint32_t len)
{
    enum { OTHER_MODULE = 99, OTHER_DEVICE = 5 };
    (void)type;
    (void)len;
    uint32_t kind = kind_of(command);
    if (kind != KIND_START && kind != KIND_STOP) {
        return 0;
    }
    struct MsprofAgentStatus status = {.size = sizeof status};
    (void)MsprofRegisterCallback(OTHER_MODULE, plain);
    (void)MsprofNotifySetDevice(0, OTHER_DEVICE, kind == KIND_START);
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch");
    (void)MsprofGetHashId("from a handler", 14);
    (void)MsprofGetPath();
    (void)MsprofInit(0xFF, NULL, 0);
    (void)msprof_agent_status(&status);
    (void)report(1);
    return plain(type, command, len);
}

static MsprofCommandHandle handler_named(const char *name)
{
    return strcmp(name, "hang") == 0       ? hang
           : strcmp(name, "callback") == 0 ? callback
                                           : plain;
}

/* ---- children ----------------------------------------------------------- */

static int g_let_go = -1; /* write end; closed to let the child end */
static pid_t g_child;

/* A child that uses the ABI until it is let go, and then ends as a program does. */
static void fork_reporter(void)
{
    int ends[2];
    if (pipe(ends) != 0) {
        puts("no pipe");
        return;
    }
    g_child = fork();
    if (g_child == 0) {
        close(ends[1]);
        add_reporters(1);
        char byte;
        while (read(ends[0], &byte, 1) > 0) {
        }
        exit(0);
    }
    close(ends[0]);
    g_let_go = ends[1];
    printf("%d\n", (int)g_child);
}

static void let_go(void)
{
    int status = -1;
    close(g_let_go);
    waitpid(g_child, &status, 0);
    printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void reap(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void fork_and_end(int with_exit)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (with_exit) {
            exit(0);
        }
        _exit(0);
    }
    reap(child);
}

static void spawn_with_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    reap(child);
}

/* The grandchild ends by exit(), with nobody of its own to wait for it. */
static void fork_twice(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            exit(0);
        }
        _exit(0);
    }
    reap(child);
}

/* ---- memory ------------------------------------------------------------- */

typedef struct Taken {
    struct Taken *before;
} Taken;

static Taken *g_taken;

/* Takes all the memory that there is, down to the smallest pieces. */
static void take_memory(void)
{
    grow_stack();
    for (size_t size = (size_t)64 << 20; size >= sizeof(Taken); size /= 2) {
        for (Taken *taken; (taken = malloc(size)) != NULL;) {
            taken->before = g_taken;
            g_taken = taken;
        }
    }
}

static void give_memory(void)
{
    while (g_taken != NULL) {
        Taken *taken = g_taken;
        g_taken = taken->before;
        free(taken);
    }
}

/* ---- orders ------------------------------------------------------------- */

static int is(char *const *words, const char *first, const char *second)
{
    return strcmp(words[0], first) == 0 && (second == NULL || strcmp(words[1], second) == 0);
}

static void stop(void)
{
    char path[4096];
    int32_t result = msprof_agent_stop(path, sizeof path);
    printf("%d %s\n", result, path);
}

static void state(void)
{
    struct MsprofAgentStatus status = {.size = sizeof status};
    int32_t result = msprof_agent_status(&status);
    printf("%d %u %u %llu\n", result, status.state, status.devices,
           (unsigned long long)status.captures);
}

static void start(const char *dir)
{
    char why[512];
    int32_t result = msprof_agent_start("--runtime-api=on", dir);
    msprof_agent_last_error(why, sizeof why);
    printf("%d%s%s\n", result, result == 0 ? "" : " ", result == 0 ? "" : why);
}

static unsigned long value(const char *word)
{
    return strtoul(word, NULL, 0);
}

static void obey(char *const *words)
{
    if (is(words, "init", NULL)) {
        printf("%d\n", MsprofInit(0xFF, NULL, 0));
    } else if (is(words, "finalize", NULL)) {
        printf("%d\n", MsprofFinalize());
    } else if (is(words, "path", NULL)) {
        printf("%s\n", MsprofGetPath());
    } else if (is(words, "version", NULL)) {
        printf("%s\n", msprof_agent_version());
    } else if (is(words, "device", NULL)) {
        printf("%d\n", MsprofNotifySetDevice(0, (uint32_t)value(words[1]), value(words[2]) != 0));
    } else if (is(words, "name", NULL)) {
        printf("%d\n", MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch"));
    } else if (is(words, "api", NULL)) {
        printf("%d\n", report_numbers(value(words[1]), value(words[2])));
    } else if (is(words, "flood", NULL) && value(words[1]) <= 64) {
        printf("%d\n", report_on_threads((unsigned)value(words[1]), value(words[2]), 1));
    } else if (is(words, "brief", NULL)) {
        printf("%d\n", report_on_threads((unsigned)value(words[1]), value(words[2]), 0));
    } else if (is(words, "variable", NULL)) {
        printf("%d\n", report_variable((uint32_t)value(words[1]), (uint32_t)value(words[2])));
    } else if (is(words, "reporters", NULL)) {
        add_reporters((int)value(words[1]));
        puts("0");
    } else if (is(words, "handler", NULL)) {
        printf("%d\n",
               MsprofRegisterCallback((uint32_t)value(words[1]), handler_named(words[2])));
    } else if (is(words, "heard", NULL)) {
        printf("%u %u\n", atomic_load(&g_starts), atomic_load(&g_stops));
    } else if (is(words, "release", NULL)) {
        release();
        puts("0");
    } else if (is(words, "memory", "take")) {
        take_memory();
        puts("0");
    } else if (is(words, "memory", "give")) {
        give_memory();
        puts("0");
    } else if (is(words, "start", NULL)) {
        start(words[1]);
    } else if (is(words, "stop", NULL)) {
        stop();
    } else if (is(words, "state", NULL)) {
        state();
    } else if (is(words, "fork", "report")) {
        fork_reporter();
    } else if (is(words, "fork", NULL)) {
        fork_and_end(strcmp(words[1], "exit") == 0);
    } else if (is(words, "vfork", NULL)) {
        spawn_with_vfork();
    } else if (is(words, "double", NULL)) {
        fork_twice();
    } else if (is(words, "let", NULL)) {
        let_go();
    } else if (is(words, "exit", NULL)) {
        exit((int)value(words[1]));
    } else if (is(words, "_exit", NULL)) {
        _exit((int)value(words[1]));
    } else if (is(words, "abort", NULL)) {
        abort();
    } else {
        printf("unknown order %s\n", words[0]);
    }
}

int main(void)
{
    static char line[8192];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        static char nothing[] = "";
        char *words[WORDS] = {nothing, nothing, nothing, nothing};
        char *rest = NULL;
        int count = 0;
        for (char *word = strtok_r(line, " \n", &rest); word != NULL && count < WORDS;
             word = strtok_r(NULL, " \n", &rest)) {
            words[count++] = word;
        }
        obey(words);
        fflush(stdout);
    }
    return 0;
}
