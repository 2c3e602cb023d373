/* file_limit DIR BYTES: captures itself under a limit of its own for the size of files. */
#include "reports.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { RECORDS = 200000 };

int main(int count, char **words)
{
    if (count != 3) {
        return 2;
    }
    rlim_t bytes = strtoul(words[2], NULL, 0);
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        return 2;
    }
    say_result("start", msprof_agent_start("--runtime-api=on", words[1]));
    for (uint64_t i = 0; i < RECORDS; i++) {
        (void)report(i);
    }
    say_result("stop", msprof_agent_stop(NULL, 0));
    puts("alive");
    return 0;
}
