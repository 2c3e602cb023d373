//! `msprof summary`: what it shows of directories that the agent's own writer has made.

mod support;

use msprof_agent_core::ledger::{CaptureState, ThreadLedger};
use msprof_agent_core::records::{Trace, level};
use std::path::Path;
use support::*;

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
            "Level    API           Count  Total(us)  Mean(us)   P50(us)   P99(us)   Max(us)",
            "model    ModelExecute      1   1000.250  1000.250  1000.250  1000.250  1000.250",
            "acl      aclrtMalloc       1      9.000     9.000     9.000     9.000     9.000",
            "runtime  LaunchKernel      2      3.000     1.500     0.501     2.500     2.500",
            "node     77                1      0.001     0.001     0.001     0.001     0.001",
            "",
            "Model  Name  Runs  Runs/s  Mean(us)   P50(us)   P99(us)   Max(us)",
            "0      -        1     0.4  1000.250  1000.250  1000.250  1000.250",
            "model runs: 1, 0.4 per second",
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
    capture.name(level::RUNTIME, 1, "evil\u{1b}[2J\u{7}na\u{202e}me");
    capture.name(level::RUNTIME, 2, &"long".repeat(500));
    capture.call(level::RUNTIME, 1, 0, 2_000);
    capture.call(level::RUNTIME, 2, 0, 1_000);
    let path = capture.finish();
    let ended = summary(&lab, &[&path]);
    ended
        .exits(0)
        .says("runtime  evil [2J na me ")
        .says(&format!("runtime  {}l...  ", "long".repeat(11)));
    assert!(!ended.out.contains(['\u{1b}', '\u{7}', '\u{202e}']));
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
    let row = |tid| ThreadLedger {
        tid,
        ..ThreadLedger::default()
    };
    ledger.threads = vec![row(11), row(12), row(0)];
    ledger.notes = vec!["the disk was full\u{1b}[0m".to_owned()];
    let path = capture.finish();
    assert_eq!(
        lines(&lab, &path)[2..8],
        [
            "records: 1 (runtime-api 1)",
            "40 bytes of data from 2 threads and others",
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
    killed.write_ledger();
    let path = killed.dir.path().to_owned();
    drop(killed);
    let shown = lines(&lab, &path);
    assert_eq!(
        shown[1],
        "capture 1 of pid 4321: still running, or its process was killed"
    );
    assert_eq!(
        shown[5],
        format!(
            "not finished: if the process has ended, run msprof recover {}",
            path.display()
        )
    );
    let end = [
        "no calls were captured",
        "events without a partner (cut by the edges of the window): 1",
        "calls that begin at time 0, which the parser drops: 1",
    ];
    assert_eq!(shown[7..10], end);

    let mut failed = Capture::new(&lab);
    failed.ledger.state = CaptureState::Failed;
    failed.write_ledger();
    let path = failed.finish_without_ledger();
    assert_eq!(lines(&lab, &path)[1], "capture 1 of pid 4321: ended early");
}

#[test]
fn what_is_no_record_is_counted_and_gigabytes_of_nothing_take_no_time() {
    let lab = Lab::new();
    let mut capture = Capture::new(&lab);
    capture.call(level::RUNTIME, 1, 0, 1_000);
    let path = capture.finish();
    let data = path.join("host/data");
    std::fs::write(data.join("unaging.api_event.data.slice_1"), [0xA5; 80]).expect("written");
    let hole = std::fs::File::create(data.join("unaging.api_event.data.slice_2")).expect("made");
    hole.set_len(3 << 30).expect("a hole");
    let began = std::time::Instant::now();
    let shown = lines(&lab, &path);
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
    let left_out = format!(
        "left out, since they are no records (torn, or not written by an agent): {}",
        2 + (3u64 << 30) / 40
    );
    assert!(shown.contains(&left_out), "{shown:#?}");
    let refused = shown
        .iter()
        .filter(|line| line.starts_with("the parser may refuse"));
    assert_eq!(refused.count(), 3, "{shown:#?}");
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
            "Level    API  Count  Total(us)  Mean(us)  P50(us)  P99(us)  Max(us)",
            "runtime  1        1      1.000     1.000    1.000    1.000    1.000",
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
fn what_cannot_be_read_is_said_and_the_rest_is_shown() {
    let lab = Lab::new();
    let mut capture = Capture::new(&lab);
    capture.name(level::RUNTIME, 1001, "LaunchKernel");
    capture.call(level::RUNTIME, 1001, 1_000, 3_500);
    let whole = capture.finish();
    let shown = summary(&lab, &[&whole]);
    let tables = shown.out.split_once("\n\n").expect("tables").1;
    assert!(tables.contains("LaunchKernel"), "{tables}");
    std::fs::write(whole.join("msprof_agent.json"), "{").expect("written");
    let ended = summary(&lab, &[&whole]);
    ended
        .exits(1)
        .warns("not all is here")
        .warns("msprof_agent.json is damaged")
        .says("no ledger that could be read");
    let again = ended.out.split_once("\n\n").expect("tables").1;
    assert!(again.starts_with(tables), "{again}");
    let slice = whole.join("host/data/aging.api_event.data.slice_77");
    std::fs::create_dir(slice).expect("made");
    let ended = summary(&lab, &[&whole]);
    ended.exits(1).warns("aging.api_event.data.slice_77");
}

#[test]
fn what_is_no_capture_is_refused_on_one_line() {
    let lab = Lab::new();
    let file = lab.path("file");
    std::fs::write(&file, "x").expect("written");
    let home = lab.path("home");
    let missing = lab.path("none");
    let cases: [(&[&Path], i32, &str); 7] = [
        (&[&home], 1, "is not a PROF_XXX directory"),
        (&[&missing], 1, "No such file or directory"),
        (&[&file], 1, "Not a directory"),
        (&[], 2, "summary takes one directory"),
        (&[&home, &file], 2, "summary takes one directory"),
        (&[Path::new("--pid=1")], 2, "no option \"--pid=1\""),
        (&[Path::new("")], 2, "\"\" is no directory"),
    ];
    for (arguments, code, part) in cases {
        let ended = summary(&lab, arguments);
        ended.exits(code).warns(part);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert_eq!(ended.out, "");
    }
    let help = summary(&lab, &[Path::new("--help")]);
    help.exits(0)
        .says("usage: msprof summary [--json] <PROF_XXX>");
}
