/*
 * libruntime.so of the stand-in: devices, streams, memory and kernels.
 *
 * Kernels and copies run at once on the calling thread, so a call takes the time
 * of its real work.  Each call reports one api record (level 5000); launches,
 * copies, event records and model runs also a task_track, and an operator of the
 * device's CPU the record that its scheduler would send.
 */
#include "runtime.h"

#include "component.h"
#include "runtime_names.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct RtStream {
    uint32_t device;
    uint16_t id;
    _Atomic uint32_t submitted; /* low half task id, high half batch id of the latest */
    _Atomic uint32_t completed;
};

struct RtEvent {
    _Atomic uint32_t recorded; /* 1 + the stream's task number, 0: never */
    _Atomic(rtStream_t) stream;
};

static Switches g_switches = SWITCHES_INIT(COMPONENT_RUNTIME);
static bool g_names_wanted;
static _Atomic uint32_t g_streams;
static _Atomic uint32_t g_device_threads[RT_MAX_DEVICES];

static _Thread_local int32_t t_device = -1;
static _Thread_local uint64_t t_devices_set; /* bit n: this thread holds device n open */

/* Task tracks need both: task time says "tasks", runtime trace says "by the host". */
static bool tasks_on(void)
{
    uint64_t both = PROF_SWITCH_TASK_TIME_L0 | PROF_SWITCH_RUNTIME_TRACE;
    return (atomic_load_explicit(&g_switches.bits, memory_order_relaxed) & both) == both;
}

/* ---- profiling ---------------------------------------------------------- */

static int32_t on_command(uint32_t type, void *data, uint32_t len)
{
    const ProfCommand *command = data;
    Change change = switches_command(&g_switches, type, data, len);
    if (change == CHANGE_BAD) {
        return -1;
    }
    if (change == CHANGE_START) {
        if (g_names_wanted) {
            register_runtime_names();
        }
        cannWindowOpen(command->switches, command->switches_hi);
        atomic_store(&g_switches.bits, command->switches);
    }
    if (command->kind == PROF_COMMAND_START) {
        cannWindowDevice();
    }
    if (change == CHANGE_STOP) {
        atomic_store(&g_switches.bits, 0);
        cannWindowClose();
    }
    return 0;
}

__attribute__((constructor)) static void load(void)
{
    g_names_wanted = MsprofReportData(PROF_REPORTER_RUNTIME, PROF_REPORTER_INIT, NULL, 0) == 0;
    (void)MsprofRegisterCallback(PROF_MODULE_RUNTIME, on_command);
}

static Call begin(enum Traced what, uint32_t type)
{
    Call call = call_begin(&g_switches, PROF_SWITCH_RUNTIME_API, PROF_LEVEL_RUNTIME, what, type);
    if (call.window != 0) {
        call.item_id = cannStamp(call.window);
    }
    return call;
}

/* begin(RT_X) with the type number that the table gives RT_X. */
#define TYPE_CASE(id, type, name) \
    case id:                      \
        return begin(id, type);
static Call begin_call(enum Traced what)
{
    switch (what) {
        RUNTIME_APIS(TYPE_CASE)
    default:
        return (Call){.what = what};
    }
}

/* ---- tasks -------------------------------------------------------------- */

static uint32_t submit(rtStream_t stream)
{
    return atomic_fetch_add(&stream->submitted, 1) + 1;
}

static void complete(rtStream_t stream, uint32_t task)
{
    atomic_store(&stream->completed, task);
}

static void report_task(rtStream_t stream, uint32_t task, enum TaskType type, const char *kernel,
                        uint16_t blocks, uint16_t args_size)
{
    if (!tasks_on()) {
        return;
    }
    ProfCompact record = {0};
    record.data.task_track = (ProfTaskTrack){
        .device_id = (uint16_t)stream->device,
        .stream_id = stream->id,
        .task_id = (uint16_t)task,
        .batch_id = (uint16_t)(task >> 16),
        .task_type = type,
        .kernel_name = kernel == NULL ? 0 : MsprofStr2Id(kernel, strlen(kernel)),
        .block_count = blocks,
        .args_size = args_size,
    };
    report_compact(RECORD_TASK_TRACK, PROF_LEVEL_RUNTIME, 802, &record, sizeof(ProfTaskTrack),
                   MsprofSysCycleTime(), PROF_AGING);
}

/* ---- devices ------------------------------------------------------------ */

/*
 * A real runtime has the driver loaded from the first device on.  Here only with STANDIN_HAL,
 * which is what dlopen takes: libascend_hal.so, or a path.
 */
static void load_driver(void)
{
    const char *file = getenv("STANDIN_HAL");
    if (file != NULL && *file != '\0' && dlopen(file, RTLD_NOW) == NULL) {
        fprintf(stderr, "libruntime.so of the stand-in: %s\n", dlerror());
        abort();
    }
}

static rtError_t set_device(int32_t device)
{
    static pthread_once_t loaded = PTHREAD_ONCE_INIT;
    if (device < 0 || device >= RT_MAX_DEVICES) {
        return RT_ERROR_DEVICE;
    }
    pthread_once(&loaded, load_driver);
    uint64_t bit = UINT64_C(1) << device;
    if ((t_devices_set & bit) == 0) {
        t_devices_set |= bit;
        atomic_fetch_add(&g_device_threads[device], 1);
    }
    t_device = device;
    /* Every time, also when the device is open: frameworks do this before each run. */
    (void)MsprofNotifySetDevice(0, (uint32_t)device, true);
    return RT_OK;
}

rtError_t rtSetDevice(int32_t device)
{
    Call call = begin_call(RT_SET_DEVICE);
    rtError_t result = set_device(device);
    call_end(&call);
    return result;
}

static rtError_t reset_device(int32_t device)
{
    if (device < 0 || device >= RT_MAX_DEVICES) {
        return RT_ERROR_DEVICE;
    }
    uint64_t bit = UINT64_C(1) << device;
    if ((t_devices_set & bit) == 0) {
        return RT_ERROR_DEVICE;
    }
    t_devices_set &= ~bit;
    if (t_device == device) {
        t_device = -1;
    }
    if (atomic_fetch_sub(&g_device_threads[device], 1) == 1) {
        (void)MsprofNotifySetDevice(0, (uint32_t)device, false);
    }
    return RT_OK;
}

rtError_t rtDeviceReset(int32_t device)
{
    Call call = begin_call(RT_DEVICE_RESET);
    rtError_t result = reset_device(device);
    call_end(&call);
    return result;
}

int32_t rtGetDevice(void)
{
    return t_device;
}

/* ---- streams ------------------------------------------------------------ */

static rtError_t create_stream(rtStream_t *stream)
{
    if (stream == NULL) {
        return RT_ERROR_PARAM;
    }
    if (t_device < 0) {
        return RT_ERROR_DEVICE;
    }
    rtStream_t made = calloc(1, sizeof *made);
    if (made == NULL) {
        return RT_ERROR_MEMORY;
    }
    made->device = (uint32_t)t_device;
    made->id = (uint16_t)atomic_fetch_add(&g_streams, 1);
    *stream = made;
    return RT_OK;
}

rtError_t rtStreamCreate(rtStream_t *stream)
{
    Call call = begin_call(RT_STREAM_CREATE);
    rtError_t result = create_stream(stream);
    call_end(&call);
    return result;
}

uint32_t rtStreamDevice(rtStream_t stream)
{
    return stream->device;
}

rtError_t rtStreamDestroy(rtStream_t stream)
{
    Call call = begin_call(RT_STREAM_DESTROY);
    free(stream);
    call_end(&call);
    return RT_OK;
}

rtError_t rtStreamSynchronize(rtStream_t stream)
{
    if (stream == NULL) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_STREAM_SYNCHRONIZE);
    while (atomic_load(&stream->completed) != atomic_load(&stream->submitted)) {
        /* Only another thread's task in mid run; it is short. */
    }
    call_end(&call);
    return RT_OK;
}

/* ---- events ------------------------------------------------------------- */

rtError_t rtEventCreate(rtEvent_t *event)
{
    if (event == NULL) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_EVENT_CREATE);
    *event = calloc(1, sizeof **event);
    call_end(&call);
    return *event == NULL ? RT_ERROR_MEMORY : RT_OK;
}

rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream)
{
    if (event == NULL || stream == NULL) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_EVENT_RECORD);
    uint32_t task = submit(stream);
    report_task(stream, task, TASK_EVENT_RECORD, NULL, 0, 0);
    atomic_store(&event->stream, stream);
    atomic_store(&event->recorded, task);
    complete(stream, task);
    call_end(&call);
    return RT_OK;
}

rtError_t rtEventSynchronize(rtEvent_t event)
{
    if (event == NULL) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_EVENT_SYNCHRONIZE);
    rtStream_t stream = atomic_load(&event->stream);
    while (stream != NULL &&
           (int32_t)(atomic_load(&stream->completed) - atomic_load(&event->recorded)) < 0) {
    }
    call_end(&call);
    return RT_OK;
}

rtError_t rtEventDestroy(rtEvent_t event)
{
    Call call = begin_call(RT_EVENT_DESTROY);
    free(event);
    call_end(&call);
    return RT_OK;
}

/* ---- memory ------------------------------------------------------------- */

rtError_t rtMalloc(void **memory, size_t size)
{
    if (memory == NULL || size == 0) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_MALLOC);
    *memory = calloc(1, size);
    call_end(&call);
    return *memory == NULL ? RT_ERROR_MEMORY : RT_OK;
}

rtError_t rtFree(void *memory)
{
    Call call = begin_call(RT_FREE);
    free(memory);
    call_end(&call);
    return RT_OK;
}

rtError_t rtMemcpy(void *to, size_t to_size, const void *from, size_t size, enum RtDirection way)
{
    (void)way; /* one memory: all ways are the same copy */
    if (to == NULL || from == NULL || size > to_size) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_MEMCPY);
    memcpy(to, from, size);
    call_end(&call);
    return RT_OK;
}

rtError_t rtMemcpyAsync(void *to, size_t to_size, const void *from, size_t size,
                        enum RtDirection way, rtStream_t stream)
{
    if (to == NULL || from == NULL || stream == NULL || size > to_size) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_MEMCPY_ASYNC);
    uint32_t task = submit(stream);
    if (tasks_on()) {
        ProfCompact record = {0};
        record.data.memcpy_info = (ProfMemcpyInfo){
            .size = size,
            .max_size = to_size,
            .direction = (uint16_t)way,
        };
        /* One tick behind the call's begin: that is how readers find the call again. */
        uint64_t time = call.begin != 0 ? call.begin + 1 : MsprofSysCycleTime();
        report_compact(RECORD_MEMCPY_INFO, PROF_LEVEL_RUNTIME, 801, &record,
                       sizeof(ProfMemcpyInfo), time, PROF_AGING);
    }
    report_task(stream, task, TASK_MEMCPY_ASYNC, NULL, 0, 0);
    memcpy(to, from, size);
    complete(stream, task);
    call_end(&call);
    return RT_OK;
}

/* ---- kernels ------------------------------------------------------------ */

rtError_t rtKernelLaunch(const RtKernel *kernel, void *args, uint16_t args_size, rtStream_t stream)
{
    if (kernel == NULL || stream == NULL) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_KERNEL_LAUNCH);
    uint32_t task = submit(stream);
    report_task(stream, task, kernel->task_type, kernel->name, kernel->blocks, args_size);
    kernel->run(args);
    complete(stream, task);
    call_end(&call);
    return RT_OK;
}

static uint64_t microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* The kernel's run as the device's CPU scheduler would report it. */
static void run_on_aicpu(const RtKernel *kernel, void *args, rtStream_t stream, uint32_t task)
{
    if (!switches_on(&g_switches, PROF_SWITCH_AICPU)) {
        kernel->run(args);
        return;
    }
    enum { AICPU_VERSION = 1 };
    ProfAdditional record = {0};
    ProfAicpu *aicpu = &record.data.aicpu;
    *aicpu = (ProfAicpu){
        .stream_id = stream->id,
        .task_id = (uint16_t)task,
        .thread_id = this_thread(),
        .device_id = stream->device,
        .version = AICPU_VERSION,
    };
    uint64_t submitted = microseconds();
    aicpu->submit_tick = MsprofSysCycleTime();
    aicpu->schedule_tick = MsprofSysCycleTime();
    aicpu->tick_before_run = MsprofSysCycleTime();
    aicpu->run_start_time = microseconds();
    aicpu->run_start_tick = MsprofSysCycleTime();
    aicpu->compute_start = aicpu->run_start_time;
    kernel->run(args);
    aicpu->memcpy_start = microseconds(); /* results are in place: nothing to copy */
    aicpu->memcpy_end = aicpu->memcpy_start;
    aicpu->run_end_tick = MsprofSysCycleTime();
    aicpu->run_end_time = microseconds();
    aicpu->tick_after_run = MsprofSysCycleTime();
    aicpu->dispatch_time = (uint32_t)(aicpu->run_start_time - submitted);
    aicpu->total_time = (uint32_t)(microseconds() - submitted);
    report_additional(RECORD_AICPU, PROF_LEVEL_AICPU, 0, &record, sizeof *aicpu,
                      MsprofSysCycleTime(), PROF_AGING);
}

rtError_t rtCpuKernelLaunch(const RtKernel *kernel, void *args, uint16_t args_size,
                            rtStream_t stream)
{
    if (kernel == NULL || stream == NULL) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_CPU_KERNEL_LAUNCH);
    uint32_t task = submit(stream);
    report_task(stream, task, TASK_KERNEL_AICPU, kernel->name, kernel->blocks, args_size);
    run_on_aicpu(kernel, args, stream, task);
    complete(stream, task);
    call_end(&call);
    return RT_OK;
}

rtError_t rtModelExecute(rtError_t (*body)(void *args), void *args, rtStream_t stream)
{
    if (body == NULL || stream == NULL) {
        return RT_ERROR_PARAM;
    }
    Call call = begin_call(RT_MODEL_EXECUTE);
    uint32_t task = submit(stream);
    report_task(stream, task, TASK_MODEL_EXECUTE, NULL, 0, 0);
    complete(stream, task);
    rtError_t result = body(args);
    call_end(&call);
    return result;
}
