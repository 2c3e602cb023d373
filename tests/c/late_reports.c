/*
 * late_reports DIR: captures itself and ends without a stop; the destructors of
 * a thread and of the program report as well.
 */
#include "reports.h"

#include <pthread.h>
#include <stdlib.h>

enum { OF_MAIN = 1000, OF_THREAD = 200, OF_KEY = 100, AT_EXIT = 300, OF_DESTRUCTOR = 400 };
enum { MAIN_TAG = 1, THREAD_TAG, KEY_TAG, EXIT_TAG, DESTRUCTOR_TAG };

static pthread_key_t g_key;
static int g_starts;

static void report_many(int count, uint64_t item)
{
    for (int i = 0; i < count; i++) {
        (void)report(item);
    }
}

static void of_key(void *unused)
{
    (void)unused;
    report_many(OF_KEY, KEY_TAG);
}

static void at_exit(void)
{
    report_many(AT_EXIT, EXIT_TAG);
}

__attribute__((destructor)) static void of_program(void)
{
    if (g_starts != 0) {
        report_many(OF_DESTRUCTOR, DESTRUCTOR_TAG);
    }
}

static void *run(void *unused)
{
    pthread_setspecific(g_key, &g_key);
    report_many(OF_THREAD, THREAD_TAG);
    return unused;
}

int main(int count, char **words)
{
    pthread_t thread;
    if (count != 2 || atexit(at_exit) != 0 || pthread_key_create(&g_key, of_key) != 0) {
        return 2;
    }
    g_starts = 1;
    say_result("start", msprof_agent_start("--runtime-api=on", words[1]));
    report_many(OF_MAIN, MAIN_TAG);
    if (pthread_create(&thread, NULL, run, NULL) != 0) {
        return 2;
    }
    pthread_join(thread, NULL);
    return 0;
}
