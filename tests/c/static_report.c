/* Uses one call of the library, so that the linker takes as little of the archive as it can. */
#include <msprof_agent.h>

#include <stdio.h>

int main(void)
{
    puts("ready");
    fflush(stdout);
    (void)getchar();
    for (int i = 1; i <= 3; i++) {
        struct MsprofApi api = {
            .magicNumber = MSPROF_MAGIC,
            .level = MSPROF_LEVEL_RUNTIME,
            .type = 1003,
            .threadId = 1,
            .beginTime = (uint64_t)i,
            .endTime = (uint64_t)i,
        };
        (void)MsprofReportApi(0, &api);
    }
    puts("reported");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
