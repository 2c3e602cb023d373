//! Tests of the directory as a whole: written, broken, read again, and judged by the stock parser.

mod faults;
mod foreign;
mod golden;
mod hostile;
mod killed;
mod limits;
mod obstacles;
mod parents;
mod reading;
mod recovering;
mod scenario;
mod stock_parser;
mod writing;

use super::*;
use crate::ledger::Anchor;
use crate::records::{ApiRecord, MAGIC, TraceCounts, level};
use std::path::{Path, PathBuf};
use zerocopy::IntoBytes;

/// CLOCK_MONOTONIC_RAW at the start of every capture made here, ns.
const START_NS: u64 = 1_000_000_000_000;
/// CLOCK_REALTIME at the same instant, ns.
const START_WALL_NS: u64 = 1_700_000_000_000_000_000;

/// The clocks `after` ns after the start.
fn anchor(after: u64) -> Anchor {
    Anchor {
        ticks: START_NS + after,
        monotonic_raw_ns: START_NS + after,
        realtime_ns: START_WALL_NS + after,
        cpu_counter: 7,
    }
}

fn setup(parent: &Path) -> Setup {
    Setup {
        parent: parent.to_owned(),
        pid: 4321,
        start: anchor(0),
        ..Setup::default()
    }
}

fn create(parent: &Path) -> ProfDir {
    ProfDir::create(setup(parent)).expect("directory is created")
}

/// An api record of level runtime whose begin numbers it.
fn api(number: u64) -> ApiRecord {
    ApiRecord {
        magic: MAGIC,
        level: level::RUNTIME,
        kind: 1001,
        thread_id: 4321,
        request_id: 0,
        begin: START_NS + number,
        end: START_NS + number + 10,
        item_id: 0,
    }
}

/// A batch of api records with its counts.
fn api_batch(first: u64, count: u64) -> (Vec<u8>, TraceCounts) {
    let mut bytes = Vec::new();
    for number in first..first + count {
        bytes.extend_from_slice(api(number).as_bytes());
    }
    let mut counts = TraceCounts::default();
    counts.add(crate::records::Trace::RuntimeApi, count);
    (bytes, counts)
}

/// The files below a directory, relative, sorted.
fn tree(root: &Path) -> Vec<String> {
    fn walk(dir: &Path, root: &Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("directory is readable") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                walk(&path, root, into);
            } else {
                let relative = path.strip_prefix(root).expect("below the root");
                into.push(relative.display().to_string());
            }
        }
    }
    let mut files = Vec::new();
    walk(root, root, &mut files);
    files.sort();
    files
}

/// Slices (not their `.done`) with their lengths.
fn slices(root: &Path) -> Vec<(String, u64)> {
    tree(root)
        .into_iter()
        .filter(|file| parse_slice_name(file).is_some())
        .map(|file| {
            let length = std::fs::metadata(root.join(&file)).expect("there").len();
            (file, length)
        })
        .collect()
}

/// The path that an environment variable names; `None`, with a line that says so, if it is not set.
fn from_environment(variable: &str, what: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    if path.is_none() {
        crate::skip::skipped(format_args!("{variable} is not set ({what})"));
    }
    path
}
