//! What the driver of the devices can do for us, and what it answers (spec 5 section 5.2).

#![forbid(unsafe_code)]

use std::fmt;

/// Channels that carry the records of the AICPU, and of the custom AICPU where a device has one.
pub const CHANNELS: [u32; 2] = [143, 144];
/// The one that a device is expected to have.
pub const AICPU_CHANNEL: u32 = CHANNELS[0];

/// Answers of the driver.
pub mod code {
    pub const OK: i32 = 0;
    pub const STARTED_ALREADY: i32 = -3;
    pub const STOPPED_ALREADY: i32 = -4;
    /// Of a stop: the driver had to drop data.
    pub const LOST_DATA: i32 = 0x916;
}

/// What may be asked of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Kind of chip, in bits 8 to 15.
    Version,
    /// The counter that the device's records carry.
    Counter,
    /// CLOCK_MONOTONIC_RAW of the device, ns.
    MonotonicRaw,
    /// Rate of the counter, kHz.
    CounterKilohertz,
}

/// The driver, from one thread at a time. Every call may hang.
pub trait Driver: Send + fmt::Debug {
    /// Ids of the channels that a device has at the moment, or the driver's code.
    fn channels(&self, device: u32) -> Result<Vec<u32>, i32>;
    /// Lets a channel take data; returns the driver's code.
    fn start(&self, device: u32, channel: u32) -> i32;
    /// Fills the front of `buffer` with what has come; returns how many bytes, or a code.
    fn read(&self, device: u32, channel: u32, buffer: &mut [u8]) -> i32;
    /// Has the driver hand over what it keeps back; `None` where it does not know how.
    fn flush(&self, device: u32, channel: u32) -> Option<i32>;
    /// Ends a channel; returns the driver's code.
    fn stop(&self, device: u32, channel: u32) -> i32;
    /// A fact about a device, where the driver knows it.
    fn fact(&self, device: u32, fact: Fact) -> Option<i64>;
}

/// A call of the driver's, by its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Loading the library.
    Load,
    /// [`Driver::channels`].
    Channels,
    /// [`Driver::start`].
    Start,
    /// [`Driver::read`].
    Read,
    /// [`Driver::flush`].
    Flush,
    /// [`Driver::stop`].
    Stop,
    /// [`Driver::fact`].
    Fact,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Call::Load => "dlopen",
            Call::Channels => "prof_drv_get_channels",
            Call::Start => "prof_drv_start",
            Call::Read => "prof_channel_read",
            Call::Flush => "halProfDataFlush",
            Call::Stop => "prof_stop",
            Call::Fact => "halGetDeviceInfo",
        })
    }
}

/// A code of the driver's in words.
pub fn explain(code: i32) -> String {
    let words = match code {
        -1 => "error",
        -2 => "time-out",
        code::STARTED_ALREADY => "started already",
        code::STOPPED_ALREADY => "stopped already",
        -10 | -11 => "no resources",
        ..0 => return format!("code {code}"),
        _ => return format!("code {code:#x}"),
    };
    format!("code {code}, {words}")
}
