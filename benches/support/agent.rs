//! The agent as a component reaches it, captures in a temporary directory, and their ledgers.

use super::cores;
use super::doors::{Report, SizedReport, Time};
use super::library::{self, Library};
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// MsprofAgentStatus of include/msprof_agent.h.
#[repr(C)]
#[derive(Default)]
struct Status {
    size: u32,
    state: u32,
    pid: u32,
    devices: u32,
    captures: u64,
    written: u64,
    lost: u64,
}

/// The loaded library.
pub struct Agent {
    /// MsprofReportApi.
    pub api: Report,
    /// MsprofReportCompactInfo.
    pub compact: SizedReport,
    /// MsprofReportAdditionalInfo.
    pub additional: SizedReport,
    /// MsprofSysCycleTime.
    pub time: Time,
    start: unsafe extern "C" fn(*const c_char, *const c_char) -> i32,
    stop: unsafe extern "C" fn(*mut c_char, usize) -> i32,
    status: unsafe extern "C" fn(*mut Status) -> i32,
    last_error: unsafe extern "C" fn(*mut c_char, usize) -> usize,
    path: PathBuf,
    output: PathBuf,
    /// How long each start took to return, and the CPU time of its thread, ms.
    pub starts_ms: Mutex<Vec<(f64, f64)>>,
}

/// The account of a capture that has ended.
pub struct Account {
    /// Records that were reported, by the ledger.
    pub reported: u64,
    /// Records that are in the directory.
    pub written: u64,
    /// Records that were dropped.
    pub lost: u64,
    /// How long the stop took to return, ms.
    pub stop_ms: f64,
}

impl Account {
    /// "agent lost 0 of 1240000", and what does not add up if anything does not.
    pub fn note(&self, calls: u64) -> String {
        let mut text = format!("agent lost {} of {calls}", self.lost);
        if self.reported != calls || self.written + self.lost != self.reported {
            text += &format!(
                "; THE LEDGER IS WRONG: {calls} calls, {} reported, {} written",
                self.reported, self.written
            );
        }
        text
    }
}

impl Agent {
    /// Loads it; captures go below `output`.
    pub fn open(output: &Path) -> Agent {
        let library = Library::open(&library::agent_path());
        // SAFETY: the types are those of include/msprof_agent.h, with pointers to words for records.
        unsafe {
            Agent {
                api: library.function("MsprofReportApi"),
                compact: library.function("MsprofReportCompactInfo"),
                additional: library.function("MsprofReportAdditionalInfo"),
                time: library.function("MsprofSysCycleTime"),
                start: library.function("msprof_agent_start"),
                stop: library.function("msprof_agent_stop"),
                status: library.function("msprof_agent_status"),
                last_error: library.function("msprof_agent_last_error"),
                path: library.path().to_owned(),
                output: output.to_owned(),
                starts_ms: Mutex::default(),
            }
        }
    }

    /// Where it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where captures go.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// Begins a capture of everything.
    pub fn capture(&self) -> Capture<'_> {
        self.capture_below(&self.output)
    }

    /// The same below another directory.
    pub fn capture_below(&self, output: &Path) -> Capture<'_> {
        let output = CString::new(output.as_os_str().as_bytes()).expect("no NUL");
        let begin = Instant::now();
        let mut result = 0;
        let cpu_ns = cores::cpu_of(|| {
            // SAFETY: both are C strings.
            result = unsafe { (self.start)(c"--runtime-api=on".as_ptr(), output.as_ptr()) };
        });
        let ms = (begin.elapsed().as_secs_f64() * 1e3, cpu_ns as f64 / 1e6);
        assert_eq!(result, 0, "start: {}", self.error());
        self.starts_ms.lock().expect("no panic holds it").push(ms);
        Capture {
            agent: self,
            calls: 0,
        }
    }

    fn error(&self) -> String {
        let mut text = vec![0u8; 1000];
        // SAFETY: writes at most the length of the buffer, with a NUL.
        unsafe { (self.last_error)(text.as_mut_ptr().cast(), text.len()) };
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }

    /// Records that the running capture has written or lost, as of the last tenth of a second.
    fn done(&self) -> u64 {
        let mut status = Status {
            size: size_of::<Status>() as u32,
            ..Status::default()
        };
        // SAFETY: `size` is what the structure has.
        assert_eq!(unsafe { (self.status)(&mut status) }, 0);
        status.written + status.lost
    }
}

/// A running capture.
pub struct Capture<'a> {
    agent: &'a Agent,
    /// Reports that were made while it ran.
    pub calls: u64,
}

impl Capture<'_> {
    /// Counts `calls` reports and waits until the drain has dealt with all so far.
    pub fn settle(&mut self, calls: u64) {
        self.calls += calls;
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.agent.done() < self.calls {
            assert!(
                Instant::now() < deadline,
                "{} records reported, {} written or lost",
                self.calls,
                self.agent.done()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it, reads its ledger and removes its directory.
    pub fn stop(self) -> Account {
        let mut path = vec![0u8; 4096];
        let begin = Instant::now();
        // SAFETY: writes at most the length of the buffer, with a NUL.
        let result = unsafe { (self.agent.stop)(path.as_mut_ptr().cast(), path.len()) };
        let stop_ms = begin.elapsed().as_secs_f64() * 1e3;
        assert_eq!(result, 0, "stop: {}", self.agent.error());
        let path = CStr::from_bytes_until_nul(&path).expect("a C string");
        let dir = PathBuf::from(path.to_str().expect("UTF-8"));
        let text = std::fs::read_to_string(dir.join("msprof_agent.json")).expect("a ledger");
        let ledger: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let total = |name: &str| {
            let counts = ledger[name].as_object().expect("counts by trace");
            counts.values().filter_map(|count| count.as_u64()).sum()
        };
        std::fs::remove_dir_all(&dir).expect("the directory is ours");
        Account {
            reported: total("reported"),
            written: total("written"),
            lost: total("lost"),
            stop_ms,
        }
    }
}
