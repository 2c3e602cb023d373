/*
 * libascendcl.so of the stand-in: a thin layer over the runtime and GE, with its
 * own api record (level 20000) round every call.
 */
#include "acl.h"

#include "component.h"
#include "ge.h"
#include "runtime.h"

static Switches g_switches = SWITCHES_INIT(COMPONENT_ACL);
static _Atomic bool g_initialised;

/* ---- profiling ---------------------------------------------------------- */

static void register_names(void)
{
#define CALL_NAME(id, type, name) (void)MsprofRegTypeInfo(PROF_LEVEL_ACL, type, name);
    ACL_APIS(CALL_NAME)
#undef CALL_NAME
}

static int32_t on_command(uint32_t type, void *data, uint32_t len)
{
    const ProfCommand *command = data;
    switch (switches_command(&g_switches, type, data, len)) {
    case CHANGE_BAD:
        return -1;
    case CHANGE_START:
        register_names();
        atomic_store(&g_switches.bits, command->switches);
        return 0;
    case CHANGE_STOP:
        atomic_store(&g_switches.bits, 0);
        return 0;
    default:
        return 0;
    }
}

#define TYPE_CASE(id, type, name) \
    case id:                      \
        return call_begin(&g_switches, PROF_SWITCH_ACL_API, PROF_LEVEL_ACL, id, type);
static Call begin_call(enum Traced what)
{
    switch (what) {
        ACL_APIS(TYPE_CASE)
    default:
        return (Call){.what = what};
    }
}

/* ---- process ------------------------------------------------------------ */

aclError aclInit(const char *config_path)
{
    (void)config_path; /* acl.json belongs to another profiling mode */
    if (atomic_exchange(&g_initialised, true)) {
        return ACL_ERROR_REPEAT_INITIALIZE;
    }
    (void)MsprofRegisterCallback(PROF_MODULE_ACL, on_command);
    (void)MsprofInit(PROF_INIT_DYNAMIC, NULL, 0);
    return ACL_SUCCESS;
}

aclError aclFinalize(void)
{
    if (!atomic_exchange(&g_initialised, false)) {
        return ACL_ERROR_UNINITIALIZE;
    }
    (void)MsprofFinalize();
    return ACL_SUCCESS;
}

/* ---- devices, streams, memory ------------------------------------------- */

/* One traced call whose result is that of `expression`. */
#define TRACED(what, expression)                    \
    do {                                            \
        Call call_ = begin_call(what);              \
        aclError result_ = (aclError)(expression);  \
        call_end(&call_);                           \
        return result_;                             \
    } while (0)

aclError aclrtSetDevice(int32_t device)
{
    TRACED(ACL_SET_DEVICE, rtSetDevice(device));
}

aclError aclrtResetDevice(int32_t device)
{
    TRACED(ACL_RESET_DEVICE, rtDeviceReset(device));
}

aclError aclrtCreateStream(aclrtStream *stream)
{
    if (stream == NULL) {
        return ACL_ERROR_INVALID_PARAM;
    }
    Call call = begin_call(ACL_CREATE_STREAM);
    rtStream_t made = NULL;
    rtError_t result = rtStreamCreate(&made);
    *stream = made;
    call_end(&call);
    return result;
}

aclError aclrtDestroyStream(aclrtStream stream)
{
    TRACED(ACL_DESTROY_STREAM, rtStreamDestroy(stream));
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
    TRACED(ACL_SYNCHRONIZE_STREAM, rtStreamSynchronize(stream));
}

aclError aclrtMalloc(void **memory, size_t size, aclrtMemMallocPolicy policy)
{
    (void)policy;
    TRACED(ACL_MALLOC, rtMalloc(memory, size));
}

aclError aclrtFree(void *memory)
{
    TRACED(ACL_FREE, rtFree(memory));
}

/* The two enums name the four ways in the same order. */
_Static_assert((int)ACL_MEMCPY_HOST_TO_HOST == (int)RT_H2H, "copy ways");
_Static_assert((int)ACL_MEMCPY_DEVICE_TO_DEVICE == (int)RT_D2D, "copy ways");

aclError aclrtMemcpy(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind)
{
    TRACED(ACL_MEMCPY, rtMemcpy(to, to_size, from, size, (enum RtDirection)kind));
}

aclError aclrtMemcpyAsync(void *to, size_t to_size, const void *from, size_t size,
                          aclrtMemcpyKind kind, aclrtStream stream)
{
    TRACED(ACL_MEMCPY_ASYNC,
           rtMemcpyAsync(to, to_size, from, size, (enum RtDirection)kind, stream));
}

/* ---- models ------------------------------------------------------------- */

aclError aclmdlLoadFromFile(const char *path, uint32_t *model)
{
    TRACED(ACL_MDL_LOAD, geModelLoad(path, model));
}

aclError aclmdlGetShape(uint32_t model, aclmdlShape *shape)
{
    if (shape == NULL) {
        return ACL_ERROR_INVALID_PARAM;
    }
    return geModelShape(model, &shape->batch, &shape->input_width, &shape->output_width);
}

aclError aclmdlExecute(uint32_t model, const void *input, size_t input_bytes, void *output,
                       size_t output_bytes, aclrtStream stream)
{
    TRACED(ACL_MDL_EXECUTE,
           geModelExecute(model, input, input_bytes, output, output_bytes, stream));
}

aclError aclmdlUnload(uint32_t model)
{
    TRACED(ACL_MDL_UNLOAD, geModelUnload(model));
}

/* ---- marks -------------------------------------------------------------- */

enum { MAX_RANGES = 8 };

/* The windows that the thread's open ranges are counted in, the outermost first; 0: of none. */
static _Thread_local uint64_t t_ranges[MAX_RANGES];
static _Thread_local uint32_t t_range_count;

void *aclprofCreateStamp(void)
{
    return ProfAclCreateStamp == NULL ? NULL : ProfAclCreateStamp();
}

void aclprofDestroyStamp(void *stamp)
{
    if (stamp != NULL) {
        ProfAclDestroyStamp(stamp);
    }
}

aclError aclprofSetStampTraceMessage(void *stamp, const char *message, uint32_t len)
{
    return stamp == NULL ? ACL_SUCCESS : ProfAclSetStampTraceMessage(stamp, message, len);
}

/* A range that begins outside of a window is not handed on: the profiler may have begun before the window did. */
aclError aclprofPush(void *stamp)
{
    if (t_range_count == MAX_RANGES) {
        return ACL_ERROR_INVALID_PARAM;
    }
    uint64_t window = stamp == NULL ? 0 : cannCountBegin(RECORD_MSPROFTX);
    t_ranges[t_range_count++] = window;
    return window == 0 ? ACL_SUCCESS : ProfAclPush(stamp);
}

/* The record is made here; that the profiler knows nothing of the push any more is no failure. */
aclError aclprofPop(void)
{
    if (t_range_count == 0) {
        return ACL_ERROR_INVALID_PARAM;
    }
    uint64_t window = t_ranges[--t_range_count];
    if (window != 0) {
        uint64_t lands = cannReportBegin(RECORD_MSPROFTX, window);
        (void)ProfAclPop();
        cannReportEnd(RECORD_MSPROFTX, window, lands);
        cannCountEnd(RECORD_MSPROFTX, window);
    }
    return ACL_SUCCESS;
}
