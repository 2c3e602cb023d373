/* A library whose constructor tells the program that it runs, and goes on when it is told to: until then its thread
 * holds the loader's lock. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void load(void)
{
    const char *tell = getenv("SLOW_LOAD_TELL");
    const char *wait = getenv("SLOW_LOAD_WAIT");
    char byte = 0;
    if (tell == NULL || wait == NULL || write(atoi(tell), &byte, 1) != 1 || read(atoi(wait), &byte, 1) != 1) {
        abort();
    }
}
