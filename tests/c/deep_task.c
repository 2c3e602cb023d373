/*
 * deep_task LIBASCENDCL [bind]: opens the AscendCL library, with `bind` so that what it and the libraries that come
 * with it define themselves goes before what the program has (RTLD_DEEPBIND), and runs a model now and then.  Prints
 * "ready"; at the end of its stdin it prints what the stand-in CANN has counted in each window, and ends.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_MS = 2, DEVICE = 0, BATCH_BYTES = 1 << 20 };

typedef struct Shape {
    uint32_t batch;
    uint32_t input_width;
    uint32_t output_width;
} Shape;

static float g_input[BATCH_BYTES / sizeof(float)];
static float g_output[BATCH_BYTES / sizeof(float)];

/* Whether the end of stdin has come. */
static int is_over(void)
{
    char byte;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, PAUSE_MS) > 0 && read(0, &byte, 1) <= 0;
}

static int say_windows(void *cann)
{
    static char text[1 << 16];
    unsigned (*windows)(void) = (unsigned (*)(void))dlsym(cann, "cannCountsWindows");
    int (*json)(unsigned, char *, size_t) = (int (*)(unsigned, char *, size_t))dlsym(cann, "cannCountsWindowJson");
    for (unsigned window = 1; window <= windows(); window++) {
        if (json(window, text, sizeof text) < 0) {
            return 1;
        }
        printf("window %s\n", text);
    }
    return 0;
}

int main(int count, char **words)
{
    uint32_t model = 0;
    Shape shape;
    void *stream = NULL;
    if (count < 2) {
        return 2;
    }
    int deep = count > 2 && strcmp(words[2], "bind") == 0 ? RTLD_DEEPBIND : 0;
    void *cann = dlopen(words[1], RTLD_NOW | RTLD_LOCAL | deep);
    if (cann == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    int32_t (*init)(const char *) = (int32_t (*)(const char *))dlsym(cann, "aclInit");
    int32_t (*finalize)(void) = (int32_t (*)(void))dlsym(cann, "aclFinalize");
    int32_t (*set)(int32_t) = (int32_t (*)(int32_t))dlsym(cann, "aclrtSetDevice");
    int32_t (*reset)(int32_t) = (int32_t (*)(int32_t))dlsym(cann, "aclrtResetDevice");
    int32_t (*make_stream)(void **) = (int32_t (*)(void **))dlsym(cann, "aclrtCreateStream");
    int32_t (*load)(const char *, uint32_t *) =
        (int32_t (*)(const char *, uint32_t *))dlsym(cann, "aclmdlLoadFromFile");
    int32_t (*get_shape)(uint32_t, Shape *) = (int32_t (*)(uint32_t, Shape *))dlsym(cann, "aclmdlGetShape");
    int32_t (*execute)(uint32_t, const void *, size_t, void *, size_t, void *) =
        (int32_t (*)(uint32_t, const void *, size_t, void *, size_t, void *))dlsym(cann, "aclmdlExecute");
    if (init(NULL) != 0 || set(DEVICE) != 0 || make_stream(&stream) != 0 || load("builtin:mlp", &model) != 0 ||
        get_shape(model, &shape) != 0) {
        return 1;
    }
    size_t in = sizeof(float) * shape.batch * shape.input_width;
    size_t out = sizeof(float) * shape.batch * shape.output_width;
    puts("ready");
    fflush(stdout);
    while (!is_over()) {
        if (execute(model, g_input, in, g_output, out, stream) != 0) {
            return 1;
        }
    }
    return say_windows(cann) || reset(DEVICE) != 0 || finalize() != 0;
}
