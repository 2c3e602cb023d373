/*
 * passed_on VENDOR [LIBRARY...]: loads the libraries, calls every function of libprofapi.so that it finds first, as
 * components of CANN do, and sees that the vendor's library VENDOR got the call and its result came back.  The first
 * call, of MsprofInit, comes before this program knows of VENDOR.  Says how many calls went there.
 */
#include "profapi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct note *g_note;
static char g_buffer[1 << 16] = "some text";
static int g_wrong;
static int g_right;

static void check(const char *name, int count, const uint64_t *arguments)
{
    if (g_note->name == NULL || strcmp(g_note->name, name) != 0 || g_note->count != count) {
        printf("%s: the vendor's library was called for %s\n", name, g_note->name != NULL ? g_note->name : "nothing");
        g_wrong++;
        return;
    }
    for (int i = 0; i < count; i++) {
        if (g_note->arguments[i] != arguments[i]) {
            printf("%s: argument %d is %llx\n", name, i, (unsigned long long)g_note->arguments[i]);
            g_wrong++;
            return;
        }
    }
    g_right++;
}

static void *function(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL) {
        printf("%s: not found\n", name);
        g_wrong++;
    }
    *g_note = (struct note){0};
    return address;
}

/* An argument that fits the type and is no other's. */
#define VALUE(place, type) VALUE_##type(place)
#define VALUE_P(place) ((P)(g_buffer + 64 * (place)))
#define VALUE_B(place) true
#define VALUE_I(place) (I)(101 + (place))
#define VALUE_U(place) (U)(201 + (place))
#define VALUE_H(place) (H)(301 + (place))
#define VALUE_L(place) (L)(401 + (place))
#define VALUE_S(place) (S)(501 + (place))

#define ARGUMENTS_0()
#define ARGUMENTS_1(A) VALUE(0, A)
#define ARGUMENTS_2(A, B_) ARGUMENTS_1(A), VALUE(1, B_)
#define ARGUMENTS_3(A, B_, C) ARGUMENTS_2(A, B_), VALUE(2, C)
#define ARGUMENTS_4(A, B_, C, D) ARGUMENTS_3(A, B_, C), VALUE(3, D)
#define ARGUMENTS_5(A, B_, C, D, E) ARGUMENTS_4(A, B_, C, D), VALUE(4, E)
#define ARGUMENTS_6(A, B_, C, D, E, F) ARGUMENTS_5(A, B_, C, D, E), VALUE(5, F)
#define GIVEN(place, type, name) given[place] = (uint64_t)VALUE(place, type);

#define CALL_FUNCTION(name, result, count, ...)                                                                       \
    {                                                                                                                 \
        uint64_t given[ARGUMENTS_MAX] = {0};                                                                          \
        EACH_##count(GIVEN, __VA_ARGS__);                                                                             \
        result (*call)(PARAMETERS_##count(__VA_ARGS__)) = function(#name);                                            \
        if (call != NULL) {                                                                                           \
            result answer = call(ARGUMENTS_##count(__VA_ARGS__));                                                     \
            check(#name, count, given);                                                                               \
            if (answer != (result)result_of(#name)) {                                                                 \
                printf("%s: another result\n", #name);                                                                \
                g_wrong++;                                                                                            \
            }                                                                                                         \
        }                                                                                                             \
    }
#define CALL_PROCEDURE(name, count, ...)                                                                              \
    {                                                                                                                 \
        uint64_t given[ARGUMENTS_MAX] = {0};                                                                          \
        EACH_##count(GIVEN, __VA_ARGS__);                                                                             \
        void (*call)(PARAMETERS_##count(__VA_ARGS__)) = function(#name);                                              \
        if (call != NULL) {                                                                                           \
            call(ARGUMENTS_##count(__VA_ARGS__));                                                                     \
            check(#name, count, given);                                                                               \
        }                                                                                                             \
    }

int main(int count, char **words)
{
    if (count < 2) {
        return 2;
    }
    for (int i = 2; i < count; i++) {
        /* The agent's is to be found by all; the vendor's need not. */
        int scope = strcmp(words[i], "libprofapi.so") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
        if (dlopen(words[i], RTLD_LAZY | scope) == NULL) {
            puts(dlerror());
            return 2;
        }
    }
    int32_t (*init)(uint32_t, void *, uint32_t) = dlsym(RTLD_DEFAULT, "MsprofInit");
    if (init != NULL) {
        init(0xFF, NULL, 0);
    }
    void *vendor = dlopen(words[1], RTLD_LAZY | RTLD_NOLOAD);
    if (vendor == NULL) {
        puts("the vendor's library is not loaded");
        return 3;
    }
    g_note = dlsym(vendor, "vendor_note");
    if (g_note == NULL) {
        puts(dlerror());
        return 2;
    }
    PROFAPI(CALL_FUNCTION, CALL_PROCEDURE)
    printf("right %d wrong %d\n", g_right, g_wrong);
    return g_wrong != 0;
}
