//! One capture at a time: from start over the drain thread to the stop and its ledger.
//!
//! [`state`] tells which steps there are.
//!
//! No lock is held while components are commanded or files are written.

mod account;
mod alarm;
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
#[cfg(test)]
mod tests;

pub use alarm::Alarm;
pub use handout::Handout;
pub use models::Models;
pub use request::{
    Current, Failure, Origin, Request, StartError, Started, Status, StopError, StopMode, Stopped,
};

use crate::clock;
use crate::clock::Moment;
use crate::components::{Components, Session};
use crate::device::{Devices, Reading};
use crate::dictionary::Dictionary;
use crate::diverted::Diverted;
use crate::gate::{self, Word};
use crate::lanes::Lanes;
use crate::ledger::{Anchor, Ledger};
use crate::long::LongQueue;
use crate::marks::Marks;
use crate::params::{Fill, SampleFill};
use crate::process;
use crate::profdir::{ProfDir, Setup};
use crate::pulled;
use crate::records::Trace;
use crate::waiting;
use crossbeam_channel::RecvTimeoutError;
use drain::Drain;
use drain_handle::DrainThread;
use output::Output;
use parking_lot::Mutex;
use ring_memory::RingMemory;
use state::{Machine, Running, State, Turn};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
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

    fn begin(&self, request: &Request, devices: &[u32]) -> Result<(Running, Started), StartError> {
        let thread = DrainThread::spawn(self.memory.clone())?;
        let index = self.count.load(Ordering::Relaxed) + 1;
        let number = u64::from(self.generation) << 32 | index;
        let selection = request.params.selection();
        // Before the first record: the parser drops a device's records from before the start.
        clock::reanchor();
        let start = clock::anchor();
        let reading = if selection.contains(Trace::Aicpu) {
            Some(self.parts.devices.begin(devices))
        } else {
            self.parts.devices.ask_platform(devices);
            None
        };
        let dir = ProfDir::create(self.setup(request, index, start))?;
        let path = dir.path().to_owned();
        let announced = request.params.announcement();
        let wants_handout =
            matches!(request.origin, Origin::Client(_)) && announced.is_some_and(|a| a.rescue);
        let directory = wants_handout.then(|| Handout::directory(dir.as_fd()));
        self.parts.unreadable.store(0, Ordering::Relaxed);
        self.parts.diverted.begin();
        let mut notes = dir.remarks().to_vec();
        let ledger = Ledger {
            agent_version: crate::VERSION.into(),
            pid: process::current_pid(),
            capture: index,
            start,
            notes: notes.clone(),
            ..Ledger::default()
        };
        // True at the start only, so not for the ledger.
        notes.extend(reading.iter().flat_map(Reading::notes));
        notes.extend(missing_note(&self.parts.components, devices));
        notes.extend(self.parts.diverted.note_at_start());
        let params = request.params.clone();
        let dictionary = self.parts.dictionary.clone();
        let output = Output::new(number, dir, dictionary, params, start);
        let word = Word::capturing(number, selection.bits());
        let mut drain = Drain::new(word, output, ledger, self.parts.clone());
        if let Some(reading) = reading {
            drain.add_channels(reading);
        }
        let begun = thread.wait().and_then(|()| {
            let note = self.parts.lanes.memory_note();
            notes.extend(note.clone());
            drain.prepare(devices, note)
        });
        let drain = begun.and_then(|()| thread.run(drain));
        let drain = drain.inspect_err(|_| {
            // Made a moment ago, and nobody knows of it.
            let _ = std::fs::remove_dir_all(&path);
        })?;
        let arena = self.parts.lanes.arena();
        let handout = directory.and_then(|directory| {
            let handout = directory.and_then(|dir| Handout::new(number, arena, dir));
            let said = |error: &std::io::Error| notes.extend(self.no_rescue_note(error));
            handout.inspect_err(said).ok().map(Arc::new)
        });
        self.machine.watch(number, &drain);
        self.count.store(index, Ordering::Relaxed);
        self.untold.store(0, Ordering::Relaxed);
        pulled::discard();
        pulled::begin(word);
        gate::open(word);
        if self.parts.disabled.lock().is_some() {
            // A panic elsewhere has turned the agent off in the meantime.
            gate::close(number);
        }
        let started_ns = clock::now();
        tracing::info!("capture {index} runs: {}", path.display());
        notes.extend(self.start_components(request, number, &path, devices));
        let running = Running {
            number,
            path: path.clone(),
            origin: request.origin,
            start,
            ends_at: request.time_limit.map(|limit| Moment::now() + limit),
            drain,
        };
        let started = Started {
            number,
            path,
            started_ns,
            notes,
            handout,
        };
        Ok((running, started))
    }

    /// Said once in the life of a process.
    fn no_rescue_note(&self, error: &std::io::Error) -> Option<String> {
        let said = self.told_no_rescue.swap(true, Ordering::Relaxed);
        (!said).then(|| {
            format!(
                "if this process is killed, its last milliseconds are lost: its buffers cannot be shared ({error})"
            )
        })
    }

    fn setup(&self, request: &Request, index: u64, start: Anchor) -> Setup {
        let params = &request.params;
        let parent = match params.result_dir() {
            Some(dir) => PathBuf::from(dir),
            None => request.default_dir.clone(),
        };
        let pid = process::current_pid();
        let sample_host = params.sample_json(&SampleFill {
            devices: "64",
            host: true,
            result_dir: &parent.to_string_lossy(),
            pid,
        });
        Setup {
            storage_limit: params.storage_limit_mb().map(|mb| u64::from(mb) << 20),
            parent,
            allow_shared: request.allow_shared_dir,
            index,
            pid,
            start,
            sample_host,
            platform_version: self.parts.devices.platform().to_string(),
            ..Setup::default()
        }
    }

    fn start_components(
        &self,
        request: &Request,
        number: u64,
        path: &Path,
        devices: &[u32],
    ) -> Option<String> {
        let list: Vec<String> = devices.iter().map(u32::to_string).collect();
        let list = list.join(",");
        let text = request.params.component_json(&Fill {
            result_dir: &path.to_string_lossy(),
            devices: &list,
            host_sys_pid: process::current_pid(),
            job_id: &list,
        });
        let session = Session {
            number,
            switches: request.params.switches(),
            params: text,
        };
        let late = self
            .parts
            .components
            .start(session)
            .run_within(COMPONENT_LIMIT);
        late_note(&late.modules, "start")
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

    /// Who started the running capture, if one runs, and its number.
    pub fn running(&self) -> Option<(Origin, u64)> {
        self.machine.with(|state| match state {
            State::Running(running) => Some((running.origin, running.number)),
            _ => None,
        })
    }

    /// What is to be told of the running capture.
    pub fn current(&self) -> Option<Current> {
        self.machine.with(|state| match state {
            State::Running(running) => Some(Current {
                number: running.number,
                path: running.path.clone(),
                origin: running.origin,
                start: running.start,
                ends_at: running.ends_at,
                failed: running.drain.failure(),
            }),
            _ => None,
        })
    }

    /// Directory of the last capture and why it failed, if it did and none has begun since.
    pub fn last_failure(&self) -> Option<(PathBuf, Failure)> {
        self.settle();
        let last = self.last.lock();
        let begun = self.count.load(Ordering::Relaxed);
        let last = last.as_ref().filter(|last| last.ledger.capture == begun)?;
        Some((last.path.clone(), last.error.clone()?))
    }

    /// Directory of the running capture.
    pub fn path(&self) -> Option<PathBuf> {
        self.machine.with(|state| match state {
            State::Running(running) => Some(running.path.clone()),
            _ => None,
        })
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

    /// Whether a capture runs.
    pub fn is_capturing(&self) -> bool {
        self.running().is_some()
    }

    /// Why the agent has turned itself off, if it has.
    pub fn disabled(&self) -> Option<String> {
        self.parts.disabled.lock().clone()
    }

    /// What is going on; never waits for the disk.
    pub fn status(&self) -> Status {
        self.settle();
        let mut status = Status {
            captures: self.count.load(Ordering::Relaxed),
            disabled: self.disabled(),
            ..Status::default()
        };
        self.machine.with(|state| match state {
            State::Running(running) => {
                status.capturing = true;
                status.path = Some(running.path.clone());
                status.ledger = Some(running.drain.snapshot());
            }
            State::Writing { path, .. } => {
                status.writing = true;
                status.path = Some(path.clone());
            }
            State::Stopping => status.writing = true,
            _ => {}
        });
        if status.path.is_none()
            && let Some(last) = &*self.last.lock()
        {
            status.path = Some(last.path.clone());
            status.ledger = Some(last.ledger.clone());
        }
        status
    }
}

/// What is still missing at the start for components to report.
fn missing_note(components: &Components, devices: &[u32]) -> Option<String> {
    if components.is_empty() {
        return Some(
            "no component has registered with this agent yet; if the program uses CANN already, its \
             components report to another libprofapi.so (see Ways in of the README)"
                .to_owned(),
        );
    }
    devices
        .is_empty()
        .then(|| "no device open yet: components are told to report when one is".to_owned())
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

/// Where PROF_XXX goes when nobody says: `$ASCEND_WORK_PATH/profiling_data`, else the directory of the
/// program (spec 1 section 1.4).
pub fn default_dir(work_path: Option<&Path>) -> PathBuf {
    if let Some(work_path) = work_path {
        return work_path.join("profiling_data");
    }
    let program = std::fs::read_link("/proc/self/exe").ok();
    program
        .as_deref()
        .and_then(Path::parent)
        .map_or_else(|| PathBuf::from("."), Path::to_owned)
}
