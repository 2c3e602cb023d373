//! The timeline that the stock parser makes of the demo: calls lie within the calls that made them, and what ran on the
//! device is connected with its launch. Models that are loaded and marks that are set in the capture are there too.

mod support;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use support::captured::{Capture, event_pairs};
use support::families::{TaskRun, task_log};
use support::parser::{export, exported, rows, stock_parser};
use support::prof::{Prof, u16_at};

const OPTIONS: &str = "--seconds=-1 --streams=2 --pause-us=5000 --reload --marks";

/// A span of a thread, ns.
#[derive(Clone, Debug)]
struct Span {
    name: String,
    thread: u64,
    begin: i64,
    end: i64,
    args: Value,
}

impl Span {
    fn of(event: &Value) -> Option<Span> {
        let text = event["ts"].as_str()?;
        let (us, fraction) = text.split_once('.').expect("a fraction");
        let fraction: i64 = format!("{fraction:0<3}")[..3].parse().expect("digits");
        let begin = us.parse::<i64>().expect("a number") * 1000 + fraction;
        let duration = event["dur"].as_f64()? * 1000.0;
        Some(Span {
            name: event["name"].as_str()?.to_owned(),
            thread: event["tid"].as_u64()?,
            begin,
            end: begin + duration.round() as i64,
            args: event["args"].clone(),
        })
    }

    fn is_within(&self, other: &Span) -> bool {
        // Times are shown in thousandths of a microsecond, and rounded on the way there.
        const ROUNDED: i64 = 1000;
        self.thread == other.thread
            && self.begin + ROUNDED >= other.begin
            && self.end <= other.end + ROUNDED
    }
}

/// What happens only within what. A call of the runtime may be of the demo itself, too.
const NESTED: [(&str, &str); 9] = [
    ("Runtime@KernelLaunch", "Node@launch"),
    ("Runtime@CpuKernelLaunch", "Node@launch"),
    ("Node@launch", "Runtime@ModelExecute"),
    ("Runtime@ModelExecute", "Model@ModelExecute"),
    ("Model@InputCopy", "Model@ModelExecute"),
    ("Model@OutputCopy", "Model@ModelExecute"),
    ("Model@ModelExecute", "AscendCL@aclmdlExecute"),
    ("Model@ModelLoad", "AscendCL@aclmdlLoadFromFile"),
    (
        "Runtime@StreamSynchronize",
        "AscendCL@aclrtSynchronizeStream",
    ),
];

/// A log of the device's in which each task ran for a microsecond, right after the host had submitted it.
fn log_of(prof: &Prof) -> Vec<u8> {
    const RAN_NS: u64 = 1000;
    let runs = prof.compact("task_track").into_iter().map(|track| TaskRun {
        stream: u16_at(&track.payload, 2),
        number: u16_at(&track.payload, 4),
        kind: 0,
        from: track.time,
        to: track.time + RAN_NS,
    });
    task_log(runs)
}

#[test]
fn calls_of_the_demo_are_nested_and_connected_with_what_ran_on_the_device() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let capture = Capture::make(OPTIONS);
    let prof = capture.open();
    capture.window.assert_matches(&prof);
    let log = prof.path.join("device_0/data/stars_soc.data.0.slice_0");
    std::fs::write(log, log_of(&prof)).expect("written");
    export(&parser, &prof.path);
    let text = exported(&prof.path, "msprof_", ".json").expect("msprof json");
    let timeline: Vec<Value> = serde_json::from_str(&text).expect("an array");
    let spans = timeline
        .iter()
        .filter(|event| event["ph"] == "X")
        .filter_map(Span::of);
    let (calls, others): (Vec<Span>, Vec<Span>) = spans.partition(|span| span.name.contains('@'));
    check_nesting(&calls);
    check_connections(&calls, &others);
    check_models(&prof, &calls);
    check_marks(&capture, &prof);
}

/// When no component was being started or stopped on this thread: GE is started last and stopped first, so that what is
/// outside of its second run and its last but one may be cut.
fn whole(calls: &[Span], thread: u64) -> (i64, i64) {
    let mut runs = named(calls, thread, "Model@ModelExecute");
    runs.sort_by_key(|run| run.begin);
    let [_, first, .., last, _] = &runs[..] else {
        panic!("{} runs", runs.len());
    };
    (first.begin, last.end)
}

fn named<'a>(calls: &'a [Span], thread: u64, name: &str) -> Vec<&'a Span> {
    let found = calls.iter();
    let found = found.filter(|call| call.thread == thread && call.name == name);
    found.collect()
}

fn threads(calls: &[Span]) -> BTreeSet<u64> {
    calls.iter().map(|call| call.thread).collect()
}

fn check_nesting(calls: &[Span]) {
    assert_eq!(threads(calls).len(), 2, "one for each stream");
    for thread in threads(calls) {
        let (from, to) = whole(calls, thread);
        for (inner, outer) in NESTED {
            let outer = named(calls, thread, outer);
            let mut inners = named(calls, thread, inner);
            inners.retain(|call| call.begin >= from && call.end <= to);
            assert!(!inners.is_empty(), "no {inner} on thread {thread}");
            for call in inners {
                assert!(outer.iter().any(|outer| call.is_within(outer)), "{call:?}");
            }
        }
    }
}

/// What ran on the device says the connection of the launch of that operator, and each launch is connected.
fn check_connections(calls: &[Span], others: &[Span]) {
    let connection = |span: &Span| span.args["connection_id"].as_u64();
    let all = threads(calls)
        .into_iter()
        .map(|thread| whole(calls, thread));
    let (from, to) = all
        .reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)))
        .expect("threads");
    let mut launches = BTreeMap::new();
    for launch in calls.iter().filter(|call| call.name == "Node@launch") {
        let item = launch.args["item_id"].as_str().expect("a name");
        assert!(item.parse::<u64>().is_err(), "{item} is no name");
        let id = connection(launch).expect("a connection");
        assert!(launches.insert(id, (item, launch)).is_none(), "{launch:?}");
    }
    let operators: BTreeSet<&str> = launches.values().map(|(item, _)| *item).collect();
    let mut connected = BTreeSet::new();
    for span in others {
        if span.begin < from || span.end > to || !operators.contains(&*span.name) {
            continue;
        }
        let (item, launch) = connection(span)
            .and_then(|id| launches.get(&id))
            .expect("a launch");
        assert_eq!(*item, span.name);
        // It is said to have run when the host submitted it.
        assert!(
            (launch.begin..=launch.end).contains(&span.begin),
            "{span:?} of {launch:?}"
        );
        connected.extend(connection(span));
    }
    let whole = launches.values().map(|(_, launch)| *launch);
    let whole: BTreeSet<u64> = whole
        .filter(|launch| launch.begin >= from && launch.end <= to)
        .filter_map(connection)
        .collect();
    assert!(!whole.is_empty());
    assert!(whole.is_subset(&connected), "{whole:?} in {connected:?}");
}

/// Every load that is whole has the operators that were fused when its model was built.
fn check_models(prof: &Prof, calls: &[Span]) {
    let loads = calls
        .iter()
        .filter(|call| call.name == "Model@ModelLoad")
        .count() as u64;
    assert_eq!(loads, event_pairs(prof, "ModelLoad"));
    assert!(loads > 0);
    let csv = exported(&prof.path, "fusion_op_", ".csv").expect("fusion_op csv");
    let rows = rows(&csv);
    let mut of_model: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in &rows {
        assert_eq!(row["Model Name"], "mlp");
        let fused: Vec<&str> = row["Original Ops"].split(';').collect();
        assert_eq!(fused.len(), 2);
        assert!(
            fused[0].starts_with("mlp/MatMul_") && fused[1].starts_with("mlp/Relu_"),
            "{row:?}"
        );
        assert_eq!(row["Fusion Op"], format!("{}_fused", fused[0]));
        let names = of_model.entry(row["Model ID"].clone()).or_default();
        assert!(names.insert(row["Fusion Op"].clone()), "{row:?} twice");
    }
    assert_eq!(of_model.len() as u64, loads);
    let counts: BTreeSet<usize> = of_model.values().map(BTreeSet::len).collect();
    assert_eq!(counts.len(), 1, "{of_model:?}");
}

fn check_marks(capture: &Capture, prof: &Prof) {
    let marks = prof.additional("msproftx");
    assert!(!marks.is_empty());
    assert!(capture.window.records()["msproftx"] > 0);
    let csv = exported(&prof.path, "msprof_tx_", ".csv").expect("msprof_tx csv");
    let rows = rows(&csv);
    assert_eq!(rows.len(), marks.len());
    for row in rows {
        assert_eq!(
            (&*row["message"], &*row["event_type"]),
            ("inference", "push/pop")
        );
    }
}
