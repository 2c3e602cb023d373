/*
 * Calls every msproftx and mstx function of the header; each succeeds.  Exit status:
 * the number of calls that did not.
 */
#include <msprof_agent.h>

int main(void)
{
    int wrong = 0;
    uint32_t range = 0;
    void *stamp = ProfAclCreateStamp();
    wrong += ProfAclSetCategoryName(1, "category") != 0;
    wrong += ProfAclSetStampCategory(stamp, 1) != 0;
    wrong += ProfAclSetStampPayload(stamp, 0, NULL) != 0;
    wrong += ProfAclSetStampTraceMessage(stamp, "message", 7) != 0;
    wrong += ProfAclMark(stamp) != 0;
    wrong += ProfAclMarkEx("message", 7, NULL) != 0;
    wrong += ProfAclPush(stamp) != 0;
    wrong += ProfAclPop() != 0;
    wrong += ProfAclRangePushEx(stamp) != 0;
    wrong += ProfAclRangePop() != 0;
    wrong += ProfAclRangeStart(stamp, &range) != 0;
    wrong += ProfAclRangeStop(range) != 0;
    ProfAclDestroyStamp(stamp);
    return wrong;
}
