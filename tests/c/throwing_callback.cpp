// Another tool whose callback throws; the component that reports catches it.
#include "caught.h"

#include <msprof_agent.h>

#include <cstdio>
#include <stdexcept>

namespace {

constexpr std::int32_t kCompact = 4;
constexpr std::int32_t kTypeInfo = 11;
constexpr std::int32_t kDevice = 16;

std::int32_t OnCompact(std::uint32_t, const void *, std::uint32_t)
{
    throw std::runtime_error("compact");
}

std::int32_t OnTypeInfo(std::uint16_t, std::uint32_t, const char *name, std::size_t)
{
    throw std::runtime_error(name);
}

std::int32_t OnDevice(void *, std::uint32_t)
{
    throw std::runtime_error("device");
}

template <typename Function> bool Register(std::int32_t kind, Function function)
{
    return MsprofRegisterProfileCallback(kind, reinterpret_cast<void *>(function), sizeof(void *)) == 0;
}

int Round()
{
    MsprofCompactInfo record{};
    record.magicNumber = MSPROF_MAGIC;
    record.level = MSPROF_LEVEL_NODE;
    int caught = Caught("compact", [&] { MsprofReportCompactInfo(0, &record, sizeof record); });
    caught += Caught("a name", [] { MsprofRegTypeInfo(MSPROF_LEVEL_NODE, 77, "a name"); });
    caught += Caught("device", [] { MsprofNotifySetDevice(0, 0, true); });
    return caught;
}

} // namespace

int main(int count, char **words)
{
    if (count != 2 || !Register(kCompact, OnCompact) || !Register(kTypeInfo, OnTypeInfo) ||
        !Register(kDevice, OnDevice)) {
        return 2;
    }
    int caught = Round();
    if (msprof_agent_start("--runtime-api=on", words[1]) != 0) {
        return 3;
    }
    caught += Round();
    if (msprof_agent_stop(nullptr, 0) != 0) {
        return 4;
    }
    std::printf("caught %d\n", caught);
    return 0;
}
