//! One capture at a time: from start over the drain thread to the stop and its ledger.
//!
//! [`state`] tells which steps there are.
//!
//! No lock is held while components are commanded or files are written.

mod account;
mod drain;
mod drain_handle;
mod gathered;
mod output;
mod request;
mod router;
mod state;
#[cfg(test)]
mod tests;

pub use request::{Origin, Request, StartError, Started, Status, StopError, StopMode, Stopped};

use crate::clock;
use crate::components::{Components, Session};
use crate::dictionary::Dictionary;
use crate::gate::{self, Word};
use crate::lanes::Lanes;
use crate::ledger::{Anchor, Ledger};
use crate::long::LongQueue;
use crate::params::{Fill, SampleFill, Selection};
use crate::process;
use crate::profdir::{ProfDir, Setup};
use crate::records::Trace;
use drain::Drain;
use output::Output;
use parking_lot::Mutex;
use state::{Machine, Running, State, Turn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
    /// Reports that the parser could not read, of the running capture.
    pub unreadable: Arc<AtomicU64>,
    /// Devices of GE model indices, for the ledger.
    pub model_devices: Arc<Mutex<BTreeMap<u32, u32>>>,
    /// Why the agent has turned itself off, if it has.
    pub disabled: Arc<Mutex<Option<String>>>,
}

/// The captures of a process, one at a time.
#[derive(Debug)]
pub struct Captures {
    parts: Parts,
    /// High half of capture numbers: no number is used twice among a process and its forks.
    generation: u32,
    machine: Machine,
    count: AtomicU64,
    last: Mutex<Option<Stopped>>,
}

impl Captures {
    /// No capture yet.
    pub fn new(parts: Parts, generation: u32) -> Captures {
        Captures {
            parts,
            generation,
            machine: Machine::default(),
            count: AtomicU64::new(0),
            last: Mutex::default(),
        }
    }

    /// Starts a capture.
    pub fn start(&self, request: &Request) -> Result<Started, StartError> {
        self.settle();
        if let Some(reason) = self.parts.disabled.lock().clone() {
            return Err(StartError::Disabled(reason));
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
        self.parts.lanes.prepare().map_err(StartError::Memory)?;
        let index = self.count.load(Ordering::Relaxed) + 1;
        let number = u64::from(self.generation) << 32 | index;
        clock::reanchor();
        let start = clock::anchor();
        let dir = ProfDir::create(self.setup(request, index, start))?;
        let path = dir.path().to_owned();
        let selection = request.params.selection();
        self.parts.unreadable.store(0, Ordering::Relaxed);
        let mut notes = first_notes(selection);
        let ledger = Ledger {
            agent_version: crate::VERSION.into(),
            pid: process::current_pid(),
            capture: index,
            start,
            notes: notes.clone(),
            ..Ledger::default()
        };
        // True at the start only, so not for the ledger.
        notes.extend(missing_note(&self.parts.components, devices));
        let params = request.params.clone();
        let dictionary = self.parts.dictionary.clone();
        let output = Output::new(number, dir, dictionary, params, start);
        let drain = Drain::new(number, output, ledger, self.parts.clone());
        let drain = drain.spawn(devices).inspect_err(|_| {
            // Made a moment ago, and nobody knows of it.
            let _ = std::fs::remove_dir_all(&path);
        })?;
        self.machine.watch(number, &drain);
        self.count.store(index, Ordering::Relaxed);
        gate::set(Word::capturing(number, selection.bits()));
        let started_ns = clock::now();
        notes.extend(self.start_components(request, number, &path, devices));
        let running = Running {
            number,
            path: path.clone(),
            origin: request.origin,
            drain,
        };
        let started = Started {
            number,
            path,
            started_ns,
            notes,
        };
        Ok((running, started))
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
            index,
            pid,
            start,
            sample_host,
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
        let deadline = Instant::now() + mode.limit;
        let (turn, running) = self.machine.take(mode.only, deadline)?;
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
        drain.finish(clock::anchor(), note);
        loop {
            let until = deadline.min(Instant::now() + PROGRESS_INTERVAL);
            match drain.outcome.recv_deadline(until) {
                Ok(stopped) => {
                    self.conclude(turn, stopped.clone());
                    return Ok(stopped);
                }
                Err(_) if drain.is_gone() => {
                    turn.end(State::Broken);
                    return Err(StopError::Broken);
                }
                Err(_) if Instant::now() >= deadline => break,
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

    /// Everything of a capture is written.
    fn conclude(&self, turn: Turn<'_>, stopped: Stopped) {
        *self.last.lock() = Some(stopped);
        // SAFETY: the gate is closed, the drain, which had all consumers, has ended, and none begins
        // before the turn ends.
        unsafe { self.parts.lanes.discard() };
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
        const STEP: Duration = Duration::from_millis(5);
        let deadline = Instant::now() + limit;
        loop {
            self.settle();
            let writing = self
                .machine
                .with(|state| matches!(state, State::Writing { .. }));
            if !writing || Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(STEP);
        }
    }

    /// The process exits: ends whatever is captured within `limit`, without the components, and without the
    /// thread that may be in the middle of a start or stop.
    pub fn exit(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        self.refuse_starts(true);
        let between =
            |state: &State| matches!(state, State::Starting | State::Stopping | State::Broken);
        if self.machine.with(between) {
            self.machine.finish_now(clock::anchor(), deadline);
            return;
        }
        let mode = StopMode {
            tell_components: false,
            limit,
            only: None,
        };
        let _ = self.stop(mode, &mut |_| {});
        self.wait_written(deadline.saturating_duration_since(Instant::now()));
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

    /// What is going on; never waits for the disk.
    pub fn status(&self) -> Status {
        self.settle();
        let mut status = Status {
            captures: self.count.load(Ordering::Relaxed),
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

/// What is worth saying of a capture although it succeeds.
fn first_notes(selection: Selection) -> Vec<String> {
    let mut notes = Vec::new();
    if selection.contains(Trace::Aicpu) {
        notes.push(
            "aicpu: this version does not read device channels; aicpu records that the host \
             reports are taken"
                .to_owned(),
        );
    }
    notes
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
