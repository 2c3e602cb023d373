/*
 * libge_executor.so of the stand-in: loads a model and runs its operators.
 *
 * A run is a ModelExecute event pair (level 15000) round the copy in, one launch
 * (level 10000) for each operator, and the copy out.  What describes an operator
 * is reported inside its launch, by the launching thread, because that is how
 * readers join the two.
 */
#include "ge.h"

#include "acl.h"
#include "component.h"
#include "mlp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MODELS = 256, FORMAT_ND = 2, DATA_FLOAT = 0, DATA_DOUBLE = 11 };

/* node_basic_info's task types */
enum { NODE_AI_CORE = 0, NODE_AI_CPU = 1, NODE_AI_VECTOR_CORE = 2 };

typedef struct Model {
    uint32_t id;
    uint32_t runs; /* request id of the latest run */
    Mlp *mlp;
    pthread_mutex_t running; /* a model has one set of buffers */
} Model;

static Switches g_switches = SWITCHES_INIT(COMPONENT_GE);

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static Model *g_models[MAX_MODELS];
static uint32_t g_last_id;

static uint64_t hash(const char *text)
{
    return MsprofGetHashId(text, strlen(text));
}

/* ---- profiling ---------------------------------------------------------- */

static void report_graph(uint32_t model, const char *name)
{
    ProfAdditional record = {0};
    record.data.graph_id_map = (ProfGraphIdMap){
        .model_name = hash(name),
        .graph_id = model,
        .model_id = model,
    };
    report_additional(RECORD_GRAPH_ID_MAP, PROF_LEVEL_MODEL, 0, &record, sizeof(ProfGraphIdMap),
                      MsprofSysCycleTime(), PROF_UNAGING);
}

/* Each layer's operators, as if they had been fused into one when the model was built. */
static void report_fusions(const Mlp *mlp)
{
    const MlpShape *shape = &mlp->shape;
    for (uint32_t i = 0; i + 1 < mlp->op_count; i++) {
        const MlpOp *first = &mlp->ops[i];
        const MlpOp *second = &mlp->ops[i + 1];
        if (first->kind != MLP_MATMUL || second->kind != MLP_RELU) {
            continue;
        }
        char name[2 * MLP_NAME];
        snprintf(name, sizeof name, "%s_fused", first->name);
        uint64_t width = shape->widths[first->layer];
        uint64_t out = shape->widths[first->layer + 1];
        ProfFusionOpInfo info = {
            .op_name = hash(name),
            .fused_count = 2,
            .input_bytes = shape->batch * width * sizeof(float),
            .output_bytes = shape->batch * out * sizeof(float),
            .weight_bytes = (width + 1) * out * sizeof(float),
            .fused = {hash(first->name), hash(second->name)},
        };
        info.total_bytes = info.input_bytes + info.output_bytes + info.weight_bytes;
        ProfAdditional record = {.data.fusion_op_info = info};
        report_additional(RECORD_FUSION_OP_INFO, PROF_LEVEL_NODE, 2, &record,
                          sizeof(ProfFusionOpInfo), MsprofSysCycleTime(), PROF_UNAGING);
    }
}

/* A capture that begins later than the load still has to know the models' names. */
static void report_loaded_graphs(void)
{
    struct {
        uint32_t id;
        char name[MLP_NAME];
    } loaded[MAX_MODELS];
    uint32_t count = 0;
    pthread_mutex_lock(&g_lock);
    for (int i = 0; i < MAX_MODELS; i++) {
        if (g_models[i] != NULL) {
            loaded[count].id = g_models[i]->id;
            memcpy(loaded[count].name, g_models[i]->mlp->shape.name, MLP_NAME);
            count++;
        }
    }
    pthread_mutex_unlock(&g_lock);
    for (uint32_t i = 0; i < count; i++) {
        report_graph(loaded[i].id, loaded[i].name);
    }
}

static void register_names(void)
{
#define CALL_NAME(id, type, name) (void)MsprofRegTypeInfo(PROF_LEVEL_NODE, type, name);
    NODE_APIS(CALL_NAME)
#undef CALL_NAME
#define CALL_NAME(id, type, name) (void)MsprofRegTypeInfo(PROF_LEVEL_MODEL, type, name);
    MODEL_APIS(CALL_NAME)
#undef CALL_NAME
#define FAMILY_NAME(id, level, type, name)                               \
    if ((level) == PROF_LEVEL_NODE || (level) == PROF_LEVEL_MODEL) {     \
        (void)MsprofRegTypeInfo((level), (type), (name));                \
    }
    RECORD_FAMILIES(FAMILY_NAME)
#undef FAMILY_NAME
}

static int32_t on_command(uint32_t type, void *data, uint32_t len)
{
    const ProfCommand *command = data;
    switch (switches_command(&g_switches, type, data, len)) {
    case CHANGE_BAD:
        return -1;
    case CHANGE_START:
        register_names();
        if ((command->switches & PROF_SWITCH_MODEL_LOAD) != 0) {
            report_loaded_graphs();
        }
        atomic_store(&g_switches.bits, command->switches);
        return 0;
    case CHANGE_STOP:
        atomic_store(&g_switches.bits, 0);
        return 0;
    default:
        return 0;
    }
}

__attribute__((constructor)) static void load(void)
{
    (void)MsprofRegisterCallback(PROF_MODULE_GE, on_command);
}

static Call begin_model_call(uint64_t mask, enum Traced what, uint32_t type, uint32_t model)
{
    Call call = call_begin(&g_switches, mask, PROF_LEVEL_MODEL, what, type);
    call.item_id = model;
    return call;
}

/* ---- models ------------------------------------------------------------- */

/* The slot that holds `id`, or with id 0 a free one; NULL when there is none. */
static Model **slot_of(uint32_t id)
{
    for (int i = 0; i < MAX_MODELS; i++) {
        if (id == 0 ? g_models[i] == NULL : g_models[i] != NULL && g_models[i]->id == id) {
            return &g_models[i];
        }
    }
    return NULL;
}

static Model *find(uint32_t id)
{
    pthread_mutex_lock(&g_lock);
    Model **slot = id == 0 ? NULL : slot_of(id);
    Model *model = slot == NULL ? NULL : *slot;
    pthread_mutex_unlock(&g_lock);
    return model;
}

static Model *new_model(const char *path)
{
    MlpShape shape;
    if (!mlp_read_shape(path, &shape)) {
        return NULL;
    }
    Model *model = calloc(1, sizeof *model);
    Mlp *mlp = mlp_new(&shape);
    if (model == NULL || mlp == NULL) {
        free(model);
        mlp_free(mlp);
        return NULL;
    }
    model->mlp = mlp;
    pthread_mutex_init(&model->running, NULL);
    return model;
}

static void free_model(Model *model)
{
    pthread_mutex_destroy(&model->running);
    mlp_free(model->mlp);
    free(model);
}

/* Takes a number first: the ModelLoad event that begins now has to name it. */
static int32_t load_as(uint32_t id, const char *path)
{
    Model *model = new_model(path);
    if (model == NULL) {
        return ACL_ERROR_INVALID_FILE;
    }
    model->id = id;
    pthread_mutex_lock(&g_lock);
    Model **slot = slot_of(0);
    if (slot != NULL) {
        *slot = model;
    }
    pthread_mutex_unlock(&g_lock);
    if (slot == NULL) {
        free_model(model);
        return ACL_ERROR_BAD_ALLOC;
    }
    if (rtGetDevice() >= 0) {
        (void)MsprofSetDeviceIdByGeModelIdx(id, (uint32_t)rtGetDevice());
    }
    if (switches_on(&g_switches, PROF_SWITCH_MODEL_LOAD)) {
        report_graph(id, model->mlp->shape.name);
        report_fusions(model->mlp);
    }
    return ACL_SUCCESS;
}

int32_t geModelLoad(const char *path, uint32_t *model)
{
    enum { LOAD_REQUEST = 0 };
    if (path == NULL || model == NULL) {
        return ACL_ERROR_INVALID_PARAM;
    }
    pthread_mutex_lock(&g_lock);
    uint32_t id = ++g_last_id;
    pthread_mutex_unlock(&g_lock);

    Call call = begin_model_call(PROF_SWITCH_MODEL_LOAD, MODEL_LOAD, 2, id);
    call_event(&call, LOAD_REQUEST, PROF_UNAGING);
    int32_t result = load_as(id, path);
    call_event_end(&call, LOAD_REQUEST, PROF_UNAGING);
    *model = id;
    return result;
}

int32_t geModelShape(uint32_t id, uint32_t *batch, uint32_t *input_width, uint32_t *output_width)
{
    const Model *model = find(id);
    if (model == NULL) {
        return ACL_ERROR_INVALID_PARAM;
    }
    const MlpShape *shape = &model->mlp->shape;
    *batch = shape->batch;
    *input_width = shape->widths[0];
    *output_width = shape->widths[shape->width_count - 1];
    return ACL_SUCCESS;
}

int32_t geModelUnload(uint32_t id)
{
    pthread_mutex_lock(&g_lock);
    Model **slot = id == 0 ? NULL : slot_of(id);
    Model *model = slot == NULL ? NULL : *slot;
    if (slot != NULL) {
        *slot = NULL;
    }
    pthread_mutex_unlock(&g_lock);
    if (model == NULL) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (rtGetDevice() >= 0) {
        (void)MsprofUnsetDeviceIdByGeModelIdx(id, (uint32_t)rtGetDevice());
    }
    free_model(model);
    return ACL_SUCCESS;
}

/* ---- operators ---------------------------------------------------------- */

static uint32_t node_type(MlpOpKind kind)
{
    return kind == MLP_MATMUL ? NODE_AI_CORE : kind == MLP_CAST ? NODE_AI_CPU : NODE_AI_VECTOR_CORE;
}

static void report_node(const MlpOp *op, uint16_t blocks)
{
    ProfCompact record = {0};
    record.data.node_basic_info = (ProfNodeBasicInfo){
        .op_name = hash(op->name),
        .task_type = node_type(op->kind),
        .op_type = hash(mlp_op_type(op->kind)),
        .block_dim = blocks,
    };
    report_compact(RECORD_NODE_BASIC_INFO, PROF_LEVEL_NODE, 0, &record, sizeof(ProfNodeBasicInfo),
                   MsprofSysCycleTime(), PROF_UNAGING);
}

static ProfTensor tensor(uint32_t kind, uint32_t data_type, uint32_t rows, uint32_t columns)
{
    return (ProfTensor){
        .kind = kind,
        .format = FORMAT_ND,
        .data_type = data_type,
        .shape = {rows, columns},
    };
}

static void report_tensors(const MlpOp *op)
{
    enum { INPUT, OUTPUT };
    const MlpShape *shape = &op->mlp->shape;
    uint32_t width = shape->widths[op->layer];
    ProfAdditional record = {0};
    ProfTensorInfo *info = &record.data.tensor_info;
    info->op_name = hash(op->name);
    uint32_t from = op->kind == MLP_CAST ? DATA_DOUBLE : DATA_FLOAT;
    uint32_t to = op->kind == MLP_SOFTMAX ? DATA_DOUBLE : DATA_FLOAT;
    info->tensors[info->tensor_count++] = tensor(INPUT, from, shape->batch, width);
    if (op->kind == MLP_MATMUL) {
        uint32_t out = shape->widths[op->layer + 1];
        info->tensors[info->tensor_count++] = tensor(INPUT, DATA_FLOAT, width, out);
        info->tensors[info->tensor_count++] = tensor(INPUT, DATA_FLOAT, out, 0);
        width = out;
    }
    info->tensors[info->tensor_count++] = tensor(OUTPUT, to, shape->batch, width);
    report_additional(RECORD_TENSOR_INFO, PROF_LEVEL_NODE, 1, &record, sizeof(ProfTensorInfo),
                      MsprofSysCycleTime(), PROF_UNAGING);
}

static rtError_t launch(MlpOp *op, rtStream_t stream)
{
    enum { BLOCKS = 8 };
    RtKernel kernel = {
        .name = op->name,
        .run = mlp_run_op,
        .task_type = op->kind == MLP_MATMUL ? TASK_KERNEL_AICORE : TASK_KERNEL_AIVEC,
        .blocks = BLOCKS,
    };
    Call call = call_begin(&g_switches, GE_HOST_OPS, PROF_LEVEL_NODE, NODE_LAUNCH, 5);
    rtError_t result = op->kind == MLP_CAST
                           ? rtCpuKernelLaunch(&kernel, op, sizeof *op, stream)
                           : rtKernelLaunch(&kernel, op, sizeof *op, stream);
    if (call.window != 0) {
        call.item_id = hash(op->name);
        report_node(op, BLOCKS);
        if (switches_on(&g_switches, PROF_SWITCH_GE_API_L1)) {
            report_tensors(op);
        }
    }
    call_end(&call);
    return result;
}

/* ---- a run -------------------------------------------------------------- */

typedef struct Run {
    Model *model;
    rtStream_t stream;
} Run;

static rtError_t run_operators(void *argument)
{
    Run *run = argument;
    Mlp *mlp = run->model->mlp;
    for (uint32_t i = 0; i < mlp->op_count; i++) {
        rtError_t result = launch(&mlp->ops[i], run->stream);
        if (result != RT_OK) {
            return result;
        }
    }
    return RT_OK;
}

static rtError_t copy(enum Traced what, uint32_t type, const Run *run, void *to, const void *from,
                      size_t size)
{
    Call call = begin_model_call(PROF_SWITCH_TASK_TIME_L0, what, type, run->model->id);
    rtError_t result = rtMemcpyAsync(to, size, from, size, RT_D2D, run->stream);
    call_end(&call);
    return result;
}

static rtError_t execute(Run *run, const void *input, void *output)
{
    Mlp *mlp = run->model->mlp;
    rtError_t result = copy(MODEL_INPUT_COPY, 3, run, mlp->activations[0], input,
                            mlp_input_bytes(mlp));
    if (result == RT_OK) {
        result = rtModelExecute(run_operators, run, run->stream);
    }
    if (result == RT_OK) {
        result = copy(MODEL_OUTPUT_COPY, 4, run, output, mlp->output, mlp_output_bytes(mlp));
    }
    return result;
}

int32_t geModelExecute(uint32_t id, const void *input, size_t input_bytes, void *output,
                       size_t output_bytes, rtStream_t stream)
{
    Model *model = find(id);
    if (model == NULL || input == NULL || output == NULL || stream == NULL ||
        input_bytes < mlp_input_bytes(model->mlp) || output_bytes < mlp_output_bytes(model->mlp)) {
        return ACL_ERROR_INVALID_PARAM;
    }
    Run run = {.model = model, .stream = stream};
    pthread_mutex_lock(&model->running);
    uint32_t request = ++model->runs;
    Call call = begin_model_call(PROF_SWITCH_TASK_TIME_L0, MODEL_EXECUTE, 1, id);
    call_event(&call, request, PROF_AGING);
    rtError_t result = execute(&run, input, output);
    call_event_end(&call, request, PROF_AGING);
    pthread_mutex_unlock(&model->running);
    return result == RT_OK ? ACL_SUCCESS : ACL_ERROR_INTERNAL;
}
