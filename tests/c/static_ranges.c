/* Uses named ranges only, so that the linker takes as little of the archive as it can. */
#include <msprof_agent.h>

#include <stdio.h>

int main(void)
{
    puts("ready");
    fflush(stdout);
    (void)getchar();
    for (int i = 0; i < 3; i++) {
        (void)msprof_agent_push("step");
        (void)msprof_agent_pop();
    }
    puts("reported");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
