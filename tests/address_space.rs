//! Programs whose address space is limited (`ulimit -v`): they live, and are captured or told why not.

mod support;

use std::path::Path;
use support::builder::{Linkage, build};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::process::Program;
use support::prof::Prof;
use support::puppet::{self, Puppet};
use support::rules::{lost, open_by_rules, open_complete};

/// Bytes of a kibibyte: what `ulimit -v` counts in.
const KIB: u64 = 1024;

/// A puppet that may have `kib` of address space.
fn limited(home: &Home, kib: u64) -> Program {
    let limit = move || {
        let limit = libc::rlimit {
            rlim_cur: kib * KIB,
            rlim_max: kib * KIB,
        };
        // SAFETY: a plain system call that reads a local.
        match unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes a system call only.
    unsafe { home.armed(puppet::path()).before_exec(limit) }
}

fn start(puppet: &mut Puppet, output: &Path) -> String {
    puppet.tell(&format!("start {}", output.display()))
}

/// What a start that fails for want of memory or threads tells the user to do.
#[track_caller]
fn assert_names_the_limit(answer: &str) {
    assert!(
        answer.starts_with("5 ") && answer.contains("ulimit -v"),
        "{answer}"
    );
}

#[test]
fn a_program_with_little_address_space_is_captured_or_told_why_not_and_lives() {
    const RECORDS: usize = 20_000;
    let small = (10_000..60_000).step_by(5_000);
    let large = (60_000..=400_000).step_by(20_000);
    let mut captured = Vec::new();
    for kib in small.chain(large) {
        let home = Home::new();
        let mut puppet = Puppet::start_program(&home, limited(&home, kib));
        let answer = start(&mut puppet, &home.output());
        assert_eq!(puppet.tell(&format!("api {RECORDS} 1")), "0");
        if answer == "0" {
            captured.push(kib);
            let stopped = puppet.tell("stop");
            assert!(stopped.starts_with("0 "), "{kib}: {stopped}");
            let prof = open_by_rules(&only_prof_dir(&home.output()));
            let found = prof.api().len() as u64 + lost(&prof.ledger());
            assert_eq!(found, RECORDS as u64, "{kib}");
            assert_eq!(prof.ledger()["state"], "complete", "{kib}");
        } else {
            assert_names_the_limit(&answer);
        }
        let finished = puppet.finish();
        assert_eq!(finished.status.code(), Some(0), "{kib}: {finished:#?}");
    }
    // In between glibc may have taken 64 MB of address space for the heap of each thread, and left nothing.
    for kib in [40_000, 55_000, 300_000, 400_000] {
        assert!(captured.contains(&kib), "{kib}: {captured:?}");
    }
}

#[test]
fn buffers_that_are_smaller_for_want_of_address_space_are_said_to_be() {
    let home = Home::new();
    let mut puppet = Puppet::start_program(&home, limited(&home, 60_000));
    assert_eq!(start(&mut puppet, &home.output()), "0");
    assert_eq!(puppet.tell("api 1000 1"), "0");
    assert!(puppet.tell("stop").starts_with("0 "));
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 1000);
    let notes = prof.ledger()["notes"].to_string();
    assert!(notes.contains("MB instead of 64"), "{notes}");
    puppet.finish().expect_code(0);
}

#[test]
fn a_program_that_takes_all_memory_there_is_in_mid_capture_goes_on_with_none() {
    let home = Home::new();
    let mut puppet = Puppet::start_program(&home, limited(&home, 200_000));
    assert_eq!(start(&mut puppet, &home.output()), "0");
    assert_eq!(puppet.tell("api 1000 1"), "0");
    assert_eq!(puppet.tell("memory take"), "0");
    for tag in 2..10 {
        assert_eq!(puppet.tell(&format!("api 1000 {tag}")), "0");
    }
    // There may be no memory for the thread that stops.
    let stopped = puppet.tell("stop");
    assert!(
        stopped.starts_with("0 ") || stopped.starts_with("5 "),
        "{stopped}"
    );
    let again = home.path().join("again");
    let refused = start(&mut puppet, &again);
    assert!(refused == "0" || refused.starts_with("5 "), "{refused}");
    assert_eq!(puppet.tell("memory give"), "0");
    let stopped = puppet.tell("stop");
    assert!(
        stopped.starts_with("0 ") || stopped.starts_with("5 "),
        "{stopped}"
    );
    // And is captured when it has some again.
    let good = home.path().join("good");
    assert_eq!(start(&mut puppet, &good), "0");
    assert_eq!(puppet.tell("api 1000 1"), "0");
    assert!(puppet.tell("stop").starts_with("0 "));
    let prof = open_complete(&only_prof_dir(&good));
    assert_eq!(prof.api().len(), 1000);
    puppet.finish().expect_code(0);
    // Complete, or ended with the memory; either way every record is accounted for.
    let first = Prof::open(&only_prof_dir(&home.output()));
    let found = first.api().len() as u64 + lost(&first.ledger());
    assert_eq!(found, 9000, "{}", first.ledger());
}

#[test]
fn a_program_without_memory_that_is_armed_lives() {
    let home = Home::new();
    // Armed before: a lock for which a thread has to wait wants memory the first time.
    let mut puppet = Puppet::start_armed(&home, limited(&home, 200_000));
    assert_eq!(puppet.tell("memory take"), "0");
    for order in [
        "device 0 1",
        "name",
        "init",
        "api 100 1",
        "variable 2000 1900",
    ] {
        let answer = puppet.tell(order);
        assert!(
            ["0", "5", "-1"].contains(&answer.as_str()),
            "{order}: {answer}"
        );
    }
    let answer = start(&mut puppet, &home.output());
    if answer != "0" {
        assert_names_the_limit(&answer);
    }
    puppet.finish().expect_code(0);
}

#[test]
fn a_program_whose_memory_is_used_up_in_a_capture_may_call_everything_and_is_captured_again() {
    let home = Home::new();
    let program = home.plain(build("tests/c/starved.c", Linkage::Shared));
    let finished = program.arg(home.output()).run();
    finished.expect_code(0);
    for line in ["start 0", "start again 0", "stop again 0", "wrong 0"] {
        finished.line_with(line);
    }
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), 2);
    let again = open_complete(dirs.last().expect("two"));
    assert_eq!(again.api().len(), 1);
    assert_eq!(lost(&again.ledger()), 0);
}
