/* The graph engine as libascendcl sees it.  Results are ACL_* codes. */
#ifndef CANN_GE_H
#define CANN_GE_H

#include "runtime.h"

#pragma GCC visibility push(default)

int32_t geModelLoad(const char *path, uint32_t *model);
int32_t geModelShape(uint32_t model, uint32_t *batch, uint32_t *input_width, uint32_t *output_width);
int32_t geModelExecute(uint32_t model, const void *input, size_t input_bytes, void *output,
                       size_t output_bytes, rtStream_t stream);
int32_t geModelUnload(uint32_t model);

#pragma GCC visibility pop

#endif
