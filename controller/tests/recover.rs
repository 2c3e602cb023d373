//! `msprof recover`: what it says of directories of killed processes, and which it leaves alone.

mod support;

use msprof_agent_core::ledger::{Anchor, CaptureState, Ledger};
use msprof_agent_core::profdir::check::check;
use msprof_agent_core::profdir::reader::Profile;
use msprof_agent_core::profdir::{Place, ProfDir, Setup};
use msprof_agent_core::records::{ApiRecord, MAGIC, Trace, TraceCounts, level};
use serde_json::Value;
use std::path::{Path, PathBuf};
use support::*;
use zerocopy::IntoBytes;

/// CLOCK_MONOTONIC_RAW at the start of captures made here, ns: soon after the boot, and processes that
/// began later are looked for in vain.
const START_NS: u64 = 1_000_000_000;

fn anchor(after: u64) -> Anchor {
    Anchor {
        ticks: START_NS + after,
        monotonic_raw_ns: START_NS + after,
        realtime_ns: 1_700_000_000_000_000_000 + after,
        cpu_counter: 7,
    }
}

/// What a summary says of the losses of a capture made here.
const LOSSES: &str = "\nlost until the last account: 1 records (runtime-api 1)\nlost after it (made 0.750001 s before the last record): not known\n";

/// A process id that no process has.
fn nobody() -> u32 {
    let mut sleeper = Sleeper::new();
    sleeper.kill();
    sleeper.pid()
}

/// A directory in the making with two records, one of them lost, as an account of 0.25 s after the start
/// has it.
fn capture(lab: &Lab, pid: u32, start: Anchor) -> ProfDir {
    let setup = Setup {
        parent: lab.path("out"),
        pid,
        start,
        ..Setup::default()
    };
    let mut dir = ProfDir::create(setup).expect("made");
    let names = dir.family(Place::Host, "unaging.additional.type_info_dic", None);
    dir.append(names, b"5000_1:KernelLaunch\n", &TraceCounts::default())
        .expect("appended");
    let family = dir.family(Place::Host, "unaging.api_event.data", Some(40));
    for number in 1..=2 {
        let begin = start.monotonic_raw_ns + number * 500_000_000;
        let record = ApiRecord {
            magic: MAGIC,
            level: level::RUNTIME,
            kind: 1,
            thread_id: 9,
            request_id: 0,
            begin,
            end: begin + 1_000,
            item_id: 0,
        };
        let mut counts = TraceCounts::default();
        counts.add(Trace::RuntimeApi, 1);
        dir.append(family, record.as_bytes(), &counts)
            .expect("appended");
    }
    let mut ledger = Ledger {
        pid,
        capture: 1,
        start,
        accounted: Some(Anchor {
            monotonic_raw_ns: start.monotonic_raw_ns + 250_000_000,
            ..start
        }),
        ..Ledger::default()
    };
    ledger.lost.add(Trace::RuntimeApi, 1);
    dir.write_ledger(&ledger).expect("written");
    dir
}

/// The directory of a process that is dead, with a torn record at the end of its slice.
fn killed(lab: &Lab) -> PathBuf {
    let path = capture(lab, nobody(), anchor(0)).path().to_owned();
    let slice = path.join("host/data/unaging.api_event.data.slice_0");
    let mut bytes = std::fs::read(&slice).expect("a slice");
    bytes.extend_from_slice(&[0x5A; 13]);
    std::fs::write(slice, bytes).expect("written");
    path
}

fn recover(lab: &Lab, arguments: &[&Path]) -> Ended {
    let mut command = lab.msprof();
    command.arg("recover").args(arguments);
    Run::start(command).ended()
}

#[test]
fn a_killed_capture_is_finished_and_the_loss_is_told() {
    let lab = Lab::new();
    let path = killed(&lab);
    let mut command = lab.msprof();
    command.arg("summary").arg(&path);
    let before = Run::start(command).ended();
    before
        .exits(0)
        .says(&format!("run msprof recover {}", path.display()));

    let ended = recover(&lab, &[&path]);
    ended.exits(0);
    assert_eq!(ended.err, "");
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(
        lines,
        [
            format!("{}: recovered", path.display()).as_str(),
            "  kept: 2 records (runtime-api 2)",
            "  bytes of data: 100",
            "  host/data/unaging.api_event.data.slice_0: cut off: 13 bytes of torn or unreadable records",
            "  host/end_info: made",
            "  .done files written: 3",
            "  last record: 1.000001 s after the start",
            "  lost until the last account: 1 records (runtime-api 1)",
            "  lost after it (made 0.750001 s before the last record): not known",
            "  not in the directory: about the last 20 ms before the kill, whose records were still in memory",
        ]
    );
    assert_eq!(check(&path), []);
    let ledger = Profile::open(&path).expect("opens").ledger();
    let ledger = ledger.expect("readable").expect("there");
    assert_eq!(ledger.state, CaptureState::Recovered);

    let mut command = lab.msprof();
    command.arg("summary").arg(&path);
    let after = Run::start(command).ended();
    after
        .exits(0)
        .says("its process was killed; recovered, 1.000 s\n")
        .says(LOSSES);
    let again = recover(&lab, &[&path]);
    again.exits(0);
    let lines: Vec<&str> = again.out.lines().collect();
    assert_eq!(
        lines,
        [
            format!("{}: recovered before, nothing to recover", path.display()).as_str(),
            "  kept: 2 records (runtime-api 2)",
            "  bytes of data: 100",
            "  last record: 1.000001 s after the start",
            "  lost until the last account: 1 records (runtime-api 1)",
            "  lost after it (made 0.750001 s before the last record): not known",
        ]
    );
}

#[test]
fn what_has_to_be_removed_first_is_named_with_a_status_of_its_own() {
    let lab = Lab::new();
    let path = killed(&lab);
    let second = path.join("host/info.json.old");
    std::fs::write(&second, "{}").expect("written");
    for _ in 0..2 {
        recover(&lab, &[&path]).exits(1).says(
            "  host/info.json.old: left as it is, it passes for a control file, of which the parser wants one: remove it\n",
        );
    }
    std::fs::remove_file(second).expect("removed");
    recover(&lab, &[&path]).exits(0);
    assert_eq!(check(&path), []);
}

#[test]
fn a_directory_near_captures_is_refused_with_their_names() {
    let lab = Lab::new();
    let first = killed(&lab);
    let near = [first.join("host"), lab.path("")];
    let named = [
        format!("is a part of {}: name that", first.display()),
        format!("name the one below it: {}", first.display()),
    ];
    for (path, named) in near.iter().zip(&named) {
        for verb in ["recover", "summary"] {
            let mut command = lab.msprof();
            command.arg(verb).arg(path);
            let ended = Run::start(command).ended();
            ended.exits(1).warns(named);
            assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        }
    }
    let second = killed(&lab);
    let mut both = [first, second].map(|path| path.display().to_string());
    both.sort();
    recover(&lab, &[&lab.path("")]).exits(1).warns(&format!(
        "below it are 2, name one of them: {}",
        both.join(", ")
    ));
    recover(&lab, &[&lab.path("home")])
        .exits(1)
        .warns("holds neither host nor device_<id>\n");
}

#[test]
fn every_capture_in_a_parent_is_finished_and_those_that_are_not_are_named() {
    let lab = Lab::new();
    let out = lab.path("out");
    let first = killed(&lab);
    let second = killed(&lab);
    let stock = out.join("PROF_000009_stock");
    std::fs::create_dir_all(stock.join("host/data")).expect("made");
    std::os::unix::fs::symlink(&first, out.join("PROF_000010_link")).expect("link");
    let ended = recover(&lab, &[&out]);
    ended.exits(1).warns("was not made by this agent");
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    for path in [&first, &second] {
        ended.says(&format!("{}: recovered\n", path.display()));
        assert_eq!(check(path), []);
    }
    assert_eq!(ended.out.matches(": recovered\n").count(), 2);
    std::fs::remove_dir_all(stock).expect("removed");
    recover(&lab, &[&out, &first]).exits(0);
}

#[test]
fn a_capture_that_its_process_still_writes_is_refused() {
    let lab = Lab::new();
    let start = msprof_agent_core::clock::anchor();
    // This process holds the directory.
    let dir = capture(&lab, std::process::id(), start);
    let ended = recover(&lab, &[dir.path()]);
    let pid = std::process::id();
    ended
        .exits(1)
        .warns(&format!("is still being written by process {pid}: stop"));
    assert!(!dir.path().join("host/end_info").exists());
}

#[test]
fn a_capture_of_another_host_is_recovered_only_by_force() {
    let lab = Lab::new();
    let path = killed(&lab);
    let info = path.join("host/info.json");
    let text = std::fs::read_to_string(&info).expect("info.json");
    let mut map: Value = serde_json::from_str(&text).expect("JSON");
    map["hostname"] = "far-away".into();
    std::fs::write(&info, map.to_string()).expect("written");
    let ended = recover(&lab, &[&path]);
    ended
        .exits(1)
        .warns("was made on host far-away")
        .warns("--force");
    recover(&lab, &[Path::new("--force"), &path])
        .exits(0)
        .says(": recovered\n");
}

#[test]
fn the_result_is_one_object_where_json_is_asked_for() {
    let lab = Lab::new();
    let path = killed(&lab);
    let missing = lab.path("missing");
    let ended = recover(&lab, &[Path::new("--json"), &path, &missing]);
    ended.exits(1).warns("No such file or directory");
    assert_eq!(ended.out.lines().count(), 1);
    let object: Value = serde_json::from_str(&ended.out).expect("JSON");
    let [done, refused] = object["directories"].as_array().expect("a list").as_slice() else {
        panic!("two directories: {object}");
    };
    assert_eq!(done["done"], "recovered");
    assert_eq!(done["path"], path.to_str().expect("UTF-8"));
    assert_eq!(done["kept"]["runtime-api"], 2);
    assert_eq!(done["lost"]["runtime-api"], 1);
    assert_eq!(done["lost_after_account_known"], false);
    assert_eq!(done["recovered_before"], false);
    assert_eq!(done["account_ns"], 250_000_000);
    assert_eq!(done["last_record_ns"], 1_000_001_000);
    assert_eq!(done["cut"][0]["bytes"], 13);
    assert_eq!(refused["done"], "refused");
    assert!(refused["error"].as_str().expect("text").contains("missing"));

    let again = recover(&lab, &[Path::new("--json"), &path]);
    let object: Value = serde_json::from_str(&again.out).expect("JSON");
    let again = &object["directories"][0];
    assert_eq!(again["done"], "nothing");
    assert_eq!(again["recovered_before"], true);
    for key in [
        "kept",
        "lost",
        "lost_after_account_known",
        "account_ns",
        "last_record_ns",
    ] {
        assert_eq!(again[key], done[key], "{key}");
    }
}

#[test]
fn wrong_usage_is_told_on_one_line() {
    let lab = Lab::new();
    let cases: [(&[&Path], &str); 3] = [
        (&[], "recover takes a directory"),
        (&[Path::new("--pid=1")], "no option \"--pid=1\""),
        (&[Path::new("")], "\"\" is no directory"),
    ];
    for (arguments, part) in cases {
        let ended = recover(&lab, arguments);
        ended.exits(2).warns(part);
        assert_eq!((ended.err.lines().count(), ended.out.as_str()), (1, ""));
    }
    let help = recover(&lab, &[Path::new("--help")]);
    help.exits(0)
        .says("usage: msprof recover [--json] [--force]");
}
