//! Damaged and foreign directories: what can be read is exported, and what is wrong is said.

mod support;

use msprof_export::source::Source;
use msprof_export::text::{Format, Options};
use serde_json::Value;
use support::full::prof;
use support::{Prof, Record, at, call, events, mark, problem, tree};

const RUNTIME: u16 = 5000;

#[test]
fn what_is_between_torn_and_foreign_records_is_exported() {
    let prof = Prof::new();
    let good = |number: u64| call(RUNTIME, 1, 7, at(number), at(number + 1), 0);
    let foreign = Record(good(2)).u16(0, 1).0;
    let mut torn = good(4);
    torn.truncate(17);
    prof.host("aging.api_event.data", &[good(1), foreign, good(3), torn]);
    let mut memory = Record::headed(256, 10000, 6, 7, at(1)).u64(32, 1);
    memory = memory.u16(0, 0xFFFF);
    prof.host("aging.additional.task_memory_info", &[memory.0]);
    let report = prof.export(&Options::default());
    assert_eq!((report.calls, report.skipped.foreign), (2, 1));
    problem(&report, "1 records of calls are torn or none");
    problem(&report, "1 records of task_memory_info are torn or none");
    problem(
        &report,
        "the last record is torn in aging.api_event.data.slice_0",
    );
    assert_eq!(events(&prof, "msprof").len(), 2);
    assert!(
        prof.exported("api_statistic", ".csv")
            .contains("host,runtime,1,2.0,2,1.0,1.0,1.0,0.0\n")
    );
}

#[test]
fn times_in_no_order_and_absurd_ones_are_numbers_like_others() {
    let prof = Prof::new();
    let calls = [
        call(RUNTIME, 1, 7, at(50), at(60), 0),
        call(RUNTIME, 1, 7, at(10), at(20), 0),
        call(RUNTIME, 2, 7, at(30), at(20), 0),
        call(RUNTIME, 3, 7, u64::MAX, u64::MAX - 1, 0),
        call(RUNTIME, 3, 7, 1, u64::MAX - 1, 0),
        call(4500, 3, 7, at(1), at(2), u64::MAX),
    ];
    prof.host("aging.api_event.data", &calls);
    prof.host(
        "aging.additional.msproftx",
        &[mark(None, 9, u64::MAX, 0, "m")],
    );
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    let durations: Vec<f64> = events(&prof, "msprof")
        .iter()
        .map(|event| event["dur"].as_f64().expect("a number"))
        .collect();
    assert_eq!(durations[..4], [10.0, 10.0, -10.0, -0.001]);
    // One lies before the start.
    assert_eq!(report.early, 1);
    let statistic = prof.exported("api_statistic", ".csv");
    assert!(
        statistic.contains("\nhost,runtime,2,-10.0,1,-10.0,-10.0,-10.0,0.0\n"),
        "{statistic}"
    );
    assert!(
        statistic.contains("\nhost,level_4500,3,1.0,1,"),
        "{statistic}"
    );
    assert!(
        prof.exported("msprof_tx", ".csv")
            .contains(",7,,0,0,20146744072709551.615\t,")
    );
}

#[test]
fn absurd_clocks_give_numbers_and_no_panic() {
    for (frequency, log, start) in [
        (
            "1e-300",
            "[Host]\nclock_monotonic_raw: 18446744073709551615\ncntvct: 0\n",
            "1",
        ),
        (
            "1e300",
            "[Host]\nclock_monotonic_raw: x\ncntvct: -5\n",
            "18446744073709551615",
        ),
        ("nan", "", "18446744073709551615"),
        (
            "100",
            "[Host]\nclock_monotonic_raw: 7\ncntvct: 18446744073709551615\n",
            "0",
        ),
    ] {
        let prof = prof().device();
        let info = format!(r#"{{"CPU":[{{"Frequency":"{frequency}"}}],"version":"1.0"}}"#);
        prof.put("host/info.json", info.as_bytes());
        prof.put("host/host_start.log", log.as_bytes());
        let clocks = format!(
            r#"{{"collectionTimeBegin":"{start}","clockMonotonicRaw":"18446744073709551615"}}"#
        );
        prof.put("host/start_info", clocks.as_bytes());
        prof.put("device_0/start_info.0", clocks.as_bytes());
        prof.put("device_0/dev_start.log.0", b"cntvct: 1e308\n");
        prof.put(
            "device_0/info.json.0",
            format!(r#"{{"platform_version":"5","DeviceInfo":[{{"hwts_frequency":"{frequency}","aic_frequency":"{frequency}"}}]}}"#).as_bytes(),
        );
        let node = Record::headed(256, 6000, 0, 0, 0)
            .u64(40, u64::MAX)
            .u64(80, 1)
            .u64(120, u64::MAX);
        prof.put("device_0/data/aicpu.data.0.slice_0", &node.0);
        let report = prof.export(&Options::default());
        assert!(report.failed.is_none(), "{frequency}: {report:?}");
        for file in report
            .files
            .iter()
            .filter(|file| file.file.ends_with(".json"))
        {
            let text = std::fs::read_to_string(prof.output().join(&file.file)).expect("read");
            serde_json::from_str::<Value>(&text)
                .unwrap_or_else(|error| panic!("{frequency}: {error}"));
        }
    }
}

#[test]
fn a_directory_without_a_host_exports_what_its_device_reports() {
    let prof = Prof::empty().device();
    let wait = Record::headed(256, 6000, 3, 0, 0).u32(24, 2);
    prof.put("device_0/data/aicpu.data.0.slice_0", &wait.0);
    let report = prof.export(&Options::default());
    problem(&report, "there is no host directory");
    assert!(
        prof.exported("aicpu_mi", ".csv")
            .ends_with("\n0,,0.0,0.0,0\n")
    );
}

#[test]
fn missing_and_damaged_control_files_are_named() {
    let prof = prof();
    for (name, content, part) in [
        ("host/info.json", &b"{"[..], "info.json is damaged"),
        (
            "host/info.json",
            br#"{"version":"2.0"}"#,
            "says version \"2.0\"",
        ),
        (
            "host/start_info",
            b"[1]",
            "start_info is missing or damaged",
        ),
        ("host/end_info", b"", "under way, or its process was killed"),
        (
            "host/data/unaging.additional.hash_dic.slice_1",
            b"no name\n",
            "1 lines of the dictionaries",
        ),
    ] {
        prof.put(name, content);
        let report = prof.export(&Options::default());
        problem(&report, part);
        assert!(report.failed.is_none(), "{report:?}");
        assert!(
            report.files.iter().any(|file| file.kind == "msprof"),
            "{name}"
        );
    }
    std::fs::remove_file(prof.path().join("host/info.json")).expect("removed");
    problem(
        &prof.export(&Options::default()),
        "host/info.json is missing",
    );
}

#[test]
fn a_control_file_of_absurd_size_is_not_read() {
    let prof = prof();
    let file = std::fs::File::create(prof.path().join("host/info.json")).expect("made");
    file.set_len(1 << 40).expect("a hole");
    let report = prof.export(&Options::default());
    problem(&report, "it is longer than 8388608 bytes");
}

#[test]
fn a_slice_with_a_hole_of_a_terabyte_is_passed_over() {
    let prof = Prof::new();
    prof.host(
        "aging.api_event.data",
        &[call(RUNTIME, 1, 7, at(1), at(2), 0)],
    );
    let path = prof.path().join("host/data/aging.api_event.data.slice_0");
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(path)
        .expect("opened");
    file.set_len(40 << 30).expect("a hole");
    let report = prof.export(&Options::default());
    assert_eq!((report.calls, report.skipped.foreign), (1, (1 << 30) - 1));
}

#[test]
fn a_mark_in_pieces_comes_whole_however_its_pieces_lie() {
    let prof = Prof::new();
    let piece = |segment, text: &str| mark(Some((5, segment)), 2, at(1), at(2), text);
    let (a, b) = ("a".repeat(155), "b".repeat(153));
    prof.host(
        "aging.additional.msproftx",
        &[
            piece(2, "end"),
            mark(Some((6, 0)), 2, at(3), at(4), &a),
            piece(1, &b),
            mark(Some((7, 0)), 2, at(5), at(6), "short"),
            piece(0, &a),
        ],
    );
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    let names: Vec<Value> = events(&prof, "msprof_tx")
        .into_iter()
        .map(|event| event["name"].clone())
        .collect();
    // The last piece of the sixth never comes.
    assert_eq!(
        names,
        [Value::from("short"), format!("{a}{b}end").into(), a.into()]
    );
}

#[test]
fn a_directory_that_is_none_is_refused_with_its_name() {
    let prof = Prof::empty();
    let error = Source::open(prof.path()).expect_err("refused").to_string();
    assert!(error.contains("is not a PROF_XXX directory"), "{error}");
    prof.put("file", b"");
    let error = Source::open(&prof.path().join("file"))
        .expect_err("refused")
        .to_string();
    assert!(error.contains("cannot read"), "{error}");
}

/// Bytes that nobody meant, in every file: nothing panics, and what is JSON stays JSON.
#[test]
fn random_bytes_anywhere_never_panic() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for round in 0..150 {
        let prof = prof().device();
        for (name, mut bytes) in tree(prof.path()) {
            for _ in 0..random(4) {
                let at = random(bytes.len());
                match random(3) {
                    0 if !bytes.is_empty() => bytes[at] = random(256) as u8,
                    1 => bytes.truncate(at),
                    _ => bytes.splice(at..at, [0xFF; 3]).for_each(drop),
                }
            }
            std::fs::write(name, bytes).expect("written");
        }
        let format = if round % 2 == 0 {
            Format::Csv
        } else {
            Format::Json
        };
        let options = Options {
            format,
            ..Options::default()
        };
        let report = prof.export(&options);
        assert!(report.failed.is_none(), "{report:?}");
        for file in report
            .files
            .iter()
            .filter(|file| file.file.ends_with(".json"))
        {
            let text = std::fs::read(prof.output().join(&file.file)).expect("read");
            serde_json::from_slice::<Value>(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.file));
        }
    }
}
