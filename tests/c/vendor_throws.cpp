// A stand-in for the vendor's libprofapi.so whose every function lets an exception out, as a callback of the program's
// may that it calls.
#include <cstdint>
#include <stdexcept>

#define THROWS(name)                                                                                                  \
    extern "C" __attribute__((visibility("default"))) std::int32_t name(void)                                         \
    {                                                                                                                 \
        throw std::runtime_error(#name);                                                                              \
    }

THROWS(MsprofInit)
THROWS(MsprofFinalize)
THROWS(MsprofGetHashId)
THROWS(MsprofGetPath)
THROWS(MsprofNotifySetDevice)
THROWS(MsprofRegTypeInfo)
THROWS(MsprofRegisterCallback)
THROWS(MsprofReportApi)
THROWS(MsprofReportCompactInfo)
THROWS(MsprofReportData)
THROWS(MsprofStop)
