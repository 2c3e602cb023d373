//! How a capture begins: the directory, the rings' memory and the drain, the gate, and then the components.
//!
//! Until the gate is open nobody knows of it, and an error leaves nothing behind.

use super::drain::Drain;
use super::drain_handle::DrainThread;
use super::output::Output;
use super::state::Running;
use super::{COMPONENT_LIMIT, Captures, Handout, Origin, Request, StartError, Started, late_note};
use crate::clock;
use crate::clock::Moment;
use crate::components::{Components, Session};
use crate::device::Reading;
use crate::gate::{self, Word};
use crate::ledger::{Anchor, Ledger};
use crate::params::{Fill, SampleFill};
use crate::process;
use crate::profdir::{ProfDir, Setup};
use crate::pulled;
use crate::records::Trace;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Captures {
    pub(super) fn begin(
        &self,
        request: &Request,
        devices: &[u32],
    ) -> Result<(Running, Started), StartError> {
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
