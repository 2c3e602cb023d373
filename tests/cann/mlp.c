/* Multi-layer perceptron: reading its shape, building it, running its operators. */
#include "mlp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WIDTH = 4096, MAX_BATCH = 4096, LINE = 256 };

/* ---- shape -------------------------------------------------------------- */

static bool valid(const MlpShape *shape)
{
    if (shape->batch == 0 || shape->batch > MAX_BATCH || shape->width_count < 2 ||
        shape->name[0] == '\0') {
        return false;
    }
    for (uint32_t i = 0; i < shape->width_count; i++) {
        if (shape->widths[i] == 0 || shape->widths[i] > MAX_WIDTH) {
            return false;
        }
    }
    return true;
}

static bool read_number(const char *word, uint32_t *number)
{
    char *end = NULL;
    unsigned long value = strtoul(word, &end, 10);
    if (end == word || *end != '\0' || value > UINT32_MAX) {
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

static bool read_line(char *line, MlpShape *shape)
{
    static const char blanks[] = " \t\r\n";
    char *rest = NULL;
    line[strcspn(line, "#")] = '\0';
    const char *key = strtok_r(line, blanks, &rest);
    if (key == NULL) {
        return true;
    }
    const char *word = strtok_r(NULL, blanks, &rest);
    if (word == NULL) {
        return false;
    }
    if (strcmp(key, "name") == 0) {
        snprintf(shape->name, sizeof shape->name, "%s", word);
        return true;
    }
    if (strcmp(key, "batch") == 0) {
        return read_number(word, &shape->batch);
    }
    if (strcmp(key, "layers") != 0) {
        return false;
    }
    for (; word != NULL; word = strtok_r(NULL, blanks, &rest)) {
        if (shape->width_count > MLP_MAX_LAYERS ||
            !read_number(word, &shape->widths[shape->width_count])) {
            return false;
        }
        shape->width_count++;
    }
    return true;
}

bool mlp_read_shape(const char *path, MlpShape *shape)
{
    if (strcmp(path, "builtin:mlp") == 0) {
        *shape = (MlpShape){
            .name = "mlp",
            .batch = 32,
            .width_count = 4,
            .widths = {64, 128, 64, 10},
        };
        return true;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    memset(shape, 0, sizeof *shape);
    char line[LINE];
    bool good = true;
    while (good && fgets(line, sizeof line, file) != NULL) {
        good = read_line(line, shape);
    }
    good = good && ferror(file) == 0;
    fclose(file);
    return good && valid(shape);
}

/* ---- building ----------------------------------------------------------- */

/* Small weights of both signs; the same in every process, so results compare. */
static void fill(float *values, size_t count, uint32_t seed)
{
    uint32_t state = seed;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = ((float)(state >> 8) / (float)(1u << 24) - 0.5f) * 0.25f;
    }
}

static void add_op(Mlp *mlp, const char *model, MlpOpKind kind, uint32_t layer)
{
    MlpOp *op = &mlp->ops[mlp->op_count++];
    op->kind = kind;
    op->mlp = mlp;
    op->layer = layer;
    snprintf(op->name, sizeof op->name, "%.40s/%s_%u", model, mlp_op_type(kind),
             (unsigned)layer);
}

Mlp *mlp_new(const MlpShape *shape)
{
    Mlp *mlp = calloc(1, sizeof *mlp);
    if (mlp == NULL) {
        return NULL;
    }
    mlp->shape = *shape;
    uint32_t layers = shape->width_count - 1;
    bool complete = true;
    for (uint32_t i = 0; i <= layers; i++) {
        mlp->activations[i] = calloc((size_t)shape->batch * shape->widths[i], sizeof(float));
        complete = complete && mlp->activations[i] != NULL;
    }
    for (uint32_t i = 0; i < layers; i++) {
        size_t count = ((size_t)shape->widths[i] + 1) * shape->widths[i + 1];
        mlp->weights[i] = malloc(count * sizeof(float));
        complete = complete && mlp->weights[i] != NULL;
        if (mlp->weights[i] != NULL) {
            fill(mlp->weights[i], count, i + 1);
        }
        add_op(mlp, shape->name, MLP_MATMUL, i);
        if (i + 1 < layers) {
            add_op(mlp, shape->name, MLP_RELU, i + 1);
        }
    }
    size_t outputs = (size_t)shape->batch * shape->widths[layers];
    mlp->probabilities = calloc(outputs, sizeof(double));
    mlp->output = calloc(outputs, sizeof(float));
    add_op(mlp, shape->name, MLP_SOFTMAX, layers);
    add_op(mlp, shape->name, MLP_CAST, layers);
    if (!complete || mlp->probabilities == NULL || mlp->output == NULL) {
        mlp_free(mlp);
        return NULL;
    }
    return mlp;
}

void mlp_free(Mlp *mlp)
{
    if (mlp == NULL) {
        return;
    }
    for (int i = 0; i < MLP_MAX_LAYERS; i++) {
        free(mlp->weights[i]);
    }
    for (int i = 0; i <= MLP_MAX_LAYERS; i++) {
        free(mlp->activations[i]);
    }
    free(mlp->probabilities);
    free(mlp->output);
    free(mlp);
}

size_t mlp_input_bytes(const Mlp *mlp)
{
    return (size_t)mlp->shape.batch * mlp->shape.widths[0] * sizeof(float);
}

size_t mlp_output_bytes(const Mlp *mlp)
{
    return (size_t)mlp->shape.batch * mlp->shape.widths[mlp->shape.width_count - 1] *
           sizeof(float);
}

/* ---- operators ---------------------------------------------------------- */

static void matmul(Mlp *mlp, uint32_t layer)
{
    uint32_t in = mlp->shape.widths[layer];
    uint32_t out = mlp->shape.widths[layer + 1];
    const float *weights = mlp->weights[layer];
    const float *bias = weights + (size_t)in * out;
    for (uint32_t row = 0; row < mlp->shape.batch; row++) {
        const float *x = mlp->activations[layer] + (size_t)row * in;
        float *y = mlp->activations[layer + 1] + (size_t)row * out;
        memcpy(y, bias, out * sizeof(float));
        for (uint32_t i = 0; i < in; i++) {
            const float *w = weights + (size_t)i * out;
            for (uint32_t j = 0; j < out; j++) {
                y[j] += x[i] * w[j];
            }
        }
    }
}

static void relu(Mlp *mlp, uint32_t layer)
{
    size_t count = (size_t)mlp->shape.batch * mlp->shape.widths[layer];
    float *x = mlp->activations[layer];
    for (size_t i = 0; i < count; i++) {
        x[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}

static void softmax(Mlp *mlp, uint32_t layer)
{
    uint32_t width = mlp->shape.widths[layer];
    for (uint32_t row = 0; row < mlp->shape.batch; row++) {
        const float *x = mlp->activations[layer] + (size_t)row * width;
        double *y = mlp->probabilities + (size_t)row * width;
        float largest = x[0];
        for (uint32_t i = 1; i < width; i++) {
            largest = x[i] > largest ? x[i] : largest;
        }
        double sum = 0.0;
        for (uint32_t i = 0; i < width; i++) {
            y[i] = exp((double)x[i] - (double)largest);
            sum += y[i];
        }
        for (uint32_t i = 0; i < width; i++) {
            y[i] /= sum;
        }
    }
}

static void cast(Mlp *mlp, uint32_t layer)
{
    size_t count = (size_t)mlp->shape.batch * mlp->shape.widths[layer];
    for (size_t i = 0; i < count; i++) {
        mlp->output[i] = (float)mlp->probabilities[i];
    }
}

void mlp_run_op(void *argument)
{
    MlpOp *op = argument;
    switch (op->kind) {
    case MLP_MATMUL:
        matmul(op->mlp, op->layer);
        break;
    case MLP_RELU:
        relu(op->mlp, op->layer);
        break;
    case MLP_SOFTMAX:
        softmax(op->mlp, op->layer);
        break;
    case MLP_CAST:
        cast(op->mlp, op->layer);
        break;
    }
}

const char *mlp_op_type(MlpOpKind kind)
{
    switch (kind) {
    case MLP_MATMUL:
        return "MatMul";
    case MLP_RELU:
        return "Relu";
    case MLP_SOFTMAX:
        return "SoftmaxV2";
    case MLP_CAST:
        return "Cast";
    }
    return "Unknown";
}
