/* reopened VENDOR: loads the vendor's library, calls it as components of CANN do and closes it, again and again. */
#include "profapi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 3, FILLERS = 200, FILLER_BYTES = 4096 };

int main(int count, char **words)
{
    int32_t (*init)(uint32_t, void *, uint32_t) = dlsym(RTLD_DEFAULT, "MsprofInit");
    if (count != 2 || init == NULL) {
        return 2;
    }
    for (int round = 0; round < ROUNDS; round++) {
        void *vendor = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
        struct note *note = vendor != NULL ? dlsym(vendor, "vendor_note") : NULL;
        if (note == NULL) {
            puts(dlerror());
            return 2;
        }
        *note = (struct note){0};
        if (init(0xFF, NULL, 0) != (int32_t)result_of("MsprofInit") || note->name == NULL ||
            strcmp(note->name, "MsprofInit") != 0) {
            printf("round %d: the vendor's library was not called\n", round);
            return 1;
        }
        (void)dlclose(vendor);
        /* So that it is not mapped at the same place again. */
        for (int i = 0; i < FILLERS; i++) {
            (void)mmap(NULL, FILLER_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
    }
    puts("called in each round");
    return 0;
}
