/*
 * Reports to the libprofapi.so that it finds, as components do.  One order a line, one answer each:
 *
 *   ready         registers, opens a device and initialises
 *   report N      N records of each kind
 *   waiting       how much waits in the library's buffers
 *   slots         how many slots these have
 *   finalize      and init, once more
 *   stop          ends the library's own profiling, and its buffers
 *   child         forks; the child reports, and exits
 *   orphan        forks; the child reports, and waits until the buffers were emptied
 *   slow          sets a function that takes long, waits until it is called, and takes it away: 0 if it runs no more
 *   theirs        what the vendor's own library behind it has been told; $THEIRS is its file
 */
#include <msprof_agent.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNTIME = 7, INIT_AICPU = 6, INIT_DYNAMIC = 0xFF, TENSOR_INFO = 1, LONG_LEAST = 257, LONG_MOST = 957 };

static void *g_profapi;
static int32_t (*g_init)(uint32_t, void *, uint32_t);
static int32_t (*g_finalize)(void);
static int32_t (*g_stop)(uint32_t, const void *, uint32_t);
static int32_t (*g_register)(uint32_t, MsprofCommandHandle);
static int32_t (*g_device)(uint32_t, uint32_t, bool);
static int32_t (*g_api)(uint32_t, const struct MsprofApi *);
static int32_t (*g_compact)(uint32_t, const void *, uint32_t);
static int32_t (*g_additional)(uint32_t, const void *, uint32_t);
static int32_t (*g_batch)(uint32_t, const void *, uint32_t);
static int32_t (*g_type)(uint16_t, uint32_t, const char *);
static uint64_t (*g_now)(void);
static size_t (*g_waiting)(void);
static size_t (*g_slots)(void);

static void *function(const char *name)
{
    void *address = dlsym(g_profapi, name);
    if (address == NULL) {
        printf("%s\n", dlerror());
        exit(2);
    }
    return address;
}

static void find_functions(void)
{
    g_init = function("MsprofInit");
    g_finalize = function("MsprofFinalize");
    g_stop = function("MsprofStop");
    g_register = function("MsprofRegisterCallback");
    g_device = function("MsprofNotifySetDevice");
    g_api = function("MsprofReportApi");
    g_compact = function("MsprofReportCompactInfo");
    g_additional = function("MsprofReportAdditionalInfo");
    g_batch = function("MsprofReportBatchAdditionalInfo");
    g_type = function("MsprofRegTypeInfo");
    g_now = function("MsprofSysCycleTime");
    g_waiting = function("stock_waiting");
    g_slots = function("stock_slots");
}

static int32_t handler(uint32_t type, void *data, uint32_t len)
{
    (void)type;
    (void)data;
    (void)len;
    return 0;
}

static int32_t init(void)
{
    return g_init(INIT_AICPU, NULL, 0) | g_init(INIT_DYNAMIC, NULL, 0);
}

static int32_t ready(void)
{
    int32_t before = g_register(RUNTIME, handler) | g_device(0, 0, true);
    return before | init();
}

static int32_t report_additional(uint16_t level, uint32_t type, uint32_t len)
{
    static struct MsprofAdditionalInfo record[LONG_MOST / 256 + 1];
    memset(record, 0, sizeof record);
    record->magicNumber = MSPROF_MAGIC;
    record->level = level;
    record->type = type;
    record->threadId = (uint32_t)syscall(SYS_gettid);
    record->dataLen = len - 24;
    record->timeStamp = g_now();
    return g_additional(0, record, len);
}

static int32_t report(int count)
{
    int32_t worst = 0;
    for (int i = 0; i < count; i++) {
        struct MsprofApi api = {.magicNumber = MSPROF_MAGIC, .level = MSPROF_LEVEL_RUNTIME, .type = 1003};
        struct MsprofCompactInfo compact = {.magicNumber = MSPROF_MAGIC, .level = MSPROF_LEVEL_NODE};
        api.threadId = compact.threadId = (uint32_t)syscall(SYS_gettid);
        api.beginTime = api.endTime = compact.timeStamp = g_now();
        compact.dataLen = 28;
        worst |= g_api(1, &api);
        worst |= g_compact(0, &compact, sizeof compact);
        worst |= report_additional(MSPROF_LEVEL_NODE, TENSOR_INFO, 256);
        worst |= report_additional(MSPROF_LEVEL_AICPU, 0, 256);
        worst |= report_additional(MSPROF_LEVEL_NODE, 77, LONG_LEAST + (uint32_t)(i * 53) % (LONG_MOST - LONG_LEAST));
    }
    return worst;
}

static int32_t in_child(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        exit(report(5));
    }
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

enum { PATIENCE_MS = 60000, SLOW_MS = 300 };

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static int emptied(void)
{
    for (int ms = 0; ms < PATIENCE_MS && g_waiting() != 0; ms += 10) {
        sleep_ms(10);
    }
    return g_waiting() == 0 ? 0 : 1;
}

static int32_t orphan(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        /* A device tells the library behind that this process uses it. */
        int32_t worst = report(5) | g_device(0, 1, true);
        _exit(worst != 0 ? 2 : emptied());
    }
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static atomic_int g_inside;
static atomic_int g_entered;

static bool slow_pop(uint32_t *aging, void *record)
{
    (void)aging;
    (void)record;
    atomic_store(&g_inside, 1);
    atomic_store(&g_entered, 1);
    sleep_ms(SLOW_MS);
    atomic_store(&g_inside, 0);
    return false;
}

static int slow(void)
{
    void *behind = dlopen("libprofimpl.so", RTLD_LAZY | RTLD_NOLOAD);
    void (*set)(bool (*)(uint32_t *, void *)) =
        behind != NULL ? (void (*)(bool (*)(uint32_t *, void *)))dlsym(behind, "ProfImplSetApiBufPop") : NULL;
    if (set == NULL) {
        return 2;
    }
    set(slow_pop);
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&g_entered); ms++) {
        sleep_ms(1);
    }
    set(NULL);
    return atomic_load(&g_entered) && !atomic_load(&g_inside) ? 0 : 1;
}

static void say_theirs(void)
{
    void *theirs = dlopen(getenv("THEIRS"), RTLD_LAZY | RTLD_NOLOAD);
    const char *(*said)(void) = theirs != NULL ? (const char *(*)(void))dlsym(theirs, "impl_said") : NULL;
    puts(said != NULL ? said() : "it is not loaded");
}

static void obey(const char *order)
{
    if (strcmp(order, "ready") == 0) {
        printf("%d\n", ready());
    } else if (strncmp(order, "report ", 7) == 0) {
        printf("%d\n", report(atoi(order + 7)));
    } else if (strcmp(order, "waiting") == 0) {
        printf("%zu\n", g_waiting());
    } else if (strcmp(order, "slots") == 0) {
        printf("%zu\n", g_slots());
    } else if (strcmp(order, "finalize") == 0) {
        printf("%d\n", g_finalize());
    } else if (strcmp(order, "init") == 0) {
        printf("%d\n", init());
    } else if (strcmp(order, "child") == 0) {
        printf("%d\n", in_child());
    } else if (strcmp(order, "stop") == 0) {
        printf("%d\n", g_stop(0, NULL, 0));
    } else if (strcmp(order, "orphan") == 0) {
        printf("%d\n", orphan());
    } else if (strcmp(order, "slow") == 0) {
        printf("%d\n", slow());
    } else if (strcmp(order, "theirs") == 0) {
        say_theirs();
    } else {
        puts("what?");
    }
    fflush(stdout);
}

int main(void)
{
    char order[256];
    g_profapi = dlopen("libprofapi.so", RTLD_NOW | RTLD_GLOBAL);
    if (g_profapi == NULL) {
        puts(dlerror());
        return 2;
    }
    find_functions();
    while (fgets(order, sizeof order, stdin) != NULL) {
        order[strcspn(order, "\n")] = '\0';
        obey(order);
    }
    return 0;
}
