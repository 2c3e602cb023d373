//! The ledger and the directory of a capture against what its reporters know.

use super::reporter::{Log, LongReports};
use super::stamp::Stamp;
use msprof_agent_core::capture::Stopped;
use msprof_agent_core::profdir::check::{self, Severity};
use msprof_agent_core::profdir::reader::{Family, Kind, Profile};
use msprof_agent_core::records::{Trace, TraceCounts};
use std::collections::{BTreeMap, BTreeSet};

/// What may have kept records from the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing: what was kept in the rings is in the files.
    Whole,
    /// A storage limit or an error on writing: what the ledger calls written is in the files.
    Partial,
    /// The directory is gone: only the ledger tells.
    Gone,
}

/// A capture that has ended.
#[derive(Debug)]
pub struct Ended {
    /// As records are stamped.
    pub capture: u64,
    pub stopped: Stopped,
    /// [`super::Reporter::returned`] of every thread when the stop was asked for, by thread number; threads
    /// without an entry had ended.
    pub returned: BTreeMap<u32, usize>,
    pub fate: Fate,
}

/// Bounds of a count: what must and what may be in it.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    least: TraceCounts,
    most: TraceCounts,
}

impl Bounds {
    fn add(&mut self, trace: Trace, is_certain: bool) {
        self.least.add(trace, u64::from(is_certain));
        self.most.add(trace, 1);
    }

    fn check(&self, counts: &TraceCounts, what: &str) {
        for (index, &count) in counts.0.iter().enumerate() {
            let bounds = self.least.0[index]..=self.most.0[index];
            assert!(
                bounds.contains(&count),
                "{what}: {count} {} not in {bounds:?}",
                Trace::ALL[index].name()
            );
        }
    }
}

/// Numbers of one thread's records of one ring.
#[derive(Debug, Default)]
struct Numbers {
    kept: Vec<u64>,
    /// How many of them had returned.
    certain: usize,
}

/// Checks that a capture's ledger is exact, and that the directory holds what the ledger says.
pub fn check(ended: &Ended, logs: &[Log], long: &LongReports) {
    let ledger = &ended.stopped.ledger;
    let complaints: Vec<_> = ledger
        .notes
        .iter()
        .filter(|note| note.contains("please report"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");

    let mut reported: BTreeMap<u32, Bounds> = BTreeMap::new();
    let mut dropped: BTreeMap<u32, Bounds> = BTreeMap::new();
    let mut numbers: BTreeMap<(u32, u32), Numbers> = BTreeMap::new();
    for log in logs {
        let returned = ended.returned.get(&log.thread).copied();
        for (index, report) in log.reports.iter().enumerate() {
            if report.capture != ended.capture {
                continue;
            }
            let is_certain = returned.is_none_or(|returned| index < returned);
            let bounds = reported.entry(log.tid).or_default();
            bounds.add(report.trace, is_certain);
            let lost = dropped.entry(log.tid).or_default();
            if report.kept {
                let numbers = numbers.entry((log.thread, report.ring)).or_default();
                numbers.kept.push(report.number);
                numbers.certain += usize::from(is_certain);
            } else {
                lost.add(report.trace, is_certain);
            }
        }
    }
    let long: Vec<_> = long
        .reports
        .iter()
        .filter(|report| report.capture == ended.capture)
        .collect();
    for report in &long {
        reported.entry(0).or_default().add(report.trace, true);
        let lost = dropped.entry(0).or_default();
        if !report.kept {
            lost.add(report.trace, true);
        }
    }
    check_sums(ended, &reported, &dropped);
    if ended.fate == Fate::Gone {
        return;
    }
    let profile = Profile::open(&ended.stopped.path).expect("readable");
    let on_disk = profile.ledger().expect("readable").expect("there");
    assert_eq!(on_disk, *ledger);
    assert_eq!(ledger.bytes, profile.bytes());
    let broken = check::check(&ended.stopped.path);
    let broken: Vec<_> = broken
        .iter()
        .filter(|violation| violation.severity > Severity::Note)
        .collect();
    assert!(
        broken.is_empty() || ended.stopped.error.is_some(),
        "{broken:#?}"
    );
    let mut written = check_numbers(ended, &profile, &numbers);
    let found: Vec<u64> = profile
        .variable("capture_op_info")
        .map(|record| record.expect("readable").0.time)
        .collect();
    let kept = long.iter().filter(|report| report.kept);
    let kept: Vec<u64> = kept.map(|report| report.number).collect();
    match ended.fate {
        Fate::Whole => assert_eq!(found, kept),
        _ => assert!(is_part_of(&found, &kept)),
    }
    written.add(Trace::Task, found.len() as u64);
    assert_eq!(written, ledger.written, "what is in the files");
}

/// The ledger against itself and against what the threads know.
fn check_sums(ended: &Ended, reported: &BTreeMap<u32, Bounds>, dropped: &BTreeMap<u32, Bounds>) {
    let ledger = &ended.stopped.ledger;
    let mut accounted = ledger.written;
    accounted.merge(&ledger.lost);
    accounted.merge(&ledger.aged_out);
    assert_eq!(
        ledger.reported, accounted,
        "reported = written + lost + aged out"
    );
    let mut sums = [TraceCounts::default(); 3];
    let mut rows: BTreeMap<u32, [TraceCounts; 2]> = BTreeMap::new();
    for row in &ledger.threads {
        let mut accounted = row.written;
        accounted.merge(&row.lost);
        assert_eq!(row.reported, accounted, "thread {}", row.tid);
        sums[0].merge(&row.reported);
        sums[1].merge(&row.written);
        sums[2].merge(&row.lost);
        let sum = rows.entry(row.tid).or_default();
        sum[0].merge(&row.reported);
        sum[1].merge(&row.lost);
    }
    let mut once_written = ledger.written;
    once_written.merge(&ledger.aged_out);
    assert_eq!(sums, [ledger.reported, once_written, ledger.lost]);
    let known: BTreeSet<u32> = reported.keys().chain(rows.keys()).copied().collect();
    for tid in known {
        let [row_reported, row_lost] = rows.get(&tid).copied().unwrap_or_default();
        let bounds = reported.get(&tid).copied().unwrap_or_default();
        bounds.check(&row_reported, &format!("thread {tid} reported"));
        let mut bounds = dropped.get(&tid).copied().unwrap_or_default();
        if ended.fate != Fate::Whole {
            bounds.most = row_reported;
        }
        bounds.check(&row_lost, &format!("thread {tid} lost"));
    }
}

/// The numbers in the files against those that were kept; returns what is in the files, by trace.
fn check_numbers(
    ended: &Ended,
    profile: &Profile,
    numbers: &BTreeMap<(u32, u32), Numbers>,
) -> TraceCounts {
    let mut counts = TraceCounts::default();
    let mut found: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for family in profile.families() {
        let mut last: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for stamp in stamps(family) {
            assert_eq!(
                stamp.capture, ended.capture,
                "of another capture: {stamp:?}"
            );
            let place = (stamp.thread, stamp.ring);
            let before = last.insert(place, stamp.number);
            assert!(before < Some(stamp.number), "order: {before:?}, {stamp:?}");
            found.entry(place).or_default().push(stamp.number);
            counts.add(stamp.trace(), 1);
        }
    }
    for (place, found) in &mut found {
        found.sort_unstable();
        assert!(found.is_sorted_by(|a, b| a < b), "{place:?}: doubled");
        let kept = numbers.get(place).map_or(&[][..], |numbers| &numbers.kept);
        assert!(is_part_of(found, kept), "{place:?}: never reported");
    }
    if ended.fate == Fate::Whole {
        for (place, numbers) in numbers {
            let found = found.get(place).map_or(&[][..], |found| found);
            assert!(numbers.kept.starts_with(found), "{place:?}: a gap");
            assert!(
                found.len() >= numbers.certain,
                "{place:?}: the last are missing"
            );
        }
    }
    counts
}

/// The records of a family of records of one size, in the order of the files.
fn stamps(family: &Family) -> Vec<Stamp> {
    let size = match family.kind {
        Kind::Api => 40,
        Kind::Compact(_) => 64,
        Kind::Additional(_) | Kind::Aicpu => 256,
        _ => return Vec::new(),
    };
    let mut stamps = Vec::new();
    for slice in &family.slices {
        let bytes = std::fs::read(&slice.path).expect("readable");
        assert!(!bytes.is_empty() && bytes.len().is_multiple_of(size));
        stamps.extend(bytes.chunks_exact(size).map(Stamp::of));
    }
    stamps
}

/// Whether all of `part` is in `all`; both ascending.
fn is_part_of(part: &[u64], all: &[u64]) -> bool {
    let mut all = all.iter();
    part.iter().all(|number| all.any(|other| other == number))
}
