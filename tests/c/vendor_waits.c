/* The stand-in with a constructor that calls the ABI and waits for a thread that does. */
#include "vendor_profapi.c"

#include <pthread.h>

static void *call(void *unused)
{
    /* Another function than the constructor's: nobody has looked it up. */
    (void)MsprofHostFreqIsEnable();
    return unused;
}

__attribute__((constructor)) static void load(void)
{
    pthread_t thread;
    (void)MsprofSysCycleTime();
    if (pthread_create(&thread, NULL, call, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}
