/*
 * The driver of the stand-in: libascend_hal.so with devices whose AICPU sends
 * profiling records through channels 143 and 144.
 *
 * A second, independent declaration of the driver's calls, as prof_abi.h is of the
 * profiling ABI.  Nothing here blocks, except where a test asks for it.
 *
 * What the devices do comes from the environment, which is read once at load:
 *
 *   STANDIN_HAL_DEVICES   "0,1:300": devices that have channels, each perhaps only so
 *                         many ms after the first look at its list.  None if not set
 *   STANDIN_HAL_CHANNELS  "143,144"; 143 if not set
 *   STANDIN_HAL_RATE      records a second, of each channel; 1000
 *   STANDIN_HAL_TOTAL     records of each channel from one start on, then it is silent
 *   STANDIN_HAL_TYPES     "0,1,3": types of the records in turn; 0
 *   STANDIN_HAL_READ_MAX  most bytes that one read returns; no bound
 *   STANDIN_HAL_HOLD      records that a device collects before it hands them on, all
 *                         at once; a flush hands on the rest too.  1
 *   STANDIN_HAL_BUFFER    records that the driver keeps of a channel; the oldest are lost
 *                         beyond that, which the stop says.  131072
 *   STANDIN_HAL_CLOCK     MHz of the device's counter.  Without it the driver tells no
 *                         clock, and ticks are the host's ns
 *   STANDIN_HAL_CHIP      number of the chip's kind; 5
 *   STANDIN_HAL_EMPTY     what a read returns when there is nothing, 0 or -4; 0
 *   STANDIN_HAL_START     "-10:2": what the first two starts of a channel return
 *   STANDIN_HAL_GARBAGE   some of: "magic" and "level", each tenth record has a wrong one;
 *                         "length", the fourth read claims more than its buffer holds;
 *                         "count", the first three lists claim 0xFFFFFFFF channels; "code",
 *                         the second, third and fourth read return an unknown code, or
 *                         "codes", all from the second on.  Such reads take no record away
 *   STANDIN_HAL_SERVED    "bytes": keeps what reads returned, byte for byte
 *   STANDIN_HAL_DIR       a directory for the files below
 *
 * What a test may put into the directory, at any time:
 *
 *   hang.<call>           calls of that name do not return while it is there; dlopen is one
 *   hang.<call>.<device>  too, and prof_channel_read.flushed is one behind a flush
 *   gone.<device>         the device has vanished: no channel in its list, reads are -4, and
 *                         after its return the channels have to be started again
 *
 * What it finds there, of process P, device D, channel C and that channel's Nth start:
 *
 *   calls.P               a line for each call but for repeated reads and looks, with its
 *                         result; "hangs ..." and "returns ...", "late ..." once this
 *                         library was torn down, upon which the process is aborted
 *   count.P.D.C.N         "records R digest H lost L": what was served, and lost before it
 *   bytes.P.D.C.N         the bytes that reads returned
 *
 * Records are numbered from 1 for each channel, through all its starts: the number is in
 * their last eight bytes, and in `index` or `scheduleTick` where they have one.  The thread
 * of a record is 1000 * channel + device.  A record begins when it is made, which is when
 * it can be read plus HAL_DELAY_NS.
 */
#ifndef CANN_HAL_H
#define CANN_HAL_H

#include <stddef.h>
#include <stdint.h>

enum { HAL_CHANNELS_MAX = 160, HAL_NAME = 32, HAL_RECORD = 256, HAL_DEVICES = 64 };
enum { HAL_CHANNEL_AICPU = 143, HAL_CHANNEL_CUSTOM_AICPU = 144 };

/* A record lasts that long and is then sent. */
#define HAL_DELAY_NS UINT64_C(200000)

/* A device's clocks are off the host's by so much; the counter of device D by D s more. */
#define HAL_COUNTER_OFFSET UINT64_C(7000000000000)
#define HAL_DEVICE_BEHIND_NS UINT64_C(50000000000)

enum HalCode {
    HAL_OK = 0,
    HAL_ERROR = -1,
    HAL_TIMEOUT = -2,
    HAL_STARTED_ALREADY = -3,
    HAL_STOPPED_ALREADY = -4,
    HAL_UNKNOWN = -77, /* a code that nobody has heard of */
    HAL_NOT_SUPPORTED = 0xFFFE,
    HAL_DATA_LOST = 0x916,
};

typedef struct HalChannel {
    char name[HAL_NAME];
    uint32_t type;
    uint32_t id;
} HalChannel;

typedef struct HalChannelList {
    uint32_t chip_type;
    uint32_t count;
    HalChannel channels[HAL_CHANNELS_MAX];
} HalChannelList;

_Static_assert(sizeof(HalChannel) == 40, "channel size");
_Static_assert(sizeof(HalChannelList) == 6408, "channel list size");
_Static_assert(offsetof(HalChannelList, channels) == 8, "first channel");

typedef struct HalStart {
    int32_t channel_type; /* 0 ts, 1 peripheral */
    uint32_t sample_period;
    uint32_t real_time;
    void *user_data;
    uint32_t user_data_size;
} HalStart;

_Static_assert(offsetof(HalStart, real_time) == 8, "real time");
_Static_assert(offsetof(HalStart, user_data) == 16, "user data");
_Static_assert(offsetof(HalStart, user_data_size) == 24, "user data size");
_Static_assert(sizeof(HalStart) == 32, "start size");

typedef struct HalPoll {
    uint32_t device;
    uint32_t channel;
} HalPoll;

_Static_assert(sizeof(HalPoll) == 8, "poll size");

/* Facts of the system, which is module 0. */
enum HalInfo {
    HAL_INFO_VERSION = 1,
    HAL_INFO_COUNTER = 13,
    HAL_INFO_MONOTONIC_RAW = 14,
    HAL_INFO_OSCILLATOR_KHZ = 25,
};

int prof_drv_get_channels(unsigned device, HalChannelList *list);
int prof_drv_start(unsigned device, unsigned channel, HalStart *start);
int prof_channel_poll(HalPoll *out, int max, int timeout);
int prof_channel_read(unsigned device, unsigned channel, char *buffer, unsigned size);
int prof_stop(unsigned device, unsigned channel);
int halProfDataFlush(unsigned device, unsigned channel, unsigned *bytes);
int halGetDeviceInfo(uint32_t device, int32_t module, int32_t kind, int64_t *value);

/* ---- the library's own parts -------------------------------------------- */

/* What a device's record is made of. */
typedef struct HalMoment {
    uint64_t begin_ns; /* CLOCK_MONOTONIC_RAW of the host */
    uint64_t number;
    uint32_t device;
    uint32_t channel;
} HalMoment;

/* hal_records.c */
uint64_t hal_ticks(uint32_t device, uint64_t host_ns, uint32_t mhz);
void hal_record(const HalMoment *moment, uint32_t type, uint32_t mhz, void *record);
uint64_t hal_digest(uint64_t digest, const void *record);

#endif
