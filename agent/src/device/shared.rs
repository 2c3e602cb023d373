//! What the reader of a capture's channels and those who watch it have in common.
//!
//! The lock is never held across a call of the driver's, so that whoever waits can say which one hangs.

#![forbid(unsafe_code)]

use super::driver::{AICPU_CHANNEL, Call};
use super::queue::Queue;
use crate::clock::Moment;
use crate::ledger::ChannelLedger;
use crate::profdir::DeviceClock;
use crate::waiting::Bell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most sentences about one capture's channels.
const NOTES_MAX: usize = 20;
/// A call that takes longer than this hangs, for who has waited for it.
const HANG: Duration = Duration::from_millis(200);

/// What the reader is told about devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A device was opened.
    Open(u32),
    /// A device is being closed.
    Close(u32),
    /// Nothing is to be read; the kind of chip is asked for.
    Ask(u32),
}

/// How long the reader is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// It reads.
    #[default]
    Read,
    /// It empties the channels, stops them and ends.
    Finish,
    /// Nobody takes what it reads: it stops the channels and ends.
    Abandon,
    /// The process ends, and the driver may be half torn down: no further call.
    Halt,
}

/// What is known of the clock of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Clock {
    /// The driver was asked; `None`: it does not know.
    Asked(Option<DeviceClock>),
    /// The answer came too late: the directory of the device says host time already.
    Late,
    /// The directory was made, for a record of the host's, before the device was opened: it says host time.
    Early,
}

/// A call that is under way: of which device and channel, and since when.
type Doing = (Call, Option<(u32, u32)>, Moment);

#[derive(Debug, Default)]
struct State {
    orders: VecDeque<Order>,
    /// Devices that were opened at some time.
    opened: BTreeSet<u32>,
    want: Want,
    /// There is a thread, or was.
    started: bool,
    /// The driver was looked for, and asked about the devices that were open at first.
    answered: bool,
    found: bool,
    /// Kind of chip.
    platform: Option<u8>,
    clocks: BTreeMap<u32, Clock>,
    channels: BTreeMap<(u32, u32), ChannelLedger>,
    /// Devices whose list of channels the driver was asked for, and answered.
    looked_at: BTreeSet<u32>,
    notes: Vec<String>,
    /// Sentences for which there was no room.
    unsaid: usize,
    doing: Option<Doing>,
    /// How long directories have waited for answers, all of them together.
    waited: Duration,
    done: bool,
}

/// The state and those who wait for its change.
#[derive(Debug, Default)]
pub struct Shared {
    /// What was read.
    pub queue: Queue,
    state: Mutex<State>,
    /// Wakes the reader up.
    pub told: Bell,
    /// Wakes those up who watch it.
    said: Bell,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whole between any two statements that change it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- of those who watch ----

    /// Gives an order.
    pub fn give(&self, order: Order) {
        let mut state = self.lock();
        if let Order::Open(device) = order {
            state.opened.insert(device);
        }
        state.orders.push_back(order);
        drop(state);
        self.told.ring();
    }

    /// From here on that is wanted, unless more was wanted before.
    pub fn want(&self, want: Want) {
        let mut state = self.lock();
        state.want = state.want.max(want);
        drop(state);
        self.told.ring();
    }

    /// Waits until it has ended, at most for `limit`; returns whether it has.
    pub fn wait_done(&self, limit: Duration) -> bool {
        self.wait(limit, |state| state.done.then_some(())).is_some()
    }

    /// Waits until the driver was found and asked, or not found, at most for `limit`; returns whether that is so.
    pub fn wait_answered(&self, limit: Duration) -> bool {
        self.wait(limit, |state| (state.answered || state.done).then_some(()))
            .is_some()
    }

    /// Whether the driver was looked for to an end.
    pub fn is_answered(&self) -> bool {
        let state = self.lock();
        state.answered || state.done
    }

    /// Whether the driver had a channel at some time.
    pub fn has_channels(&self) -> bool {
        self.lock().channels.values().any(|channel| channel.offered)
    }

    /// There is a thread from here on.
    pub fn set_started(&self) {
        self.lock().started = true;
    }

    /// Ready for another thread, where one has found no driver; false where that is not so.
    pub fn begin_anew(&self) -> bool {
        let mut state = self.lock();
        let ended_in_vain = state.done && !state.found;
        if ended_in_vain {
            (state.done, state.answered, state.started) = (false, false, false);
        }
        ended_in_vain
    }

    /// Whether a driver was found.
    pub fn has_driver(&self) -> bool {
        self.lock().found
    }

    /// Kind of chip, where the driver has said so.
    pub fn platform(&self) -> Option<u8> {
        self.lock().platform
    }

    /// The clock of a device whose directory is about to be made. An answer that has not come within `limit`, which
    /// is that of all such waits together, is too late, and the device's channels are not read. Of a device that is not open nobody is asked.
    pub fn take_clock(&self, device: u32, limit: Duration) -> Option<DeviceClock> {
        let mut state = self.lock();
        if !state.opened.contains(&device) {
            state.clocks.entry(device).or_insert(Clock::Early);
            return None;
        }
        drop(state);
        let known = |state: &State| match state.clocks.get(&device) {
            Some(Clock::Asked(clock)) => Some(clock.clone()),
            Some(Clock::Late | Clock::Early) => Some(None),
            None => (state.done || !state.started).then_some(None),
        };
        // However many devices there are: the records of the host wait meanwhile.
        let left = limit.saturating_sub(self.lock().waited);
        let begin = Moment::now();
        let clock = self.wait(left, known);
        let mut state = self.lock();
        state.waited += begin.elapsed();
        if clock.is_none() {
            state.clocks.entry(device).or_insert(Clock::Late);
        }
        drop(state);
        clock.flatten()
    }

    /// The call that is under way, in words.
    pub fn hang(&self) -> Option<String> {
        let (call, of, since) = self.lock().doing?;
        if since.elapsed() < HANG {
            return None;
        }
        let of = of.map_or_else(String::new, |(device, channel)| match channel {
            0 => format!(" (device {device})"),
            _ => format!(" (device {device}, channel {channel})"),
        });
        Some(format!("the driver has not returned from {call}{of}"))
    }

    /// The account of each channel.
    pub fn accounts(&self) -> Vec<ChannelLedger> {
        self.lock().channels.values().cloned().collect()
    }

    /// What is worth saying, so far or at the end.
    pub fn notes(&self, ended: bool) -> Vec<String> {
        let state = self.lock();
        let mut notes = state.notes.clone();
        if state.unsaid > 0 {
            notes.push(format!(
                "aicpu: {} more such notes about devices are in the agent's log only",
                state.unsaid
            ));
        }
        for account in state.channels.values() {
            let looked_at = state.looked_at.contains(&account.device);
            notes.extend(remarks(account, ended && looked_at));
        }
        notes.extend(state.clocks.iter().filter_map(|(device, clock)| {
            let why = match clock {
                Clock::Late => "the driver was too slow to say what its time is",
                Clock::Early if state.opened.contains(device) => {
                    "the host reported records of it before it was opened, so that it has the host's time"
                }
                _ => return None,
            };
            Some(format!("device {device}: {why}; its channels were not read"))
        }));
        notes
    }

    fn wait<T>(&self, limit: Duration, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        let deadline = Moment::now() + limit;
        loop {
            let count = self.said.count();
            if let Some(found) = look(&self.lock()) {
                return Some(found);
            }
            let left = deadline.remaining();
            if left.is_zero() {
                return None;
            }
            self.said.wait(count, left);
        }
    }

    // ---- of the reader ----

    /// The oldest order.
    pub fn order(&self) -> Option<Order> {
        self.lock().orders.pop_front()
    }

    /// How long it is wanted.
    pub fn wanted(&self) -> Want {
        self.lock().want
    }

    /// Makes a call of the driver's, known to whoever waits for it, unless none may be made any more.
    pub fn call<R>(
        &self,
        call: Call,
        of: Option<(u32, u32)>,
        make: impl FnOnce() -> R,
    ) -> Option<R> {
        if !self.begin_call(call, of) {
            return None;
        }
        let result = make();
        self.lock().doing = None;
        Some(result)
    }

    /// Marks a call as under way; false if none may be made any more.
    fn begin_call(&self, call: Call, of: Option<(u32, u32)>) -> bool {
        let mut state = self.lock();
        if state.want == Want::Halt {
            return false;
        }
        state.doing = Some((call, of, Moment::now()));
        true
    }

    /// Notes what kind of chip there is.
    pub fn set_platform(&self, platform: u8) {
        self.lock().platform = Some(platform);
    }

    /// Notes the clock of a device; false if that comes too late.
    pub fn set_clock(&self, device: u32, clock: Option<DeviceClock>) -> bool {
        let mut state = self.lock();
        let entry = state.clocks.entry(device);
        let known = entry.or_insert(Clock::Asked(clock));
        let in_time = matches!(known, Clock::Asked(_));
        drop(state);
        self.said.ring();
        in_time
    }

    /// The driver has answered what channels a device has.
    pub fn set_looked_at(&self, device: u32) {
        self.lock().looked_at.insert(device);
    }

    /// The driver was looked for, and asked.
    pub fn set_answered(&self, found: bool) {
        let mut state = self.lock();
        (state.answered, state.found) = (true, found);
        drop(state);
        self.said.ring();
    }

    /// The reader has ended.
    pub fn set_done(&self) {
        self.lock().done = true;
        self.said.ring();
    }

    /// Adds a sentence, once.
    pub fn note(&self, note: String) {
        let mut state = self.lock();
        if state.notes.contains(&note) {
            return;
        }
        tracing::warn!("{note}");
        if state.notes.len() < NOTES_MAX {
            state.notes.push(note);
        } else {
            state.unsaid += 1;
        }
    }

    /// Changes the account of a channel.
    pub fn account(&self, device: u32, channel: u32, change: impl FnOnce(&mut ChannelLedger)) {
        let mut state = self.lock();
        let account = state
            .channels
            .entry((device, channel))
            .or_insert_with(|| ChannelLedger {
                device,
                channel,
                ..ChannelLedger::default()
            });
        change(account);
    }
}

/// What is worth saying of a channel.
fn remarks(account: &ChannelLedger, ended: bool) -> impl Iterator<Item = String> {
    let (device, channel) = (account.device, account.channel);
    let never = ended && !account.offered && channel == AICPU_CHANNEL;
    let notes = [
        never.then(|| {
            format!(
                "device {device}: the driver offered no AICPU channel ({channel}): no AICPU kernel has run, or \
                 the firmware is too old for it"
            )
        }),
        account.driver_lost.then(|| {
            format!(
                "device {device}: the driver lost aicpu records of channel {channel}, and does not say how many"
            )
        }),
        (account.skipped_bytes > 0).then(|| {
            format!(
                "device {device}: {} bytes of channel {channel} were no aicpu records that the parser can read, and were skipped",
                account.skipped_bytes
            )
        }),
    ];
    notes.into_iter().flatten()
}
