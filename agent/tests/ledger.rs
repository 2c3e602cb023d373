//! Captures that start and stop while threads report all the time, some of them with too little memory
//! or with a bound on the size of files: each ledger is exact, and each directory holds what it says.
#![cfg(not(loom))]

mod numbered;

use msprof_agent_core::arena::SEGMENT_BYTES;
use msprof_agent_core::capture::{Captures, Origin, Parts, Request, StopMode};
use msprof_agent_core::dictionary::Dictionary;
use msprof_agent_core::lanes::Lanes;
use msprof_agent_core::long::LongQueue;
use msprof_agent_core::options::{Options, split_words};
use msprof_agent_core::params::Params;
use numbered::{Burst, CLASSES, Door, Ended, Fate, LongReports, Reporter};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// High half of the captures' numbers.
const GENERATION: u32 = 7;

#[derive(Clone, Debug)]
struct CapturePlan {
    /// Threads that begin with it, and what they report.
    scripts: Vec<Vec<Burst>>,
    /// Threads from before that are waited for and end in the midst of it.
    ending: usize,
    long_reports: u32,
    /// Bytes that a file may have.
    file_size: Option<u64>,
    /// Before its start, and from there to its stop.
    idle: Duration,
    length: Duration,
}

#[derive(Clone, Debug)]
struct Plan {
    segments: usize,
    /// Switches that leave some traces out.
    options: &'static str,
    captures: Vec<CapturePlan>,
}

fn micros(max: u64) -> impl Strategy<Value = Duration> {
    (0..max).prop_map(Duration::from_micros)
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let pause = prop_oneof![2 => Just(Duration::ZERO), 1 => micros(4_000)];
    let burst = (0..CLASSES.len(), any::<bool>(), 1u32..2_000, pause);
    let burst = burst.prop_map(|(class, aging, count, pause)| Burst {
        class,
        aging,
        count,
        pause,
    });
    prop::collection::vec(burst, 1..12)
}

fn capture_plan() -> impl Strategy<Value = CapturePlan> {
    (
        prop::collection::vec(bursts(), 0..3),
        0usize..3,
        prop_oneof![2 => 0u32..5, 1 => 200u32..400],
        prop::option::weighted(0.3, 20_000u64..300_000),
        micros(3_000),
        micros(15_000),
    )
        .prop_map(
            |(scripts, ending, long_reports, file_size, idle, length)| CapturePlan {
                scripts,
                ending,
                long_reports,
                file_size,
                idle,
                length,
            },
        )
}

fn plan() -> impl Strategy<Value = Plan> {
    let options = prop_oneof![
        3 => Just("--runtime-api=on --model-execution=on --aicpu=on"),
        1 => Just("--ascendcl=off"),
    ];
    (
        8usize..40,
        options,
        prop::collection::vec(capture_plan(), 1..5),
    )
        .prop_map(|(segments, options, captures)| Plan {
            segments,
            options,
            captures,
        })
}

fn dictionary() -> Dictionary {
    let dictionary = Dictionary::default();
    for (_, level, kind) in CLASSES {
        dictionary.name_type(level, kind, format!("type_{kind}").as_bytes());
    }
    dictionary
}

fn request(options: &str, parent: &Path) -> Request {
    let options = split_words(options).and_then(Options::parse_words);
    let mut params = Params::from_options(&options.expect("valid options"), 1);
    params.set_result_dir("");
    Request {
        params,
        origin: Origin::Program,
        time_limit: None,
        default_dir: parent.to_owned(),
        allow_shared_dir: false,
        need_device: false,
    }
}

/// Bounds the size of files that this process writes; `None` for no bound.
fn limit_file_size(bytes: Option<u64>) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: reads and writes a local.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit), 0);
        limit.rlim_cur = bytes.map_or(limit.rlim_max, |bytes| bytes.min(limit.rlim_max));
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

fn run(plan: &Plan) {
    let temp = tempfile::tempdir().expect("temporary directory");
    let lanes = Arc::new(Lanes::new(plan.segments * SEGMENT_BYTES, GENERATION));
    let queue: Arc<LongQueue> = Arc::default();
    let parts = Parts {
        lanes: lanes.clone(),
        dictionary: Arc::new(dictionary()),
        components: Arc::default(),
        long: queue.clone(),
        marks: Arc::default(),
        devices: Arc::default(),
        diverted: Arc::default(),
        unreadable: Arc::default(),
        model_devices: Arc::default(),
        models: Arc::default(),
        disabled: Arc::default(),
        alarm: Arc::default(),
    };
    let captures = Captures::new(parts, GENERATION);
    let mut running: Vec<(u32, Reporter)> = Vec::new();
    let mut long = LongReports::default();
    let (mut logs, mut ended) = (Vec::new(), Vec::new());
    let mut threads = 0;
    for (index, capture) in plan.captures.iter().enumerate() {
        std::thread::sleep(capture.idle);
        let number = u64::from(GENERATION) << 32 | (index as u64 + 1);
        let started = captures.start(&request(plan.options, temp.path()));
        started.expect("a capture");
        limit_file_size(capture.file_size);
        for script in &capture.scripts {
            threads += 1;
            let mut reporter = Reporter::start(threads, lanes.clone());
            reporter.report(Door::Gate, script.clone());
            running.push((threads, reporter));
        }
        long.report(number, capture.long_reports, &queue, &lanes);
        std::thread::sleep(capture.length);
        for (_, reporter) in running.drain(..capture.ending.min(running.len())) {
            logs.push(reporter.end());
        }
        let returned = running
            .iter()
            .map(|(thread, reporter)| (*thread, reporter.returned()))
            .collect();
        let stopped = captures.stop(StopMode::NORMAL, &mut |_| {});
        limit_file_size(None);
        ended.push(Ended {
            capture: number,
            stopped: stopped.expect("stopped"),
            returned,
            fate: match capture.file_size {
                None => Fate::Whole,
                Some(_) => Fate::Partial,
            },
        });
    }
    logs.extend(running.into_iter().map(|(_, reporter)| reporter.end()));
    for ended in &ended {
        numbered::check(ended, &logs, &long);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn captures_of_a_program_that_never_stops_reporting_have_exact_ledgers(plan in plan()) {
        run(&plan);
    }
}
