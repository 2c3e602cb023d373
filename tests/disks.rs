//! Disks that fail, as the user of the controller meets them: the reason, exit status 1, whole records on disk,
//! and a program that goes on.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use support::builder::{Linkage, build};
use support::home::{Home, prof_dirs};
use support::msprof::{dynamic, run_script};
use support::namespace::{Namespace, uid};
use support::process::{Finished, Program, Running};
use support::prof::Prof;
use support::puppet::{self, Puppet};
use support::wait::wait_until;

/// `path` as the puppet sees it.
fn inside(puppet: &Puppet, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", puppet.pid()));
    root.join(path.strip_prefix("/").expect("absolute"))
}

fn controller(home: &Home, puppet: &Puppet, output: &Path) -> Program {
    dynamic(home, output).arg(format!("--pid={}", puppet.pid()))
}

/// A puppet with a disk of its own, mounted with `options` at the directory that is returned.
fn with_disk(home: &Home, options: &str) -> Option<(Puppet, PathBuf)> {
    let disk = home.path().join("disk");
    fs::create_dir(&disk).expect("a directory");
    let mount = format!("mount -t tmpfs -o {options} none '{}'\n", disk.display());
    let namespace = Namespace::new(&mount)?;
    let puppet = Puppet::start_armed(home, namespace.armed(home, puppet::path()));
    Some((puppet, disk))
}

/// The start fails for that reason, with exit status 1, and leaves nothing.
#[track_caller]
fn assert_start_fails(home: &Home, puppet: &Puppet, output: &Path, reasons: &[&str]) {
    let finished = run_script(controller(home, puppet, output), &["start", "stop", "quit"]);
    finished.expect_code(1);
    assert_says(&finished, puppet, "start failed", reasons);
    assert_eq!(prof_dirs(&inside(puppet, output)), [] as [PathBuf; 0]);
}

#[track_caller]
fn assert_says(finished: &Finished, puppet: &Puppet, outcome: &str, reasons: &[&str]) {
    let text = finished.text();
    let line = text
        .lines()
        .find(|line| line.contains(outcome) && line.contains(&puppet.pid().to_string()))
        .unwrap_or_else(|| panic!("no {outcome:?}: {finished:#?}"));
    assert!(
        reasons.iter().any(|reason| line.contains(reason)),
        "{reasons:?} in {line}"
    );
}

/// A capture that the controller has started.
fn started(home: &Home, puppet: &Puppet, output: &Path) -> Running {
    let mut msprof = controller(home, puppet, output).spawn();
    msprof.say("start");
    msprof.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    msprof
}

/// The stop fails for one of these reasons, with exit status 1.
#[track_caller]
fn assert_stop_fails(mut msprof: Running, puppet: &Puppet, reasons: &[&str]) {
    msprof.say("stop");
    msprof.say("quit");
    let finished = msprof.finish();
    finished.expect_code(1);
    assert_says(&finished, puppet, "stop failed", reasons);
}

/// The program reports on, can be captured elsewhere, and ends well.
#[track_caller]
fn assert_unharmed(home: &Home, mut puppet: Puppet) {
    assert_eq!(puppet.tell("api 100 9"), "0");
    let good = home.path().join("good");
    let msprof = started(home, &puppet, &good);
    assert_eq!(puppet.tell("api 100 9"), "0");
    let mut msprof = msprof;
    msprof.say("stop");
    msprof.finish().expect_code(0);
    let prof = Prof::open(&support::home::only_prof_dir(&good));
    assert_eq!(prof.api().len(), 100);
    puppet.finish().expect_code(0);
}

/// What lies in a directory is whole records, each of them once and as it was reported.
#[track_caller]
fn assert_whole(dir: &Path) -> usize {
    let prof = Prof::open(dir);
    for (family, slices) in &prof.host {
        let size = support::prof::record_size(family).unwrap_or(1);
        for (number, bytes) in slices {
            assert_eq!(bytes.len() % size, 0, "slice {number} of {family} is torn");
        }
    }
    let mut items: Vec<u64> = prof.api().iter().map(|record| record.item).collect();
    let count = items.len();
    items.sort_unstable();
    items.dedup();
    assert_eq!(items.len(), count, "a record was written twice");
    count
}

// ---- no room ------------------------------------------------------------------

#[test]
fn a_start_on_a_disk_with_little_room_says_so() {
    let home = Home::new();
    let Some((puppet, disk)) = with_disk(&home, "size=16m") else {
        return;
    };
    assert_start_fails(&home, &puppet, &disk, &["bytes are free"]);
    assert_unharmed(&home, puppet);
}

#[test]
fn a_disk_that_fills_up_is_said_at_the_stop_and_holds_whole_records() {
    let home = Home::new();
    let Some((mut puppet, disk)) = with_disk(&home, "size=24m") else {
        return;
    };
    let mut msprof = started(&home, &puppet, &disk);
    let seen = inside(&puppet, &disk);
    let dir = prof_dirs(&seen).remove(0);
    let mut tag = 0;
    wait_until("the capture to fail", || {
        tag += 1;
        assert_eq!(puppet.tell(&format!("api 20000 {tag}")), "0");
        // The user learns of it before the stop, if not here then from the account.
        let ledger = fs::read_to_string(dir.join("msprof_agent.json")).unwrap_or_default();
        ledger.contains("\"failed\"")
    });
    msprof.say("stop");
    msprof.say("quit");
    let finished = msprof.finish();
    finished.expect_code(1);
    assert_says(&finished, &puppet, "stop failed", &["No space left"]);
    assert!(assert_whole(&dir) > 100_000);
    let prof = Prof::open(&dir);
    assert_eq!(prof.ledger()["state"], "failed");
    assert!(dir.join("host/end_info.done").exists());
    assert_unharmed(&home, puppet);
}

// ---- read-only ----------------------------------------------------------------

#[test]
fn a_start_on_a_read_only_disk_says_so() {
    let home = Home::new();
    let Some((puppet, disk)) = with_disk(&home, "ro") else {
        return;
    };
    for output in [disk.clone(), disk.join("new/one")] {
        assert_start_fails(&home, &puppet, &output, &["Read-only file system"]);
    }
    assert_unharmed(&home, puppet);
}

#[test]
fn a_disk_that_is_made_read_only_between_captures_fails_the_next_start() {
    let home = Home::new();
    if uid() != 0 {
        support::skip::skipped(format_args!(
            "only root enters the namespace of another process"
        ));
        return;
    }
    let Some((mut puppet, disk)) = with_disk(&home, "size=100m") else {
        return;
    };
    let remount = |puppet: &Puppet, options: &str| {
        let pid = puppet.pid().to_string();
        Program::new("nsenter")
            .args(["-t", &pid, "-m", "mount", "-o", options])
            .arg(&disk)
            .run()
            .expect_code(0);
    };
    let mut msprof = started(&home, &puppet, &disk);
    assert_eq!(puppet.tell("api 100 1"), "0");
    msprof.say("stop");
    msprof.finish().expect_code(0);
    remount(&puppet, "remount,ro");
    let finished = run_script(controller(&home, &puppet, &disk), &["start", "quit"]);
    finished.expect_code(1);
    assert_says(
        &finished,
        &puppet,
        "start failed",
        &["Read-only file system"],
    );
    remount(&puppet, "remount,rw");
    let msprof = run_script(controller(&home, &puppet, &disk), &["start", "stop"]);
    msprof.expect_code(0);
    let dirs = prof_dirs(&inside(&puppet, &disk));
    assert_eq!(dirs.len(), 2);
    assert_eq!(assert_whole(&dirs[0]), 100);
    assert_unharmed(&home, puppet);
}

// ---- errors in mid capture ------------------------------------------------------

/// From some moment in a capture on, every write ends with this error.
fn fail_in_mid_capture(error: i32, reason: &str) {
    let home = Home::new();
    let program = home.armed(build("tests/c/disk_fault.c", Linkage::Shared));
    let mut puppet = Puppet::start_armed(&home, program);
    let msprof = started(&home, &puppet, &home.output());
    assert_eq!(puppet.tell("api 1000 1"), "0");
    let dir = prof_dirs(&home.output()).remove(0);
    let slice = dir.join("host/data/aging.api_event.data.slice_0");
    wait_until("records on disk", || {
        slice.metadata().is_ok_and(|meta| meta.len() == 40_000)
    });
    if puppet.tell(&format!("fail {error}")) != "0" {
        support::skip::skipped(format_args!("no system call can be made to fail here"));
        return;
    }
    assert_eq!(puppet.tell("api 1000 2"), "0", "the program is not told");
    assert_stop_fails(msprof, &puppet, &[reason]);
    assert_eq!(assert_whole(&dir), 1000, "what was written before is kept");
    // Nor can another begin.
    let again = home.path().join("again");
    let finished = run_script(controller(&home, &puppet, &again), &["start", "quit"]);
    finished.expect_code(1);
    assert_says(&finished, &puppet, "start failed", &[reason]);
    assert_eq!(puppet.tell("api 1000 3"), "0");
    puppet.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn a_quota_that_is_used_up_in_mid_capture_is_said_at_the_stop() {
    fail_in_mid_capture(libc::EDQUOT, "quota");
}

#[test]
fn a_disk_that_breaks_or_turns_read_only_in_mid_capture_is_said_at_the_stop() {
    fail_in_mid_capture(libc::EIO, "Input/output error");
    fail_in_mid_capture(libc::EROFS, "Read-only file system");
}

// ---- directories --------------------------------------------------------------

#[test]
fn a_directory_removed_in_mid_capture_is_said_at_the_stop() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let msprof = started(&home, &puppet, &home.output());
    assert_eq!(puppet.tell("api 1000 1"), "0");
    fs::remove_dir_all(home.output()).expect("removed");
    assert_eq!(puppet.tell("api 1000 2"), "0");
    assert_stop_fails(msprof, &puppet, &["No such file", "removed", "gone"]);
    assert!(!home.output().exists(), "it is not made again");
    assert_unharmed(&home, puppet);
}

/// A puppet for which the permissions of files count, also when root runs the tests.
fn without_privileges(home: &Home) -> Puppet {
    let give_up = || {
        const CAP_DAC_OVERRIDE: libc::c_ulong = 1;
        // SAFETY: a plain system call. Fails for those who have no privileges to give up.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) };
        Ok(())
    };
    // SAFETY: the closure makes a system call only.
    let program = unsafe { home.armed(puppet::path()).before_exec(give_up) };
    Puppet::start_armed(home, program)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode is set");
}

#[test]
fn a_start_in_a_directory_that_may_not_be_written_says_so() {
    let home = Home::new();
    let puppet = without_privileges(&home);
    fs::create_dir(home.output()).expect("a directory");
    set_mode(&home.output(), 0o555);
    for output in [home.output(), home.output().join("new")] {
        assert_start_fails(&home, &puppet, &output, &["Permission denied"]);
    }
    set_mode(&home.output(), 0o755);
    assert_unharmed(&home, puppet);
}

#[test]
fn a_directory_that_may_no_longer_be_written_is_said_at_the_stop() {
    let home = Home::new();
    let mut puppet = without_privileges(&home);
    let msprof = started(&home, &puppet, &home.output());
    let dir = prof_dirs(&home.output()).remove(0);
    set_mode(&dir.join("host/data"), 0o555);
    // The first records need a new file.
    assert_eq!(puppet.tell("api 1000 1"), "0");
    assert_stop_fails(msprof, &puppet, &["Permission denied"]);
    set_mode(&dir.join("host/data"), 0o755);
    assert_whole(&dir);
    assert_unharmed(&home, puppet);
}
