//! What of a directory is left out or cannot be right is named, once and with the way out, and the rest is exported.

mod support;

use msprof_export::db;
use msprof_export::text::Options;
use std::fs::{copy, create_dir_all, rename};
use support::full::prof;
use support::{Prof, at, call, events, problem};

const RUNTIME: u16 = 5000;

/// A directory with two slices of calls.
fn sliced() -> Prof {
    let prof = Prof::new().device();
    prof.host(
        "aging.api_event.data",
        &[call(RUNTIME, 1, 7, at(1), at(2), 0)],
    );
    prof.put(
        "host/data/aging.api_event.data.slice_1",
        &call(RUNTIME, 1, 7, at(3), at(4), 0),
    );
    prof.put("device_0/data/aicpu.data.0.slice_0", b"");
    prof
}

#[test]
fn a_slice_that_cannot_be_read_is_named_once_however_often_it_is_read() {
    let prof = prof();
    let record = prof
        .path()
        .join("host/data/aging.additional.task_memory_info.slice_0");
    let calls = prof.path().join("host/data/aging.api_event.data.slice_0");
    let source = prof.open();
    // Gone since the directory was listed.
    for path in [&record, &calls] {
        rename(path, path.with_extension("away")).expect("renamed");
    }
    let report = msprof_export::text::export(&source, &Options::default(), &mut |_| {});
    let database = db::export(&source, &mut |_| {}).expect("a database");
    for problems in [&report.problems, &database.problems(&source)] {
        for path in [&record, &calls] {
            let named = format!("cannot read {}", path.display());
            let found = problems.iter().filter(|problem| problem.contains(&named));
            assert_eq!(found.count(), 1, "{problems:#?}");
        }
    }
    assert!(report.failed.is_none() && report.calls == 4, "{report:?}");
}

#[test]
fn of_two_slices_or_devices_with_one_number_the_odd_one_is_named_and_left_out() {
    let prof = sliced();
    let data = prof.path().join("host/data");
    let slice = |name: &str| data.join(format!("aging.api_event.data.{name}"));
    for name in ["slice_00", "slice_0.old", "slice_01"] {
        copy(slice("slice_0"), slice(name)).expect("copied");
    }
    for device in ["device_00", "device_01", "device_1"] {
        create_dir_all(prof.path().join(device).join("data")).expect("made");
    }
    let report = prof.export(&Options::default());
    assert_eq!((report.calls, events(&prof, "msprof").len()), (2, 2));
    let said = problem(&report, "another one has the same number");
    assert!(said.contains("device_00, device_01, host/data/"), "{said}");
    assert!(
        said.ends_with(" and 2 more; remove or rename them, and export again"),
        "{said}"
    );
    assert_eq!(prof.open().profile().devices().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn numbers_beyond_32_bits_are_named_and_left_out() {
    let prof = sliced();
    prof.put("host/data/aging.api_event.data.slice_4294967296", b"");
    // Of no slice.
    prof.put("host/data/aging.api_event.data.slice_4294967296.done", b"");
    create_dir_all(prof.path().join("device_99999999999")).expect("made");
    create_dir_all(prof.path().join("device_x")).expect("made");
    let report = prof.export(&Options::default());
    assert_eq!(report.calls, 2);
    let said = problem(&report, "beyond 32 bits");
    let expected = "left out, since their numbers are beyond 32 bits: device_99999999999, \
         host/data/aging.api_event.data.slice_4294967296; remove or rename them, and export again";
    assert_eq!(said, expected);
}

#[test]
fn clocks_that_cannot_be_right_are_named_by_their_file() {
    let times = |edge: &str, wall: &str, monotonic: &str| {
        format!(r#"{{"collectionTime{edge}":"{wall}","clockMonotonicRaw":"{monotonic}"}}"#)
    };
    let (wall, later, max) = ("1700000000000000", "1700000009000000", u64::MAX.to_string());
    for (file, text, says) in [
        (
            "host/start_info",
            times("Begin", "0", "1000000000"),
            "0 us since 1970",
        ),
        (
            "host/start_info",
            times("Begin", &max, "1000000000"),
            &format!("{max} us since 1970"),
        ),
        (
            "host/start_info",
            times("Begin", wall, "0"),
            "no monotonic clock",
        ),
        (
            "host/end_info",
            times("End", later, "999999999"),
            "an end before the start",
        ),
        (
            "host/end_info",
            times("End", later, &max),
            &format!("{max} ns since the start of the machine"),
        ),
        ("host/end_info", "{}".to_owned(), "no end"),
        (
            "device_0/start_info.0",
            times("Begin", wall, "0"),
            "no monotonic clock",
        ),
        (
            "device_0/dev_start.log.0",
            "clock_monotonic_raw: 1\n".to_owned(),
            "no counter",
        ),
        (
            "device_0/dev_start.log.0",
            "cntvct: 18446744073709551615\n".to_owned(),
            &format!("{max} ticks of its counter"),
        ),
        (
            "device_0/host_start.log.0",
            "[Device0]\ncntvct: 1\n".to_owned(),
            "no monotonic clock",
        ),
    ] {
        let prof = sliced();
        assert!(prof.export(&Options::default()).is_complete());
        // Of a device that says nothing no clock is needed.
        let quiet = Prof::new().device();
        if file.contains("_start.log") {
            quiet.put(file, text.as_bytes());
        }
        assert!(quiet.export(&Options::default()).is_complete());
        prof.put(file, text.as_bytes());
        let report = prof.export(&Options::default());
        let said = problem(&report, "which cannot be right");
        assert_eq!(
            said,
            format!("{file} says {says}, which cannot be right: times are wrong")
        );
        assert!(report.failed.is_none() && report.calls == 2, "{report:?}");
        let database = db::export(&prof.open(), &mut |_| {}).expect("a database");
        assert!(
            database
                .problems(&prof.open())
                .iter()
                .any(|problem| problem == said)
        );
    }
}
