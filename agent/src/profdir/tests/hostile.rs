//! Directories that somebody has prepared for a recovery: it harms nothing outside, and takes no sizes or times on trust.

use super::killed::*;
use super::recover::recover;
use super::*;
use std::os::unix::fs::symlink;

#[test]
fn a_hostile_directory_harms_nothing_outside_of_it() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    let victim = temp.path().join("victim");
    let theirs = [0x5A; 50];
    std::fs::write(&victim, theirs).expect("victim");
    let outside = temp.path().join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("x.slice_0"), "").expect("written");
    let data = dir.join("host/data");
    symlink(&victim, data.join("aging.api_event.data.slice_7")).expect("link");
    std::fs::hard_link(&victim, data.join("aging.api_event.data.slice_8")).expect("second name");
    symlink(&outside, dir.join("device_3")).expect("link");
    symlink(&outside, dir.join(".profiler")).expect("link");
    symlink(&victim, dir.join(".msprof_agent.json.tmp")).expect("link");
    symlink(&victim, data.join(".msprof_agent.recover.tmp")).expect("link");
    symlink(&victim, dir.join("host/end_info")).expect("link");
    symlink(&victim, data.join("aging.api_event.data.slice_0.done")).expect("link");
    append(&data, "..aging.compact.slice_..slice_1", &[1; 7]);
    let error = recover(&dir, dead).expect_err("a slice that is somebody's");
    assert!(error.to_string().contains("second name"), "{error}");
    std::fs::remove_file(data.join("aging.api_event.data.slice_8")).expect("removed");
    let recovery = recovered(&dir);
    let left: Vec<_> = recovery.left.iter().map(|left| &left.path).collect();
    assert_eq!(
        left,
        [
            &dir.join("device_3"),
            &data.join("aging.api_event.data.slice_7")
        ]
    );
    assert!(recovery.made.contains(&dir.join("host/end_info")));
    assert_eq!(std::fs::read(&victim).expect("victim"), theirs);
    assert!(outside.join("x.slice_0").exists());
}

#[test]
fn absurd_sizes_take_neither_memory_nor_time() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, total) = killed(temp.path());
    let huge = |file: &str| {
        let file = std::fs::File::create(dir.join(file)).expect("made");
        file.set_len(1 << 42).expect("a hole");
    };
    huge("host/data/aging.api_event.data.slice_9");
    huge("host/info.json");
    huge("host/data/aging.api_event.data.slice_0.done");
    huge(LEDGER_FILE);
    let recovery = recovered(&dir);
    assert_eq!(recovery.kept, total);
    assert_eq!(recovery.left.len(), 1);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let (dir, total) = killed(&temp.path().join("deep"));
    std::fs::write(dir.join(LEDGER_FILE), &deep).expect("written");
    std::fs::write(dir.join("host/sample.json"), deep).expect("written");
    assert_eq!(recovered(&dir).kept, total);
    assert_whole(&dir);
}

#[test]
fn times_that_cannot_be_do_not_move_the_end() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = killed(temp.path());
    let mut record = api(0);
    record.end = u64::MAX - 1;
    append(&dir, API, record.as_bytes());
    let mut account = ledger(&dir);
    account.accounted = Some(Anchor {
        monotonic_raw_ns: u64::MAX,
        ..anchor(0)
    });
    put_ledger(&dir, &account);
    let recovery = recovered(&dir);
    assert_eq!(recovery.account_ns, None);
    assert!(recovery.last_record_ns < Some(20_000_000));
}
