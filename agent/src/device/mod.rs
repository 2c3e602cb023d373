//! Records that lie in the devices: the driver's channels, read while aicpu is captured (spec 5 section 5.2).
//!
//! A thread of its own does all calls of the driver ([`reader`]), since any of them may hang; the drain takes what it
//! has read out of a bounded queue. Who waits for the thread waits with a limit, and says which call hangs. One
//! thread at a time: the next capture's channels are not read while the last one's is still in a call.

mod channel;
mod driver;
mod hal;
mod queue;
mod reader;
mod shared;
mod stream;
#[cfg(test)]
mod tests;

pub use queue::Batch;

use crate::clock::Moment;
use crate::ledger::ChannelLedger;
use crate::process;
use crate::profdir::DeviceClock;
use driver::Driver;
use hal::Hal;
use parking_lot::Mutex;
use shared::{Order, Shared, Want};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// How long a start waits for the driver's first answers, and a new directory for the clock of its device.
const ANSWER_LIMIT: Duration = Duration::from_millis(300);
/// How long the end of a capture waits for a driver that hands over nothing.
const IDLE_LIMIT: Duration = Duration::from_secs(2);
/// How long it waits for one that goes on handing over records.
const FINISH_LIMIT: Duration = Duration::from_secs(10);
/// How long it waits where the driver is not called any more: for what is just being handed over.
const HALT_LIMIT: Duration = Duration::from_millis(200);
/// How often what was read is taken meanwhile.
const TAKE_INTERVAL: Duration = Duration::from_millis(2);
/// Kinds of chip that the parser knows; a directory with another one exports nothing (spec 3 section 4.1).
const PLATFORMS: [u8; 12] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16];
/// Kind of chip where no driver says so.
const PLATFORM_DEFAULT: u8 = 5;

/// The devices' driver, as the captures of a process use it one after the other.
#[derive(Debug, Default)]
pub struct Devices {
    /// The reader of the last capture, which may still be in a call.
    last: Mutex<Option<Arc<Shared>>>,
    /// There is no such library to be loaded.
    absent: AtomicBool,
    /// Kind of chip and 1, once known.
    platform: AtomicU32,
    /// The driver has answered, whether it knew or not.
    asked: AtomicBool,
}

/// The channels of the devices that are open during one capture, as its drain sees them.
#[derive(Debug)]
pub struct Reading {
    devices: Arc<Devices>,
    shared: Arc<Shared>,
    started: bool,
    /// Why there is no reader, if there cannot be one.
    refused: Option<String>,
    open: BTreeSet<u32>,
    /// Kind of chip that the control files of the host have.
    platform: u8,
    /// What the end has to say.
    end: Vec<String>,
    ended: bool,
}

/// Asks for the clocks of devices.
#[derive(Clone, Debug)]
pub struct Clocks(Arc<Shared>);

impl Clocks {
    /// Kind of chip, if the driver has said one by now that the parser knows.
    pub fn platform(&self) -> Option<u8> {
        self.0.platform().filter(|kind| PLATFORMS.contains(kind))
    }

    /// The clock of a device whose directory is about to be made, `None` for the host's. Waits a while for the driver
    /// the first time.
    pub fn of(&self, device: u32) -> Option<DeviceClock> {
        self.0.take_clock(device, ANSWER_LIMIT)
    }
}

impl Devices {
    /// Begins to read the channels of the devices that are open. Waits a while for the driver's first answers.
    pub fn begin(self: &Arc<Self>, open: &[u32]) -> Reading {
        let mut reading = Reading {
            devices: self.clone(),
            shared: Arc::default(),
            started: false,
            refused: self.busy(),
            open: open.iter().copied().collect(),
            platform: PLATFORM_DEFAULT,
            end: Vec::new(),
            ended: false,
        };
        for &device in open {
            reading.shared.give(Order::Open(device));
        }
        reading.start();
        if reading.started {
            let answered = reading.shared.wait_answered(ANSWER_LIMIT);
            self.learn(&reading.shared, answered);
        }
        reading.platform = self.platform();
        reading
    }

    /// Why the driver cannot be used now, if so.
    fn busy(&self) -> Option<String> {
        let mut last = self.last.lock();
        let reader = last.as_ref()?;
        if reader.wait_done(HALT_LIMIT) {
            *last = None;
            return None;
        }
        let hang = reader.hang();
        let hang = hang.unwrap_or_else(|| "the driver is being read".to_owned());
        Some(format!(
            "aicpu: device channels are not read: since an earlier capture {hang}"
        ))
    }

    /// Starts the thread that makes the calls.
    fn spawn(&self, shared: &Arc<Shared>) -> std::io::Result<()> {
        shared.set_started();
        let theirs = shared.clone();
        let find = || Hal::find().map(|hal| Box::new(hal) as Box<dyn Driver>);
        process::spawn("msprof-device", move || reader::run(theirs, find))
            .inspect_err(|_| shared.set_done())?;
        *self.last.lock() = Some(shared.clone());
        Ok(())
    }

    /// Takes note of what the first answers say of the driver.
    fn learn(&self, shared: &Shared, answered: bool) {
        if answered && !shared.has_driver() {
            self.absent.store(true, Ordering::Relaxed);
        }
        if answered {
            self.asked.store(true, Ordering::Relaxed);
        }
        if let Some(platform) = shared.platform() {
            if PLATFORMS.contains(&platform) {
                let known = u32::from(platform) + 1;
                self.platform.store(known, Ordering::Relaxed);
            } else {
                shared.note(format!(
                    "the parser does not know the devices' kind of chip, {platform}; {PLATFORM_DEFAULT} is written in its place"
                ));
            }
        }
    }

    /// The process exits: no further call of the driver.
    pub fn halt(&self) {
        if let Some(reader) = &*self.last.lock() {
            reader.want(Want::Halt);
        }
    }

    /// Kind of chip for the control files: what the driver has said, if the parser knows it.
    pub fn platform(&self) -> u8 {
        match self.platform.load(Ordering::Relaxed) {
            0 => PLATFORM_DEFAULT,
            known => (known - 1) as u8,
        }
    }

    /// Asks a driver that the program has loaded for the kind of chip, once in the life of the process, for captures
    /// that read no channels. Waits a while for the answer.
    pub fn ask_platform(&self, open: &[u32]) {
        let Some(&device) = open.first() else {
            return;
        };
        if self.asked.load(Ordering::Relaxed)
            || hal::mapped_file().is_none()
            || self.busy().is_some()
        {
            return;
        }
        let shared = Arc::<Shared>::default();
        shared.give(Order::Ask(device));
        shared.want(Want::Abandon);
        if self.spawn(&shared).is_ok() {
            let answered = shared.wait_answered(ANSWER_LIMIT);
            self.learn(&shared, answered);
        }
    }
}

/// A start that fails behind it has no use for the channels.
impl Drop for Reading {
    fn drop(&mut self) {
        self.shared.want(Want::Abandon);
    }
}

impl Reading {
    /// Starts the thread if there may be a driver and something to read.
    fn start(&mut self) {
        if self.started || self.refused.is_some() || self.open.is_empty() {
            return;
        }
        let absent = self.devices.absent.load(Ordering::Relaxed);
        if absent && hal::mapped_file().is_none() {
            return;
        }
        match self.devices.spawn(&self.shared) {
            Ok(()) => self.started = true,
            Err(error) => {
                self.refused = Some(format!(
                    "aicpu: device channels are not read: no thread can be started ({error})"
                ));
            }
        }
    }

    /// For whoever makes directories.
    pub fn clocks(&self) -> Clocks {
        Clocks(self.shared.clone())
    }

    /// A device was opened: its channels are read from now on.
    pub fn open(&mut self, device: u32) {
        if self.open.insert(device) {
            self.shared.give(Order::Open(device));
            if self.started && self.shared.begin_anew() {
                self.started = false;
            }
            self.start();
        }
    }

    /// A device is being closed: what its channels hold is read.
    pub fn close(&mut self, device: u32) {
        if self.open.remove(&device) {
            self.shared.give(Order::Close(device));
        }
    }

    /// The oldest records that were read and not yet taken.
    pub fn take(&self) -> Option<Batch> {
        self.shared.queue.pop()
    }

    /// Whether more waits.
    pub fn has_more(&self) -> bool {
        self.shared.queue.bytes() > 0
    }

    /// Ends it: channels are emptied and stopped, within a bound. With `calls` false, no call of the driver begins any
    /// more: the process exits. `take` is called again and again meanwhile, and says whether something was taken.
    pub fn end(&mut self, calls: bool, mut take: impl FnMut(&Reading) -> bool) {
        self.ended = true;
        if !self.started {
            return;
        }
        let (want, idle_limit) = match calls {
            true => (Want::Finish, IDLE_LIMIT),
            false => (Want::Halt, HALT_LIMIT),
        };
        self.shared.want(want);
        let last = Moment::now() + if calls { FINISH_LIMIT } else { HALT_LIMIT };
        let mut idle = Moment::now() + idle_limit;
        let done = loop {
            if take(self) {
                idle = Moment::now() + idle_limit;
            }
            if calls && self.shared.wanted() == Want::Halt {
                // The process has begun to exit meanwhile.
                idle = idle.min(Moment::now() + HALT_LIMIT);
            }
            let left = idle.min(last).remaining();
            if self.shared.wait_done(left.min(TAKE_INTERVAL)) {
                break true;
            }
            if left.is_zero() {
                break false;
            }
        };
        let unread = match (done, calls) {
            (true, true) => None,
            (_, false) => self.shared.has_channels().then(|| {
                "aicpu: the process ended, so that what the driver still had was not read"
                    .to_owned()
            }),
            (false, true) => {
                let hang = self.shared.hang();
                let hang = hang.unwrap_or_else(|| "the driver goes on handing over".to_owned());
                self.shared.want(Want::Abandon);
                Some(format!(
                    "aicpu: {hang}; what it still has is not in this capture"
                ))
            }
        };
        self.shared.queue.close();
        take(self);
        self.end.extend(unread);
        self.learn_at_end();
    }

    /// Takes note of a kind of chip that was not known when the host's control files were written.
    fn learn_at_end(&mut self) {
        if self.shared.has_driver() {
            self.devices.learn(&self.shared, true);
        }
        let (written, known) = (self.platform, self.devices.platform());
        if known != written {
            self.end.push(format!(
                "the devices' kind of chip, {known}, was not known when the capture began; host/info.json says {written}"
            ));
        }
    }

    /// What came of each channel.
    pub fn channels(&self) -> Vec<ChannelLedger> {
        self.shared.accounts()
    }

    /// What is worth saying of it so far.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.refused.clone());
        let found = self.started && (self.shared.has_driver() || !self.shared.is_answered());
        if self.refused.is_none() && !found && !self.open.is_empty() {
            notes.push(
                "aicpu: no driver (libascend_hal.so) was found; aicpu records that the host reports are taken"
                    .to_owned(),
            );
        }
        notes.extend(self.shared.notes(self.ended));
        notes.extend_from_slice(&self.end);
        notes
    }
}
