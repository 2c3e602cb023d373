/*
 * The profiling ABI as CANN components see it: the calls of libprofapi.so that
 * the stand-in makes, and the layouts of what it reports through them.
 *
 * This is a second, independent declaration on purpose.  The agent declares the
 * same layouts in Rust; when the two disagree, the tests fail instead of both
 * being wrong in the same way.  Sizes and offsets are asserted below.
 */
#ifndef CANN_PROF_ABI_H
#define CANN_PROF_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROF_MAGIC 0x5A5Au
#define PROF_EVENT_MARK UINT64_MAX /* in place of an end time: "this is an event" */

enum ProfLevel {
    PROF_LEVEL_RUNTIME = 5000,
    PROF_LEVEL_AICPU = 6000,
    PROF_LEVEL_NODE = 10000,
    PROF_LEVEL_MODEL = 15000,
    PROF_LEVEL_ACL = 20000,
    PROF_LEVEL_TX = 20500,
};

enum ProfModule {
    PROF_MODULE_RUNTIME = 7,
    PROF_MODULE_GE = 45,
    PROF_MODULE_ACL = 48,
};

/* "aging" records may be dropped oldest first under a storage limit. */
enum ProfAging { PROF_UNAGING = 0, PROF_AGING = 1 };

/* ---- switch word -------------------------------------------------------- */

#define PROF_SWITCH_ACL_API UINT64_C(0x1)
#define PROF_SWITCH_AICPU UINT64_C(0x8)
#define PROF_SWITCH_RUNTIME_API UINT64_C(0x100)
#define PROF_SWITCH_GE_API_L0 UINT64_C(0x200)
#define PROF_SWITCH_TASK_TIME_L0 UINT64_C(0x800)
#define PROF_SWITCH_GE_API_L1 UINT64_C(0x1000000)
#define PROF_SWITCH_RUNTIME_TRACE UINT64_C(0x4000000)
#define PROF_SWITCH_MODEL_LOAD (UINT64_C(1) << 63)

/* ---- command to a handler ----------------------------------------------- */

enum { PROF_COMMAND_TYPE = 1, PROF_MAX_DEVICES = 64 };

enum ProfCommandKind {
    PROF_COMMAND_INIT = 0,
    PROF_COMMAND_START = 1,
    PROF_COMMAND_STOP = 2,
    PROF_COMMAND_FINALIZE = 3,
};

typedef struct ProfCommand {
    uint64_t switches;
    uint64_t switches_hi;
    uint32_t device_count;
    uint32_t devices[PROF_MAX_DEVICES];
    uint32_t model_id;
    uint32_t kind;
    uint32_t cache_flag;
    uint32_t path_len;
    uint32_t storage_limit_mb;
    uint32_t params_len;
    char path[1024];
    char params[4096];
} ProfCommand;

_Static_assert(sizeof(ProfCommand) == 5424, "command size");
_Static_assert(offsetof(ProfCommand, switches_hi) == 8, "command switch_hi");
_Static_assert(offsetof(ProfCommand, device_count) == 16, "command device count");
_Static_assert(offsetof(ProfCommand, devices) == 20, "command devices");
_Static_assert(offsetof(ProfCommand, model_id) == 276, "command model id");
_Static_assert(offsetof(ProfCommand, kind) == 280, "command kind");
_Static_assert(offsetof(ProfCommand, params_len) == 296, "command params length");
_Static_assert(offsetof(ProfCommand, path) == 300, "command path");
_Static_assert(offsetof(ProfCommand, params) == 1324, "command params");

typedef int32_t (*ProfHandler)(uint32_t type, void *data, uint32_t len);

/* ---- records ------------------------------------------------------------ */

typedef struct ProfApi {
    uint16_t magic;
    uint16_t level;
    uint32_t type;
    uint32_t thread_id;
    uint32_t reserved;
    uint64_t begin;
    uint64_t end;
    uint64_t item_id;
} ProfApi;

_Static_assert(sizeof(ProfApi) == 40, "api size");
_Static_assert(offsetof(ProfApi, begin) == 16, "api begin");
_Static_assert(offsetof(ProfApi, item_id) == 32, "api item id");

typedef struct ProfEvent {
    uint16_t magic;
    uint16_t level;
    uint32_t type;
    uint32_t thread_id;
    uint32_t request_id;
    uint64_t time;
    uint64_t event_mark;
    uint64_t item_id;
} ProfEvent;

_Static_assert(sizeof(ProfEvent) == 40, "event size");
_Static_assert(offsetof(ProfEvent, event_mark) == 24, "event mark");

/* The 24 bytes that compact and additional records begin with. */
typedef struct ProfHead {
    uint16_t magic;
    uint16_t level;
    uint32_t type;
    uint32_t thread_id;
    uint32_t data_len;
    uint64_t time;
} ProfHead;

_Static_assert(sizeof(ProfHead) == 24, "head size");

typedef struct ProfTaskTrack {
    uint16_t device_id;
    uint16_t stream_id;
    uint16_t task_id;
    uint16_t batch_id;
    uint64_t task_type;
    uint64_t kernel_name;
    uint16_t block_count;
    uint16_t args_size;
    uint8_t mode;
    uint8_t reserved[11];
} ProfTaskTrack;

typedef struct ProfMemcpyInfo {
    uint64_t size;
    uint64_t max_size;
    uint16_t direction;
} ProfMemcpyInfo;

/* Packed: the op type starts at an offset that is no multiple of eight. */
typedef struct __attribute__((packed)) ProfNodeBasicInfo {
    uint64_t op_name;
    uint32_t task_type;
    uint64_t op_type;
    uint32_t block_dim;
    uint32_t op_flag;
} ProfNodeBasicInfo;

typedef struct ProfCompact {
    ProfHead head;
    union {
        ProfTaskTrack task_track;
        ProfMemcpyInfo memcpy_info;
        ProfNodeBasicInfo node_basic_info;
        uint8_t bytes[40];
    } data;
} ProfCompact;

_Static_assert(sizeof(ProfTaskTrack) == 40, "task_track size");
_Static_assert(sizeof(ProfNodeBasicInfo) == 28, "node_basic_info size");
_Static_assert(sizeof(ProfCompact) == 64, "compact size");
_Static_assert(offsetof(ProfCompact, data.task_track.task_type) == 32, "task type");
_Static_assert(offsetof(ProfCompact, data.task_track.block_count) == 48, "block count");
_Static_assert(offsetof(ProfCompact, data.memcpy_info.direction) == 40, "direction");
_Static_assert(offsetof(ProfCompact, data.node_basic_info.op_type) == 36, "op type");

enum { PROF_TENSORS = 5, PROF_TENSOR_DIMS = 8 };

typedef struct ProfTensor {
    uint32_t kind; /* 0 input, 1 output */
    uint32_t format;
    uint32_t data_type;
    uint32_t shape[PROF_TENSOR_DIMS]; /* 0 ends */
} ProfTensor;

typedef struct __attribute__((packed)) ProfTensorInfo {
    uint64_t op_name;
    uint32_t tensor_count;
    ProfTensor tensors[PROF_TENSORS];
} ProfTensorInfo;

typedef struct __attribute__((packed)) ProfGraphIdMap {
    uint64_t model_name;
    uint32_t graph_id;
    uint32_t model_id;
} ProfGraphIdMap;

enum { PROF_FUSED_OPS = 8 };

typedef struct __attribute__((packed)) ProfFusionOpInfo {
    uint64_t op_name;
    uint32_t fused_count;
    uint64_t input_bytes;
    uint64_t output_bytes;
    uint64_t weight_bytes;
    uint64_t workspace_bytes;
    uint64_t total_bytes;
    uint64_t fused[PROF_FUSED_OPS]; /* hashes of names */
} ProfFusionOpInfo;

typedef struct ProfAicpu {
    uint16_t stream_id;
    uint16_t task_id;
    uint32_t pad;
    uint64_t run_start_time;   /* us */
    uint64_t run_start_tick;   /* ticks */
    uint64_t compute_start;    /* us */
    uint64_t memcpy_start;     /* us */
    uint64_t memcpy_end;       /* us */
    uint64_t run_end_time;     /* us */
    uint64_t run_end_tick;     /* ticks, as the four below */
    uint32_t thread_id;
    uint32_t device_id;
    uint64_t submit_tick;
    uint64_t schedule_tick;
    uint64_t tick_before_run;
    uint64_t tick_after_run;
    uint32_t kernel_type;
    uint32_t dispatch_time; /* us */
    uint32_t total_time;    /* us */
    uint16_t ffts_thread_id;
    uint8_t version;
    uint8_t reserved;
} ProfAicpu;

typedef struct ProfAdditional {
    ProfHead head;
    union {
        ProfTensorInfo tensor_info;
        ProfGraphIdMap graph_id_map;
        ProfFusionOpInfo fusion_op_info;
        ProfAicpu aicpu;
        uint8_t bytes[232];
    } data;
} ProfAdditional;

_Static_assert(sizeof(ProfTensor) == 44, "tensor size");
_Static_assert(sizeof(ProfTensorInfo) == 232, "tensor_info size");
_Static_assert(sizeof(ProfGraphIdMap) == 16, "graph_id_map size");
_Static_assert(sizeof(ProfFusionOpInfo) == 116, "fusion_op_info size");
_Static_assert(sizeof(ProfAicpu) == 120, "aicpu size");
_Static_assert(sizeof(ProfAdditional) == 256, "additional size");
_Static_assert(offsetof(ProfAdditional, data.tensor_info.tensors) == 36, "tensors");
_Static_assert(offsetof(ProfAdditional, data.fusion_op_info.fused) == 76, "fused operators");
_Static_assert(offsetof(ProfAdditional, data.aicpu.run_end_tick) == 80, "run end tick");
_Static_assert(offsetof(ProfAdditional, data.aicpu.device_id) == 92, "aicpu device");
_Static_assert(offsetof(ProfAdditional, data.aicpu.submit_tick) == 96, "submit tick");
_Static_assert(offsetof(ProfAdditional, data.aicpu.dispatch_time) == 132, "dispatch time");
_Static_assert(offsetof(ProfAdditional, data.aicpu.version) == 142, "aicpu version");

/* ---- calls -------------------------------------------------------------- */

enum { PROF_INIT_DYNAMIC = 0xFF };
enum { PROF_REPORTER_RUNTIME = 4, PROF_REPORTER_INIT = 1 }; /* MsprofReportData */

int32_t MsprofInit(uint32_t type, void *data, uint32_t len);
int32_t MsprofFinalize(void);
int32_t MsprofRegisterCallback(uint32_t module, ProfHandler handler);
int32_t MsprofNotifySetDevice(uint32_t chip, uint32_t device, bool open);
int32_t MsprofReportData(uint32_t module, uint32_t type, void *data, uint32_t len);
int32_t MsprofReportApi(uint32_t aging, const ProfApi *api);
int32_t MsprofReportEvent(uint32_t aging, const ProfEvent *event);
int32_t MsprofReportCompactInfo(uint32_t aging, const void *data, uint32_t len);
int32_t MsprofReportAdditionalInfo(uint32_t aging, const void *data, uint32_t len);
int32_t MsprofRegTypeInfo(uint16_t level, uint32_t type, const char *name);
uint64_t MsprofGetHashId(const char *text, size_t len);
uint64_t MsprofStr2Id(const char *text, size_t len);
uint64_t MsprofSysCycleTime(void);
/* The program's own marks.  Weak: not every library in the place of libprofapi.so has them. */
#define PROF_WEAK __attribute__((weak))
PROF_WEAK void *ProfAclCreateStamp(void);
PROF_WEAK void ProfAclDestroyStamp(void *stamp);
PROF_WEAK int32_t ProfAclSetStampTraceMessage(void *stamp, const char *message, uint32_t len);
PROF_WEAK int32_t ProfAclPush(void *stamp);
PROF_WEAK int32_t ProfAclPop(void);
int32_t MsprofSetDeviceIdByGeModelIdx(uint32_t model, uint32_t device);
int32_t MsprofUnsetDeviceIdByGeModelIdx(uint32_t model, uint32_t device);

#endif
