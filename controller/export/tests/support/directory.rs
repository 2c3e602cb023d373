//! A PROF directory made byte by byte: files, and the control files of a place in it.
//!
//! Also of the tests inside the crate and of those of the controller, which take in this file by its path.

// Nobody needs all of it.
#![allow(dead_code)]

use std::fs::{OpenOptions, create_dir_all, write};
use std::io::Write;
use std::path::{Path, PathBuf};

/// When a capture began and how long it was.
#[derive(Clone, Copy)]
pub struct Session {
    /// Wall clock at the start, us since the epoch.
    pub wall_us: u64,
    /// CLOCK_MONOTONIC_RAW at that instant, ns.
    pub monotonic_ns: u64,
    /// Seconds until the stop.
    pub seconds: u64,
}

/// Where a file is to be; makes the directories that it is in.
fn place_of(prof: &Path, name: &str) -> PathBuf {
    let path = prof.join(name);
    create_dir_all(path.parent().expect("a parent")).expect("made");
    path
}

/// Writes a file anew.
pub fn put(prof: &Path, name: &str, bytes: &[u8]) {
    write(place_of(prof, name), bytes).expect("written");
}

/// Adds to a file.
pub fn append(prof: &Path, name: &str, bytes: &[u8]) {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true);
    let mut file = file.open(place_of(prof, name)).expect("opened");
    file.write_all(bytes).expect("written");
}

/// Writes info.json, start_info and end_info of `host` or `device_<id>`.
pub fn controls(prof: &Path, place: &str, info: &str, session: Session) {
    let device = place.strip_prefix("device_");
    let ending = device.map_or(String::new(), |device| format!(".{device}"));
    let put =
        |name: &str, text: &str| put(prof, &format!("{place}/{name}{ending}"), text.as_bytes());
    let clocks = |edge: &str, after: u64| {
        let wall_us = session.wall_us + after * 1_000_000;
        let monotonic_ns = session.monotonic_ns + after * 1_000_000_000;
        format!(r#"{{"collectionTime{edge}":"{wall_us}","clockMonotonicRaw":"{monotonic_ns}"}}"#)
    };
    put("info.json", info);
    put("start_info", &clocks("Begin", 0));
    put("end_info", &clocks("End", session.seconds));
}
