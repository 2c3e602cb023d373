// Calls functions of the vendor's library that throw, and catches what they throw.
#include "caught.h"

#include <msprof_agent.h>

#include <cstdio>

#define CAUGHT(name, ...) Caught(#name, [&] { name(__VA_ARGS__); })

int main()
{
    MsprofApi api{};
    MsprofCompactInfo compact{};
    int caught = CAUGHT(MsprofRegTypeInfo, MSPROF_LEVEL_NODE, 77, "a name");
    caught += CAUGHT(MsprofInit, 0xFF, nullptr, 0);
    caught += CAUGHT(MsprofRegisterCallback, 7, nullptr);
    caught += CAUGHT(MsprofNotifySetDevice, 0, 0, true);
    caught += CAUGHT(MsprofGetHashId, "text", 4);
    caught += CAUGHT(MsprofReportApi, 0, &api);
    caught += CAUGHT(MsprofReportCompactInfo, 0, &compact, sizeof compact);
    caught += CAUGHT(MsprofReportData, 0, 0, nullptr, 0);
    caught += CAUGHT(MsprofGetPath);
    caught += CAUGHT(MsprofStop, 0, nullptr, 0);
    caught += CAUGHT(MsprofFinalize);
    std::printf("caught %d\n", caught);
    return 0;
}
