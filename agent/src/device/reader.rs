//! The thread that reads the devices' channels while aicpu is captured, `msprof-device`.
//!
//! The driver's queue of events (`prof_channel_poll`) is one for the whole process and may be another profiler's, so
//! channels are read without it, as often as devices fill them.

#![forbid(unsafe_code)]

use super::channel::{Channel, Tools};
use super::driver::{CHANNELS, Call, Driver, Fact};
use super::shared::{Order, Shared, Want};
use crate::clock::{Moment, monotonic_raw_ns};
use crate::profdir::DeviceClock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often channels are read; devices fill them every 10 ms.
const READ_INTERVAL: Duration = Duration::from_millis(10);
/// How often a channel that is not there yet is looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How long channels are read that are to end, all of them together. A device that goes on sending is never empty.
const END_LIMIT: Duration = Duration::from_secs(2);
/// With nothing to do the thread sleeps until it is told something.
const LONG: Duration = Duration::from_secs(3600);

#[derive(Debug)]
struct Device {
    channels: [Channel; CHANNELS.len()],
    look_at: Moment,
}

/// The reader of one capture.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    driver: Box<dyn Driver>,
    devices: BTreeMap<u32, Device>,
    buffer: Vec<u8>,
}

/// Says that the thread has ended, in a panic too.
struct Done(Arc<Shared>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.set_done();
    }
}

/// The body of the thread: finds the driver and reads until that is no longer wanted.
pub fn run(shared: Arc<Shared>, find: impl FnOnce() -> Option<Box<dyn Driver>>) {
    let _done = Done(shared.clone());
    let Some(driver) = shared.call(Call::Load, None, find) else {
        return;
    };
    let Some(driver) = driver else {
        shared.set_answered(false);
        return;
    };
    let reader = Reader {
        shared,
        driver,
        devices: BTreeMap::new(),
        buffer: Vec::new(),
    };
    reader.read();
}

impl Reader {
    fn read(mut self) {
        let mut answered = false;
        loop {
            let count = self.shared.told.count();
            // One at a time: a slow answer about one device is not to keep the others from being read.
            let obeyed = self.obey();
            if !obeyed && !answered {
                answered = true;
                self.shared.set_answered(true);
            }
            if self.shared.wanted() != Want::Read {
                if obeyed && self.shared.wanted() != Want::Halt {
                    continue;
                }
                break;
            }
            let pause = self.turn();
            if !obeyed && self.shared.wanted() == Want::Read {
                self.shared.told.wait(count, pause);
            }
        }
        let by = Moment::now() + END_LIMIT;
        while let Some((_, device)) = self.devices.pop_first() {
            self.finish(device, by);
        }
    }

    /// Takes what a device's channels still hold, and ends them.
    fn finish(&mut self, mut device: Device, by: Moment) {
        let mut tools = Tools {
            driver: &*self.driver,
            shared: &self.shared,
            buffer: &mut self.buffer,
        };
        for channel in &mut device.channels {
            channel.finish(&mut tools, by);
        }
    }

    /// Does the oldest thing that was ordered, if there is one.
    fn obey(&mut self) -> bool {
        let Some(order) = self.shared.order() else {
            return false;
        };
        match order {
            Order::Open(device) => self.open(device),
            Order::Ask(device) => self.ask_platform(device),
            Order::Close(device) => {
                if let Some(closed) = self.devices.remove(&device) {
                    self.finish(closed, Moment::now() + END_LIMIT);
                }
            }
        }
        true
    }

    fn open(&mut self, device: u32) {
        self.ask_platform(device);
        let clock = self.clock(device);
        if self.shared.wanted() == Want::Halt || !self.shared.set_clock(device, clock) {
            return;
        }
        for channel in CHANNELS {
            self.shared.account(device, channel, |_| {});
        }
        self.devices.entry(device).or_insert_with(|| Device {
            channels: CHANNELS.map(|number| Channel::new(device, number)),
            look_at: Moment::now(),
        });
    }

    fn ask_platform(&self, device: u32) {
        if self.shared.platform().is_none()
            && let Some(version) = self.fact(device, Fact::Version)
        {
            self.shared.set_platform((version >> 8) as u8);
        }
    }

    fn fact(&self, device: u32, fact: Fact) -> Option<i64> {
        let ask = || self.driver.fact(device, fact);
        self.shared
            .call(Call::Fact, Some((device, 0)), ask)
            .flatten()
    }

    /// How the ticks of a device's records turn into time, if the driver says all of it.
    fn clock(&self, device: u32) -> Option<DeviceClock> {
        let positive = |value: i64| u64::try_from(value).ok().filter(|&value| value > 0);
        let kilohertz = positive(self.fact(device, Fact::CounterKilohertz)?)?;
        // Asked twice: the first call may have to set up things.
        self.fact(device, Fact::Counter)?;
        let before = monotonic_raw_ns();
        let ticks = positive(self.fact(device, Fact::Counter)?)?;
        let after = monotonic_raw_ns();
        let host_ns = before + after.saturating_sub(before) / 2;
        let device_ns = self.fact(device, Fact::MonotonicRaw).and_then(positive);
        Some(DeviceClock {
            megahertz: format!("{}.{:03}", kilohertz / 1000, kilohertz % 1000),
            host_ns,
            device_ns: device_ns.unwrap_or(host_ns),
            device_ticks: ticks,
        })
    }

    /// Looks for what is missing and reads what has come; returns how long to sleep.
    fn turn(&mut self) -> Duration {
        let mut pause = LONG;
        for (&device, state) in &mut self.devices {
            let mut tools = Tools {
                driver: &*self.driver,
                shared: &self.shared,
                buffer: &mut self.buffer,
            };
            if state.channels.iter().any(Channel::is_doubtful) {
                if state.look_at.has_come() {
                    look(&tools, device, &mut state.channels);
                    state.look_at = Moment::now() + LOOK_INTERVAL;
                }
                pause = pause.min(state.look_at.remaining());
            }
            for channel in state.channels.iter_mut().filter(|c| c.is_running()) {
                let more = channel.read(&mut tools);
                pause = pause.min(if more { Duration::ZERO } else { READ_INTERVAL });
            }
        }
        pause
    }
}

/// Starts those channels that are missing and offered, and leaves those that are gone.
fn look(tools: &Tools<'_>, device: u32, channels: &mut [Channel]) {
    let offered = tools.call(Call::Channels, (device, 0), |driver| {
        driver.channels(device)
    });
    if offered.is_some() {
        tools.shared.set_looked_at(device);
    }
    // A device that is just coming up has no list yet.
    let Some(Ok(offered)) = offered else {
        return;
    };
    for channel in channels {
        channel.look(tools, offered.contains(&channel.number()));
    }
}
