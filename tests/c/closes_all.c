/*
 * Closes every descriptor that it does not know and opens its own in their
 * place.  A line on stdin is an order, a line on stdout its answer:
 *
 *   close      closes all from 3 on, opens pipes and files
 *   counters   the same, but opens event counters before them
 *   check      a child and we ourselves look whether they are all as we left them
 *   init       MsprofInit
 */
#include "orders.h"
#include "reports.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { FIRST = 3, END = 1024, PIPES = 12, FILES = 4, COUNTERS = 24 };

static const char TEXT[16] = "0123456789abcde";
static int g_pipes[PIPES][2];
static int g_files[FILES];
static int g_counters[COUNTERS];
static int g_counters_used;
static struct stat g_before[END];

static void fail(const char *what)
{
    perror(what);
    exit(3);
}

static void look(struct stat *states)
{
    memset(states, 0, sizeof g_before);
    for (int i = 0; i < PIPES; i++) {
        for (int end = 0; end < 2; end++) {
            (void)fstat(g_pipes[i][end], &states[g_pipes[i][end]]);
        }
    }
    for (int i = 0; i < FILES; i++) {
        (void)fstat(g_files[i], &states[g_files[i]]);
    }
    for (int i = 0; i < g_counters_used; i++) {
        (void)fstat(g_counters[i], &states[g_counters[i]]);
    }
}

/* Number of descriptors that are not what they were. */
static int changed(void)
{
    static struct stat now[END];
    int count = 0;
    look(now);
    for (int i = 0; i < END; i++) {
        count += now[i].st_dev != g_before[i].st_dev || now[i].st_ino != g_before[i].st_ino;
    }
    return count;
}

static void fill(void)
{
    for (int i = 0; i < PIPES; i++) {
        if (write(g_pipes[i][1], TEXT, sizeof TEXT) != sizeof TEXT) {
            fail("write to a pipe");
        }
    }
}

static void take_over(const char *dir, int counters)
{
    for (int i = FIRST; i < END; i++) {
        close(i);
    }
    for (; g_counters_used < counters; g_counters_used++) {
        g_counters[g_counters_used] = eventfd(1, EFD_NONBLOCK);
    }
    for (int i = 0; i < PIPES; i++) {
        if (pipe2(g_pipes[i], O_NONBLOCK) != 0) {
            fail("pipe");
        }
    }
    for (int i = 0; i < FILES; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/file-%d", dir, i);
        g_files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (g_files[i] < 0 || write(g_files[i], TEXT, sizeof TEXT) != sizeof TEXT) {
            fail(path);
        }
    }
    look(g_before);
    fill();
}

/* Number of pipes and files that hold something else than what we wrote; fills the pipes again. */
static int spoilt(void)
{
    int count = 0;
    for (int i = 0; i < PIPES; i++) {
        char text[64];
        ssize_t got = read(g_pipes[i][0], text, sizeof text);
        count += got != sizeof TEXT || memcmp(text, TEXT, sizeof TEXT) != 0;
    }
    for (int i = 0; i < FILES; i++) {
        char text[64];
        ssize_t got = pread(g_files[i], text, sizeof text, 0);
        count += got != sizeof TEXT || memcmp(text, TEXT, sizeof TEXT) != 0;
    }
    for (int i = 0; i < g_counters_used; i++) {
        eventfd_t value = 0;
        count += eventfd_read(g_counters[i], &value) != 0 || value != 1;
        (void)eventfd_write(g_counters[i], 1);
    }
    fill();
    return count;
}

static int changed_in_child(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(changed());
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int count, char **words)
{
    static Order order;
    if (count != 2) {
        return 2;
    }
    say_ready();
    while (next_order(&order)) {
        if (is_order(&order, "close")) {
            take_over(words[1], 0);
            puts("0");
        } else if (is_order(&order, "counters")) {
            take_over(words[1], COUNTERS);
            puts("0");
        } else if (is_order(&order, "check")) {
            int in_child = changed_in_child();
            printf("%d %d %d\n", in_child, changed(), spoilt());
        } else if (is_order(&order, "init")) {
            printf("%d\n", MsprofInit(0xFF, NULL, 0));
        } else {
            printf("unknown order %s\n", order.word);
        }
    }
    return changed() + spoilt();
}
