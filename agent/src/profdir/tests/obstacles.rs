//! Links, pipes, sockets and directories in the places of files: replaced or named, never followed.

use super::killed::{API, assert_whole, dead, killed, recovered};
use super::reader::LEDGER_MAX;
use super::recover::tree::Tree;
use super::recover::{Done, recover};
use super::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

/// Every control file and what belongs to it.
const FILES: [&str; 16] = [
    "host/info.json",
    "host/sample.json",
    "host/start_info",
    "host/end_info",
    "host/host_start.log",
    "host/info.json.done",
    "host/end_info.done",
    "device_0/info.json.0",
    "device_0/sample.json",
    "device_0/start_info.0",
    "device_0/end_info.0",
    "device_0/host_start.log.0",
    "device_0/dev_start.log.0",
    "device_0/info.json.0.done",
    "host/data/aging.api_event.data.slice_0.done",
    LEDGER_FILE,
];

/// Puts something else into the place of a file; `before` is what was there.
type Obstacle = fn(place: &Path, before: &Path);

const OBSTACLES: [Obstacle; 4] = [
    // The very file, but elsewhere: it can be changed or gone tomorrow.
    |place, before| symlink(before, place).expect("link"),
    |place, _| symlink("/nowhere/at/all", place).expect("link"),
    |place, _| {
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, place, FileType::Fifo, mode, 0).expect("a pipe");
    },
    |place, _| drop(UnixListener::bind(place).expect("a socket")),
];

#[test]
fn what_is_no_plain_file_in_the_place_of_one_is_replaced() {
    for file in FILES {
        for obstacle in OBSTACLES {
            let temp = tempfile::tempdir().expect("temporary directory");
            let (dir, total) = killed(temp.path());
            let (place, outside) = (dir.join(file), temp.path().join("outside"));
            // Of those that the kill has left out there is none.
            if std::fs::rename(&place, &outside).is_err() {
                std::fs::write(&outside, "theirs").expect("written");
            }
            let theirs = std::fs::read(&outside).expect("readable");
            obstacle(&place, &outside);
            let recovery = recovered(&dir);
            assert_eq!(
                (recovery.done, recovery.kept),
                (Done::Recovered, total),
                "{file}"
            );
            assert_eq!(recovery.left, [], "{file}");
            let meta = std::fs::symlink_metadata(&place).expect("there");
            assert!(meta.is_file(), "{file}");
            assert_eq!(std::fs::read(&outside).expect("theirs"), theirs, "{file}");
            assert_whole(&dir);
        }
    }
}

#[test]
fn a_directory_in_the_place_of_a_file_is_named_and_the_recovery_can_be_run_again() {
    for file in FILES.into_iter().chain([".msprof_agent.reserve"]) {
        let temp = tempfile::tempdir().expect("temporary directory");
        let (dir, total) = killed(temp.path());
        let place = dir.join(file);
        let _ = std::fs::remove_file(&place);
        std::fs::create_dir(&place).expect("made");
        std::fs::write(place.join("theirs"), "x").expect("written");
        let error = recover(&dir, dead).expect_err("in the way").to_string();
        let named = format!("cannot recover {}: ", place.display());
        assert!(error.starts_with(&named), "{file}: {error}");
        assert!(error.contains("remove it and run it again"), "{error}");
        assert!(place.join("theirs").exists());
        std::fs::remove_dir_all(&place).expect("removed");
        assert_eq!(recovered(&dir).kept, total, "{file}");
        assert_whole(&dir);
    }
}

#[test]
fn what_only_passes_for_a_part_of_the_directory_is_named_each_time() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, total) = killed(temp.path());
    let outside = temp.path().join("outside");
    std::fs::create_dir_all(outside.join("data")).expect("made");
    std::fs::write(outside.join("data/aging.compact.x.slice_0"), [0; 64]).expect("written");
    let named = [
        "device_1",
        "device_0/end_info",
        "host/info.json.bak",
        "host/data/aging.api_event.data.slice_1",
    ];
    symlink(&outside, dir.join(named[0])).expect("link");
    symlink(outside.join("data"), dir.join(named[1])).expect("link");
    std::fs::write(dir.join(named[2]), "{}").expect("written");
    std::fs::remove_file(dir.join("host/info.json")).expect("removed");
    symlink(dir.join(API), dir.join(named[3])).expect("link");
    for done in [Done::Recovered, Done::Nothing] {
        let recovery = recover(&dir, dead).expect("recovered");
        assert_eq!((recovery.done, recovery.kept), (done, total));
        let mut left: Vec<_> = recovery.left.iter().map(|left| left.path.clone()).collect();
        left.sort();
        let mut expected = named.map(|name| dir.join(name));
        expected.sort();
        assert_eq!(left, expected);
        assert!(
            recovery
                .left
                .iter()
                .all(|left| left.why.contains("remove it"))
        );
    }
    for name in named {
        std::fs::remove_file(dir.join(name)).expect("removed");
    }
    assert_eq!(recovered(&dir).left, []);
    assert_whole(&dir);
    assert_eq!(
        std::fs::read(outside.join("data/aging.compact.x.slice_0")).expect("theirs"),
        [0; 64]
    );
}

#[test]
fn data_behind_a_link_are_not_the_captures() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    let (data, outside) = (dir.join("host/data"), temp.path().join("outside"));
    std::fs::rename(&data, &outside).expect("moved");
    symlink(&outside, &data).expect("link");
    let before = tree(&outside);
    let recovery = recovered(&dir);
    let [left] = recovery.left.as_slice() else {
        panic!("{:?}", recovery.left);
    };
    assert_eq!(
        (left.path.as_path(), left.why.as_str()),
        (data.as_path(), "it is no directory: remove it")
    );
    assert_eq!(tree(&outside), before, "nothing is touched there");
}

#[test]
fn a_device_is_not_even_opened() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let place = temp.path().join("device");
    // The null device; only root may make one.
    let made = mknodat(
        CWD,
        &place,
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o600),
        rustix::fs::makedev(1, 3),
    );
    if let Err(error) = made {
        crate::skip::skipped(format_args!("a device cannot be made ({error})"));
        return;
    }
    let tree = Tree::open(temp.path()).expect("opens");
    let error = tree.read("device", LEDGER_MAX).expect_err("no plain file");
    assert_eq!(error.to_string(), "it is no plain file");
}
