/* Says that it runs, and waits for the end of its stdin; needs nothing of anybody. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    char byte;
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}
