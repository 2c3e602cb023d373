//! Threads that report numbered records, and a check that finds every number again.
//!
//! A record says in its own bytes which thread made it in which capture, through which ring, and which
//! number it has among that thread's records of that ring; the rest of it follows from these, so that a
//! torn one shows. The check knows of each report whether it had returned when the stop was asked for
//! (then it must be accounted for) or was under way (then it may be).
#![allow(dead_code)] // each of its two users does without some of it

use msprof_agent_core::capture::Stopped;
use msprof_agent_core::gate::{self, Word};
use msprof_agent_core::lanes::{Dropped, Lanes, RINGS, RingKey};
use msprof_agent_core::long::{LongKind, LongQueue, LongReport};
use msprof_agent_core::process::current_tid;
use msprof_agent_core::profdir::check::{self, Severity};
use msprof_agent_core::profdir::reader::{Family, Kind, Profile};
use msprof_agent_core::records::{
    AdditionalRecord, ApiRecord, CompactRecord, HEAD_SIZE, MAGIC, RecordHead, RecordSize, Trace,
    TraceCounts, level,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// Size, level and type of records that a burst may be of: every trace, families with and without a
/// name, and one of a device.
pub const CLASSES: [(RecordSize, u16, u32); 11] = [
    (RecordSize::Api, level::RUNTIME, 1),
    (RecordSize::Api, level::MODEL, 2),
    (RecordSize::Api, level::AICPU, 3),
    (RecordSize::Api, level::ACL, 4),
    (RecordSize::Api, level::NODE, 5),
    (RecordSize::Compact, level::NODE, 1),
    (RecordSize::Compact, level::RUNTIME, 2),
    (RecordSize::Compact, level::AICPU, 3),
    (RecordSize::Additional, level::NODE, 1),
    (RecordSize::Additional, level::HCCL, 2),
    (RecordSize::Additional, level::AICPU, 1),
];

/// Records of one class, reported one right after the other.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Index in [`CLASSES`].
    pub class: usize,
    pub aging: bool,
    pub count: u32,
    /// Before the first of them.
    pub pause: Duration,
}

/// Where a report finds out whether it is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Door {
    /// In the gate, as the ABI's functions do.
    Gate,
    /// It is told: also what a thread does that was preempted behind the gate.
    Open(Word),
}

/// What a record is about: all that its bytes are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    thread: u32,
    ring: u32,
    capture: u64,
    number: u64,
    level: u16,
    kind: u32,
}

impl Stamp {
    fn trace(&self) -> Trace {
        let is_api = RingKey::of(self.ring as usize).size == RecordSize::Api;
        Trace::of(self.level, is_api).expect("a level that is read")
    }

    fn mixed(&self) -> u64 {
        self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(self.thread) ^ self.capture
    }

    fn head(&self, data_len: usize) -> RecordHead {
        RecordHead {
            magic: MAGIC,
            level: self.level,
            kind: self.kind,
            thread_id: self.thread,
            data_len: data_len as u32,
            time: self.number,
        }
    }

    fn fill(&self, payload: &mut [u8]) {
        for word in payload.chunks_exact_mut(8) {
            word.copy_from_slice(&self.mixed().to_le_bytes());
        }
        payload[..8].copy_from_slice(&self.capture.to_le_bytes());
        payload[8..12].copy_from_slice(&self.ring.to_le_bytes());
    }

    fn api(&self) -> ApiRecord {
        ApiRecord {
            magic: MAGIC,
            level: self.level,
            kind: self.kind,
            thread_id: self.thread,
            request_id: self.ring,
            begin: self.capture,
            end: self.capture + (self.mixed() >> 2),
            item_id: self.number,
        }
    }

    fn compact(&self) -> CompactRecord {
        let mut payload = [0; 40];
        self.fill(&mut payload);
        CompactRecord {
            head: self.head(payload.len()),
            payload,
        }
    }

    fn additional(&self) -> AdditionalRecord {
        let mut payload = [0; 232];
        self.fill(&mut payload);
        AdditionalRecord {
            head: self.head(payload.len()),
            payload,
        }
    }

    fn push(&self, lanes: &Lanes, word: Word) -> Result<(), Dropped> {
        let key = RingKey::of(self.ring as usize);
        let trace = self.trace();
        // SAFETY: each record is a local of its ring's size.
        unsafe {
            match key.size {
                RecordSize::Api => {
                    lanes.push::<40>(word, key, trace, self.api().as_bytes().as_ptr())
                }
                RecordSize::Compact => {
                    lanes.push::<64>(word, key, trace, self.compact().as_bytes().as_ptr())
                }
                RecordSize::Additional => {
                    lanes.push::<256>(word, key, trace, self.additional().as_bytes().as_ptr())
                }
            }
        }
    }

    /// What the bytes of a record say, all of which must fit together.
    fn of(bytes: &[u8]) -> Stamp {
        let whole = |head: &RecordHead, payload: &[u8]| Stamp {
            thread: head.thread_id,
            ring: u32::from_le_bytes(payload[8..12].try_into().expect("4 bytes")),
            capture: u64::from_le_bytes(payload[..8].try_into().expect("8 bytes")),
            number: head.time,
            level: head.level,
            kind: head.kind,
        };
        let (stamp, again) = match bytes.len() {
            40 => {
                let record = ApiRecord::read_from_bytes(bytes).expect("40 bytes");
                let stamp = Stamp {
                    thread: record.thread_id,
                    ring: record.request_id,
                    capture: record.begin,
                    number: record.item_id,
                    level: record.level,
                    kind: record.kind,
                };
                (stamp, stamp.api().as_bytes().to_vec())
            }
            64 => {
                let record = CompactRecord::read_from_bytes(bytes).expect("64 bytes");
                let stamp = whole(&record.head, &record.payload);
                (stamp, stamp.compact().as_bytes().to_vec())
            }
            _ => {
                let record = AdditionalRecord::read_from_bytes(bytes).expect("256 bytes");
                let stamp = whole(&record.head, &record.payload);
                (stamp, stamp.additional().as_bytes().to_vec())
            }
        };
        assert_eq!(bytes, again, "torn record {stamp:?}");
        stamp
    }
}

/// One report that returned.
#[derive(Clone, Copy, Debug)]
struct Report {
    capture: u64,
    ring: u32,
    number: u64,
    trace: Trace,
    /// In a ring, and not dropped.
    kept: bool,
}

/// What one thread reported in its life.
#[derive(Debug)]
pub struct Log {
    thread: u32,
    tid: u32,
    reports: Vec<Report>,
}

type Job = (Door, Vec<Burst>);

/// A thread that reports when it is told to.
#[derive(Debug)]
pub struct Reporter {
    jobs: Sender<Job>,
    done: Receiver<()>,
    waiting: usize,
    returned: Arc<AtomicUsize>,
    thread: JoinHandle<Log>,
}

impl Reporter {
    /// Starts it; each has another number.
    pub fn start(thread: u32, lanes: Arc<Lanes>) -> Reporter {
        let (jobs, received) = channel::<Job>();
        let (tell, done) = channel();
        let returned = Arc::new(AtomicUsize::new(0));
        let count = returned.clone();
        let body = move || {
            let mut log = Log {
                thread,
                tid: current_tid(),
                reports: Vec::new(),
            };
            let mut next = [0; RINGS];
            for (door, bursts) in received {
                for burst in bursts {
                    std::thread::sleep(burst.pause);
                    burst_of(&burst, door, &lanes, &mut log, &mut next, &count);
                }
                let _ = tell.send(());
            }
            log
        };
        Reporter {
            jobs,
            done,
            waiting: 0,
            returned,
            thread: std::thread::spawn(body),
        }
    }

    /// Tells it to report; returns at once.
    pub fn report(&mut self, door: Door, bursts: Vec<Burst>) {
        self.jobs.send((door, bursts)).expect("reporter");
        self.waiting += 1;
    }

    /// Waits until it has done what it was told.
    pub fn wait(&mut self) {
        for _ in 0..std::mem::take(&mut self.waiting) {
            self.done.recv().expect("reporter");
        }
    }

    /// How many reports have returned.
    pub fn returned(&self) -> usize {
        self.returned.load(Ordering::Acquire)
    }

    /// Lets it do what it was told and ends it.
    pub fn end(self) -> Log {
        drop(self.jobs);
        self.thread.join().expect("reporter")
    }
}

fn burst_of(
    burst: &Burst,
    door: Door,
    lanes: &Lanes,
    log: &mut Log,
    next: &mut [u64; RINGS],
    count: &AtomicUsize,
) {
    let (size, level, kind) = CLASSES[burst.class];
    let ring = RingKey {
        size,
        aging: burst.aging,
    };
    for _ in 0..burst.count {
        let word = match door {
            Door::Open(word) => word,
            Door::Gate => gate::load(),
        };
        if word == Word::OFF || word == Word::ASK {
            continue;
        }
        let stamp = Stamp {
            thread: log.thread,
            ring: ring.index() as u32,
            capture: word.number(),
            number: next[ring.index()],
            level,
            kind,
        };
        if !word.takes(stamp.trace()) {
            continue;
        }
        next[ring.index()] += 1;
        let kept = match stamp.push(lanes, word) {
            Ok(()) => true,
            Err(Dropped::Counted) => false,
            Err(Dropped::NoLane | Dropped::Nested) => panic!("a thread that lives has a lane"),
        };
        log.reports.push(Report {
            capture: stamp.capture,
            ring: stamp.ring,
            number: stamp.number,
            trace: stamp.trace(),
            kept,
        });
        count.store(log.reports.len(), Ordering::Release);
    }
}

/// Long reports, which go through no ring; made by one thread, which also starts and stops.
#[derive(Debug, Default)]
pub struct LongReports {
    reports: Vec<Report>,
}

impl LongReports {
    /// Makes `count` of them, as `report::additional` does.
    pub fn report(&mut self, capture: u64, count: u32, queue: &LongQueue, lanes: &Lanes) {
        for _ in 0..count {
            let number = self.reports.len() as u64;
            let kept = queue.push(long_report(capture, number));
            if !kept {
                lanes.lose_homeless(Trace::Task, 1);
            }
            self.reports.push(Report {
                capture,
                ring: 0,
                number,
                trace: Trace::Task,
                kept,
            });
        }
    }

    /// Makes one for a capture whose stop has overtaken it: it is to be found nowhere.
    pub fn report_late(&self, capture: u64, queue: &LongQueue) {
        queue.push(long_report(capture, u64::MAX));
    }
}

fn long_report(capture: u64, number: u64) -> LongReport {
    const PAYLOAD: usize = 600;
    let stamp = Stamp {
        thread: u32::MAX,
        ring: 0,
        capture,
        number,
        level: level::NODE,
        kind: 1,
    };
    let mut bytes = vec![0; HEAD_SIZE + PAYLOAD];
    bytes[..HEAD_SIZE].copy_from_slice(stamp.head(PAYLOAD).as_bytes());
    stamp.fill(&mut bytes[HEAD_SIZE..]);
    LongReport {
        capture,
        trace: Trace::Task,
        kind: LongKind::Variable,
        bytes: bytes.into(),
    }
}

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
    /// [`Reporter::returned`] of every thread when the stop was asked for, by thread number; threads
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
