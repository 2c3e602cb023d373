//! Recovering a directory in any state: what is recovered is whole, says so, and is recovered once.

use super::{directory, profile};
use msprof_agent_core::ledger::CaptureState;
use msprof_agent_core::profdir::check::check;
use msprof_agent_core::profdir::reader::Profile;
use msprof_agent_core::profdir::recover::{Done, Life, recover};
use std::path::Path;

/// Rules that every recovered directory keeps.
const KEPT: [&str; 14] = [
    "slice-empty",
    "slice-torn",
    "record-magic",
    "control-missing",
    "control-kind",
    "one-per-prefix",
    "control-json",
    "start-info",
    "end-info",
    "no-end-info",
    "clock-log",
    "done-size",
    "ledger-sum",
    "ledger-count",
];

pub fn run(data: &[u8]) {
    let dir = directory::make(data);
    let path = &dir.path;
    let before = bytes(path);
    let Ok(first) = recover(path, |_| Life::Dead) else {
        return;
    };
    assert!(bytes(path) <= before, "data comes from nowhere");
    let again = recover(path, |_| Life::Dead).expect("what was recovered can be read");
    assert_eq!(again.done, Done::Nothing);
    profile::read(path);
    if first.done != Done::Recovered || !first.left.is_empty() {
        return;
    }
    let violations = check(path);
    let broken = |rule: &str| violations.iter().find(|found| found.rule == rule);
    for rule in KEPT {
        assert!(broken(rule).is_none(), "{}", broken(rule).expect("found"));
    }
    let opened = Profile::open(path).expect("opens");
    let ledger = opened.ledger().expect("readable").expect("written");
    assert_eq!(ledger.state, CaptureState::Recovered);
    assert_eq!((ledger.written, ledger.bytes), (first.kept, first.bytes));
    assert_eq!(ledger.bytes, opened.bytes());
}

/// Bytes of all data slices.
fn bytes(path: &Path) -> u64 {
    Profile::open(path).map_or(0, |profile| profile.bytes())
}
