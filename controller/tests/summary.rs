//! `msprof summary`: what it shows of directories that the agent's own writer has made.

mod support;

use msprof_agent_core::ledger::{Anchor, CaptureState, Ledger, ThreadLedger};
use msprof_agent_core::profdir::{Place, ProfDir, Setup};
use msprof_agent_core::records::{ApiRecord, MAGIC, Trace, TraceCounts, level};
use std::path::{Path, PathBuf};
use support::*;
use zerocopy::IntoBytes;

/// CLOCK_MONOTONIC_RAW at the start of every capture made here, ns.
const START_NS: u64 = 1_000_000_000_000;

fn anchor(after: u64) -> Anchor {
    Anchor {
        ticks: START_NS + after,
        monotonic_raw_ns: START_NS + after,
        realtime_ns: 1_700_000_000_000_000_000 + after,
        cpu_counter: 7,
    }
}

/// A capture in the making.
struct Capture {
    dir: ProfDir,
    ledger: Ledger,
}

impl Capture {
    fn new(lab: &Lab) -> Capture {
        let setup = Setup {
            parent: lab.path("out"),
            pid: 4321,
            start: anchor(0),
            ..Setup::default()
        };
        Capture {
            dir: ProfDir::create(setup).expect("made"),
            ledger: Ledger {
                pid: 4321,
                capture: 1,
                start: anchor(0),
                ..Ledger::default()
            },
        }
    }

    /// A call that begins and ends so many ns after the start.
    fn call(&mut self, lvl: u16, kind: u32, begin: u64, end: u64) {
        self.record(lvl, kind, START_NS + begin, START_NS + end);
    }

    /// One half of a pair of events.
    fn event(&mut self, lvl: u16, kind: u32, at: u64) {
        self.record(lvl, kind, START_NS + at, ApiRecord::EVENT_END);
    }

    fn record(&mut self, lvl: u16, kind: u32, begin: u64, end: u64) {
        let record = ApiRecord {
            magic: MAGIC,
            level: lvl,
            kind,
            thread_id: 4321,
            request_id: 0,
            begin,
            end,
            item_id: 0,
        };
        let trace = Trace::of(lvl, true).expect("readable");
        let mut counts = TraceCounts::default();
        counts.add(trace, 1);
        self.ledger.written.add(trace, 1);
        let name = "unaging.api_event.data";
        let family = self.dir.family(Place::Host, name, Some(40));
        let appended = self.dir.append(family, record.as_bytes(), &counts);
        appended.expect("appended");
    }

    /// A line of the type dictionary, as it is: a hostile directory keeps no rules.
    fn name(&mut self, lvl: u16, kind: u32, name: &str) {
        let dictionary = "unaging.additional.type_info_dic";
        let family = self.dir.family(Place::Host, dictionary, None);
        let line = format!("{lvl}_{kind}:{name}\n");
        let appended = self
            .dir
            .append(family, line.as_bytes(), &TraceCounts::default());
        appended.expect("appended");
    }

    /// Ends it after two and a half seconds, with a ledger.
    fn finish(mut self) -> PathBuf {
        let stop = anchor(2_500_000_000);
        self.ledger.stop = Some(stop);
        self.ledger.state = CaptureState::Complete;
        self.ledger.bytes = self.dir.bytes();
        self.dir.write_ledger(&self.ledger).expect("written");
        self.finish_without_ledger()
    }

    fn finish_without_ledger(mut self) -> PathBuf {
        self.dir.finish(anchor(2_500_000_000)).expect("finished");
        self.dir.path().to_owned()
    }
}

fn summary(lab: &Lab, arguments: &[&Path]) -> Ended {
    let mut command = lab.msprof();
    command.arg("summary").args(arguments);
    Run::start(command).ended()
}

/// The lines of a summary that was shown.
#[track_caller]
fn lines(lab: &Lab, path: &Path) -> Vec<String> {
    let ended = summary(lab, &[path]);
    ended.exits(0);
    assert_eq!(ended.err, "");
    ended.out.lines().map(str::to_owned).collect()
}

#[test]
fn calls_and_pairs_of_events_are_listed_by_total_time() {
    let lab = Lab::new();
    let mut capture = Capture::new(&lab);
    capture.name(level::RUNTIME, 1001, "LaunchKernel");
    capture.name(level::ACL, 7, "aclrtMalloc");
    capture.name(level::MODEL, 9, "ModelExecute");
    capture.call(level::RUNTIME, 1001, 1_000, 3_500);
    capture.call(level::RUNTIME, 1001, 4_000, 4_500);
    capture.call(level::ACL, 7, 900, 9_900);
    capture.event(level::MODEL, 9, 1_000);
    capture.event(level::MODEL, 9, 1_001_250);
    // A type without a name.
    capture.call(level::NODE, 77, 10_000, 10_001);
    let path = capture.finish();
    let bytes = 6 * 40 + dictionary_bytes(&path);
    assert_eq!(
        lines(&lab, &path),
        [
            path.display().to_string().as_str(),
            "capture 1 of pid 4321: complete, 2.500 s",
            "records: 6 (runtime-api 2, model-execution 2, acl 1, task 1)",
            &format!("{bytes} bytes of data from 0 threads"),
            "lost: 0",
            "",
            "Level         API              Count     Total(us)    Mean(us)     Min(us)     Max(us)",
            "model         ModelExecute         1      1000.250    1000.250    1000.250    1000.250",
            "acl           aclrtMalloc          1         9.000       9.000       9.000       9.000",
            "runtime       LaunchKernel         2         3.000       1.500       0.500       2.500",
            "node          77                   1         0.001       0.001       0.001       0.001",
        ]
    );
}

/// Bytes of the type dictionary: it is a family as well.
fn dictionary_bytes(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path.join("host/data")).expect("data");
    let files = entries.map(|entry| entry.expect("entry"));
    let dictionary = files.filter(|file| {
        let name = file.file_name().into_string().expect("UTF-8");
        name.contains("type_info_dic") && !name.ends_with(".done")
    });
    dictionary
        .map(|file| file.metadata().expect("size").len())
        .sum()
}

#[test]
fn names_are_shown_without_control_characters_and_cut_when_they_are_long() {
    let lab = Lab::new();
    let mut capture = Capture::new(&lab);
    capture.name(level::RUNTIME, 1, "evil\u{1b}[2J\u{7}name");
    capture.name(level::RUNTIME, 2, &"long".repeat(500));
    capture.call(level::RUNTIME, 1, 0, 2_000);
    capture.call(level::RUNTIME, 2, 0, 1_000);
    let path = capture.finish();
    let ended = summary(&lab, &[&path]);
    ended
        .exits(0)
        .says("runtime       evil [2J name ")
        .says(&format!("runtime       {}l... ", "long".repeat(11)));
    assert!(!ended.out.contains(['\u{1b}', '\u{7}']));
    assert!(ended.out.lines().skip(1).all(|line| line.len() < 140));
}

#[test]
fn losses_and_notes_of_the_ledger_are_told() {
    let lab = Lab::new();
    let mut capture = Capture::new(&lab);
    capture.call(level::RUNTIME, 1, 0, 1_000);
    let ledger = &mut capture.ledger;
    ledger.lost.add(Trace::RuntimeApi, 5);
    ledger.lost.add(Trace::Task, 2);
    ledger.aged_out.add(Trace::Aicpu, 3);
    ledger.unreadable = 4;
    let thread = |tid| ThreadLedger {
        tid,
        ..ThreadLedger::default()
    };
    ledger.threads = vec![thread(1), thread(2)];
    ledger.notes = vec!["the disk was full\u{1b}[0m".to_owned()];
    let path = capture.finish();
    assert_eq!(
        lines(&lab, &path)[2..8],
        [
            "records: 1 (runtime-api 1)",
            "40 bytes of data from 2 threads",
            "lost: 7 (runtime-api 5, task 2)",
            "deleted for the storage limit: 3 (aicpu 3)",
            "refused, since the parser cannot read them: 4",
            "note: the disk was full [0m",
        ]
    );
}

#[test]
fn a_capture_that_was_cut_off_or_failed_says_so() {
    let lab = Lab::new();
    let mut killed = Capture::new(&lab);
    killed.event(level::MODEL, 9, 1_000);
    killed.record(level::RUNTIME, 1, 0, START_NS);
    killed.dir.write_ledger(&killed.ledger).expect("written");
    let path = killed.dir.path().to_owned();
    drop(killed);
    let shown = lines(&lab, &path);
    assert_eq!(
        shown[1],
        "capture 1 of pid 4321: still running, or its process was killed"
    );
    let end = [
        "no calls were captured",
        "events without a partner (cut by the edges of the window): 1",
        "calls that begin at time 0, which the parser drops: 1",
    ];
    assert_eq!(shown[6..9], end);

    let mut failed = Capture::new(&lab);
    failed.ledger.state = CaptureState::Failed;
    failed.dir.write_ledger(&failed.ledger).expect("written");
    let path = failed.finish_without_ledger();
    assert_eq!(lines(&lab, &path)[1], "capture 1 of pid 4321: ended early");
}

#[test]
fn without_a_ledger_the_losses_are_not_known() {
    let lab = Lab::new();
    let mut capture = Capture::new(&lab);
    capture.call(level::RUNTIME, 1, 0, 1_000);
    let path = capture.finish_without_ledger();
    assert_eq!(
        lines(&lab, &path),
        [
            path.display().to_string().as_str(),
            "40 bytes of data; no ledger (not made by this agent), so losses are not known",
            "",
            "Level         API     Count     Total(us)    Mean(us)     Min(us)     Max(us)",
            "runtime       1           1         1.000       1.000       1.000       1.000",
        ]
    );
}

#[test]
fn many_names_are_cut_with_a_sum_of_the_rest() {
    let lab = Lab::new();
    let mut capture = Capture::new(&lab);
    for kind in 1..=32 {
        capture.call(level::RUNTIME, kind, 0, 1_000 * u64::from(kind));
    }
    let path = capture.finish();
    let shown = lines(&lab, &path);
    assert_eq!(shown.len(), 5 + 2 + 30 + 1);
    assert_eq!(shown[37], "... and 2 more names with 2 calls");
}

#[test]
fn the_only_capture_in_a_directory_is_taken_and_several_are_named() {
    let lab = Lab::new();
    let out = lab.path("out");
    let first = Capture::new(&lab).finish();
    let shown = lines(&lab, &out);
    assert_eq!(shown[0], first.display().to_string());
    assert_eq!(shown.last().expect("lines"), "no calls were captured");

    let second = Capture::new(&lab).finish();
    let ended = summary(&lab, &[&out]);
    ended.exits(1).warns("holds 2 PROF directories, name one");
    for path in [first, second] {
        ended.warns(path.file_name().and_then(|n| n.to_str()).expect("name"));
    }
    assert_eq!((ended.out.as_str(), ended.err.lines().count()), ("", 1));
}

#[test]
fn what_is_no_capture_is_refused_on_one_line() {
    let lab = Lab::new();
    let file = lab.path("file");
    std::fs::write(&file, "x").expect("written");
    let damaged = Capture::new(&lab).finish();
    std::fs::write(damaged.join("msprof_agent.json"), "{").expect("written");
    let home = lab.path("home");
    let missing = lab.path("none");
    let cases: [(&[&Path], i32, &str); 8] = [
        (&[&home], 1, "is not a PROF_XXX directory"),
        (&[&missing], 1, "No such file or directory"),
        (&[&file], 1, "Not a directory"),
        (&[&damaged], 1, "msprof_agent.json is damaged"),
        (&[], 2, "summary takes one directory"),
        (&[&home, &file], 2, "summary takes one directory"),
        (&[Path::new("--pid=1")], 2, "\"--pid=1\" is no directory"),
        (&[Path::new("")], 2, "\"\" is no directory"),
    ];
    for (arguments, code, part) in cases {
        let ended = summary(&lab, arguments);
        ended.exits(code).warns(part);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert_eq!(ended.out, "");
    }
    let help = summary(&lab, &[Path::new("--help")]);
    help.exits(0).says("usage: msprof summary <PROF_XXX>");
}
