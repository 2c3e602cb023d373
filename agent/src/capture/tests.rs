//! The ledger under random schedules: threads that come and go, too little memory, storage limits,
//! errors on writing, stops in the midst of reports, and reports that outlive their capture.

#[path = "../../tests/numbered/mod.rs"]
mod numbered;

use super::drain::Drain;
use super::drain_handle::{DrainHandle, DrainThread};
use super::output::Output;
use super::ring_memory::RingMemory;
use super::{Parts, Stopped};
use crate::arena::SEGMENT_BYTES;
use crate::clock;
use crate::dictionary::Dictionary;
use crate::gate::Word;
use crate::lanes::Lanes;
use crate::ledger::Ledger;
use crate::params::Params;
use crate::profdir::{ProfDir, Setup, slice_name};
use crate::records::level;
use numbered::{Burst, CLASSES, Door, Ended, Fate, LongReports, Reporter};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Threads that report at a time.
const REPORTERS: usize = 3;
/// Numbers of captures begin here, so that none is a gate's that another test has opened.
const FIRST_CAPTURE: u64 = 1 << 40;

/// What happens to the directory while it is written.
#[derive(Clone, Debug)]
enum Fault {
    /// It is removed after this time.
    Removed(Duration),
    /// Something stands where a slice is to be: family and number.
    Obstructed(&'static str, u32),
}

#[derive(Clone, Debug)]
struct CapturePlan {
    limit: Option<u64>,
    fault: Option<Fault>,
    /// What each thread reports; a thread with `anew` begins as a new one.
    scripts: Vec<(bool, Vec<Burst>)>,
    long_reports: u32,
    /// Whether the threads are through with their reports when the stop comes, or this long into them.
    stop_after: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Plan {
    segments: usize,
    captures: Vec<CapturePlan>,
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let count = prop_oneof![3 => 1u32..40, 2 => 200u32..3_000];
    let pause = prop_oneof![3 => Just(0u64), 1 => 0u64..12_000];
    let burst =
        (0..CLASSES.len(), any::<bool>(), count, pause).prop_map(|(class, aging, count, pause)| {
            Burst {
                class,
                aging,
                count,
                pause: Duration::from_micros(pause),
            }
        });
    prop::collection::vec(burst, 0..5)
}

fn fault() -> impl Strategy<Value = Fault> {
    let family = prop_oneof![
        Just("aging.api_event.data"),
        Just("unaging.api_event.data"),
        Just("aging.compact.type_1"),
        Just("unaging.additional.invalid"),
    ];
    prop_oneof![
        (0u64..8_000).prop_map(|us| Fault::Removed(Duration::from_micros(us))),
        (family, 0u32..3).prop_map(|(family, slice)| Fault::Obstructed(family, slice)),
    ]
}

fn capture_plan() -> impl Strategy<Value = CapturePlan> {
    (
        prop::option::weighted(0.4, (60u64..800).prop_map(|kib| kib << 10)),
        prop::option::weighted(0.3, fault()),
        prop::collection::vec((prop::bool::weighted(0.3), bursts()), REPORTERS),
        prop_oneof![2 => 0u32..5, 1 => 200u32..400],
        prop::option::weighted(0.4, (0u64..6_000).prop_map(Duration::from_micros)),
    )
        .prop_map(
            |(limit, fault, scripts, long_reports, stop_after)| CapturePlan {
                limit,
                fault,
                scripts,
                long_reports,
                stop_after,
            },
        )
}

fn plan() -> impl Strategy<Value = Plan> {
    (8usize..14, prop::collection::vec(capture_plan(), 1..4))
        .prop_map(|(segments, captures)| Plan { segments, captures })
}

fn parts(segments: usize) -> Parts {
    let dictionary = Dictionary::default();
    for (_, level, kind) in CLASSES {
        // One is left without a name, as components do leave some.
        if level != level::HCCL {
            dictionary.name_type(level, kind, format!("type_{kind}").as_bytes());
        }
    }
    Parts {
        lanes: Arc::new(Lanes::new(segments * SEGMENT_BYTES, 1)),
        dictionary: Arc::new(dictionary),
        components: Arc::default(),
        long: Arc::default(),
        marks: Arc::default(),
        devices: Arc::default(),
        diverted: Arc::default(),
        unreadable: Arc::default(),
        model_devices: Arc::default(),
        models: Arc::default(),
        disabled: Arc::default(),
        alarm: Arc::default(),
    }
}

/// Begins a capture as `Captures` does.
fn begin(
    parts: &Parts,
    memory: &Arc<RingMemory>,
    parent: &Path,
    number: u64,
    limit: Option<u64>,
) -> (DrainHandle, PathBuf) {
    let thread = DrainThread::spawn(memory.clone()).expect("a thread");
    let start = clock::anchor();
    let dir = ProfDir::create(Setup {
        parent: parent.to_owned(),
        start,
        storage_limit: limit,
        ..Setup::default()
    })
    .expect("a directory");
    let path = dir.path().to_owned();
    let dictionary = parts.dictionary.clone();
    let output = Output::new(number, dir, dictionary, Params::default(), start);
    let mut drain = Drain::new(
        Word::capturing(number, 0xFF),
        output,
        Ledger::default(),
        parts.clone(),
    );
    thread.wait().expect("memory");
    drain.prepare(&[], None).expect("room");
    (thread.run(drain).expect("a thread"), path)
}

/// Ends one as `Captures` does.
fn end(drain: &DrainHandle) -> Stopped {
    drain.finish(clock::anchor(), None, true);
    let stopped = drain.outcome.recv_timeout(Duration::from_secs(60));
    stopped.expect("the drain ends")
}

fn remove(path: &Path) {
    // The drain may make files all the while.
    while path.exists() {
        let _ = std::fs::remove_dir_all(path);
    }
}

fn run(plan: &Plan) {
    let temp = tempfile::tempdir().expect("temporary directory");
    let parts = parts(plan.segments);
    let memory = Arc::new(RingMemory::new(parts.lanes.clone()));
    let mut started = 0;
    let mut reporters: BTreeMap<u32, Reporter> = BTreeMap::new();
    let mut slots = [None; REPORTERS];
    let mut long = LongReports::default();
    let mut logs = Vec::new();
    let mut ended = Vec::new();
    for (index, capture) in plan.captures.iter().enumerate() {
        let number = FIRST_CAPTURE + index as u64;
        let (drain, path) = begin(&parts, &memory, temp.path(), number, capture.limit);
        if let Some(Fault::Obstructed(family, slice)) = &capture.fault {
            let data = path.join("host/data");
            std::fs::create_dir(data.join(slice_name(family, *slice))).expect("made");
        }
        let door = Door::Open(Word::capturing(number, 0xFF));
        for (slot, (anew, bursts)) in slots.iter_mut().zip(&capture.scripts) {
            if *anew && let Some(old) = slot.take() {
                let old = reporters.remove(&old).expect("a reporter");
                logs.push(old.end());
            }
            let thread = *slot.get_or_insert_with(|| {
                started += 1;
                started
            });
            reporters
                .entry(thread)
                .or_insert_with(|| Reporter::start(thread, parts.lanes.clone()))
                .report(door, bursts.clone());
        }
        if index > 0 {
            // Long reports that come too late for their capture.
            long.report_late(number - 1, &parts.long);
        }
        long.report(number, capture.long_reports, &parts.long, &parts.lanes);
        if let Some(Fault::Removed(after)) = &capture.fault {
            std::thread::sleep(*after);
            remove(&path);
        }
        match capture.stop_after {
            Some(after) => std::thread::sleep(after),
            None => reporters.values_mut().for_each(Reporter::wait),
        }
        let returned = reporters
            .iter()
            .map(|(thread, reporter)| (*thread, reporter.returned()))
            .collect();
        let stopped = end(&drain);
        let fate = match (&capture.fault, capture.limit) {
            (Some(Fault::Removed(_)), _) => Fate::Gone,
            (None, None) => Fate::Whole,
            _ => Fate::Partial,
        };
        ended.push(Ended {
            capture: number,
            stopped,
            returned,
            fate,
        });
    }
    logs.extend(reporters.into_values().map(Reporter::end));
    for ended in &ended {
        numbered::check(ended, &logs, &long);
    }
    // SAFETY: nothing is captured, and no drain runs.
    unsafe { memory.hold().give_back() };
    let arena = parts.lanes.arena().expect("prepared");
    assert_eq!(arena.charged(), 0, "memory of ended threads");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_record_is_written_lost_or_aged_out_whatever_happens(plan in plan()) {
        run(&plan);
    }
}
