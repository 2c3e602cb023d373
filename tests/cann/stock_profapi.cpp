// libprofapi.so of the stand-in with somebody behind it, as a released one has: it buffers reports in rings that all
// threads share, and hands everything on to the libprofimpl.so that it loads at MsprofInit.
//
//   HAS_CALLBACKS=1   other tools can divert reports before the buffers
//   HAS_CALLBACKS=2   callbacks are taken and never called
//   HAS_CALLBACKS=3   as 1, but for additional reports, for which there is no callback
//   otherwise         there are none
//
// Built for both layouts of std::string; functions that carry one are looked up, and called where they are found.
extern "C" {
#include "export.h"
}

#include <cstdint>
#include <cstring>
#include <ctime>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#ifndef HAS_CALLBACKS
#define HAS_CALLBACKS 0
#endif

namespace {

constexpr std::int32_t kUninitialised = 6;
constexpr std::uint32_t kInitAicpu = 6;
constexpr std::uint16_t kLevelAicpu = 6000;
constexpr std::size_t kSlotsPerByte = 1000;
constexpr std::size_t kLongBytes = 128 * 1024;
constexpr std::size_t kAdditional = 256;
constexpr std::size_t kBatchBytes = 512 * kAdditional;

using Handler = std::int32_t (*)(std::uint32_t, void *, std::uint32_t);

template <std::size_t N> struct Record {
    unsigned char bytes[N];
};
using Api = Record<40>;
using Compact = Record<64>;
using Additional = Record<kAdditional>;

// ---- buffers ----------------------------------------------------------------

template <typename T> class Buffer {
public:
    void Init(std::size_t capacity)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        capacity_ = capacity;
    }

    void Uninit()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        capacity_ = 0;
        waiting_.clear();
    }

    std::int32_t Push(std::uint32_t aging, const T &record)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (capacity_ == 0) {
            return kUninitialised;
        }
        if (waiting_.size() < capacity_) {
            waiting_.emplace_back(aging, record);
        }
        return 0;
    }

    std::size_t Waiting()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        return waiting_.size();
    }

    bool Pop(std::uint32_t &aging, T &record)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (waiting_.empty()) {
            return false;
        }
        aging = waiting_.front().first;
        record = waiting_.front().second;
        waiting_.pop_front();
        return true;
    }

private:
    std::mutex mutex_;
    std::size_t capacity_ = 0;
    std::deque<std::pair<std::uint32_t, T>> waiting_;
};

// Bytes in a ring; what is given out ends at the ring's end at the latest.
class Blocks {
public:
    void Init(std::size_t capacity)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        ring_.resize(capacity);
    }

    void Uninit()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        ring_.clear();
        read_ = written_ = 0;
    }

    std::int32_t Push(const void *data, std::size_t size)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (ring_.empty()) {
            return kUninitialised;
        }
        if (written_ - read_ + size > ring_.size()) {
            return 0; // dropped
        }
        for (std::size_t i = 0; i < size; i++) {
            ring_[(written_ + i) % ring_.size()] = static_cast<const char *>(data)[i];
        }
        written_ += size;
        return 0;
    }

    std::size_t Waiting()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        return written_ - read_;
    }

    void *Pop(std::size_t &size)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (ring_.empty() || read_ == written_ || size == 0) {
            return nullptr;
        }
        std::size_t at = read_ % ring_.size();
        size = written_ - read_;
        if (at + size > ring_.size()) {
            size = ring_.size() - at;
        }
        return ring_.data() + at;
    }

    void Shift(void *, std::size_t size)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        read_ += size;
    }

private:
    std::mutex mutex_;
    std::vector<char> ring_;
    std::size_t read_ = 0;
    std::size_t written_ = 0;
};

Buffer<Api> g_api;
Buffer<Compact> g_compact;
Buffer<Additional> g_additional;
Blocks g_batch;
Blocks g_long;

bool PopApi(std::uint32_t &aging, Api &record) { return g_api.Pop(aging, record); }
bool PopCompact(std::uint32_t &aging, Compact &record) { return g_compact.Pop(aging, record); }
bool PopAdditional(std::uint32_t &aging, Additional &record) { return g_additional.Pop(aging, record); }
void *PopBatch(std::size_t &size, bool) { return g_batch.Pop(size); }
void ShiftBatch(void *block, std::size_t size) { g_batch.Shift(block, size); }
void *PopLong(std::size_t &size) { return g_long.Pop(size); }
void ShiftLong(void *block, std::size_t size) { g_long.Shift(block, size); }

// ---- the library behind ------------------------------------------------------

struct ImplInfo {
    std::size_t free_ram;
    std::uint32_t kind;
    bool init;
};

struct Impl {
    void *handle;
    std::int32_t (*init)(std::uint32_t, void *, std::uint32_t);
    std::int32_t (*finalize)();
    std::int32_t (*stop)(std::uint32_t, const void *, std::uint32_t);
    std::int32_t (*register_callback)(std::uint32_t, Handler);
    std::int32_t (*report_data)(std::uint32_t, std::uint32_t, void *, std::uint32_t);
    std::int32_t (*set_device_id)(std::uint32_t, std::uint32_t);
    std::int32_t (*unset_device_id)(std::uint32_t, std::uint32_t);
    std::int32_t (*notify_set_device)(std::uint32_t, std::uint32_t, bool);
    void (*get_impl_info)(ImplInfo &);
    bool (*host_freq)();
    std::int32_t (*reg_type_info)(std::uint16_t, std::uint32_t, const std::string &);
    std::uint64_t (*get_hash_id)(const std::string &);
    std::string (*get_path)();
};

Impl g_impl;
std::mutex g_mutex;
std::set<std::pair<std::uint32_t, Handler>> g_handlers;
std::map<std::uint32_t, std::uint32_t> g_models;
std::map<std::pair<std::uint32_t, std::uint32_t>, bool> g_devices;

template <typename F> void Find(F &function, const char *name)
{
    function = reinterpret_cast<F>(dlsym(g_impl.handle, name));
}

template <typename F> void Set(const char *name, F function)
{
    void (*set)(F) = nullptr;
    Find(set, name);
    if (set != nullptr) {
        set(function);
    }
}

// What came before goes there now.
void Replay()
{
    for (const auto &handler : g_handlers) {
        g_impl.register_callback(handler.first, handler.second);
    }
    for (const auto &model : g_models) {
        g_impl.set_device_id(model.first, model.second);
    }
    for (const auto &device : g_devices) {
        g_impl.notify_set_device(device.first.first, device.first.second, device.second);
    }
}

void Load()
{
    if (g_impl.handle != nullptr) {
        return;
    }
    g_impl.handle = dlopen("libprofimpl.so", RTLD_LAZY | RTLD_NODELETE);
    if (g_impl.handle == nullptr) {
        return;
    }
    Find(g_impl.init, "MsprofInit");
    Find(g_impl.finalize, "MsprofFinalize");
    Find(g_impl.stop, "MsprofStop");
    Find(g_impl.register_callback, "MsprofRegisterCallback");
    Find(g_impl.report_data, "MsprofReportData");
    Find(g_impl.set_device_id, "MsprofSetDeviceIdByGeModelIdx");
    Find(g_impl.unset_device_id, "MsprofUnsetDeviceIdByGeModelIdx");
    Find(g_impl.notify_set_device, "MsprofNotifySetDevice");
    Find(g_impl.get_impl_info, "ProfImplGetImplInfo");
    Find(g_impl.host_freq, "ProfImplHostFreqIsEnable");
    Find(g_impl.reg_type_info, "ProfImplReportRegTypeInfo");
    Find(g_impl.get_hash_id, "ProfImplReportGetHashId");
    Find(g_impl.get_path, "ProfImplGetOutputPath");
    Replay();
}

std::size_t g_slots;

void InitBuffers(std::uint32_t kind)
{
    ImplInfo info{0, kind, true};
    if (g_impl.get_impl_info != nullptr) {
        g_impl.get_impl_info(info);
    }
    if (!info.init) {
        return;
    }
    g_slots = info.free_ram / kSlotsPerByte;
    g_api.Init(g_slots);
    g_compact.Init(g_slots);
    g_additional.Init(g_slots);
    g_long.Init(kLongBytes);
    Set("ProfImplSetApiBufPop", PopApi);
    Set("ProfImplSetCompactBufPop", PopCompact);
    Set("ProfImplSetAdditionalBufPop", PopAdditional);
    Set("ProfImplSetVarAddBlockBufBatchPop", PopLong);
    Set("ProfImplSetVarAddBlockBufIndexShift", ShiftLong);
}

void UninitBuffers()
{
    g_api.Uninit();
    g_compact.Uninit();
    g_additional.Uninit();
    g_batch.Uninit();
    g_long.Uninit();
}

// ---- callbacks of other tools -------------------------------------------------

enum { kOnCompact = 4, kOnAdditional = 5, kOnApi = 9, kOnEvent = 10, kOnType = 11, kOnHash = 12, kOnDevice = 16 };
void *g_callbacks[kOnDevice + 1];

template <typename F> F Callback(int kind)
{
    return HAS_CALLBACKS == 1 || HAS_CALLBACKS == 3 ? reinterpret_cast<F>(g_callbacks[kind]) : nullptr;
}

struct DeviceState {
    std::uint32_t chip;
    std::uint32_t device;
    bool open;
};

void TellDevice(std::uint32_t chip, std::uint32_t device, bool open)
{
    if (auto callback = Callback<std::int32_t (*)(void *, std::uint32_t)>(kOnDevice)) {
        DeviceState state{chip, device, open};
        callback(&state, sizeof state);
    }
}

} // namespace

extern "C" {

// How many slots the buffers have, for the tests.
CANN_EXPORT std::size_t stock_slots()
{
    return g_slots;
}

// How much waits in them, of any unit.
CANN_EXPORT std::size_t stock_waiting()
{
    return g_api.Waiting() + g_compact.Waiting() + g_additional.Waiting() + g_batch.Waiting() + g_long.Waiting();
}

#if HAS_CALLBACKS
CANN_EXPORT std::int32_t MsprofRegisterProfileCallback(std::int32_t kind, void *callback, std::uint32_t)
{
    if (kind < 0 || kind > kOnDevice || callback == nullptr || (HAS_CALLBACKS == 3 && kind == kOnAdditional)) {
        return -1;
    }
    g_callbacks[kind] = callback;
    if (kind == kOnDevice) {
        for (const auto &device : g_devices) {
            TellDevice(device.first.first, device.first.second, device.second);
        }
    }
    return 0;
}
#endif

CANN_EXPORT std::int32_t MsprofInit(std::uint32_t kind, void *data, std::uint32_t len)
{
    std::lock_guard<std::mutex> lock(g_mutex);
    Load();
    if (kind == kInitAicpu) {
        g_batch.Init(4 * kBatchBytes);
        Set("ProfImplSetBatchAddBufPop", PopBatch);
        Set("ProfImplSetBatchAddBufIndexShift", ShiftBatch);
    } else {
        InitBuffers(kind);
    }
    return g_impl.init != nullptr ? g_impl.init(kind, data, len) : 0;
}

CANN_EXPORT std::int32_t MsprofFinalize()
{
    std::int32_t result = g_impl.finalize != nullptr ? g_impl.finalize() : 0;
    UninitBuffers();
    return result;
}

CANN_EXPORT std::int32_t MsprofStop(std::uint32_t kind, const void *data, std::uint32_t len)
{
    std::int32_t result = g_impl.stop != nullptr ? g_impl.stop(kind, data, len) : 0;
    UninitBuffers();
    return result;
}

CANN_EXPORT std::int32_t MsprofRegisterCallback(std::uint32_t module, Handler handler)
{
    if (g_impl.register_callback != nullptr) {
        return g_impl.register_callback(module, handler);
    }
    std::lock_guard<std::mutex> lock(g_mutex);
    g_handlers.emplace(module, handler);
    return 0;
}

CANN_EXPORT std::int32_t MsprofNotifySetDevice(std::uint32_t chip, std::uint32_t device, bool open)
{
    {
        std::lock_guard<std::mutex> lock(g_mutex);
        g_devices[{chip, device}] = open;
    }
    TellDevice(chip, device, open);
    return g_impl.notify_set_device != nullptr ? g_impl.notify_set_device(chip, device, open) : 0;
}

CANN_EXPORT std::int32_t MsprofReportData(std::uint32_t module, std::uint32_t type, void *data, std::uint32_t len)
{
    return g_impl.report_data != nullptr ? g_impl.report_data(module, type, data, len) : 0;
}

CANN_EXPORT std::int32_t MsprofReportApi(std::uint32_t aging, const void *api)
{
    if (auto callback = Callback<std::int32_t (*)(std::uint32_t, const void *)>(kOnApi)) {
        return callback(aging, api);
    }
    return g_api.Push(aging, *static_cast<const Api *>(api));
}

CANN_EXPORT std::int32_t MsprofReportEvent(std::uint32_t aging, const void *event)
{
    if (auto callback = Callback<std::int32_t (*)(std::uint32_t, const void *)>(kOnEvent)) {
        return callback(aging, event);
    }
    return g_api.Push(aging, *static_cast<const Api *>(event));
}

CANN_EXPORT std::int32_t MsprofReportCompactInfo(std::uint32_t aging, const void *data, std::uint32_t len)
{
    if (auto callback = Callback<std::int32_t (*)(std::uint32_t, const void *, std::uint32_t)>(kOnCompact)) {
        return callback(aging, data, len);
    }
    return g_compact.Push(aging, *static_cast<const Compact *>(data));
}

CANN_EXPORT std::int32_t MsprofReportAdditionalInfo(std::uint32_t aging, const void *data, std::uint32_t len)
{
    if (auto callback = Callback<std::int32_t (*)(std::uint32_t, const void *, std::uint32_t)>(kOnAdditional)) {
        return callback(aging, data, len);
    }
    if (len > kAdditional) {
        return g_long.Push(data, len);
    }
    std::uint16_t level;
    std::memcpy(&level, static_cast<const char *>(data) + 2, sizeof level);
    if (level == kLevelAicpu) {
        return g_batch.Push(data, len);
    }
    Additional record{};
    std::memcpy(&record, data, len);
    return g_additional.Push(aging, record);
}

CANN_EXPORT std::int32_t MsprofReportBatchAdditionalInfo(std::uint32_t, const void *data, std::uint32_t len)
{
    return g_batch.Push(data, len);
}

CANN_EXPORT std::int32_t MsprofRegTypeInfo(std::uint16_t level, std::uint32_t type, const char *name)
{
    using OnType = std::int32_t (*)(std::uint16_t, std::uint32_t, const char *, std::size_t);
    if (auto callback = Callback<OnType>(kOnType)) {
        callback(level, type, name, std::strlen(name));
    }
    if (g_impl.reg_type_info != nullptr) {
        g_impl.reg_type_info(level, type, name);
    }
    return 0;
}

CANN_EXPORT std::uint64_t MsprofGetHashId(const char *text, std::size_t len)
{
    std::uint64_t id = 0;
    if (text == nullptr || len == 0) {
        return UINT64_MAX;
    }
    if (auto callback = Callback<std::uint64_t (*)(const char *, std::size_t)>(kOnHash)) {
        id = callback(text, len);
    }
    if (g_impl.get_hash_id != nullptr) {
        id = g_impl.get_hash_id(std::string(text, len));
    }
    return id;
}

CANN_EXPORT std::uint64_t MsprofStr2Id(const char *text, std::size_t len)
{
    return MsprofGetHashId(text, len);
}

CANN_EXPORT const char *MsprofGetPath()
{
    static std::string path;
    path = g_impl.get_path != nullptr ? g_impl.get_path() : "";
    return path.c_str();
}

CANN_EXPORT std::uint64_t MsprofSysCycleTime()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

CANN_EXPORT bool MsprofHostFreqIsEnable()
{
    return g_impl.host_freq != nullptr && g_impl.host_freq();
}

CANN_EXPORT std::int32_t MsprofSetDeviceIdByGeModelIdx(std::uint32_t model, std::uint32_t device)
{
    if (g_impl.set_device_id != nullptr) {
        return g_impl.set_device_id(model, device);
    }
    std::lock_guard<std::mutex> lock(g_mutex);
    g_models[model] = device;
    return 0;
}

CANN_EXPORT std::int32_t MsprofUnsetDeviceIdByGeModelIdx(std::uint32_t model, std::uint32_t device)
{
    if (g_impl.unset_device_id != nullptr) {
        return g_impl.unset_device_id(model, device);
    }
    std::lock_guard<std::mutex> lock(g_mutex);
    g_models.erase(model);
    return 0;
}

} // extern "C"
