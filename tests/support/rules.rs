//! What must hold of every finished PROF directory: the parser's rules and the ledger's law.

use super::prof::{AICPU, Families, Prof, TRACES, record_size};
use msprof_agent_core::profdir::check::Severity;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Levels that the parser reads; one record of another makes it drop the family.
const READABLE: [u16; 9] = [30000, 25000, 20500, 20000, 15000, 10000, AICPU, 5500, 5000];
const HOST_FILES: [&str; 5] = [
    "info.json",
    "sample.json",
    "start_info",
    "end_info",
    "host_start.log",
];
const DEVICE_FILES: [&str; 5] = [
    "info.json",
    "start_info",
    "end_info",
    "host_start.log",
    "dev_start.log",
];

/// Opens a directory and checks everything about it, by our rules and by the product's own check; it
/// must be complete.
#[track_caller]
pub fn open_complete(path: &Path) -> Prof {
    let prof = open_by_rules(path);
    assert_checked(path);
    prof
}

/// The same of a directory that was recovered after its process was killed.
#[track_caller]
pub fn open_recovered(path: &Path) -> Prof {
    let prof = open_in_state(path, "recovered");
    assert_checked(path);
    prof
}

/// Opens a directory and checks everything about it by the rules of this file.
#[track_caller]
pub fn open_by_rules(path: &Path) -> Prof {
    open_in_state(path, "complete")
}

#[track_caller]
fn open_in_state(path: &Path, state: &str) -> Prof {
    let mut wrong = Vec::new();
    check_controls(path, &mut wrong);
    let prof = Prof::open(path);
    check_data(&prof, &mut wrong);
    check_ledger(&prof, state, &mut wrong);
    assert!(wrong.is_empty(), "{}: {wrong:#?}", path.display());
    prof
}

/// The product's own check finds nothing. Names are the program's affair: see `assert_named`.
#[track_caller]
pub fn assert_checked(path: &Path) {
    let violations: Vec<String> = msprof_agent_core::profdir::check::check(path)
        .iter()
        .filter(|found| found.severity > Severity::Note && found.rule != "type-unnamed")
        .map(|found| found.to_string())
        .collect();
    assert!(violations.is_empty(), "{violations:#?}");
}

fn check_controls(path: &Path, wrong: &mut Vec<String>) {
    for name in HOST_FILES {
        check_control(&path.join("host").join(name), wrong);
    }
    for entry in fs::read_dir(path).expect("a directory") {
        let entry = entry.expect("entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_dir = entry.file_type().expect("a type").is_dir();
        if let Some(id) = name.strip_prefix("device_") {
            for file in DEVICE_FILES {
                check_control(&entry.path().join(format!("{file}.{id}")), wrong);
            }
            check_control(&entry.path().join("sample.json"), wrong);
        } else if is_dir && name != "host" && !name.starts_with("mindstudio_profiler_") {
            wrong.push(format!("the parser stops at the directory {name}"));
        } else if !is_dir && name != "msprof_agent.json" {
            wrong.push(format!("{name} was left behind"));
        }
    }
}

fn check_control(path: &Path, wrong: &mut Vec<String>) {
    let name = path.display();
    let Ok(text) = fs::read_to_string(path) else {
        wrong.push(format!("{name} is missing"));
        return;
    };
    let is_log = path.to_string_lossy().contains(".log");
    if !is_log {
        if text.trim_end().lines().count() != 1 {
            wrong.push(format!("{name} is not one line"));
        }
        if serde_json::from_str::<Value>(&text).is_err() {
            wrong.push(format!("{name} is no JSON"));
        }
    }
    check_done(path, text.len(), wrong);
}

fn check_done(path: &Path, len: usize, wrong: &mut Vec<String>) {
    let done = format!("{}.done", path.display());
    let said = fs::read_to_string(&done).unwrap_or_default();
    if said.lines().next() != Some(&format!("filesize:{len}")) {
        wrong.push(format!("{done} says {said:?} of {len} bytes"));
    }
}

fn check_data(prof: &Prof, wrong: &mut Vec<String>) {
    check_slices(&prof.path.join("host/data"), &prof.host, wrong);
    for (id, families) in &prof.devices {
        let data = prof.path.join(format!("device_{id}/data"));
        check_slices(&data, families, wrong);
    }
    for record in prof.api() {
        let is_timed = record.begin != 0 && record.end >= record.begin;
        if !is_timed && !record.is_partial() {
            wrong.push(format!("times of {record:?}"));
        }
        if wrong.len() > 20 {
            break;
        }
    }
    // Item names go through the parser's own quoting; type names may need it nowhere.
    for name in prof.types.values() {
        if name.contains([',', '"', '\n', '\r']) {
            wrong.push(format!("the type name {name:?} breaks a csv"));
        }
    }
    for name in prof.hashes.values() {
        if name.contains(['\n', '\r', '\0']) {
            wrong.push(format!("the item name {name:?} breaks a line"));
        }
    }
}

fn check_slices(dir: &Path, families: &Families, wrong: &mut Vec<String>) {
    for (family, slices) in families {
        for (number, bytes) in slices {
            let path = dir.join(format!("{family}.slice_{number}"));
            check_done(&path, bytes.len(), wrong);
            if bytes.is_empty() {
                wrong.push(format!("{} is empty", path.display()));
            }
            let Some(size) = record_size(family) else {
                continue;
            };
            if bytes.len() % size != 0 {
                wrong.push(format!("{} holds torn records", path.display()));
            }
            let unreadable = bytes.chunks_exact(size).filter(|record| {
                let level = u16::from_le_bytes([record[2], record[3]]);
                record[..2] != [0x5A, 0x5A] || !READABLE.contains(&level)
            });
            let count = unreadable.count();
            if count != 0 {
                wrong.push(format!("{}: {count} unreadable records", path.display()));
            }
        }
    }
}

/// `reported = written + lost + aged out`, per trace and per thread, and what is written is there.
fn check_ledger(prof: &Prof, state: &str, wrong: &mut Vec<String>) {
    let ledger = prof.ledger();
    let count = |of: &Value, column: &str, trace: &str| of[column][trace].as_u64().unwrap_or(0);
    if ledger["state"] != state {
        wrong.push(format!("the ledger's state is {}", ledger["state"]));
    }
    let in_files = prof.counts_by_trace();
    let no_threads = Vec::new();
    let threads = ledger["threads"].as_array().unwrap_or(&no_threads);
    for trace in TRACES {
        let [reported, written, lost, aged] =
            ["reported", "written", "lost", "aged_out"].map(|column| count(&ledger, column, trace));
        if reported != written + lost + aged {
            wrong.push(format!(
                "{trace}: {reported} reported, {written} written, {lost} lost, {aged} aged out"
            ));
        }
        if written != in_files[trace] {
            wrong.push(format!(
                "{trace}: {written} written, {} in the files",
                in_files[trace]
            ));
        }
        for thread in threads {
            let [reported, written, lost] =
                ["reported", "written", "lost"].map(|column| count(thread, column, trace));
            if reported != written + lost {
                wrong.push(format!("{trace} of thread {}: {thread}", thread["tid"]));
            }
        }
        let of_threads: u64 = threads.iter().map(|t| count(t, "reported", trace)).sum();
        if of_threads > reported {
            wrong.push(format!(
                "{trace}: threads reported {of_threads}, all together {reported}"
            ));
        }
    }
}

/// Every type that occurs has a name; without one the parser shows the number.
#[track_caller]
pub fn assert_named(prof: &Prof) {
    for ((level, name), _) in prof.calls() {
        assert!(
            name.parse::<u64>().is_err(),
            "level {level} type {name} has no name"
        );
    }
}

/// Records that the ledger counts as lost.
pub fn lost(ledger: &Value) -> u64 {
    let lost = ledger["lost"].as_object().expect("counts");
    lost.values().filter_map(Value::as_u64).sum()
}
