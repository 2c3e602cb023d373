/* Another tool asks for two kinds of reports; then the program waits for the end of its stdin. */
#include <msprof_agent.h>

#include <stdio.h>

static int32_t on_api(uint32_t aging, const struct MsprofApi *api)
{
    (void)aging;
    (void)api;
    return 0;
}

static int32_t on_compact(uint32_t aging, const void *data, uint32_t len)
{
    (void)aging;
    (void)data;
    (void)len;
    return 0;
}

int main(void)
{
    int32_t api = MsprofRegisterProfileCallback(9, (void *)on_api, sizeof(void *));
    int32_t compact = MsprofRegisterProfileCallback(4, (void *)on_compact, sizeof(void *));
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return api != 0 || compact != 0;
}
