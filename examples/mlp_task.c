/*
 * A small AI task: several streams run a multi-layer perceptron until time is up.
 *
 * It is an ordinary application: it knows AscendCL (acl.h) and nothing of
 * profiling, so it shows what an agent adds to a program that was not written for
 * it.  Only the lines "window ..." are for tests: they say what the stand-in CANN
 * counted during each capture.
 *
 * stdout:  pid N ready       every stream is running
 *          window {...}      a capture ended
 *          done runs=N
 * Exit status: 0, 1 when a call failed or a result was wrong, 2 for bad options.
 */
#include "acl.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_STREAMS = 64, MAX_DEVICES = 8, LOOK_MS = 50, WINDOW_JSON = 8192 };

typedef struct Options {
    int streams;
    int seconds; /* 0: until the end of stdin or SIGTERM; below 0: until SIGTERM */
    int pause_us;
    int devices[MAX_DEVICES];
    int device_count;
    const char *model;
    bool reload;
    bool marks;
    bool quiet;
    bool finalize;
} Options;

typedef struct Stream {
    pthread_t thread;
    const Options *options;
    int device;
    aclrtStream stream;
    uint32_t model;
    aclmdlShape shape;
    size_t input_bytes;
    size_t output_bytes;
    float *input; /* host */
    float *output;
    void *device_input;
    void *device_output;
    unsigned long runs;
} Stream;

static volatile sig_atomic_t g_terminated;
static _Atomic bool g_stop;
static _Atomic bool g_failed;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_changed;
static int g_ready;
static int g_ended;

static void on_term(int signal_number)
{
    (void)signal_number;
    g_terminated = 1;
}

/* ---- options ------------------------------------------------------------ */

static void usage(FILE *out)
{
    fputs("usage: mlp_task [--streams=N] [--seconds=S] [--pause-us=N] [--device=D[,D...]]\n"
          "                [--model=FILE] [--reload] [--marks] [--quiet] [--no-finalize]\n"
          "  --seconds=0  until stdin ends or SIGTERM;  --seconds=-1  until SIGTERM\n"
          "  --device     streams take the listed devices in turn\n"
          "  --reload     loads the model anew for every run\n"
          "  --marks      gives every run a range of its own in the profile\n",
          out);
}

static bool number(const char *text, int low, int high, int *value)
{
    char *end = NULL;
    errno = 0;
    long read = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || read < low || read > high) {
        return false;
    }
    *value = (int)read;
    return true;
}

static bool device_list(const char *text, Options *options)
{
    char copy[128];
    char *rest = NULL;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) {
        return false;
    }
    options->device_count = 0;
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (options->device_count == MAX_DEVICES ||
            !number(word, 0, 63, &options->devices[options->device_count])) {
            return false;
        }
        options->device_count++;
    }
    return options->device_count > 0;
}

/* The text behind "--name=", or NULL. */
static const char *value_of(const char *argument, const char *name)
{
    size_t len = strlen(name);
    return strncmp(argument, name, len) == 0 && argument[len] == '=' ? argument + len + 1 : NULL;
}

static bool read_option(const char *argument, Options *options)
{
    const char *value = NULL;
    if ((value = value_of(argument, "--streams")) != NULL) {
        return number(value, 1, MAX_STREAMS, &options->streams);
    }
    if ((value = value_of(argument, "--seconds")) != NULL) {
        return number(value, -1, 1000000, &options->seconds);
    }
    if ((value = value_of(argument, "--pause-us")) != NULL) {
        return number(value, 0, 60000000, &options->pause_us);
    }
    if ((value = value_of(argument, "--device")) != NULL) {
        return device_list(value, options);
    }
    if ((value = value_of(argument, "--model")) != NULL) {
        options->model = value;
        return true;
    }
    if (strcmp(argument, "--reload") == 0) {
        options->reload = true;
        return true;
    }
    if (strcmp(argument, "--marks") == 0) {
        options->marks = true;
        return true;
    }
    if (strcmp(argument, "--quiet") == 0) {
        options->quiet = true;
        return true;
    }
    if (strcmp(argument, "--no-finalize") == 0) {
        options->finalize = false;
        return true;
    }
    return false;
}

/* ---- one stream --------------------------------------------------------- */

static bool failed(const Stream *stream, const char *call, aclError error)
{
    if (error == ACL_SUCCESS) {
        return false;
    }
    fprintf(stderr, "mlp_task: device %d: %s failed: %d\n", stream->device, call, error);
    return true;
}

#define TRY(stream, call)                      \
    do {                                       \
        if (failed((stream), #call, (call))) { \
            return false;                      \
        }                                      \
    } while (0)

static bool set_up(Stream *s)
{
    TRY(s, aclrtSetDevice(s->device));
    TRY(s, aclrtCreateStream(&s->stream));
    TRY(s, aclmdlLoadFromFile(s->options->model, &s->model));
    TRY(s, aclmdlGetShape(s->model, &s->shape));
    s->input_bytes = (size_t)s->shape.batch * s->shape.input_width * sizeof(float);
    s->output_bytes = (size_t)s->shape.batch * s->shape.output_width * sizeof(float);
    s->input = malloc(s->input_bytes);
    s->output = malloc(s->output_bytes);
    if (s->input == NULL || s->output == NULL) {
        fputs("mlp_task: no memory\n", stderr);
        return false;
    }
    for (size_t i = 0; i < s->input_bytes / sizeof(float); i++) {
        s->input[i] = (float)(i % 17) / 17.0f - 0.5f;
    }
    TRY(s, aclrtMalloc(&s->device_input, s->input_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(s, aclrtMalloc(&s->device_output, s->output_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return true;
}

/* Every row is a distribution: values from 0 to 1 with the sum 1. */
static bool plausible(const Stream *s)
{
    const float *value = s->output;
    for (uint32_t row = 0; row < s->shape.batch; row++) {
        double sum = 0.0;
        for (uint32_t i = 0; i < s->shape.output_width; i++, value++) {
            if (!(*value >= 0.0f && *value <= 1.0f)) {
                return false;
            }
            sum += (double)*value;
        }
        if (fabs(sum - 1.0) > 1e-4) {
            return false;
        }
    }
    return true;
}

static bool run_once(Stream *s)
{
    if (s->options->reload) {
        TRY(s, aclmdlUnload(s->model));
        TRY(s, aclmdlLoadFromFile(s->options->model, &s->model));
    }
    /* Frameworks set the device before every run, since threads may change. */
    TRY(s, aclrtSetDevice(s->device));
    TRY(s, aclrtMemcpyAsync(s->device_input, s->input_bytes, s->input, s->input_bytes,
                            ACL_MEMCPY_HOST_TO_DEVICE, s->stream));
    TRY(s, aclmdlExecute(s->model, s->device_input, s->input_bytes, s->device_output,
                         s->output_bytes, s->stream));
    TRY(s, aclrtSynchronizeStream(s->stream));
    TRY(s, aclrtMemcpy(s->output, s->output_bytes, s->device_output, s->output_bytes,
                       ACL_MEMCPY_DEVICE_TO_HOST));
    if (!plausible(s)) {
        fprintf(stderr, "mlp_task: device %d: wrong result in run %lu\n", s->device, s->runs);
        return false;
    }
    s->runs++;
    return true;
}

/* A run as a range with a message; the result is the run's. */
static bool marked_run(Stream *s)
{
    static const char message[] = "inference";
    void *stamp = aclprofCreateStamp();
    TRY(s, aclprofSetStampTraceMessage(stamp, message, sizeof message - 1));
    TRY(s, aclprofPush(stamp));
    bool good = run_once(s);
    TRY(s, aclprofPop());
    aclprofDestroyStamp(stamp);
    return good;
}

static bool tear_down(Stream *s)
{
    TRY(s, aclrtFree(s->device_input));
    TRY(s, aclrtFree(s->device_output));
    TRY(s, aclmdlUnload(s->model));
    TRY(s, aclrtDestroyStream(s->stream));
    TRY(s, aclrtResetDevice(s->device));
    return true;
}

static void note(int *count)
{
    pthread_mutex_lock(&g_lock);
    (*count)++;
    pthread_cond_signal(&g_changed);
    pthread_mutex_unlock(&g_lock);
}

static void *stream_main(void *argument)
{
    Stream *s = argument;
    bool good = set_up(s);
    note(&g_ready);
    if (good) {
        while (good && !atomic_load(&g_stop)) {
            good = s->options->marks ? marked_run(s) : run_once(s);
            if (s->options->pause_us > 0) {
                usleep((useconds_t)s->options->pause_us);
            }
        }
        good = tear_down(s) && good;
    }
    free(s->input);
    free(s->output);
    if (!good) {
        atomic_store(&g_failed, true);
    }
    note(&g_ended);
    return NULL;
}

/* ---- the main thread ---------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Waits until `count` reaches `wanted`, a stream ends, or LOOK_MS have gone. */
static void wait_for(const int *count, int wanted)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&g_lock);
    while (*count < wanted) {
        if (pthread_cond_timedwait(&g_changed, &g_lock, &until) != 0) {
            break;
        }
    }
    pthread_mutex_unlock(&g_lock);
}

static int count_of(const int *count)
{
    pthread_mutex_lock(&g_lock);
    int value = *count;
    pthread_mutex_unlock(&g_lock);
    return value;
}

/* Prints the windows that ended since the last look. */
static void print_windows(const Options *options, unsigned *printed)
{
    static char json[WINDOW_JSON];
    unsigned finished = cannCountsWindows();
    for (; *printed < finished; (*printed)++) {
        if (!options->quiet && cannCountsWindowJson(*printed + 1, json, sizeof json) >= 0) {
            printf("window %s\n", json);
        }
    }
    fflush(stdout);
}

/* Waits up to LOOK_MS for input and throws it away; true at its end. */
static bool stdin_ended(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&in, 1, LOOK_MS) <= 0) {
        return false;
    }
    char thrown_away[4096];
    ssize_t n = read(STDIN_FILENO, thrown_away, sizeof thrown_away);
    return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static void run_until_the_end(const Options *options, unsigned *printed)
{
    double end = now() + options->seconds;
    bool over = false;
    while (!over) {
        if (options->seconds == 0) {
            over = stdin_ended();
        } else {
            wait_for(&g_ended, 1);
            over = options->seconds > 0 && now() >= end;
        }
        over = over || g_terminated != 0 || count_of(&g_ended) > 0;
        print_windows(options, printed);
    }
}

static bool start_streams(const Options *options, Stream *streams)
{
    for (int i = 0; i < options->streams; i++) {
        streams[i].options = options;
        streams[i].device = options->devices[i % options->device_count];
        if (pthread_create(&streams[i].thread, NULL, stream_main, &streams[i]) != 0) {
            fputs("mlp_task: no thread\n", stderr);
            exit(1); /* the threads made so far end with the process */
        }
    }
    while (count_of(&g_ready) < options->streams) {
        wait_for(&g_ready, options->streams);
    }
    return count_of(&g_ended) == 0;
}

static void initialise(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&g_changed, &attributes);
    pthread_condattr_destroy(&attributes);

    struct sigaction action = {.sa_handler = on_term};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
    static Stream streams[MAX_STREAMS];
    Options options = {
        .streams = 2,
        .seconds = 10,
        .device_count = 1,
        .model = "builtin:mlp",
        .finalize = true,
    };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            return 0;
        }
        if (!read_option(argv[i], &options)) {
            fprintf(stderr, "mlp_task: bad option: %s\n", argv[i]);
            usage(stderr);
            return 2;
        }
    }

    initialise();
    aclError error = aclInit(NULL);
    if (error != ACL_SUCCESS) {
        fprintf(stderr, "mlp_task: aclInit failed: %d\n", error);
        return 1;
    }
    unsigned printed = 0;
    if (start_streams(&options, streams)) {
        printf("pid %ld ready\n", (long)getpid());
        fflush(stdout);
        run_until_the_end(&options, &printed);
    }

    atomic_store(&g_stop, true);
    unsigned long runs = 0;
    for (int i = 0; i < options.streams; i++) {
        pthread_join(streams[i].thread, NULL);
        runs += streams[i].runs;
    }
    if (options.finalize && aclFinalize() != ACL_SUCCESS) {
        atomic_store(&g_failed, true);
    }
    print_windows(&options, &printed);
    printf("done runs=%lu\n", runs);
    return atomic_load(&g_failed) ? 1 : 0;
}
