/*
 * while_loading LIBRARY: after the first call of libprofapi.so, calls every function of it twice while another thread
 * is in the midst of loading LIBRARY (slow_load.c).  Does not end where a call waits for the loader.
 */
#include "profapi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ZEROS_0()
#define ZEROS_1(A) (A)0
#define ZEROS_2(A, B_) (A)0, (B_)0
#define ZEROS_3(A, B_, C) ZEROS_2(A, B_), (C)0
#define ZEROS_4(A, B_, C, D) ZEROS_3(A, B_, C), (D)0
#define ZEROS_5(A, B_, C, D, E) ZEROS_4(A, B_, C, D), (E)0
#define ZEROS_6(A, B_, C, D, E, F) ZEROS_5(A, B_, C, D, E), (F)0

#define DECLARE_FUNCTION(name, result, count, ...) static result (*g_##name)(PARAMETERS_##count(__VA_ARGS__));
#define DECLARE_PROCEDURE(name, count, ...) static void (*g_##name)(PARAMETERS_##count(__VA_ARGS__));
#define FIND_FUNCTION(name, ...) g_##name = dlsym(RTLD_DEFAULT, #name);
#define CALL_FUNCTION(name, result, count, ...) (void)g_##name(ZEROS_##count(__VA_ARGS__));
#define CALL_PROCEDURE(name, count, ...) g_##name(ZEROS_##count(__VA_ARGS__));

enum { DEADLINE_S = 30, OLD_RESULT = 77 };

PROFAPI(DECLARE_FUNCTION, DECLARE_PROCEDURE)

static void export_number(const char *name, int number)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", number);
    (void)setenv(name, text, 1);
}

static void *load(void *library)
{
    return dlopen(library, RTLD_NOW);
}

int main(int count, char **words)
{
    int loading[2];
    int go_on[2];
    pthread_t thread;
    char byte = 0;
    void *loaded = NULL;
    if (count != 2 || pipe(loading) != 0 || pipe(go_on) != 0) {
        return 2;
    }
    export_number("SLOW_LOAD_TELL", loading[1]);
    export_number("SLOW_LOAD_WAIT", go_on[0]);
    PROFAPI(FIND_FUNCTION, FIND_FUNCTION)
    if (g_MsprofInit(0xFF, NULL, 0) != OLD_RESULT) {
        puts("the vendor's library was not called");
        return 1;
    }
    (void)alarm(DEADLINE_S);
    if (pthread_create(&thread, NULL, load, words[1]) != 0 || read(loading[0], &byte, 1) != 1) {
        return 2;
    }
    PROFAPI(CALL_FUNCTION, CALL_PROCEDURE)
    PROFAPI(CALL_FUNCTION, CALL_PROCEDURE)
    if (write(go_on[1], &byte, 1) != 1 || pthread_join(thread, &loaded) != 0 || loaded == NULL) {
        return 2;
    }
    puts("no call waited");
    return 0;
}
