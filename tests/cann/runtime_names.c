/*
 * The names that the runtime registers when a capture starts: task types, record
 * families and calls, as released runtimes name them.  Names of calls that the
 * stand-in does not make are there too, because a real runtime also registers far
 * more than a program uses.
 */
#include "runtime_names.h"

typedef struct Name {
    uint32_t type;
    const char *text;
} Name;

static const Name g_names[] = {
    {0, "KERNEL_AICORE"},
    {1, "KERNEL_AICPU"},
    {2, "EVENT_RECORD"},
    {3, "EVENT_WAIT"},
    {4, "KERNEL_FUSION"},
    {5, "MEMCPY_ASYNC"},
    {9, "REMOTE_EVENT WAIT"},
    {13, "MODEL_EXECUTE"},
    {14, "NOTIFY_WAIT"},
    {15, "NOTIFY_RECORD"},
    {18, "STREAM_SWITCH"},
    {19, "STREAM_ACTIVE"},
    {20, "LABEL_SET"},
    {32, "MEMSET_ASYNC"},
    {52, "FFTS_PLUS"},
    {66, "KERNEL_AIVEC"},
    {81, "MODEL_EXIT"},
    {92, "REDUCE_ASYNC V2"},
    {98, "FLIP_TASK"},
    {108, "KERNEL_MIX AIC"},
    {109, "KERNEL_MIX AIV"},
    {803, "capture_stream_info"},
    {804, "expand_stream_spec"},
    {807, "stream_sq_info"},
    {810, "memcpy_ext_info"},
    {1000, "DevBinaryRegister"},
    {1001, "DevBinaryUnRegister"},
    {1002, "FunctionRegister"},
    {1008, "StreamWaitEvent"},
    {1016, "HostMalloc"},
    {1017, "HostFree"},
    {1018, "ManagedMemAlloc"},
    {1019, "ManagedMemFree"},
    {1024, "DeviceSynchronize"},
    {1025, "ContextCreate"},
    {1026, "ContextDestroy"},
    {1027, "ContextSetCurrent"},
    {1035, "ModelCreate"},
    {1036, "ModelBindStream"},
    {1043, "NotifyCreate"},
    {1045, "NotifyRecord"},
    {1046, "NotifyWait"},
    {1071, "Memset"},
    {1073, "MemsetAsync"},
    {1087, "KernelLaunch_Huge"},
    {1106, "ContextGetCurrent"},
    {1113, "StreamSyncTaskFinish"},
    {1119, "LaunchKernel"},
    {1130, "BinaryGetFunctionByName"},
#define CALL_NAME(id, type, name) {type, name},
    RUNTIME_APIS(CALL_NAME)
#undef CALL_NAME
};

static const Name g_aicpu_names[] = {
    {0, "AICPU"},
    {1, "DP"},
    {2, "AICPU_MODEL"},
    {3, "AICPUMI"},
};

void register_runtime_names(void)
{
    for (size_t i = 0; i < sizeof g_names / sizeof g_names[0]; i++) {
        (void)MsprofRegTypeInfo(PROF_LEVEL_RUNTIME, g_names[i].type, g_names[i].text);
    }
#define FAMILY_NAME(id, level, type, name)                \
    if ((level) == PROF_LEVEL_RUNTIME) {                  \
        (void)MsprofRegTypeInfo((level), (type), (name)); \
    }
    RECORD_FAMILIES(FAMILY_NAME)
#undef FAMILY_NAME
    for (size_t i = 0; i < sizeof g_aicpu_names / sizeof g_aicpu_names[0]; i++) {
        (void)MsprofRegTypeInfo(PROF_LEVEL_AICPU, g_aicpu_names[i].type, g_aicpu_names[i].text);
    }
}
