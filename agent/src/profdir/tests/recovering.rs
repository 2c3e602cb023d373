//! Directories of killed processes finished, in every state in which a kill or a power cut leaves them.

use super::check::{Severity, check};
use super::killed::*;
use super::reader::Profile;
use super::recover::{Done, Life, RecoverError, recover};
use super::*;
use crate::ledger::{CaptureState, Ledger};
use crate::records::Trace;

#[test]
fn a_killed_capture_is_finished_with_every_whole_record() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, total) = killed(temp.path());
    let whole = content(&dir);
    append(&dir, API, &[0x5A; 39]);
    append(&dir, "device_0/data/aicpu.data.0.slice_0", &[0x5A; 255]);
    append(
        &dir,
        "host/data/unaging.variable.capture_op_info.slice_0",
        &[0x5A; 30],
    );
    append(
        &dir,
        "host/data/unaging.additional.hash_dic.slice_0",
        b"77:half a na",
    );
    // Made, and killed before the first write to it.
    append(&dir, "host/data/aging.compact.new.slice_0", b"");
    append(&dir, "host/data/aging.compact.torn.slice_3", &[0x5A; 63]);
    let recovery = recovered(&dir);
    assert_whole(&dir);
    let now = content(&dir);
    for (file, bytes) in whole.iter().filter(|(file, _)| file.contains("slice_")) {
        assert!(now[file] == *bytes, "{file} holds what was whole");
    }
    assert!(
        !now.keys()
            .any(|file| file.contains("torn") || file.contains("new"))
    );
    assert_eq!(recovery.done, Done::Recovered);
    let mut cut: Vec<u64> = recovery.cut.iter().map(|cut| cut.bytes).collect();
    cut.sort_unstable();
    assert_eq!(cut, [0, 12, 30, 39, 63, 255]);
    assert_eq!((recovery.kept, recovery.lost.total()), (total, 7));
    assert_eq!(recovery.made.len(), 2, "{:?}", recovery.made);
    assert_eq!(recovery.account_ns, Some(ACCOUNT));
    // The scenario's latest record is a mark 11 ms after the start.
    let last = recovery.last_record_ns.expect("records");
    assert!(last > ACCOUNT && last < 20_000_000, "{last}");

    let ledger = ledger(&dir);
    assert_eq!(ledger.state, CaptureState::Recovered);
    assert_eq!((ledger.written, ledger.lost.get(Trace::Acl)), (total, 7));
    assert_eq!(ledger.reported.total(), total.total() + 7);
    assert_eq!(ledger.devices, [0]);
    let of_threads: u64 = ledger.threads.iter().map(|row| row.written.total()).sum();
    assert_eq!(of_threads, total.total());
    let end = ledger.recovered.expect("what is known of the end");
    assert_eq!((end.account_ns, end.cut_bytes), (Some(ACCOUNT), 399));
    let profile = Profile::open(&dir).expect("opens");
    let stop = profile.stop(Place::Host).expect("end_info");
    assert_eq!(stop.monotonic_ns, START_NS + last);
    assert_eq!(stop.wall_us, (START_WALL_NS + last) / 1_000);
    assert_eq!(profile.stop(Place::Device(0)), Some(stop));
    assert_eq!(
        (ledger.bytes, recovery.bytes),
        (profile.bytes(), profile.bytes())
    );
}

#[test]
fn a_second_recovery_changes_nothing_and_asks_for_no_process() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, total) = killed(temp.path());
    recovered(&dir);
    let before = content(&dir);
    let again = recover(&dir, |_| panic!("asked")).expect("nothing to do");
    assert_eq!((again.done, again.kept), (Done::Nothing, total));
    assert_eq!(content(&dir), before);
}

#[test]
fn a_complete_capture_is_left_as_it_is() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    let before = content(&dir);
    let recovery = recover(&dir, |_| panic!("asked")).expect("nothing to do");
    assert_eq!(recovery.done, Done::Nothing);
    assert_eq!(content(&dir), before);
}

#[test]
fn an_interrupted_recovery_can_be_run_again() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (broken, _) = killed(temp.path());
    append(&broken, API, &[0x5A; 39]);
    append(
        &broken,
        "host/data/aging.compact.memcpy_info.slice_0",
        &[0; 64],
    );
    let before = content(&broken);
    let make = |name: &str| {
        let dir = temp.path().join(name).join("PROF_000001_x");
        for (file, bytes) in &before {
            let path = dir.join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, bytes).expect("written");
        }
        dir
    };
    let whole = make("whole");
    recovered(&whole);
    let after = content(&whole);
    let differing: Vec<&String> = before
        .keys()
        .chain(after.keys())
        .filter(|file| before.get(*file) != after.get(*file))
        // Written last.
        .filter(|file| *file != LEDGER_FILE)
        .collect();
    assert!(differing.len() > 10);
    // After any number of its steps, with what it was about to write beside it.
    for steps in 0..differing.len() {
        let dir = make(&format!("after-{steps}"));
        for file in &differing[..steps] {
            match after.get(*file) {
                Some(bytes) => std::fs::write(dir.join(file), bytes).expect("written"),
                None => {
                    let _ = std::fs::remove_file(dir.join(file));
                }
            }
        }
        for place in ["", "host", "host/data"] {
            append(&dir.join(place), ".msprof_agent.recover.tmp", b"half");
        }
        recovered(&dir);
        let mut now = content(&dir);
        let mut expected = after.clone();
        // The bytes that were cut off are counted by who cut them off.
        for files in [&mut now, &mut expected] {
            files.remove(LEDGER_FILE);
        }
        let differs = |file: &&String| now.get(*file) != expected.get(*file);
        let files: Vec<_> = now.keys().chain(expected.keys()).filter(differs).collect();
        assert!(files.is_empty(), "after {steps} steps: {files:?}");
        assert_whole(&dir);
    }
}

#[test]
fn a_capture_whose_process_may_live_is_not_touched() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    append(&dir, API, &[0x5A; 39]);
    let before = content(&dir);
    for (life, word) in [
        (Life::Runs(77), "process 77"),
        (Life::Writes, "cannot be seen from here"),
        (Life::Elsewhere("far".to_owned()), "on host far"),
        (Life::Hidden(78), "process 78"),
    ] {
        let error = refused(&dir, life).to_string();
        assert!(error.contains(word), "{error}");
        assert_eq!(content(&dir), before);
    }
    // Whom to look for is in the directory.
    let error = recover(&dir, |maker| {
        assert_eq!((maker.pid, maker.start), (4321, anchor(0)));
        assert!(maker.host.is_some());
        Life::Runs(1)
    });
    assert!(error.is_err());
}

#[test]
fn a_directory_of_another_collector_or_none_is_refused() {
    let temp = tempfile::tempdir().expect("temporary directory");
    assert!(matches!(
        refused(temp.path(), Life::Dead),
        RecoverError::NotProfile { .. }
    ));
    let missing = refused(&temp.path().join("missing"), Life::Dead).to_string();
    assert!(missing.contains("No such file"), "{missing}");
    let (dir, _) = killed(temp.path());
    for file in [LEDGER_FILE, ".msprof_agent.reserve"] {
        std::fs::remove_file(dir.join(file)).expect("removed");
    }
    let before = content(&dir);
    assert!(matches!(
        refused(&dir, Life::Dead),
        RecoverError::NotOurs { .. }
    ));
    assert_eq!(content(&dir), before);
}

#[test]
fn a_process_killed_while_it_made_the_directory_leaves_nothing_to_recover() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let dir = temp.path().join("PROF_000007_x");
    std::fs::create_dir_all(dir.join("host")).expect("made");
    std::fs::write(dir.join(".msprof_agent.reserve"), "").expect("written");
    let error = refused(&dir, Life::Dead);
    assert!(matches!(error, RecoverError::NeverBegan { .. }), "{error}");
}

#[test]
fn without_a_readable_ledger_the_files_say_what_it_would() {
    for damage in ["", "{", "[1]", "{\"lost\":{\"acl\":-1}", "null"] {
        let temp = tempfile::tempdir().expect("temporary directory");
        let (dir, total) = killed(temp.path());
        std::fs::write(dir.join(LEDGER_FILE), damage).expect("written");
        let recovery = recovered(&dir);
        assert_eq!((recovery.kept, recovery.account_ns), (total, None));
        let ledger = ledger(&dir);
        assert_eq!((ledger.pid, ledger.capture), (4321, 1));
        assert_eq!(ledger.start.monotonic_raw_ns, START_NS);
        assert_whole(&dir);
    }
    // Killed between the directory and its first ledger.
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    std::fs::remove_file(dir.join(LEDGER_FILE)).expect("removed");
    recovered(&dir);
    assert_whole(&dir);
    assert!(!dir.join(".msprof_agent.reserve").exists());
}

#[test]
fn missing_and_damaged_control_files_are_made_anew() {
    let all = [
        "host/info.json",
        "host/sample.json",
        "host/start_info",
        "host/host_start.log",
        "device_0/info.json.0",
        "device_0/sample.json",
        "device_0/start_info.0",
        "device_0/host_start.log.0",
        "device_0/dev_start.log.0",
    ];
    for file in all {
        for damage in [None, Some(""), Some("{\"half\":"), Some("\0\0\0\0")] {
            let temp = tempfile::tempdir().expect("temporary directory");
            let (dir, _) = killed(temp.path());
            match damage {
                Some(text) => std::fs::write(dir.join(file), text).expect("written"),
                None => std::fs::remove_file(dir.join(file)).expect("removed"),
            }
            let recovery = recovered(&dir);
            assert!(recovery.made.contains(&dir.join(file)), "{file} {damage:?}");
            assert_whole(&dir);
        }
    }
}

#[test]
fn a_ledger_in_other_words_is_left_alone_and_a_damaged_one_is_kept() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    let path = dir.join("msprof_agent.json");
    let text = std::fs::read_to_string(&path).expect("a ledger");
    // Of a later release: another state, a field of another shape.
    for later in [
        text.replace("\"capturing\"", "\"suspended\""),
        text.replace("\"notes\":[]", "\"notes\":{}"),
        "{\"start\":[1,2]}".to_owned(),
    ] {
        std::fs::write(&path, &later).expect("written");
        let before = content(&dir);
        let error = recover(&dir, |_| Life::Dead).expect_err("left alone");
        assert!(
            matches!(error, RecoverError::OtherRelease { .. }),
            "{error}"
        );
        assert!(content(&dir) == before, "nothing is changed");
    }
    let half = &text[..text.len() / 2];
    std::fs::write(&path, half).expect("written");
    recovered(&dir);
    let kept = std::fs::read_to_string(dir.join("msprof_agent.json.damaged"));
    assert_eq!(kept.expect("kept"), half);
    assert_eq!(ledger(&dir).state, CaptureState::Recovered);
    assert_whole(&dir);
}

#[test]
fn a_device_directory_in_the_making_is_removed_and_an_empty_one_completed() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    std::fs::create_dir_all(dir.join(".profiler/device_1/data")).expect("made");
    std::fs::write(dir.join(".profiler/device_1/info.json.1"), "{").expect("written");
    std::fs::create_dir(dir.join("device_2")).expect("made");
    recovered(&dir);
    assert!(!dir.join(".profiler").exists());
    assert_whole(&dir);
    assert_eq!(ledger(&dir).devices, [0, 2]);
    let profile = Profile::open(&dir).expect("opens");
    assert_eq!(profile.start(Place::Device(2)), profile.start(Place::Host));
}

#[test]
fn pages_of_zeros_are_taken_out_of_the_middle() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, total) = killed(temp.path());
    let before = std::fs::read(dir.join(API)).expect("a slice");
    append(&dir, API, &[0; 4_000]);
    let (more, counts) = api_batch(1_000, 3);
    append(&dir, API, &more);
    let recovery = recovered(&dir);
    assert_eq!(recovery.kept.total(), total.total() + counts.total());
    assert_eq!(recovery.cut[0].bytes, 4_000);
    assert_eq!(
        std::fs::read(dir.join(API)).expect("a slice"),
        [before, more].concat()
    );
    assert!(
        check(&dir)
            .iter()
            .all(|found| found.severity < Severity::Fatal)
    );
}

#[test]
fn a_stop_that_was_cut_short_keeps_its_own_end() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    // Killed between end_info and the last ledger.
    put_ledger(
        &dir,
        &Ledger {
            pid: 4321,
            start: anchor(0),
            ..Ledger::default()
        },
    );
    recovered(&dir);
    let stop = ledger(&dir).stop.expect("a stop");
    assert_eq!(stop.monotonic_raw_ns, START_NS + 1_000_000_000);
    assert_whole(&dir);
    // The other way round: stopped on a full disk that took no end_info.
    let (dir, total) = scenario::write(temp.path());
    std::fs::remove_file(dir.join("device_0/end_info.0")).expect("removed");
    let recovery = recovered(&dir);
    assert_eq!(
        (recovery.done, recovery.kept.get(Trace::Acl)),
        (Done::Completed, total.get(Trace::Acl))
    );
    assert_eq!(ledger(&dir).state, CaptureState::Complete);
    assert_whole(&dir);
}

#[test]
fn an_earlier_export_is_pointed_out() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    std::fs::create_dir(dir.join("host/sqlite")).expect("made");
    assert!(recovered(&dir).exported);
}
