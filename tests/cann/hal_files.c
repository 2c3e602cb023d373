#include "hal_files.h"

#include "hal.h"
#include "hal_settings.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 512, LINE = 128, CALLS = 8, LOOK_NS = 2000000 };

static _Atomic(const char *) g_seen[CALLS]; /* calls that were noted once; names are literals */
static _Atomic bool g_torn_down;

__attribute__((destructor)) static void tear_down(void)
{
    atomic_store(&g_torn_down, true);
}

/* ---- calls -------------------------------------------------------------- */

/* Opens the file anew each time: a forked child has one of its own. */
static void note(const char *what, const char *call, uint32_t device, uint32_t channel,
                 const char *more)
{
    if (g_hal.dir == NULL) {
        return;
    }
    char path[PATH];
    char line[LINE];
    snprintf(path, sizeof path, "%s/calls.%ld", g_hal.dir, (long)getpid());
    int len = snprintf(line, sizeof line, "%s%s %u %u%s\n", what, call, device, channel, more);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0) {
        (void)!write(file, line, (size_t)len);
        close(file);
    }
}

static bool is_first(const char *call)
{
    for (int i = 0; i < CALLS; i++) {
        const char *seen = NULL;
        if (atomic_compare_exchange_strong(&g_seen[i], &seen, call)) {
            return true;
        }
        if (strcmp(seen, call) == 0) {
            return false;
        }
    }
    return false;
}

void hal_enter(const char *call, uint32_t device, uint32_t channel)
{
    if (atomic_load(&g_torn_down)) {
        note("late ", call, device, channel, "");
        abort();
    }
    if (is_first(call)) {
        note("first ", call, device, channel, "");
    }
    hal_hang(call, device, channel);
}

int hal_leave(const char *call, uint32_t device, uint32_t channel, int result)
{
    char more[LINE];
    snprintf(more, sizeof more, " = %d", result);
    note("", call, device, channel, more);
    return result;
}

/* ---- what a test has put there ------------------------------------------ */

static bool exists(const char *format, const char *name, uint32_t device)
{
    char path[PATH];
    int len = snprintf(path, sizeof path, "%s/", g_hal.dir);
    snprintf(path + len, sizeof path - (size_t)len, format, name, device);
    return access(path, F_OK) == 0;
}

static bool is_to_hang(const char *call, uint32_t device)
{
    return g_hal.dir != NULL &&
           (exists("hang.%s", call, device) || exists("hang.%s.%u", call, device));
}

void hal_hang(const char *call, uint32_t device, uint32_t channel)
{
    if (!is_to_hang(call, device)) {
        return;
    }
    note("hangs ", call, device, channel, "");
    while (is_to_hang(call, device)) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    note("returns ", call, device, channel, "");
}

bool hal_is_gone(uint32_t device)
{
    return g_hal.dir != NULL && exists("%s.%u", "gone", device);
}

/* ---- what was served ---------------------------------------------------- */

static int open_served(const char *kind, uint32_t device, uint32_t channel, uint32_t start)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s.%ld.%u.%u.%u", g_hal.dir, kind, (long)getpid(), device,
             channel, start);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return file < 0 ? 0 : file;
}

void hal_open_served(HalServed *served, uint32_t device, uint32_t channel)
{
    served->records = served->digest = 0;
    served->starts++;
    if (g_hal.dir == NULL) {
        return;
    }
    served->count_file = open_served("count", device, channel, served->starts);
    if (g_hal.keeps_bytes) {
        served->bytes_file = open_served("bytes", device, channel, served->starts);
    }
}

void hal_count_served(HalServed *served, const void *record)
{
    served->records++;
    served->digest = hal_digest(served->digest, record);
}

static void write_count(const HalServed *served, uint64_t lost)
{
    char line[LINE];
    int len = snprintf(line, sizeof line, "records %020llu digest %016llx lost %020llu\n",
                       (unsigned long long)served->records, (unsigned long long)served->digest,
                       (unsigned long long)lost);
    (void)!pwrite(served->count_file, line, (size_t)len, 0);
}

void hal_keep_served(const HalServed *served, const void *bytes, uint32_t len, uint64_t lost)
{
    if (len == 0) {
        return;
    }
    if (served->bytes_file != 0) {
        (void)!write(served->bytes_file, bytes, len);
    }
    if (served->count_file != 0) {
        write_count(served, lost);
    }
}

void hal_close_served(HalServed *served, uint64_t lost)
{
    if (served->count_file != 0) {
        write_count(served, lost);
        close(served->count_file);
    }
    if (served->bytes_file != 0) {
        close(served->bytes_file);
    }
    served->count_file = served->bytes_file = 0;
}
