/* The runtime as libascendcl and GE see it.  Results: 0, or an RT_ERROR_*. */
#ifndef CANN_RUNTIME_H
#define CANN_RUNTIME_H

#include "apis.h"

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

typedef int32_t rtError_t;
typedef struct RtStream *rtStream_t;
typedef struct RtEvent *rtEvent_t;

enum { RT_OK = 0, RT_ERROR_PARAM = 107000, RT_ERROR_MEMORY = 207001, RT_ERROR_DEVICE = 107001 };

enum { RT_MAX_DEVICES = 64 };

/* Values are those of the direction field of memcpy_info. */
enum RtDirection { RT_H2H, RT_H2D, RT_D2H, RT_D2D };

typedef struct RtKernel {
    const char *name;
    void (*run)(void *args);
    enum TaskType task_type;
    uint16_t blocks;
} RtKernel;

rtError_t rtSetDevice(int32_t device);
rtError_t rtDeviceReset(int32_t device);
rtError_t rtStreamCreate(rtStream_t *stream);
rtError_t rtStreamDestroy(rtStream_t stream);
rtError_t rtStreamSynchronize(rtStream_t stream);
rtError_t rtEventCreate(rtEvent_t *event);
rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream);
rtError_t rtEventSynchronize(rtEvent_t event);
rtError_t rtEventDestroy(rtEvent_t event);
rtError_t rtMalloc(void **memory, size_t size);
rtError_t rtFree(void *memory);
rtError_t rtMemcpy(void *to, size_t to_size, const void *from, size_t size, enum RtDirection way);
rtError_t rtMemcpyAsync(void *to, size_t to_size, const void *from, size_t size,
                        enum RtDirection way, rtStream_t stream);
rtError_t rtKernelLaunch(const RtKernel *kernel, void *args, uint16_t args_size, rtStream_t stream);

/* As rtKernelLaunch, for an operator that runs on the device's CPU. */
rtError_t rtCpuKernelLaunch(const RtKernel *kernel, void *args, uint16_t args_size,
                            rtStream_t stream);

/* Runs a loaded model: `body` launches its operators. */
rtError_t rtModelExecute(rtError_t (*body)(void *args), void *args, rtStream_t stream);

uint32_t rtStreamDevice(rtStream_t stream);
int32_t rtGetDevice(void); /* of this thread; -1: none set */

#pragma GCC visibility pop

#endif
