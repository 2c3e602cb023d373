//! What a capture without trouble leaves.

use super::*;
use crate::ledger::{CaptureState, Ledger};
use crate::records::Trace;
use std::os::unix::fs::PermissionsExt;

const CONTROL: [&str; 8] = [
    "host/host_start.log",
    "host/host_start.log.done",
    "host/info.json",
    "host/info.json.done",
    "host/sample.json",
    "host/sample.json.done",
    "host/start_info",
    "host/start_info.done",
];

fn read(root: &Path, file: &str) -> String {
    std::fs::read_to_string(root.join(file)).expect("file is readable")
}

#[test]
fn control_files_are_complete_before_the_first_record() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let dir = create(&temp.path().join("a/b"));
    let mut files = tree(dir.path());
    files.retain(|file| !file.starts_with('.'));
    assert_eq!(files, CONTROL);
    let info: serde_json::Value =
        serde_json::from_str(&read(dir.path(), "host/info.json")).expect("JSON");
    assert_eq!(info["pid"], "4321");
    assert_eq!(info["CPU"][0]["Frequency"], "");
    assert_eq!(info["DeviceInfo"], serde_json::json!([]));
    assert_eq!(
        read(dir.path(), "host/host_start.log"),
        "[Host]\nclock_monotonic_raw: 1000000000000\ncntvct: 1000000000000\ncntvct_diff: 0\n"
    );
    for file in CONTROL.iter().filter(|file| !file.ends_with(".done")) {
        let length = read(dir.path(), file).len();
        let done = read(dir.path(), &format!("{file}.done"));
        assert_eq!(done, format!("filesize:{length}\n"), "{file}");
    }
}

#[test]
fn modes_are_those_of_the_stock_collector() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(&temp.path().join("made"));
    dir.add_device(0, "{}", anchor(1), None)
        .expect("device is added");
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let (bytes, counts) = api_batch(0, 1);
    dir.append(family, &bytes, &counts).expect("appended");
    dir.finish(anchor(9)).expect("finished");
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("there");
        metadata.permissions().mode() & 0o7777
    };
    for sub in ["", "host", "host/data", "device_0", "device_0/data"] {
        assert_eq!(mode(&dir.path().join(sub)), 0o750, "{sub}");
    }
    assert_eq!(mode(&temp.path().join("made")), 0o750);
    for file in tree(dir.path()) {
        assert_eq!(mode(&dir.path().join(&file)), 0o640, "{file}");
    }
}

#[test]
fn records_are_appended_in_order_and_slices_are_cut() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    assert_eq!(
        family,
        dir.family(Place::Host, "aging.api_event.data", Some(40))
    );
    assert!(
        slices(dir.path()).is_empty(),
        "no file before the first record"
    );
    dir.append(family, &[], &TraceCounts::default())
        .expect("nothing to do");
    assert!(slices(dir.path()).is_empty(), "never an empty slice");

    let batch = 16_384;
    let batches = SLICE_BYTES / (batch * 40) + 2;
    let mut expected = Vec::new();
    for number in 0..batches {
        let (bytes, counts) = api_batch(number * batch, batch);
        dir.append(family, &bytes, &counts).expect("appended");
        expected.extend_from_slice(&bytes);
    }
    assert_eq!(dir.bytes(), expected.len() as u64);
    let found = slices(dir.path());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].1 >= SLICE_BYTES && found.iter().all(|(_, length)| length % 40 == 0));
    assert!(
        dir.path()
            .join("host/data/aging.api_event.data.slice_0.done")
            .exists()
    );
    assert!(
        !dir.path()
            .join("host/data/aging.api_event.data.slice_1.done")
            .exists()
    );
    assert_eq!(dir.position(family), (1, found[1].1));

    dir.finish(anchor(1_000)).expect("finished");
    let read: Vec<u8> = (0..2)
        .flat_map(|n| {
            let file = format!("host/data/aging.api_event.data.slice_{n}");
            std::fs::read(dir.path().join(file)).expect("slice")
        })
        .collect();
    assert!(read == expected, "every byte in order");
    let done = self::read(dir.path(), "host/data/aging.api_event.data.slice_1.done");
    assert_eq!(
        done,
        format!("filesize:{}\nstarttime:0\nendtime  :0\n", found[1].1)
    );
    assert!(dir.path().join("host/end_info.done").exists());
    assert!(
        tree(dir.path()).iter().all(|file| !file.starts_with('.')),
        "nothing private is left"
    );
    dir.finish(anchor(2_000))
        .expect("a second finish changes nothing");
    assert!(self::read(dir.path(), "host/end_info").contains("1000000001000"));
}

#[test]
fn a_batch_that_is_not_whole_or_has_no_device_is_refused() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    let api = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let counts = TraceCounts::default();
    assert!(matches!(
        dir.append(api, &[0; 41], &counts),
        Err(ProfDirError::Misuse { .. })
    ));
    let device = dir.family(Place::Device(3), "aicpu.data.3", Some(256));
    assert!(matches!(
        dir.append(device, &[0; 256], &counts),
        Err(ProfDirError::Misuse { .. })
    ));
    assert!(slices(dir.path()).is_empty());
    dir.add_device(3, "{}", anchor(1), None)
        .expect("device is added");
    dir.append(device, &[0; 256], &counts)
        .expect("the device is there now");
    assert_eq!(
        slices(dir.path()),
        [("device_3/data/aicpu.data.3.slice_0".to_owned(), 256)]
    );
}

#[test]
fn a_device_directory_is_complete_and_its_clock_is_the_hosts() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    for _ in 0..2 {
        dir.add_device(7, r#"{"devices":"0"}"#, anchor(5), None)
            .expect("device is added");
    }
    dir.finish(anchor(9)).expect("finished");
    let mut found: Vec<String> = tree(&dir.path().join("device_7"));
    found.retain(|file| !file.ends_with(".done"));
    assert_eq!(
        found,
        [
            "dev_start.log.7",
            "end_info.7",
            "host_start.log.7",
            "info.json.7",
            "sample.json",
            "start_info.7"
        ]
    );
    let clock = "clock_monotonic_raw: 1000000000005\ncntvct: 1000000000005\n";
    assert_eq!(read(dir.path(), "device_7/dev_start.log.7"), clock);
    assert_eq!(
        read(dir.path(), "device_7/host_start.log.7"),
        format!("[Device7]\n{clock}cntvct_diff: 0\n")
    );
    let info: serde_json::Value =
        serde_json::from_str(&read(dir.path(), "device_7/info.json.7")).expect("JSON");
    assert_eq!(info["DeviceInfo"][0]["hwts_frequency"], "1000");
    assert_eq!(info["DeviceInfo"][0]["id"], 7);
    let sample: serde_json::Value =
        serde_json::from_str(&read(dir.path(), "device_7/sample.json")).expect("JSON");
    assert_eq!(sample["devices"], "7");
    assert!(!dir.path().join(".profiler").exists());
}

#[test]
fn more_families_than_open_files_are_written_in_turn() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());

    let families: Vec<FamilyId> = (0..150)
        .map(|n| dir.family(Place::Host, &format!("aging.compact.kind_{n}"), Some(64)))
        .collect();
    for round in 0..3u8 {
        for family in &families {
            dir.append(*family, &[round; 64], &TraceCounts::default())
                .expect("appended");
        }
    }
    let open = open_descriptors(temp.path());
    assert!(open <= 64 + 3, "64 slices, root, host and data: {open}");
    dir.finish(anchor(9)).expect("finished");
    for n in 0..150 {
        let file = dir
            .path()
            .join(format!("host/data/aging.compact.kind_{n}.slice_0"));
        let content = std::fs::read(file).expect("slice");
        assert_eq!(content, [[0u8; 64], [1; 64], [2; 64]].concat());
    }
}

/// Descriptors of this process that are open below a directory; other tests run beside this one.
fn open_descriptors(below: &Path) -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("/proc")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(below))
        .count()
}

#[test]
fn odd_family_names_stay_in_the_data_directory() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    let counts = TraceCounts::default();
    let long = "x".repeat(70_000);
    for name in [
        "../../escape",
        "",
        "/etc/passwd",
        ".hidden",
        "a\nb\0c",
        long.as_str(),
    ] {
        let family = dir.family(Place::Host, name, Some(64));
        dir.append(family, &[1; 64], &counts).expect("appended");
    }
    assert_eq!(slices(&dir.path().join("host/data")).len(), 6);
    assert_eq!(std::fs::read_dir(temp.path()).expect("readable").count(), 1);
}

#[test]
fn a_flood_of_type_names_ends_in_one_family_but_keeps_dictionaries_apart() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    for n in 0..5_000 {
        dir.family(Place::Host, &format!("aging.compact.t{n}"), Some(64));
    }
    let shared = dir.family(Place::Host, "aging.compact.invalid", Some(64));
    assert_eq!(
        dir.family(Place::Host, "aging.compact.t4999", Some(64)),
        shared
    );
    let names = dir.family(Place::Host, "unaging.additional.hash_dic", None);
    dir.append(names, b"1:a\n", &TraceCounts::default())
        .expect("appended");
    let api = dir.family(Place::Host, "unaging.api_event.data", Some(40));
    assert!(shared != names && names != api && shared != api);
    assert_eq!(slices(dir.path()).len(), 1);
}

#[test]
fn the_ledger_is_replaced_whole() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = create(temp.path());
    let mut ledger = Ledger {
        capture: 1,
        ..Ledger::default()
    };
    dir.write_ledger(&ledger).expect("written");
    ledger.state = CaptureState::Complete;
    ledger.written.add(Trace::Aicpu, 3);
    dir.write_ledger(&ledger).expect("written");
    let text = read(dir.path(), LEDGER_FILE);
    let back: Ledger = serde_json::from_str(&text).expect("JSON");
    assert_eq!(back, ledger);
    dir.finish(anchor(9)).expect("finished");
    assert!(tree(dir.path()).iter().all(|file| !file.starts_with('.')));
}

#[test]
fn two_captures_never_share_a_directory() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let paths: std::collections::HashSet<PathBuf> = (0..50)
        .map(|_| create(temp.path()).path().to_owned())
        .collect();
    assert_eq!(paths.len(), 50);
}
