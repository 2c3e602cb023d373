/*
 * marks DIR: captures itself into DIR and sets every kind of mark, by the calls that libraries of CANN make and, in
 * the part of mstx's library, by the table that it has filled in.  Says how many calls did not do what they should.
 */
#include "expect.h"
#include "reports.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef void *Domain;

/* ---- the part of mstx's library -------------------------------------------- */

typedef void *Function;

static struct {
    void (*mark)(const char *, void *);
    uint64_t (*range_start)(const char *, void *);
    void (*range_end)(uint64_t);
    void (*tool_id)(uint64_t *);
    Domain (*domain_create)(const char *);
    void (*domain_destroy)(Domain);
    void (*domain_mark)(Domain, const char *, void *);
    uint64_t (*domain_range_start)(Domain, const char *, void *);
    void (*domain_range_end)(Domain, uint64_t);
} g_mstx;

static Function *g_core[] = {
    NULL,
    (Function *)&g_mstx.mark,
    (Function *)&g_mstx.range_start,
    (Function *)&g_mstx.range_end,
    (Function *)&g_mstx.tool_id,
};

static Function *g_domain[] = {
    NULL,
    (Function *)&g_mstx.domain_create,
    (Function *)&g_mstx.domain_destroy,
    (Function *)&g_mstx.domain_mark,
    (Function *)&g_mstx.domain_range_start,
    (Function *)&g_mstx.domain_range_end,
};

static uint32_t g_core_size = sizeof g_core / sizeof *g_core;

static int32_t give_table(int32_t module, void ***table, uint32_t *size)
{
    switch (module) {
    case 1:
        *table = (void **)g_core;
        *size = g_core_size;
        return 0;
    case 2:
        *table = (void **)g_domain;
        *size = sizeof g_domain / sizeof *g_domain;
        return 0;
    default:
        return 1;
    }
}

/* ---- another tool ----------------------------------------------------------- */

static int g_others_marks;
static Domain g_others_domain;

static void others_mark(const char *message, void *stream)
{
    (void)stream;
    g_others_marks += strcmp(message, "for the other tool") == 0;
}

static Domain others_create(const char *name)
{
    (void)name;
    return &g_others_marks;
}

static void others_domain_mark(Domain domain, const char *message, void *stream)
{
    others_mark(message, stream);
    g_others_domain = domain;
}

static int32_t register_other(int32_t (*getter)(int32_t, void ***, uint32_t *))
{
    void **table;
    uint32_t size;
    if (getter(3, &table, &size) == 0 || getter(1, &table, &size) != 0 || size != 4) {
        return 1;
    }
    *(void **)table[1] = (void *)others_mark;
    if (getter(2, &table, &size) != 0 || size != 6) {
        return 1;
    }
    *(void **)table[1] = (void *)others_create;
    *(void **)table[3] = (void *)others_domain_mark;
    return 0;
}

/* ---- marks ------------------------------------------------------------------- */

static void *stamp_of(const char *message, uint32_t category)
{
    void *stamp = ProfAclCreateStamp();
    (void)ProfAclSetStampTraceMessage(stamp, message, (uint32_t)strlen(message));
    (void)ProfAclSetStampCategory(stamp, category);
    return stamp;
}

static void before_the_capture(void)
{
    g_phase = "before the capture";
    void *stamp = stamp_of("too early", 1);
    uint32_t range = 0;
    EXPECT(ProfAclMark(stamp), 0);
    EXPECT(ProfAclPush(stamp), 0);
    EXPECT(ProfAclRangeStart(stamp, &range), 0);
    EXPECT(range != 0, 1);
    EXPECT(ProfAclRangeStop(range), 0);
    EXPECT(g_mstx.range_start("too early", NULL), 0);
    g_mstx.mark("too early", NULL);
    ProfAclDestroyStamp(stamp);
}

static void *end_range(void *range)
{
    return (void *)(intptr_t)ProfAclRangeStop((uint32_t)(uintptr_t)range);
}

static void stamps(void)
{
    g_phase = "stamps";
    int64_t payload = 5;
    void *stamp = stamp_of("a mark", 7);
    EXPECT(ProfAclSetStampPayload(stamp, 2, &payload), 0);
    EXPECT(ProfAclMark(stamp), 0);
    /* The push from before the capture is not closed by these. */
    void *outer = stamp_of("outer", 1);
    EXPECT(ProfAclPush(outer), 0);
    ProfAclDestroyStamp(outer);
    EXPECT(ProfAclRangePushEx(stamp_of("=inner", 2)), 0);
    EXPECT(ProfAclRangePop(), 0);
    EXPECT(ProfAclPop(), 0);
    EXPECT(ProfAclPop(), -1);
    /* A range that another thread ends. */
    uint32_t range = 0;
    EXPECT(ProfAclRangeStart(stamp_of("a range", 3), &range), 0);
    pthread_t thread;
    void *result = &thread;
    EXPECT(pthread_create(&thread, NULL, end_range, (void *)(uintptr_t)range), 0);
    EXPECT(pthread_join(thread, &result), 0);
    EXPECT(result == NULL, 1);
    EXPECT(ProfAclRangeStop(range), -1);
    EXPECT(ProfAclMarkEx("on a stream", 11, NULL), 0);
}

static void bad_arguments(void)
{
    g_phase = "bad arguments";
    void *stamp = stamp_of("gone", 1);
    uint32_t range = 0;
    ProfAclDestroyStamp(stamp);
    ProfAclDestroyStamp(stamp);
    void *none[] = {NULL, stamp, (void *)16, (void *)-1, &range};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        EXPECT(ProfAclMark(none[i]), -1);
        EXPECT(ProfAclPush(none[i]), -1);
        EXPECT(ProfAclRangePushEx(none[i]), -1);
        EXPECT(ProfAclRangeStart(none[i], &range), -1);
        EXPECT(ProfAclSetStampCategory(none[i], 1), -1);
        EXPECT(ProfAclSetStampPayload(none[i], 1, NULL), -1);
        EXPECT(ProfAclSetStampTraceMessage(none[i], "x", 1), -1);
    }
    stamp = ProfAclCreateStamp();
    EXPECT(ProfAclRangeStart(stamp, NULL), -1);
    EXPECT(ProfAclSetStampTraceMessage(stamp, NULL, 5), -1);
    EXPECT(ProfAclMarkEx(NULL, 5, NULL), -1);
    EXPECT(ProfAclRangeStop(0), -1);
    ProfAclDestroyStamp(stamp);
    g_mstx.mark(NULL, NULL);
    EXPECT(g_mstx.range_start(NULL, NULL), 0);
    g_mstx.range_end(0);
    g_mstx.range_end(1234567);
    EXPECT(g_mstx.domain_create(NULL) == NULL, 1);
    EXPECT(g_mstx.domain_create("") == NULL, 1);
    g_mstx.domain_mark(NULL, "in no domain", NULL);
    EXPECT(g_mstx.domain_range_start(&range, "in no domain", NULL), 0);
    g_mstx.domain_destroy(&range);
}

static void mstx(void)
{
    g_phase = "mstx";
    static char longest[601];
    uint64_t tool = 0;
    memset(longest, 'x', sizeof longest - 1);
    g_mstx.tool_id(&tool);
    EXPECT(tool, 0x1000);
    g_mstx.mark("an instant", NULL);
    uint64_t range = g_mstx.range_start(longest, NULL);
    EXPECT(range != 0, 1);
    Domain io = g_mstx.domain_create("io");
    EXPECT(io != NULL, 1);
    EXPECT(g_mstx.domain_create("io") == io, 1);
    uint64_t load = g_mstx.domain_range_start(io, "load", NULL);
    EXPECT(load != 0 && load != range, 1);
    g_mstx.domain_mark(io, "block", NULL);
    g_mstx.domain_range_end(io, load);
    g_mstx.domain_range_end(io, load);
    g_mstx.range_end(range);
    g_mstx.domain_destroy(io);
    g_mstx.domain_mark(io, "in no domain any more", NULL);
}

static void other_tool(void)
{
    g_phase = "other tool";
    ProfRegisterMstxFunc(register_other, 2);
    Domain both = g_mstx.domain_create("both");
    ProfEnableMstxFunc(2);
    g_mstx.mark("for the other tool", NULL);
    g_mstx.domain_mark(both, "for the other tool", NULL);
    EXPECT(g_others_marks, 2);
    EXPECT(g_others_domain == &g_others_marks, 1);
    ProfEnableMstxFunc(1);
    g_mstx.domain_mark(both, "for us again", NULL);
    EXPECT(g_others_marks, 2);
}

/* A table of mstx as it was before it had more than marks. */
static void old_mstx(void)
{
    g_phase = "old mstx";
    memset(&g_mstx, 0, sizeof g_mstx);
    g_core_size = 2;
    EXPECT(InitInjectionMstx(give_table), 0);
    EXPECT(g_mstx.mark != NULL, 1);
    EXPECT(g_mstx.range_start == NULL, 1);
}

int main(int count, char **words)
{
    if (count != 2 || InitInjectionMstx(give_table) != 0) {
        return 2;
    }
    before_the_capture();
    say_result("start", msprof_agent_start(NULL, words[1]));
    stamps();
    bad_arguments();
    mstx();
    other_tool();
    say_result("stop", msprof_agent_stop(NULL, 0));
    old_mstx();
    printf("wrong %d\n", g_wrong);
    return g_wrong != 0;
}
