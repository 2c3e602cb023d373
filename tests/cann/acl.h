/*
 * What an application sees of the stand-in CANN: a small AscendCL.
 *
 * "Device" memory is host memory and a kernel runs on the calling thread, so no
 * NPU and no driver is needed.  Return codes are 0 or an ACL_ERROR_*.  Calls may
 * be made from any thread; a stream or model belongs to one thread at a time.
 */
#ifndef CANN_ACL_H
#define CANN_ACL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef int32_t aclError;
typedef void *aclrtStream;

enum {
    ACL_SUCCESS = 0,
    ACL_ERROR_INVALID_PARAM = 100000,
    ACL_ERROR_REPEAT_INITIALIZE = 100002,
    ACL_ERROR_INVALID_FILE = 100003,
    ACL_ERROR_UNINITIALIZE = 100001,
    ACL_ERROR_BAD_ALLOC = 200000,
    ACL_ERROR_INTERNAL = 500000,
};

typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE,
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST } aclrtMemMallocPolicy;

aclError aclInit(const char *config_path);
aclError aclFinalize(void);

/* A device is closed when each thread that set it has reset it. */
aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);

aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);

aclError aclrtMalloc(void **memory, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *memory);
aclError aclrtMemcpy(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *to, size_t to_size, const void *from, size_t size,
                          aclrtMemcpyKind kind, aclrtStream stream);

typedef struct aclmdlShape {
    uint32_t batch;
    uint32_t input_width;
    uint32_t output_width;
} aclmdlShape;

/*
 * `path` is "builtin:mlp" or a text file of the lines `name N`, `batch N` and
 * `layers N N ...`; '#' begins a comment.  The model reads batch x first-layer
 * floats and writes batch x last-layer floats, each row a softmax.
 */
aclError aclmdlLoadFromFile(const char *path, uint32_t *model);
aclError aclmdlGetShape(uint32_t model, aclmdlShape *shape);
aclError aclmdlExecute(uint32_t model, const void *input, size_t input_bytes, void *output,
                       size_t output_bytes, aclrtStream stream);
aclError aclmdlUnload(uint32_t model);

/*
 * Ranges of the program's own in its profile, with a message: from a push to the pop that matches it, on one thread.
 * Without a profiler there are no stamps: NULL, which the other calls take.
 */
void *aclprofCreateStamp(void);
void aclprofDestroyStamp(void *stamp);
aclError aclprofSetStampTraceMessage(void *stamp, const char *message, uint32_t len);
aclError aclprofPush(void *stamp);
aclError aclprofPop(void);

/*
 * Not of CANN: what the stand-in counted while profiling was on (counts.h).
 * cannCountsWindows is the number of finished windows, which are numbered from 1.
 * The JSON calls return like snprintf, or -1 when there is no such window; the
 * last 1,024 are kept.
 */
unsigned cannCountsWindows(void);
int cannCountsJson(char *text, size_t size);
int cannCountsWindowJson(unsigned window, char *text, size_t size);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
