/* The components of a task, which name their types when they are started. */
#ifndef FAMILY_COMPONENTS_H
#define FAMILY_COMPONENTS_H

#include "family.h"

#include <stdatomic.h>

enum { RUNTIME = 7, GE = 45, ACL = 48, HCCL = 3, COMPONENTS = 4 };
enum { ACL_MODEL_CLASS = 2 << 16 };

static atomic_int g_started;

/* As the runtime does: names of its tasks, its calls and its own kinds of records come when it is started. */
static int32_t on_runtime(uint32_t kind, void *command, uint32_t len)
{
    (void)kind;
    (void)len;
    if (kind_of(command) == KIND_START) {
        name_type(MSPROF_LEVEL_RUNTIME, 0, "KERNEL_AICORE");
        name_type(MSPROF_LEVEL_RUNTIME, 1, "KERNEL_AICPU");
        name_type(MSPROF_LEVEL_RUNTIME, 5, "MEMCPY_ASYNC");
        name_type(MSPROF_LEVEL_RUNTIME, 66, "KERNEL_AIVEC");
        name_type(MSPROF_LEVEL_RUNTIME, 801, "memcpy_info");
        name_type(MSPROF_LEVEL_RUNTIME, 802, "task_track");
        name_type(MSPROF_LEVEL_RUNTIME, 803, "capture_stream_info");
        name_type(MSPROF_LEVEL_RUNTIME, 804, "expand_stream_spec");
        name_type(MSPROF_LEVEL_RUNTIME, 805, "capture_op_info");
        name_type(MSPROF_LEVEL_RUNTIME, 1003, "KernelLaunch");
        name_type(MSPROF_LEVEL_RUNTIME, 1014, "DevMalloc");
        name_type(MSPROF_LEVEL_RUNTIME, 1103, "MemcpyAsync");
        atomic_fetch_add(&g_started, 1);
    }
    return 0;
}

static int32_t on_ge(uint32_t kind, void *command, uint32_t len)
{
    (void)kind;
    (void)len;
    if (kind_of(command) == KIND_START) {
        name_type(MSPROF_LEVEL_MODEL, 1, "ModelExecute");
        name_type(MSPROF_LEVEL_MODEL, 2, "ModelLoad");
        name_type(MSPROF_LEVEL_MODEL, 3, "InputCopy");
        name_type(MSPROF_LEVEL_MODEL, 4, "OutputCopy");
        atomic_fetch_add(&g_started, 1);
    }
    return 0;
}

static int32_t on_acl(uint32_t kind, void *command, uint32_t len)
{
    (void)kind;
    (void)len;
    if (kind_of(command) == KIND_START) {
        name_type(MSPROF_LEVEL_ACL, ACL_MODEL_CLASS | 1, "aclmdlLoadFromFile");
        name_type(MSPROF_LEVEL_ACL, ACL_MODEL_CLASS | 2, "aclmdlExecute");
        atomic_fetch_add(&g_started, 1);
    }
    return 0;
}

static int32_t on_hccl(uint32_t kind, void *command, uint32_t len)
{
    (void)kind;
    (void)len;
    if (kind_of(command) == KIND_START) {
        name_type(MSPROF_LEVEL_NODE, 10, "hccl_op_info");
        name_type(MSPROF_LEVEL_NODE, 12, "mc2_comm_info");
        name_type(MSPROF_LEVEL_NODE, 20, "ccu_task_info");
        name_type(MSPROF_LEVEL_NODE, 21, "ccu_wait_signal_info");
        name_type(MSPROF_LEVEL_NODE, 22, "ccu_group_info");
        name_type(MSPROF_LEVEL_NODE, 23, "dpu_hccl_info");
        name_type(MSPROF_LEVEL_NODE, 24, "memory_application");
        name_type(MSPROF_LEVEL_HCCL, 4, "context_id_info");
        name_type(MSPROF_LEVEL_HCCL, 10, "hccl_info");
        name_type(MSPROF_LEVEL_HCCL, 11, "Multi_Thread");
        atomic_fetch_add(&g_started, 1);
    }
    return 0;
}

/* Starts a capture into `dir` with two open devices, and waits until each component is started. */
static inline int start(const char *dir)
{
    enum { PATIENCE_MS = 30000 };
    EXPECT(MsprofRegisterCallback(RUNTIME, on_runtime), 0);
    EXPECT(MsprofRegisterCallback(ACL, on_acl), 0);
    EXPECT(MsprofRegisterCallback(GE, on_ge), 0);
    EXPECT(MsprofRegisterCallback(HCCL, on_hccl), 0);
    EXPECT(MsprofNotifySetDevice(0, 0, true), 0);
    EXPECT(MsprofNotifySetDevice(0, 1, true), 0);
    int result = msprof_agent_start("--runtime-api=on --model-execution=on --aicpu=on --task-memory=on --hccl=on", dir);
    say_result("start", result);
    for (int waited = 0; atomic_load(&g_started) < COMPONENTS && waited < PATIENCE_MS; waited++) {
        usleep(1000);
    }
    return result == 0 && atomic_load(&g_started) >= COMPONENTS;
}

#endif
