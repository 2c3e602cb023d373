//! The data of one place made whole: torn ends cut off, empty slices removed, `.done` files written.

use super::super::control;
use super::super::listing::{EntryKind, Kind};
use super::super::names::parse_slice_name;
use super::super::sparse::SparseFile;
use super::framing::{Found, Framing, scan};
use super::report::{Cut, RecoverError, Recovery, failed, failed_in};
use super::tree::{TEMP, Tree};
use crate::ledger::Anchor;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest slice that is looked into; the agent's have 8 MiB and a batch.
pub(super) const SLICE_MAX: u64 = 1 << 30;
/// Longest `.done` that is read.
const DONE_MAX: u64 = 4096;
/// What lies between a record's time and its writing, at most, and what two clocks may differ, ns.
const TIME_SLACK_NS: u64 = 10_000_000_000;

/// The latest monotonic time that can be in a file last written at `modified`.
pub(super) fn latest_in(file: &File, start: Anchor) -> u64 {
    let modified = file.metadata().and_then(|meta| meta.modified());
    let modified = modified.unwrap_or_else(|_| SystemTime::now());
    let wall = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let wall = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
    start
        .monotonic_raw_ns
        .saturating_add(wall.saturating_sub(start.realtime_ns))
        .saturating_add(TIME_SLACK_NS)
}

/// Makes every slice in `data` whole; `found` takes up what is kept.
pub(super) fn mend(
    data: &Tree,
    start: Anchor,
    found: &mut Found,
    recovery: &mut Recovery,
) -> Result<(), RecoverError> {
    data.tidy().map_err(failed_in(data, TEMP))?;
    let entries = data.list().map_err(|source| failed(data.path(), source))?;
    for entry in &entries {
        let Some((family, _)) = parse_slice_name(&entry.name) else {
            continue;
        };
        // What is none is named in the end (`obstacles`).
        if entry.kind == EntryKind::File && entry.bytes <= SLICE_MAX {
            let framing = Framing::of(family, &Kind::of(family));
            let name = entry.name.as_str();
            let bytes = mend_slice(data, name, framing, start, found, recovery)
                .map_err(failed_in(data, name))?;
            if bytes > 0 {
                confirm(data, name, bytes, &control::slice_done(bytes), recovery)?;
            }
        }
    }
    Ok(())
}

/// Gives the bytes that are left of it.
fn mend_slice(
    data: &Tree,
    name: &str,
    framing: Framing,
    start: Anchor,
    found: &mut Found,
    recovery: &mut Recovery,
) -> io::Result<u64> {
    let file = data.file(name)?;
    found.latest = latest_in(&file, start);
    let seen = scan(SparseFile::new(file, SLICE_MAX), framing, found, |_| Ok(()))?;
    if seen.good == 0 {
        data.unlink(name)?;
        data.unlink(&format!("{name}.done"))?;
    } else if seen.prefix == seen.good && seen.good < seen.length {
        data.truncate(name, seen.good)?;
    } else if seen.good < seen.length {
        data.replace(name, |target| {
            let again = data.file(name)?;
            let mut target = BufWriter::new(target);
            let mut counted = Found::default();
            scan(
                SparseFile::new(again, SLICE_MAX),
                framing,
                &mut counted,
                |record| target.write_all(record),
            )?;
            target.flush()
        })?;
    }
    if seen.good < seen.length || seen.length == 0 {
        recovery.cut.push(Cut {
            path: data.path().join(name),
            bytes: seen.length - seen.good,
            left: seen.good,
        });
    }
    recovery.bytes += seen.good;
    Ok(seen.good)
}

/// Writes the `.done` of a file of so many bytes, unless it says so already.
pub(super) fn confirm(
    dir: &Tree,
    name: &str,
    length: u64,
    text: &str,
    recovery: &mut Recovery,
) -> Result<(), RecoverError> {
    let done = format!("{name}.done");
    if said(dir, &done) != Some(length) {
        dir.put(&done, text.as_bytes())
            .map_err(failed_in(dir, &done))?;
        recovery.done_files += 1;
    }
    Ok(())
}

/// The length that a `.done` file names.
fn said(dir: &Tree, done: &str) -> Option<u64> {
    let bytes = dir.read(done, DONE_MAX).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("filesize:"))?;
    line.trim().parse().ok()
}
