/*
 * Every call that the stand-in traces, once: its number, names and switch.
 *
 * Type registration, reporting and the counts all read this table, so a call
 * cannot be reported under one name and counted under another.  The numbers are
 * those that released components register.
 */
#ifndef CANN_APIS_H
#define CANN_APIS_H

#include "prof_abi.h"

#define ACL_TYPE(class_id, n) ((uint32_t)(class_id) << 16 | (uint32_t)(n))
#define ACL_CLASS_MODEL 2
#define ACL_CLASS_RTS 3

/* Any of the bits of `mask` turns the call's record on. */
#define GE_HOST_OPS (PROF_SWITCH_GE_API_L0 | PROF_SWITCH_GE_API_L1)

/* X(id, type, name) */
#define RUNTIME_APIS(X)                      \
    X(RT_KERNEL_LAUNCH, 1003, "KernelLaunch") \
    X(RT_STREAM_CREATE, 1006, "StreamCreate") \
    X(RT_STREAM_DESTROY, 1007, "StreamDestroy") \
    X(RT_STREAM_SYNCHRONIZE, 1009, "StreamSynchronize") \
    X(RT_EVENT_CREATE, 1010, "EventCreate") \
    X(RT_EVENT_DESTROY, 1011, "EventDestroy") \
    X(RT_EVENT_RECORD, 1012, "EventRecord") \
    X(RT_EVENT_SYNCHRONIZE, 1013, "EventSynchronize") \
    X(RT_MALLOC, 1014, "DevMalloc") \
    X(RT_FREE, 1015, "DevFree") \
    X(RT_MEMCPY, 1020, "MemCopySync") \
    X(RT_SET_DEVICE, 1022, "SetDevice") \
    X(RT_DEVICE_RESET, 1023, "DeviceReset") \
    X(RT_MODEL_EXECUTE, 1039, "ModelExecute") \
    X(RT_CPU_KERNEL_LAUNCH, 1072, "CpuKernelLaunch") \
    X(RT_MEMCPY_ASYNC, 1103, "MemcpyAsync")

#define ACL_APIS(X)                                                         \
    X(ACL_MDL_LOAD, ACL_TYPE(ACL_CLASS_MODEL, 1), "aclmdlLoadFromFile")      \
    X(ACL_MDL_EXECUTE, ACL_TYPE(ACL_CLASS_MODEL, 2), "aclmdlExecute")        \
    X(ACL_MDL_UNLOAD, ACL_TYPE(ACL_CLASS_MODEL, 3), "aclmdlUnload")          \
    X(ACL_SET_DEVICE, ACL_TYPE(ACL_CLASS_RTS, 20), "aclrtSetDevice")         \
    X(ACL_RESET_DEVICE, ACL_TYPE(ACL_CLASS_RTS, 22), "aclrtResetDevice")     \
    X(ACL_FREE, ACL_TYPE(ACL_CLASS_RTS, 49), "aclrtFree")                    \
    X(ACL_MEMCPY, ACL_TYPE(ACL_CLASS_RTS, 52), "aclrtMemcpy")                \
    X(ACL_MEMCPY_ASYNC, ACL_TYPE(ACL_CLASS_RTS, 54), "aclrtMemcpyAsync")     \
    X(ACL_CREATE_STREAM, ACL_TYPE(ACL_CLASS_RTS, 63), "aclrtCreateStream")   \
    X(ACL_DESTROY_STREAM, ACL_TYPE(ACL_CLASS_RTS, 65), "aclrtDestroyStream") \
    X(ACL_SYNCHRONIZE_STREAM, ACL_TYPE(ACL_CLASS_RTS, 67), "aclrtSynchronizeStream") \
    X(ACL_MALLOC, ACL_TYPE(ACL_CLASS_RTS, 79), "aclrtMalloc")

#define NODE_APIS(X) X(NODE_LAUNCH, 5, "launch")

/* ModelExecute and ModelLoad are pairs of events; one pair counts once. */
#define MODEL_APIS(X)                     \
    X(MODEL_EXECUTE, 1, "ModelExecute")   \
    X(MODEL_LOAD, 2, "ModelLoad")         \
    X(MODEL_INPUT_COPY, 3, "InputCopy")   \
    X(MODEL_OUTPUT_COPY, 4, "OutputCopy")

/* Families that are no calls: X(id, level, type, name) */
#define RECORD_FAMILIES(X)                                         \
    X(RECORD_TASK_TRACK, PROF_LEVEL_RUNTIME, 802, "task_track")     \
    X(RECORD_MEMCPY_INFO, PROF_LEVEL_RUNTIME, 801, "memcpy_info")   \
    X(RECORD_NODE_BASIC_INFO, PROF_LEVEL_NODE, 0, "node_basic_info") \
    X(RECORD_TENSOR_INFO, PROF_LEVEL_NODE, 1, "tensor_info")        \
    X(RECORD_GRAPH_ID_MAP, PROF_LEVEL_MODEL, 0, "graph_id_map")     \
    X(RECORD_FUSION_OP_INFO, PROF_LEVEL_NODE, 2, "fusion_op_info")  \
    X(RECORD_MSPROFTX, PROF_LEVEL_TX, 0, "msproftx")                \
    X(RECORD_AICPU, PROF_LEVEL_AICPU, 0, "aicpu")

/* What is counted.  Groups are contiguous; counts.c relies on that order. */
#define TRACED_ID(id, type, name) id,
#define FAMILY_ID(id, level, type, name) id,
enum Traced {
    RUNTIME_APIS(TRACED_ID) ACL_APIS(TRACED_ID) NODE_APIS(TRACED_ID)
    MODEL_APIS(TRACED_ID) RECORD_FAMILIES(FAMILY_ID) TRACED_COUNT
};
#undef TRACED_ID
#undef FAMILY_ID

/* Task types of task_track records, by the runtime's names. */
enum TaskType {
    TASK_KERNEL_AICORE = 0,
    TASK_KERNEL_AICPU = 1,
    TASK_EVENT_RECORD = 2,
    TASK_MEMCPY_ASYNC = 5,
    TASK_MODEL_EXECUTE = 13,
    TASK_KERNEL_AIVEC = 66,
};

#endif
