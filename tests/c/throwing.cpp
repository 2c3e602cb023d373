// A component in C++ whose handler throws when it is told to start.
#include <msprof_agent.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace {

constexpr std::uint32_t kRuntime = 7;
constexpr std::size_t kOfKind = 280;
constexpr std::uint32_t kStart = 1;

std::int32_t Throws(std::uint32_t, void *command, std::uint32_t)
{
    std::uint32_t kind = 0;
    std::memcpy(&kind, static_cast<const char *>(command) + kOfKind, sizeof kind);
    if (kind == kStart) {
        throw std::runtime_error("a fault of the component");
    }
    return 0;
}

} // namespace

int main()
{
    MsprofNotifySetDevice(0, 0, true);
    MsprofRegisterCallback(kRuntime, Throws);
    std::puts("ready");
    std::fflush(stdout);
    return std::getchar() == EOF ? 0 : 1;
}
