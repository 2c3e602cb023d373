/* Results of calls, compared with what the header says of them. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <string.h>

static int g_wrong;
static const char *g_phase = "";

static void expect_at(int line, const char *call, long long got, long long expected)
{
    if (got != expected) {
        printf("%s, line %d: %s is %lld, not %lld\n", g_phase, line, call, got, expected);
        g_wrong++;
    }
}
#define EXPECT(call, expected) expect_at(__LINE__, #call, (long long)(call), (long long)(expected))
#define EXPECT_TEXT(call, expected) EXPECT(strcmp((call), (expected)), 0)

#endif
