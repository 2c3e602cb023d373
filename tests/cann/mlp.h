/*
 * The only network that the stand-in can run: a multi-layer perceptron as a list
 * of operators, each a function over buffers of the network.
 *
 * Layers are MatMul with bias and, but for the last, ReLU; then a softmax in
 * double precision and a cast to float.  Weights are made from a fixed seed.
 */
#ifndef CANN_MLP_H
#define CANN_MLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MLP_MAX_LAYERS = 8, MLP_MAX_OPS = 2 * MLP_MAX_LAYERS + 2, MLP_NAME = 64 };

typedef struct MlpShape {
    char name[MLP_NAME];
    uint32_t batch;
    uint32_t width_count; /* layers + 1 */
    uint32_t widths[MLP_MAX_LAYERS + 1];
} MlpShape;

typedef enum MlpOpKind { MLP_MATMUL, MLP_RELU, MLP_SOFTMAX, MLP_CAST } MlpOpKind;

struct Mlp;

typedef struct MlpOp {
    MlpOpKind kind;
    char name[MLP_NAME];
    struct Mlp *mlp;
    uint32_t layer; /* reads widths[layer] columns, writes widths[layer + 1] for MatMul */
} MlpOp;

typedef struct Mlp {
    MlpShape shape;
    uint32_t op_count;
    MlpOp ops[MLP_MAX_OPS];
    float *weights[MLP_MAX_LAYERS]; /* widths[i] x widths[i + 1], then widths[i + 1] biases */
    float *activations[MLP_MAX_LAYERS + 1];
    double *probabilities;
    float *output;
} Mlp;

/* "builtin:mlp" or a text file; false when it is no model. */
bool mlp_read_shape(const char *path, MlpShape *shape);

/* NULL when there is no memory for it. */
Mlp *mlp_new(const MlpShape *shape);
void mlp_free(Mlp *mlp);

size_t mlp_input_bytes(const Mlp *mlp);
size_t mlp_output_bytes(const Mlp *mlp);

/* Runs one operator; an RtKernel's `run` with an MlpOp as its argument. */
void mlp_run_op(void *op);

const char *mlp_op_type(MlpOpKind kind);

#endif
