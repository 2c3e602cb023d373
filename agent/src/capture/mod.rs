//! One capture at a time: from start over the drain thread to the stop and its ledger.
//!
//! [`state`] tells which steps there are.
//!
//! No lock is held while components are commanded or files are written.

mod account;
mod alarm;
mod beginning;
mod drain;
mod drain_handle;
mod gathered;
mod handout;
mod models;
mod orders;
mod output;
mod pacing;
mod pairs;
mod request;
mod ring_memory;
pub(crate) mod router;
mod runs;
mod state;
mod status;
#[cfg(test)]
mod tests;

pub use alarm::Alarm;
pub use beginning::default_dir;
pub use handout::Handout;
pub use models::Models;
pub use request::{
    Current, Failure, Origin, Request, StartError, Started, Status, StopError, StopMode, Stopped,
};

use crate::clock;
use crate::clock::Moment;
use crate::components::Components;
use crate::device::Devices;
use crate::dictionary::Dictionary;
use crate::diverted::Diverted;
use crate::gate;
use crate::lanes::Lanes;
use crate::long::LongQueue;
use crate::marks::Marks;
use crate::process;
use crate::waiting;
use crossbeam_channel::RecvTimeoutError;
use parking_lot::Mutex;
use ring_memory::RingMemory;
use state::{Machine, Running, State, Turn};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What all components together may take at a start or stop.
pub const COMPONENT_LIMIT: Duration = Duration::from_secs(5);
/// A stop is answered within this, whatever the disk does: the stock client gives up after 60 s.
pub const STOP_LIMIT: Duration = Duration::from_secs(50);
/// How often a stop that takes long says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// What a capture works with; shared by the threads that do so.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Rings of all threads.
    pub lanes: Arc<Lanes>,
    /// Names.
    pub dictionary: Arc<Dictionary>,
    /// Handlers and devices.
    pub components: Arc<Components>,
    /// Rare, long reports.
    pub long: Arc<LongQueue>,
    /// Open ranges, which end with a capture.
    pub marks: Arc<Marks>,
    /// The driver of the devices.
    pub devices: Arc<Devices>,
    /// Reports that another tool gets instead.
    pub diverted: Arc<Diverted>,
    /// Reports that the parser could not read, of the running capture.
    pub unreadable: Arc<AtomicU64>,
    /// Devices of GE model indices, for the ledger.
    pub model_devices: Arc<Mutex<BTreeMap<u32, u32>>>,
    /// What models were reported, for captures in which they are not.
    pub models: Arc<Mutex<Models>>,
    /// Why the agent has turned itself off, if it has.
    pub disabled: Arc<Mutex<Option<String>>>,
    /// For who looks after captures.
    pub alarm: Arc<Alarm>,
}

/// The captures of a process, one at a time.
#[derive(Debug)]
pub struct Captures {
    parts: Parts,
    memory: Arc<RingMemory>,
    /// High half of capture numbers: no number is used twice among a process and its forks.
    generation: u32,
    machine: Machine,
    count: AtomicU64,
    last: Mutex<Option<Stopped>>,
    /// Which capture, as the last one's account counts them, ended without its client; 0 for none. Its failure is told
    /// to the next one who stops.
    untold: AtomicU64,
    /// It was said that no controller can rescue what is in memory.
    told_no_rescue: AtomicBool,
}

impl Captures {
    /// No capture yet.
    pub fn new(parts: Parts, generation: u32) -> Captures {
        Captures {
            memory: Arc::new(RingMemory::new(parts.lanes.clone())),
            parts,
            generation,
            machine: Machine::default(),
            count: AtomicU64::new(0),
            last: Mutex::default(),
            untold: AtomicU64::new(0),
            told_no_rescue: AtomicBool::new(false),
        }
    }

    /// Starts a capture.
    pub fn start(&self, request: &Request) -> Result<Started, StartError> {
        self.settle();
        if let Some(reason) = self.disabled() {
            return Err(StartError::Disabled(reason));
        }
        if process::reserve::is_low() {
            return Err(StartError::NoMemory);
        }
        let devices = self.parts.components.devices();
        if request.need_device && devices.is_empty() {
            return Err(StartError::NoDevice);
        }
        let turn = self.machine.begin()?;
        match self.begin(request, &devices) {
            Ok((running, started)) => {
                turn.end(State::Running(Box::new(running)));
                // A device that was opened in between found no running capture.
                for device in self.parts.components.devices() {
                    self.device_opened(device);
                }
                Ok(started)
            }
            Err(error) => {
                turn.end(State::Idle);
                Err(error)
            }
        }
    }

    /// Stops the running capture and waits until it is written. `progress` is called now and then with
    /// the bytes that are still to be written.
    pub fn stop(
        &self,
        mode: StopMode,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Stopped, StopError> {
        self.settle();
        let deadline = Moment::now() + mode.limit;
        let (turn, running) = self.machine.take(mode.only, deadline)?;
        if mode.only.is_some() && matches!(running.origin, Origin::Detached(_)) {
            let index = running.number & u64::from(u32::MAX);
            self.untold.store(index, Ordering::Relaxed);
        }
        let note = if mode.tell_components {
            let limit = COMPONENT_LIMIT.min(mode.limit);
            let late = self.parts.components.stop().run_within(limit);
            late_note(&late.modules, "stop")
        } else {
            self.parts.components.abandon();
            None
        };
        gate::close(running.number);
        let Running { path, drain, .. } = *running;
        let notes: Vec<String> = mode
            .note
            .map(str::to_owned)
            .into_iter()
            .chain(note)
            .collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        drain.finish(clock::anchor(), note, mode.tell_components);
        loop {
            let until = deadline.min(Moment::now() + PROGRESS_INTERVAL);
            match waiting::receive_by(&drain.outcome, until) {
                Ok(stopped) => {
                    self.conclude(turn, stopped.clone());
                    return Ok(stopped);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    turn.end(State::Broken);
                    return Err(StopError::Broken);
                }
                Err(_) if deadline.has_come() => break,
                Err(_) => progress(drain.remaining()),
            }
        }
        let remaining = drain.remaining();
        turn.end(State::Writing {
            path: path.clone(),
            outcome: drain.outcome,
        });
        Err(StopError::StillWriting { path, remaining })
    }

    /// The last capture, if it failed and ended without a client that would know: told once. For who finds nothing to
    /// stop.
    pub fn take_untold_failure(&self) -> Option<Stopped> {
        self.settle();
        let last = self.last.lock();
        let failed = last.as_ref().filter(|last| last.error.is_some())?;
        let index = failed.ledger.capture;
        let taken = self
            .untold
            .compare_exchange(index, 0, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok().then(|| failed.clone())
    }

    /// Has `wake` called, by a capture's own thread, whenever one fails; see [`Captures::current`] for why.
    pub fn on_failure(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.parts.alarm.set(wake);
    }

    /// Everything of a capture is written.
    fn conclude(&self, turn: Turn<'_>, stopped: Stopped) {
        let ledger = &stopped.ledger;
        tracing::info!(
            "capture {} ended: {} records written, {} lost, {} aged out: {}",
            ledger.capture,
            ledger.written.total(),
            ledger.lost.total(),
            ledger.aged_out.total(),
            stopped.path.display()
        );
        *self.last.lock() = Some(stopped);
        turn.end(State::Idle);
    }

    /// Takes note of a capture that was written behind an answered stop.
    fn settle(&self) {
        if let Some((turn, stopped)) = self.machine.settle() {
            self.conclude(turn, stopped);
        }
    }

    /// Waits until a stopped capture is written, or `limit` has passed.
    pub fn wait_written(&self, limit: Duration) {
        waiting::until(Moment::now() + limit, || {
            self.settle();
            let writing = |state: &State| matches!(state, State::Writing { .. });
            (!self.machine.with(writing)).then_some(())
        });
    }

    /// The process exits: ends whatever is captured within `limit`, without the components, and without the
    /// thread that may be in the middle of a start or stop.
    pub fn exit(&self, limit: Duration) {
        let deadline = Moment::now() + limit;
        self.refuse_starts(true);
        // Whatever reads there: the driver's library may be half torn down.
        self.parts.devices.halt();
        let between =
            |state: &State| matches!(state, State::Starting | State::Stopping | State::Broken);
        if self.machine.with(between) {
            self.machine.finish_now(clock::anchor(), deadline);
            return;
        }
        let mode = StopMode {
            tell_components: false,
            limit,
            ..StopMode::NORMAL
        };
        let _ = self.stop(mode, &mut |_| {});
        self.wait_written(deadline.remaining());
    }

    /// While the application finalizes, no capture begins.
    pub fn refuse_starts(&self, refusing: bool) {
        self.machine.refuse_starts(refusing);
    }

    /// A device was opened while a capture may run: it gets a directory.
    pub fn device_opened(&self, device: u32) {
        self.machine.with(|state| {
            if let State::Running(running) = state {
                running.drain.add_device(device);
            }
        });
    }

    /// A device is being closed while a capture may run: what it still has is read.
    pub fn device_closing(&self, device: u32) {
        self.machine.with(|state| {
            if let State::Running(running) = state {
                running.drain.close_device(device);
            }
        });
    }
}

/// A sentence about modules that did not answer in time.
fn late_note(modules: &[String], command: &str) -> Option<String> {
    if modules.is_empty() {
        return None;
    }
    let note = format!(
        "{} did not return from {command} within {} s and is told nothing more until it does",
        modules.join(", "),
        COMPONENT_LIMIT.as_secs()
    );
    tracing::warn!("{note}");
    Some(note)
}
