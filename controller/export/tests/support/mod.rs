//! A PROF directory made byte by byte, and what its export says.

#![allow(dead_code)]

pub mod directory;
pub mod full;

use directory::Session;
use msprof_export::source::Source;
use msprof_export::text::{Options, Report, export};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// CLOCK_MONOTONIC_RAW at the start, ns.
pub const START_NS: u64 = 1_000_000_000;
/// The wall clock at that instant, us.
pub const START_US: u64 = 1_700_000_000_000_000;
/// All captures made here.
const SESSION: Session = Session {
    wall_us: START_US,
    monotonic_ns: START_NS,
    seconds: 1,
};

/// Ticks at this many us after the start.
pub fn at(micros: u64) -> u64 {
    START_NS + micros * 1_000
}

/// A record being put together field by field at offsets from its start (spec 3 section 6).
pub struct Record(pub Vec<u8>);

impl Record {
    /// Nothing but zeros.
    pub fn zeros(size: usize) -> Record {
        Record(vec![0; size])
    }

    /// A compact or additional record.
    pub fn headed(size: usize, level: u16, kind: u32, thread: u32, time: u64) -> Record {
        Record::zeros(size)
            .u16(0, 0x5A5A)
            .u16(2, level)
            .u32(4, kind)
            .u32(8, thread)
            .u32(12, size as u32 - 24)
            .u64(16, time)
    }

    pub fn bytes(mut self, offset: usize, value: &[u8]) -> Record {
        self.0[offset..offset + value.len()].copy_from_slice(value);
        self
    }

    pub fn u16(self, offset: usize, value: u16) -> Record {
        self.bytes(offset, &value.to_le_bytes())
    }

    pub fn u32(self, offset: usize, value: u32) -> Record {
        self.bytes(offset, &value.to_le_bytes())
    }

    pub fn u64(self, offset: usize, value: u64) -> Record {
        self.bytes(offset, &value.to_le_bytes())
    }
}

/// A call of 40 bytes.
pub fn call(level: u16, kind: u32, thread: u32, begin: u64, end: u64, item: u64) -> Vec<u8> {
    Record::zeros(40)
        .u16(0, 0x5A5A)
        .u16(2, level)
        .u32(4, kind)
        .u32(8, thread)
        .u64(16, begin)
        .u64(24, end)
        .u64(32, item)
        .0
}

/// An event of 40 bytes.
pub fn event(level: u16, kind: u32, thread: u32, time: u64, request: u32, item: u64) -> Vec<u8> {
    let event = call(level, kind, thread, time, u64::MAX, item);
    Record(event).u32(12, request).0
}

/// A mark of 256 bytes: a stamp, or a numbered one.
pub fn mark(
    numbered: Option<(u64, u16)>,
    event: u32,
    begin: u64,
    end: u64,
    message: &str,
) -> Vec<u8> {
    let (id, segment) = numbered.unwrap_or_default();
    Record::headed(256, 20500, 0, 4321, end)
        .u16(24, numbered.is_some() as u16)
        .u16(26, segment)
        .u32(36, 4321)
        .u32(40, 4321)
        .u32(44, 7)
        .u32(48, event)
        .u64(64, begin)
        .u64(72, end)
        .u64(80, id)
        .u64(88, 113)
        .bytes(100, message.as_bytes())
        .0
}

/// A directory that is being made.
pub struct Prof {
    home: tempfile::TempDir,
}

impl Prof {
    /// One with the host's control files.
    pub fn new() -> Prof {
        let prof = Prof::empty();
        prof.controls(
            "host",
            r#"{"platform_version":"5","version":"1.0","devices":"64","DeviceInfo":[],"CPU":[{"Frequency":""}],"pid":"4321","pid_name":"python3"}"#,
        );
        prof
    }

    /// One with nothing in it.
    pub fn empty() -> Prof {
        Prof {
            home: tempfile::tempdir().expect("a directory"),
        }
    }

    /// Adds the control files of device 0, whose ticks are those of the host.
    pub fn device(self) -> Prof {
        self.controls(
            "device_0",
            r#"{"platform_version":"5","DeviceInfo":[{"hwts_frequency":"1000","aic_frequency":"1800"}],"CPU":[{"Frequency":""}],"devices":"0"}"#,
        );
        let log = format!("[Device0]\nclock_monotonic_raw: {START_NS}\ncntvct: 1\n");
        self.put("device_0/host_start.log.0", log.as_bytes());
        let log = format!("clock_monotonic_raw: {START_NS}\ncntvct: {START_NS}\n");
        self.put("device_0/dev_start.log.0", log.as_bytes());
        self
    }

    pub fn path(&self) -> &Path {
        self.home.path()
    }

    fn controls(&self, place: &str, info: &str) {
        directory::controls(self.path(), place, info, SESSION);
    }

    pub fn put(&self, name: &str, content: &[u8]) {
        directory::put(self.path(), name, content);
    }

    /// Writes a slice of the host.
    pub fn host(&self, family: &str, records: &[Vec<u8>]) {
        self.put(&format!("host/data/{family}.slice_0"), &records.concat());
    }

    pub fn open(&self) -> Source {
        Source::open(self.path()).expect("a directory")
    }

    /// Exports it.
    pub fn export(&self, options: &Options) -> Report {
        export(&self.open(), options, &mut |_| {})
    }

    /// The text of the only exported file of a kind and ending.
    pub fn exported(&self, kind: &str, ending: &str) -> String {
        let dir = self.output();
        let entries = std::fs::read_dir(&dir).expect("exports");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .filter(|name| {
                let rest = name
                    .strip_prefix(kind)
                    .and_then(|rest| rest.strip_prefix('_'));
                let stamp = rest.and_then(|rest| rest.strip_suffix(ending));
                stamp.is_some_and(|stamp| {
                    stamp.len() == 14 && stamp.bytes().all(|byte| byte.is_ascii_digit())
                })
            })
            .collect();
        let name = names.pop().unwrap_or_else(|| panic!("no {kind}{ending}"));
        assert!(names.is_empty(), "one {kind}{ending}");
        std::fs::read_to_string(dir.join(name)).expect("text")
    }

    pub fn output(&self) -> PathBuf {
        self.path().join("mindstudio_profiler_output")
    }
}

/// Events of the timeline that are calls or marks.
pub fn events(prof: &Prof, kind: &str) -> Vec<Value> {
    let events: Vec<Value> = serde_json::from_str(&prof.exported(kind, ".json")).expect("JSON");
    let is_event = |event: &Value| event["ph"] == "X";
    events.into_iter().filter(is_event).collect()
}

/// The problem that has a text in it.
pub fn problem<'a>(report: &'a Report, part: &str) -> &'a str {
    let found = report
        .problems
        .iter()
        .find(|problem| problem.contains(part));
    found.unwrap_or_else(|| panic!("{part:?} is not in {:#?}", report.problems))
}

/// Everything below a directory but its exports, with what is in it.
pub fn tree(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("read") {
        let path = entry.expect("entry").path();
        let name = path.display().to_string();
        if path.is_symlink() || path.is_file() {
            found.push((name, std::fs::read(&path).unwrap_or_default()));
        } else if !name.ends_with("mindstudio_profiler_output") {
            found.extend(tree(&path));
        }
    }
    found.sort();
    found
}
