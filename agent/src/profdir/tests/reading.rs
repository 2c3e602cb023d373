//! Directories of ours read back, and hostile ones.

use super::check::{Severity, check};
use super::reader::{Control, Kind, Profile, ReadError};
use super::*;
use crate::records::Trace;
use std::os::unix::fs::symlink;

/// Rules broken at a severity or above.
fn broken(dir: &Path, least: Severity) -> Vec<&'static str> {
    let found = check(dir)
        .into_iter()
        .filter(|violation| violation.severity >= least);
    let mut rules: Vec<_> = found.map(|violation| violation.rule).collect();
    rules.sort();
    rules.dedup();
    rules
}

#[test]
fn what_was_written_is_read_back() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, total) = scenario::write(&temp.path().join("out"));
    let profile = Profile::open(&dir).expect("opens");
    assert_eq!(profile.devices().collect::<Vec<_>>(), [0]);
    let api: Vec<_> = profile.api().collect::<Result<_, _>>().expect("readable");
    assert_eq!(api.len(), 14);
    assert_eq!(api[0].kind, 0x20001, "unaging records come first");
    assert_eq!(api.iter().filter(|record| record.is_event()).count(), 2);
    assert_eq!(profile.compact("task_track").count(), 2);
    assert_eq!(profile.additional("msproftx").count(), 2);
    assert_eq!(profile.aicpu(0).count(), 3);
    let variable: Vec<_> = profile
        .variable("capture_op_info")
        .collect::<Result<_, _>>()
        .expect("readable");
    assert_eq!(
        variable
            .iter()
            .map(|(_, bytes)| bytes.len())
            .collect::<Vec<_>>(),
        [176, 396]
    );
    assert_eq!(
        profile.type_names().expect("readable").get(20_000, 0x30001),
        Some("aclrtMalloc")
    );
    let strings = profile.hash_names().expect("readable");
    assert_eq!(
        strings.get(114).as_deref(),
        Some("tag:with,\"odd characters")
    );
    let start = profile.start(Place::Host).expect("start_info");
    assert_eq!(
        (start.wall_us, start.monotonic_ns),
        (START_WALL_NS / 1_000, START_NS)
    );
    assert!(profile.stop(Place::Device(0)).is_some());
    assert_eq!(profile.ticks_per_us(), 1000.0);
    let ledger = profile.ledger().expect("readable").expect("there");
    assert_eq!((ledger.written, ledger.bytes), (total, profile.bytes()));
    assert_eq!(total.get(Trace::Aicpu), 3);
}

#[test]
fn a_directory_of_ours_breaks_no_rule() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    let violations = check(&dir);
    assert!(violations.is_empty(), "{violations:#?}");
    let mut empty = create(temp.path());
    empty.finish(anchor(1_000_000)).expect("finished");
    let violations = check(empty.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn each_kind_of_damage_is_named() {
    type Damage = (&'static str, Severity, fn(&Path));
    let cases: [Damage; 27] = [
        ("one-line", Severity::Fatal, |dir| {
            std::fs::write(dir.join("host/info.json"), "{\n}").expect("written");
        }),
        ("control-json", Severity::Fatal, |dir| {
            std::fs::write(dir.join("host/sample.json"), "[]").expect("written");
        }),
        ("one-per-prefix", Severity::Fatal, |dir| {
            std::fs::write(dir.join("host/info.json.bak"), "{}").expect("written");
        }),
        ("control-missing", Severity::Fatal, |dir| {
            remove(dir, "host/host_start.log")
        }),
        ("control-missing", Severity::Fatal, |dir| {
            remove(dir, "device_0/dev_start.log.0")
        }),
        ("no-end-info", Severity::Warning, |dir| {
            remove(dir, "host/end_info")
        }),
        ("info-key", Severity::Fatal, |dir| {
            replace(dir, "host/info.json", "\"4321\"", "4321")
        }),
        ("info-key", Severity::Fatal, |dir| {
            replace(dir, "host/info.json", "netCard\"", "x\"")
        }),
        ("platform", Severity::Fatal, |dir| {
            replace(
                dir,
                "host/info.json",
                "\"platform_version\":\"5\"",
                "\"platform_version\":\"6\"",
            );
        }),
        ("info-frequency", Severity::Fatal, |dir| {
            replace(
                dir,
                "host/info.json",
                "\"Frequency\":\"\"",
                "\"Frequency\":\"0\"",
            );
        }),
        ("info-device", Severity::Fatal, |dir| {
            replace(
                dir,
                "device_0/info.json.0",
                "\"hwts_frequency\":\"1000\"",
                "\"hwts_frequency\":\"\"",
            );
        }),
        ("sample-devices", Severity::Fatal, |dir| {
            replace(dir, "host/sample.json", "\"64\"", "\"0\"");
        }),
        ("sample-device-key", Severity::Warning, |dir| {
            replace(dir, "device_0/sample.json", "aiv_metrics", "x");
        }),
        ("start-info", Severity::Fatal, |dir| {
            replace(dir, "host/start_info", "\"1000000000000\"", "1000000000000");
        }),
        ("start-clock", Severity::Fatal, |dir| {
            replace(dir, "host/start_info", "\"1700000000000000\"", "\"17\"");
        }),
        ("clock-counter", Severity::Note, |dir| {
            replace(dir, "host/host_start.log", "cntvct: 1", "cntvct: 2");
        }),
        ("done-size", Severity::Note, |dir| {
            std::fs::write(dir.join("host/info.json.done"), "filesize:1\n").expect("written");
        }),
        ("unknown-directory", Severity::Fatal, |dir| {
            std::fs::create_dir(dir.join("host_bak")).expect("made");
        }),
        ("link", Severity::Warning, |dir| {
            symlink("/etc/passwd", dir.join("host/data/x.slice_0")).expect("link");
        }),
        ("slice-empty", Severity::Fatal, |dir| {
            std::fs::write(dir.join("host/data/aging.compact.x.slice_0"), "").expect("written");
        }),
        ("slice-torn", Severity::Fatal, |dir| {
            append(dir, "aging.api_event.data", &[0; 7])
        }),
        ("slice-torn", Severity::Fatal, |dir| {
            append(dir, "unaging.variable.capture_op_info", &[1; 30])
        }),
        ("record-magic", Severity::Fatal, |dir| {
            append(dir, "aging.compact.memcpy_info", &[0; 64])
        }),
        ("record-level", Severity::Fatal, |dir| {
            let mut record = api(0);
            record.level = 4500;
            append(dir, "aging.api_event.data", record.as_bytes());
        }),
        ("type-unnamed", Severity::Warning, |dir| {
            let mut record = api(0);
            record.kind = 1071;
            append(dir, "aging.api_event.data", record.as_bytes());
        }),
        ("api-begin-zero", Severity::Warning, |dir| {
            let mut record = api(0);
            record.begin = 0;
            append(dir, "aging.api_event.data", record.as_bytes());
        }),
        ("ledger-count", Severity::Warning, |dir| {
            append(dir, "aging.api_event.data", api(0).as_bytes())
        }),
    ];
    for (number, (rule, severity, damage)) in cases.into_iter().enumerate() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let (dir, _) = scenario::write(temp.path());
        damage(&dir);
        let found = check(&dir);
        assert!(
            found
                .iter()
                .any(|v| v.rule == rule && v.severity == severity),
            "case {number}, {rule}: {found:#?}"
        );
    }
}

fn remove(dir: &Path, file: &str) {
    std::fs::remove_file(dir.join(file)).expect("removed");
}

fn replace(dir: &Path, file: &str, from: &str, to: &str) {
    let text = std::fs::read_to_string(dir.join(file)).expect("readable");
    assert!(text.contains(from), "{file} holds no {from}: {text}");
    std::fs::write(dir.join(file), text.replace(from, to)).expect("written");
}

fn append(dir: &Path, family: &str, bytes: &[u8]) {
    let path = dir.join("host/data").join(slice_name(family, 0));
    let mut content = std::fs::read(&path).expect("readable");
    content.extend_from_slice(bytes);
    std::fs::write(path, content).expect("written");
}

#[test]
fn hostile_entries_are_neither_followed_nor_waited_for() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    let data = dir.join("host/data");
    let fifo = std::ffi::CString::new(
        data.join("aging.api_event.data.slice_5")
            .to_str()
            .expect("UTF-8"),
    )
    .expect("no NUL");
    // SAFETY: the string is NUL-terminated and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    symlink("/dev/zero", data.join("aging.api_event.data.slice_6")).expect("link");
    symlink(&data, dir.join("device_1")).expect("link");
    remove(&dir, "host/info.json");
    symlink("/etc/passwd", dir.join("host/info.json")).expect("link");
    std::fs::remove_file(dir.join(LEDGER_FILE)).expect("removed");
    symlink("/dev/zero", dir.join(LEDGER_FILE)).expect("link");
    // A file that cannot be a dictionary, and one line without an end.
    std::fs::write(
        data.join("unaging.additional.hash_dic.slice_1"),
        [0xFFu8; 100_000],
    )
    .expect("written");

    let profile = Profile::open(&dir).expect("opens");
    assert_eq!(profile.devices().count(), 1, "a link is no device");
    assert_eq!(profile.api().count(), 14, "pipe and link are no slices");
    assert!(matches!(
        profile.control(Place::Host, Control::Info),
        Err(ReadError::Io { .. })
    ));
    assert!(matches!(profile.ledger(), Err(ReadError::Io { .. })));
    assert!(profile.hash_names().expect("readable").get(101).is_some());
    assert!(!broken(&dir, Severity::Fatal).is_empty());
    assert!(profile.type_names().is_ok());
}

#[test]
fn a_directory_that_is_none_is_refused() {
    let temp = tempfile::tempdir().expect("temporary directory");
    assert!(matches!(
        Profile::open(temp.path()),
        Err(ReadError::NotProfile { .. })
    ));
    let error = Profile::open(&temp.path().join("missing")).expect_err("refused");
    assert!(error.to_string().contains("missing"), "{error}");
    assert_eq!(
        broken(&temp.path().join("missing"), Severity::Fatal),
        ["unreadable"]
    );
}

#[test]
fn a_slice_torn_by_a_kill_is_read_up_to_its_last_whole_record() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let (bytes, counts) = api_batch(0, 3);
    dir.append(family, &bytes, &counts).expect("appended");
    append(dir.path(), "aging.api_event.data", &[0x5A; 13]);
    let profile = Profile::open(dir.path()).expect("opens");
    let begins: Vec<u64> = profile
        .api()
        .filter_map(|r| r.ok().map(|r| r.begin))
        .collect();
    assert_eq!(begins, [START_NS, START_NS + 1, START_NS + 2]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    #[test]
    fn arbitrary_files_never_panic_the_reader(
        slices in proptest::collection::vec(proptest::collection::vec(0u8.., 0..400), 6),
        control in "[ -~\n]{0,80}",
    ) {
        let temp = tempfile::tempdir().expect("temporary directory");
        let dir = temp.path().join("PROF_1");
        std::fs::create_dir_all(dir.join("host/data")).expect("made");
        std::fs::create_dir_all(dir.join("device_0/data")).expect("made");
        let names = [
            "host/data/aging.api_event.data.slice_0",
            "host/data/unaging.variable.capture_op_info.slice_0",
            "host/data/unaging.additional.hash_dic.slice_0",
            "host/data/unaging.additional.type_info_dic.slice_0",
            "host/data/aging.compact.task_track.slice_3",
            "device_0/data/aicpu.data.0.slice_0",
        ];
        for (name, content) in names.iter().zip(&slices) {
            std::fs::write(dir.join(name), content).expect("written");
        }
        for name in ["host/info.json", "host/start_info", "host/host_start.log", LEDGER_FILE] {
            std::fs::write(dir.join(name), &control).expect("written");
        }
        check(&dir);
        let profile = Profile::open(&dir).expect("opens");
        let _ = (profile.type_names(), profile.hash_names());
        let _ = profile.api().count();
        let _ = profile.aicpu(0).count();
        let _ = profile.variable("capture_op_info").count();
    }
}

#[test]
fn families_are_told_apart_by_their_names() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    let profile = Profile::open(&dir).expect("opens");
    let kind = |name: &str| {
        profile
            .families()
            .iter()
            .find(|family| family.name == name)
            .map(|family| family.kind.clone())
    };
    assert_eq!(kind("aging.api_event.data"), Some(Kind::Api));
    assert_eq!(
        kind("unaging.compact.task_track"),
        Some(Kind::Compact("task_track".into()))
    );
    assert_eq!(kind("unaging.additional.hash_dic"), Some(Kind::Hashes));
    assert_eq!(kind("aicpu.data.0"), Some(Kind::Aicpu));
    assert_eq!(kind("stars_soc.data.0"), Some(Kind::Other));
}
