/*
 * A program that registers names.  Orders:
 *
 *   type N           names type FIRST_TYPE + N of level runtime "Api_N"
 *   call N           a call of that type
 *   strings FROM N   registers the strings "op_FROM" and on, N of them; CPU time of that in ns
 *   busy FROM N      the same on a second thread, while this one reports; how many reports that were
 *   twins            two strings with one hash, and a launch of each; says 1 if they were told apart
 *
 * An answer is a number; 0 where there is nothing to say.
 */
#include "orders.h"
#include "reports.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { FIRST_TYPE = 50000, LAUNCH = 5 };

static long long cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long add_strings(unsigned long from, unsigned long count)
{
    char text[48];
    long long begin = cpu_ns();
    for (unsigned long i = 0; i < count; i++) {
        int length = snprintf(text, sizeof text, "op_%lu", from + i);
        (void)MsprofGetHashId(text, (size_t)length);
    }
    return cpu_ns() - begin;
}

static atomic_bool g_done;

static void *add_in_background(void *order)
{
    (void)add_strings(((Order *)order)->first, ((Order *)order)->second);
    atomic_store(&g_done, true);
    return NULL;
}

static long long report_beside(Order *order)
{
    pthread_t thread;
    atomic_store(&g_done, false);
    pthread_create(&thread, NULL, add_in_background, order);
    long long count = 0;
    while (!atomic_load(&g_done)) {
        count += report((uint64_t)count) == 0;
        usleep(50);
    }
    pthread_join(thread, NULL);
    return count;
}

static int32_t launch(const char *text)
{
    struct MsprofApi api = api_now(MsprofGetHashId(text, strlen(text)));
    api.level = MSPROF_LEVEL_NODE;
    api.type = LAUNCH;
    api.beginTime -= 10;
    return MsprofReportApi(1, &api);
}

/* Of one hash in both halves. */
static int twins(void)
{
    static const char *texts[2] = {"nnmnllnknkolnllloono", "lmmlonmomololoonlllk"};
    uint64_t ids[2];
    int right = launch(texts[0]) == 0 && launch(texts[1]) == 0;
    for (int i = 0; i < 2; i++) {
        ids[i] = MsprofStr2Id(texts[i], strlen(texts[i]));
        right &= strcmp(MsprofId2Str(ids[i]), texts[i]) == 0;
    }
    return right && ids[0] != ids[1];
}

static long long obey(Order *order)
{
    uint32_t type = FIRST_TYPE + (uint32_t)order->first;
    if (is_order(order, "type")) {
        char name[32];
        snprintf(name, sizeof name, "Api_%lu", order->first);
        return MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, type, name);
    }
    if (is_order(order, "call")) {
        struct MsprofApi api = api_now(0);
        api.type = type;
        return MsprofReportApi(1, &api);
    }
    return is_order(order, "strings") ? add_strings(order->first, order->second)
           : is_order(order, "busy")  ? report_beside(order)
           : is_order(order, "twins") ? twins()
                                      : -2;
}

int main(void)
{
    (void)MsprofInit(0xFF, NULL, 0);
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch");
    say_ready();
    Order order;
    while (next_order(&order)) {
        printf("%lld\n", obey(&order));
    }
    return 0;
}
