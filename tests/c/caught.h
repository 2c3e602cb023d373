/* Calls that throw, and what they throw. */
#ifndef CAUGHT_H
#define CAUGHT_H

#include <cstdio>
#include <cstring>
#include <stdexcept>

/* 1 when the call throws a runtime_error of that text; else 0, with a line that says so. */
template <typename Call> int Caught(const char *what, Call call)
{
    try {
        call();
    } catch (const std::runtime_error &error) {
        if (std::strcmp(error.what(), what) == 0) {
            return 1;
        }
    }
    std::printf("%s: not caught\n", what);
    return 0;
}

#endif
