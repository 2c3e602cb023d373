/*
 * odd_names DIR: captures itself into DIR; has names for types and items with everything in them that a name in a
 * text file or table can break, and reports one record of each.  Says how many there were.
 */
#include "reports.h"

#include <stdlib.h>
#include <string.h>

enum { LONG = 64 * 1024, FIRST_TYPE = 40000, NODE_TYPE = 5 };

static int g_named;

static void use_name(const char *name, size_t len)
{
    uint32_t type = FIRST_TYPE + (uint32_t)g_named;
    /* A type's name, and an item's. */
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, type, name);
    uint64_t id = MsprofGetHashId(name, len);
    struct MsprofApi api = api_now(id);
    api.type = type;
    (void)MsprofReportApi(1, &api);
    g_named++;
}

int main(int count, char **words)
{
    static const char *names[] = {
        "",
        " ",
        "comma,in,it",
        "\"quoted\"",
        "'single'",
        "\"",
        ",",
        "line\nfeed",
        "carriage\rreturn",
        "\r\n",
        "tab\tin it",
        "back\\slash\\n",
        "gr\xC3\xB6\xC3\x9F" "e \xE5\xAE\xB6 \xF0\x9F\x9A\x80",
        "not \xFF\xFE utf-8 \xC3",
        "\xEF\xBB\xBF" "byte order mark",
        "line separator \xE2\x80\xA8 and next line \xC2\x85",
        "bell \a escape \x1B[31m delete \x7F",
        "=1+2",
        "5000_1:spoofed",
        "12345:spoofed",
        "%s%n",
        "../../etc/passwd",
        "{\"json\": true}",
        "<b>html</b>",
    };
    static char longest[LONG + 1];
    if (count != 2) {
        return 2;
    }
    say_result("start", msprof_agent_start("--runtime-api=on", words[1]));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        use_name(names[i], strlen(names[i]));
    }
    memset(longest, 'x', LONG);
    use_name(longest, LONG);
    longest[100] = ',';
    longest[200] = '\n';
    use_name(longest, LONG);
    /* With bytes that end a string for some and not for others. */
    (void)MsprofGetHashId("zero\0inside", 11);
    (void)MsprofGetHashId(NULL, 5);
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_RUNTIME, FIRST_TYPE - 1, NULL);
    /* A family of records is a file by its type's name. */
    (void)MsprofRegTypeInfo(MSPROF_LEVEL_NODE, NODE_TYPE, "../odd,\"family\"\n/name");
    struct MsprofCompactInfo compact = {
        .magicNumber = MSPROF_MAGIC,
        .level = MSPROF_LEVEL_NODE,
        .type = NODE_TYPE,
        .threadId = thread_id(),
        .dataLen = MSPROF_COMPACT_DATA,
        .timeStamp = MsprofSysCycleTime(),
    };
    (void)MsprofReportCompactInfo(1, &compact, sizeof compact);
    say_result("stop", msprof_agent_stop(NULL, 0));
    printf("named %d\n", g_named);
    return 0;
}
