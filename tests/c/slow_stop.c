/*
 * A component that takes its time when it is told to stop.  A line on stdin has
 * it report; at the end of its stdin main returns.
 */
#include "reports.h"

enum { RECORDS = 1000, MODULE = 7, SLOW_S = 3 };

static int32_t handler(uint32_t type, void *command, uint32_t len)
{
    (void)type;
    (void)len;
    if (kind_of(command) == KIND_STOP) {
        static const char text[] = "stopping\n";
        (void)!write(STDOUT_FILENO, text, sizeof text - 1);
        sleep(SLOW_S);
    }
    return 0;
}

int main(void)
{
    char line[64];
    (void)MsprofInit(0xFF, NULL, 0);
    (void)MsprofRegisterCallback(MODULE, handler);
    (void)MsprofNotifySetDevice(0, 0, true);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (uint64_t i = 0; i < RECORDS; i++) {
            (void)report(i);
        }
        puts("reported");
        fflush(stdout);
    }
    return 0;
}
