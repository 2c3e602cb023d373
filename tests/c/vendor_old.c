/* A stand-in for a vendor's library that has few functions. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum { OLD_RESULT = 77 };

EXPORT int32_t MsprofRegTypeInfo(uint16_t level, uint32_t type, const char *name)
{
    (void)level;
    (void)type;
    (void)name;
    return OLD_RESULT;
}

EXPORT int32_t MsprofInit(uint32_t kind, void *data, uint32_t len)
{
    (void)kind;
    (void)data;
    (void)len;
    return OLD_RESULT;
}
