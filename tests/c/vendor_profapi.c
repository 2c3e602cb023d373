/* A stand-in for the vendor's libprofapi.so: notes what each function is called with. */
#include "profapi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT struct note vendor_note;

#define TAKE(place, type, name) vendor_note.arguments[place] = (uint64_t)name;
#define FUNCTION(name, result, count, ...)                                                                            \
    EXPORT result name(PARAMETERS_##count(__VA_ARGS__))                                                               \
    {                                                                                                                 \
        vendor_note = (struct note){#name, count, {0}};                                                               \
        EACH_##count(TAKE, __VA_ARGS__);                                                                              \
        return (result)result_of(#name);                                                                              \
    }
#define PROCEDURE(name, count, ...)                                                                                   \
    EXPORT void name(PARAMETERS_##count(__VA_ARGS__))                                                                 \
    {                                                                                                                 \
        vendor_note = (struct note){#name, count, {0}};                                                               \
        EACH_##count(TAKE, __VA_ARGS__);                                                                              \
    }

PROFAPI(FUNCTION, PROCEDURE)
