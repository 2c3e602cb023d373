/*
 * A program whose threads run models, one order at a time.  Orders; WORKER is the
 * number of a thread that lives as long as the program:
 *
 *   tid WORKER            its kernel thread id
 *   event WORKER RUN      an event of run RUN of model MODEL + WORKER: begin or end
 *   single WORKER         an event that stands alone
 *   load WORKER ID        loads model ID, which is called "model_ID"
 *   fuse WORKER ID        a load of model ID that says which operators it fuses, and not its name
 *   copy WORKER RUN       a copy to the input of model MODEL + WORKER, an api record
 *   launches WORKER N     N launches, api records
 *   say WORKER ID         says what model ID is called, beside any load
 *
 * An answer is "0", or a number that was asked for.
 */
#include "orders.h"
#include "reports.h"

#include <pthread.h>

enum { WORKERS = 8, MODEL = 7, SINGLE = 0xFFFF, AGING = 1, LASTING = 0 };
enum { MODEL_EXECUTE = 1, MODEL_LOAD = 2, INPUT_COPY = 3, GRAPH_ID_MAP = 0, FUSION_OP_INFO = 2 };

typedef struct Worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const Order *order;
    long answer;
} Worker;

static Worker g_workers[WORKERS];

static int32_t event(uint32_t aging, uint32_t type, uint32_t request, uint64_t model)
{
    struct MsprofEvent record = {
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_MODEL,
        .type = type,
        .threadId = thread_id(),
        .requestId = request,
        .timeStamp = MsprofSysCycleTime(),
        .itemId = model,
    };
    return MsprofReportEvent(aging, &record);
}

static struct MsprofAdditionalInfo additional(uint16_t level, uint32_t type, uint32_t bytes)
{
    return (struct MsprofAdditionalInfo){
        .magicNumber = MSPROF_MAGIC,
        .level = level,
        .type = type,
        .threadId = thread_id(),
        .dataLen = bytes,
        .timeStamp = MsprofSysCycleTime(),
    };
}

static uint64_t hash(const char *text)
{
    return MsprofGetHashId(text, strlen(text));
}

static int32_t say_name(uint32_t model)
{
    char name[32];
    snprintf(name, sizeof name, "model_%u", model);
    struct MsprofAdditionalInfo record = additional(MSPROF_LEVEL_MODEL, GRAPH_ID_MAP, 16);
    uint64_t id = hash(name);
    memcpy(record.data, &id, sizeof id);
    memcpy(record.data + 8, &model, sizeof model);
    memcpy(record.data + 12, &model, sizeof model);
    return MsprofReportAdditionalInfo(LASTING, &record, sizeof record);
}

static int32_t say_fusion(void)
{
    struct MsprofAdditionalInfo record = additional(MSPROF_LEVEL_NODE, FUSION_OP_INFO, 68);
    uint64_t name = hash("fused_conv");
    uint64_t parts[2] = {hash("conv1"), hash("relu1")};
    uint32_t count = 2;
    memcpy(record.data, &name, sizeof name);
    memcpy(record.data + 8, &count, sizeof count);
    memcpy(record.data + 52, parts, sizeof parts);
    return MsprofReportAdditionalInfo(LASTING, &record, sizeof record);
}

static int32_t load(uint32_t model, int32_t (*say)(uint32_t))
{
    int32_t wrong = event(LASTING, MODEL_LOAD, 0, model);
    wrong |= say(model);
    usleep(10); /* so that there is time after it */
    return wrong | event(LASTING, MODEL_LOAD, 0, model);
}

static int32_t say_only_fusion(uint32_t model)
{
    (void)model;
    return say_fusion();
}

static int32_t api(uint16_t level, uint32_t type, uint64_t item)
{
    struct MsprofApi record = api_now(item);
    record.level = level;
    record.type = type;
    return MsprofReportApi(AGING, &record);
}

static int32_t launches(unsigned long count)
{
    int32_t wrong = 0;
    for (unsigned long i = 0; i < count; i++) {
        wrong |= report(i);
    }
    return wrong;
}

static long obey(unsigned number, const Order *order)
{
    unsigned long what = order->second;
    uint32_t model = MODEL + number;
    return is_order(order, "tid")        ? (long)thread_id()
           : is_order(order, "event")    ? event(AGING, MODEL_EXECUTE, (uint32_t)what, model)
           : is_order(order, "single")   ? event(AGING, MODEL_EXECUTE, SINGLE, model)
           : is_order(order, "load")     ? load((uint32_t)what, say_name)
           : is_order(order, "fuse")     ? load((uint32_t)what, say_only_fusion)
           : is_order(order, "copy")     ? api(MSPROF_LEVEL_MODEL, INPUT_COPY, model)
           : is_order(order, "launches") ? launches(what)
           : is_order(order, "say")      ? say_name((uint32_t)what)
                                         : -2;
}

static void *work(void *argument)
{
    Worker *worker = argument;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->order == NULL) {
            pthread_cond_wait(&worker->changed, &worker->lock);
        }
        worker->answer = obey((unsigned)(worker - g_workers), worker->order);
        worker->order = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    return NULL;
}

static long have(Worker *worker, const Order *order)
{
    pthread_mutex_lock(&worker->lock);
    worker->order = order;
    pthread_cond_broadcast(&worker->changed);
    while (worker->order != NULL) {
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    long answer = worker->answer;
    pthread_mutex_unlock(&worker->lock);
    return answer;
}

int main(void)
{
    for (int i = 0; i < WORKERS; i++) {
        Worker *worker = &g_workers[i];
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->changed, NULL);
        pthread_create(&worker->thread, NULL, work, worker);
    }
    (void)MsprofInit(0xFF, NULL, 0);
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, KERNEL_LAUNCH, "KernelLaunch");
    say_ready();
    Order order;
    while (next_order(&order)) {
        printf("%ld\n", order.first < WORKERS ? have(&g_workers[order.first], &order) : -3);
    }
    return 0;
}
