//! A capture whose process was killed, and what the tests do with it.

use super::check::check;
use super::reader::Profile;
use super::recover::{Life, Maker, RecoverError, Recovery, recover};
use super::*;
use crate::ledger::Ledger;
use crate::records::Trace;
use std::collections::BTreeMap;

/// The last account, ns after the start.
pub(super) const ACCOUNT: u64 = 5_000_000;

pub(super) fn dead(_: &Maker) -> Life {
    Life::Dead
}

pub(super) fn recovered(dir: &Path) -> Recovery {
    recover(dir, dead).expect("recovered")
}

pub(super) fn refused(dir: &Path, life: Life) -> RecoverError {
    recover(dir, |_| life).expect_err("refused")
}

/// The capture of `scenario`, killed: no end, no `.done` of slices, an account of half the records.
pub(super) fn killed(parent: &Path) -> (PathBuf, TraceCounts) {
    let (dir, total) = scenario::write(parent);
    for file in tree(&dir) {
        let is_slice_done = file.contains(".slice_");
        if file.ends_with(".done") && is_slice_done || file.contains("end_info") {
            std::fs::remove_file(dir.join(&file)).expect("removed");
        }
    }
    let mut ledger = Ledger {
        pid: 4321,
        capture: 1,
        start: anchor(0),
        accounted: Some(anchor(ACCOUNT)),
        ..Ledger::default()
    };
    ledger.written.add(Trace::Aicpu, 1);
    ledger.lost.add(Trace::Acl, 7);
    put_ledger(&dir, &ledger);
    std::fs::write(dir.join(".msprof_agent.reserve"), "").expect("written");
    (dir, total)
}

pub(super) fn put_ledger(dir: &Path, ledger: &Ledger) {
    let text = serde_json::to_vec(ledger).expect("JSON");
    std::fs::write(dir.join(LEDGER_FILE), text).expect("written");
}

pub(super) fn append(dir: &Path, file: &str, bytes: &[u8]) {
    let path = dir.join(file);
    let mut content = std::fs::read(&path).unwrap_or_default();
    content.extend_from_slice(bytes);
    std::fs::write(path, content).expect("written");
}

/// Every file with its content.
pub(super) fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |file: String| {
        let bytes = std::fs::read(dir.join(&file)).expect("readable");
        (file, bytes)
    };
    tree(dir).into_iter().map(read).collect()
}

#[track_caller]
pub(super) fn assert_whole(dir: &Path) {
    let violations = check(dir);
    assert!(violations.is_empty(), "{violations:#?}");
}

pub(super) fn ledger(dir: &Path) -> Ledger {
    let profile = Profile::open(dir).expect("opens");
    profile.ledger().expect("readable").expect("there")
}

pub(super) const API: &str = "host/data/aging.api_event.data.slice_0";
