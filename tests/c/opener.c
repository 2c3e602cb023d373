/*
 * opener LIBRARY [OTHER...]: opens the agent's library itself, in odd ways.  Orders:
 *
 *   open MODE          dlopen with RTLD_NOW; MODE 0 local, 1 global, 2 global and RTLD_DEEPBIND
 *   race THREADS N     so many threads open it at the same time, while another one forks N children
 *   reopen THREADS N   so many threads open and close it N times each
 *   namespace          dlmopen: a copy in a namespace of its own, which then takes a report and starts nothing
 *   others             opens the OTHERs until there is one that cannot be opened; says how many could
 *   report N TAG       reports N numbered calls
 *   reporters N        N threads that report for ever
 *
 * Its answers are numbers; 0 where there is nothing to be said and nothing went wrong.
 */
#include "orders.h"

#include <msprof_agent.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KERNEL_LAUNCH = 1003, ITEM_BITS = 40, THREADS_MAX = 16, REPORT_US = 500 };

typedef int32_t ReportApi(uint32_t, const struct MsprofApi *);
typedef uint64_t CycleTime(void);

typedef struct Task {
    pthread_t thread;
    unsigned long rounds;
    int wrong;
} Task;

static const char *g_library;
static ReportApi *g_report_api;
static CycleTime *g_cycle_time;
static pthread_barrier_t g_start;

static int report_by(ReportApi *report_api, CycleTime *cycle_time, uint64_t item)
{
    struct MsprofApi api = {
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_RUNTIME,
        .type = KERNEL_LAUNCH,
        .threadId = (uint32_t)syscall(SYS_gettid),
        .beginTime = cycle_time(),
        .itemId = item,
    };
    api.endTime = cycle_time();
    return report_api(1, &api);
}

static int look_up(void *handle)
{
    if (handle == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    g_report_api = (ReportApi *)dlsym(handle, "MsprofReportApi");
    g_cycle_time = (CycleTime *)dlsym(handle, "MsprofSysCycleTime");
    return g_report_api == NULL || g_cycle_time == NULL;
}

static int open_in(unsigned long mode)
{
    static const int scopes[] = {RTLD_LOCAL, RTLD_GLOBAL, RTLD_GLOBAL | RTLD_DEEPBIND};
    return look_up(dlopen(g_library, RTLD_NOW | scopes[mode]));
}

static void *open_at_once(void *argument)
{
    Task *task = argument;
    (void)pthread_barrier_wait(&g_start);
    void *handle = dlopen(g_library, RTLD_NOW | RTLD_GLOBAL);
    ReportApi *report_api = handle == NULL ? NULL : (ReportApi *)dlsym(handle, "MsprofReportApi");
    CycleTime *cycle_time = handle == NULL ? NULL : (CycleTime *)dlsym(handle, "MsprofSysCycleTime");
    task->wrong = report_api == NULL || report_by(report_api, cycle_time, 1) != 0;
    return NULL;
}

static void *fork_meanwhile(void *argument)
{
    Task *task = argument;
    (void)pthread_barrier_wait(&g_start);
    for (unsigned long i = 0; i < task->rounds; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            _exit(7);
        }
        task->wrong |= child < 0 || waitpid(child, &status, 0) != child || status != 7 << 8;
    }
    return NULL;
}

static void *reopen(void *argument)
{
    Task *task = argument;
    for (unsigned long i = 0; i < task->rounds; i++) {
        void *handle = dlopen(g_library, RTLD_NOW | RTLD_GLOBAL);
        task->wrong |= handle == NULL || dlsym(handle, "MsprofReportApi") != (void *)g_report_api;
        task->wrong |= handle == NULL || dlclose(handle) != 0;
    }
    return NULL;
}

/* Runs `body` on so many threads and, with rounds, `other` on one more. */
static int on_threads(unsigned long count, unsigned long rounds, void *(*body)(void *), void *(*other)(void *))
{
    static Task tasks[THREADS_MAX + 1];
    int wrong = 0;
    unsigned long all = count + (other != NULL);
    (void)pthread_barrier_init(&g_start, NULL, (unsigned)all);
    for (unsigned long i = 0; i < all; i++) {
        tasks[i] = (Task){.rounds = rounds};
        (void)pthread_create(&tasks[i].thread, NULL, i < count ? body : other, &tasks[i]);
    }
    for (unsigned long i = 0; i < all; i++) {
        (void)pthread_join(tasks[i].thread, NULL);
        wrong |= tasks[i].wrong;
    }
    return wrong;
}

static int in_a_namespace(void)
{
    void *handle = dlmopen(LM_ID_NEWLM, g_library, RTLD_NOW);
    if (handle == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    ReportApi *report_api = (ReportApi *)dlsym(handle, "MsprofReportApi");
    CycleTime *cycle_time = (CycleTime *)dlsym(handle, "MsprofSysCycleTime");
    int32_t (*start)(const char *, const char *) =
        (int32_t (*)(const char *, const char *))dlsym(handle, "msprof_agent_start");
    return report_api == g_report_api || report_by(report_api, cycle_time, 1) != 0 || start("", ".") == 0;
}

static void *report_for_ever(void *unused)
{
    (void)unused;
    for (uint64_t i = 1;; i++) {
        (void)report_by(g_report_api, g_cycle_time, i);
        usleep(REPORT_US);
    }
    return NULL;
}

static int add_reporters(unsigned long count)
{
    int wrong = 0;
    for (unsigned long i = 0; i < count; i++) {
        pthread_t thread;
        wrong |= pthread_create(&thread, NULL, report_for_ever, NULL);
        (void)pthread_detach(thread);
    }
    return wrong;
}

static int report_numbers(unsigned long count, uint64_t tag)
{
    int wrong = 0;
    for (unsigned long i = 1; i <= count; i++) {
        wrong |= report_by(g_report_api, g_cycle_time, tag << ITEM_BITS | i);
    }
    return wrong;
}

static unsigned open_others(int count, char **words)
{
    unsigned opened = 0;
    for (int i = 2; i < count && dlopen(words[i], RTLD_NOW) != NULL; i++) {
        opened++;
    }
    return opened;
}

int main(int count, char **words)
{
    Order order;
    if (count < 2) {
        return 2;
    }
    g_library = words[1];
    say_ready();
    while (next_order(&order)) {
        if (is_order(&order, "open")) {
            printf("%d\n", open_in(order.first));
        } else if (is_order(&order, "race")) {
            printf("%d\n", on_threads(order.first, order.second, open_at_once, fork_meanwhile) || open_in(1));
        } else if (is_order(&order, "reopen")) {
            printf("%d\n", on_threads(order.first, order.second, reopen, NULL));
        } else if (is_order(&order, "namespace")) {
            printf("%d\n", in_a_namespace());
        } else if (is_order(&order, "others")) {
            printf("%u\n", open_others(count, words));
        } else if (is_order(&order, "report")) {
            printf("%d\n", report_numbers(order.first, order.second));
        } else if (is_order(&order, "reporters")) {
            printf("%d\n", add_reporters(order.first));
        } else {
            printf("unknown order %s\n", order.word);
        }
    }
    return 0;
}
