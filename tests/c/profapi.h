/* Every function of the vendor's libprofapi.so (tests/stock_symbols.txt), its result and its arguments. */
#ifndef PROFAPI_H
#define PROFAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t I;
typedef uint32_t U;
typedef uint16_t H;
typedef uint64_t L;
typedef size_t S;
typedef bool B;
typedef void *P;

/* What a function of the stand-in was last called with. */
enum { ARGUMENTS_MAX = 6 };
struct note {
    const char *name;
    int count;
    uint64_t arguments[ARGUMENTS_MAX];
};

/* N(name, result, number of arguments, types) for each with a result, V(name, number, types) for the others. */
#define PROFAPI(N, V)                                                                                                 \
    N(AdprofCheckFeatureIsOn, I, 1, L)                                                                                \
    N(AdprofGetBatchReportMaxSize, S, 1, U)                                                                           \
    N(AdprofGetHashId, L, 2, P, S)                                                                                    \
    N(AdprofReportAdditionalInfo, I, 3, U, P, U)                                                                      \
    N(AdprofReportBatchAdditionalInfo, I, 3, U, P, U)                                                                 \
    N(InitInjectionMstx, I, 1, P)                                                                                     \
    N(MsprofCheckOpSwitch, B, 3, U, P, S)                                                                             \
    N(MsprofFinalize, I, 0)                                                                                           \
    N(MsprofGetBatchReportMaxSize, S, 1, U)                                                                           \
    N(MsprofGetHashId, L, 2, P, S)                                                                                    \
    N(MsprofGetPath, P, 0)                                                                                            \
    N(MsprofHostFreqIsEnable, B, 0)                                                                                   \
    N(MsprofId2Str, P, 1, L)                                                                                          \
    N(MsprofInit, I, 3, U, P, U)                                                                                      \
    N(MsprofNotifySetDevice, I, 3, U, U, B)                                                                           \
    N(MsprofRegDataFormat, I, 3, H, U, P)                                                                             \
    N(MsprofRegTypeInfo, I, 3, H, U, P)                                                                               \
    N(MsprofRegisterCallback, I, 2, U, P)                                                                             \
    N(MsprofRegisterProfileCallback, I, 3, I, P, U)                                                                   \
    N(MsprofReportAdditionalInfo, I, 3, U, P, U)                                                                      \
    N(MsprofReportApi, I, 2, U, P)                                                                                    \
    N(MsprofReportBatchAdditionalInfo, I, 3, U, P, U)                                                                 \
    N(MsprofReportCompactInfo, I, 3, U, P, U)                                                                         \
    N(MsprofReportData, I, 4, U, U, P, U)                                                                             \
    N(MsprofReportEvent, I, 2, U, P)                                                                                  \
    N(MsprofSetConfig, I, 3, U, P, S)                                                                                 \
    N(MsprofSetDeviceIdByGeModelIdx, I, 2, U, U)                                                                      \
    N(MsprofStart, I, 3, U, P, U)                                                                                     \
    N(MsprofStop, I, 3, U, P, U)                                                                                      \
    N(MsprofStr2Id, L, 2, P, S)                                                                                       \
    N(MsprofSubscribeRawData, I, 1, P)                                                                                \
    N(MsprofSysCycleTime, L, 0)                                                                                       \
    N(MsprofUnSubscribeRawData, I, 0)                                                                                 \
    N(MsprofUnsetDeviceIdByGeModelIdx, I, 2, U, U)                                                                    \
    N(ProfAclCreateStamp, P, 0)                                                                                       \
    V(ProfAclDestroyStamp, 1, P)                                                                                      \
    N(ProfAclDrvGetDevNum, I, 0)                                                                                      \
    N(ProfAclFinalize, I, 1, U)                                                                                       \
    N(ProfAclGetCompatibleFeatures, I, 2, P, P)                                                                       \
    N(ProfAclGetCompatibleFeaturesV2, I, 2, P, P)                                                                     \
    N(ProfAclGetId, S, 4, U, P, S, U)                                                                                 \
    N(ProfAclGetOpAttriVal, P, 5, U, P, S, U, U)                                                                      \
    N(ProfAclGetOpTime, L, 4, U, P, S, U)                                                                             \
    N(ProfAclGetOpVal, I, 6, U, P, S, U, P, S)                                                                        \
    N(ProfAclInit, I, 3, U, P, U)                                                                                     \
    N(ProfAclMark, I, 1, P)                                                                                           \
    N(ProfAclMarkEx, I, 3, P, S, P)                                                                                   \
    N(ProfAclPop, I, 0)                                                                                               \
    N(ProfAclPush, I, 1, P)                                                                                           \
    N(ProfAclRangePop, I, 0)                                                                                          \
    N(ProfAclRangePushEx, I, 1, P)                                                                                    \
    N(ProfAclRangeStart, I, 2, P, P)                                                                                  \
    N(ProfAclRangeStop, I, 1, U)                                                                                      \
    N(ProfAclRegisterDeviceCallback, I, 0)                                                                            \
    N(ProfAclSetCategoryName, I, 2, U, P)                                                                             \
    N(ProfAclSetConfig, I, 3, I, P, S)                                                                                \
    N(ProfAclSetStampCategory, I, 2, P, U)                                                                            \
    N(ProfAclSetStampPayload, I, 3, P, I, P)                                                                          \
    N(ProfAclSetStampTraceMessage, I, 3, P, P, U)                                                                     \
    N(ProfAclStart, I, 2, U, P)                                                                                       \
    N(ProfAclStop, I, 2, U, P)                                                                                        \
    N(ProfAclSubscribe, I, 3, U, U, P)                                                                                \
    N(ProfAclUnSubscribe, I, 2, U, U)                                                                                 \
    N(ProfAclWarmup, I, 2, U, P)                                                                                      \
    V(ProfEnableMstxFunc, 1, U)                                                                                       \
    N(ProfGetOpExecutionTime, L, 3, P, U, U)                                                                          \
    N(ProfOpSubscribe, I, 2, U, P)                                                                                    \
    N(ProfOpUnSubscribe, I, 1, U)                                                                                     \
    V(ProfRegisterMstxFunc, 2, P, U)                                                                                  \
    N(ProfStr2Id, L, 2, P, S)                                                                                         \
    N(profSetProfCommand, I, 2, P, U)                                                                                 \
    N(profSetStepInfo, I, 3, L, H, P)

/* Parameter lists, and what to do with each parameter. */
#define PARAMETERS_0() void
#define PARAMETERS_1(A) A a
#define PARAMETERS_2(A, B_) A a, B_ b
#define PARAMETERS_3(A, B_, C) A a, B_ b, C c
#define PARAMETERS_4(A, B_, C, D) A a, B_ b, C c, D d
#define PARAMETERS_5(A, B_, C, D, E) A a, B_ b, C c, D d, E e
#define PARAMETERS_6(A, B_, C, D, E, F) A a, B_ b, C c, D d, E e, F f
#define EACH_0(...)
#define EACH_1(DO, A) DO(0, A, a)
#define EACH_2(DO, A, B_) EACH_1(DO, A) DO(1, B_, b)
#define EACH_3(DO, A, B_, C) EACH_2(DO, A, B_) DO(2, C, c)
#define EACH_4(DO, A, B_, C, D) EACH_3(DO, A, B_, C) DO(3, D, d)
#define EACH_5(DO, A, B_, C, D, E) EACH_4(DO, A, B_, C, D) DO(4, E, e)
#define EACH_6(DO, A, B_, C, D, E, F) EACH_5(DO, A, B_, C, D, E) DO(5, F, f)

/* What the stand-in returns from its function of that name. */
static inline uint64_t result_of(const char *name)
{
    uint64_t sum = 1;
    for (; *name != '\0'; name++) {
        sum = sum * 31 + (unsigned char)*name;
    }
    return sum;
}

#endif
