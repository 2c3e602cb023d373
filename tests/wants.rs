//! A program that is out of descriptors for a while: the capture waits, and nothing is lost or silent.

mod support;

use std::path::PathBuf;
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::prof::Prof;
use support::puppet::{Puppet, capturing};
use support::rules::{lost, open_complete};
use support::wait::wait_until;

/// Lets the puppet open as many descriptors as it likes, or no more.
fn allow_descriptors(puppet: &Puppet, allowed: bool) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let pid = puppet.pid() as libc::pid_t;
    // SAFETY: both calls read and write a local.
    unsafe {
        let read = libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &mut limit);
        assert_eq!(read, 0);
        limit.rlim_cur = if allowed { limit.rlim_max } else { 3 };
        let set = libc::prlimit(pid, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut());
        assert_eq!(set, 0);
    }
}

fn wait_log(home: &Home, text: &str) {
    wait_until(&format!("{text:?} in the log"), || {
        home.log().contains(text)
    });
}

fn slice(home: &Home) -> PathBuf {
    only_prof_dir(&home.output()).join("host/data/aging.api_event.data.slice_0")
}

fn stop(mut client: ByteClient, home: &Home) -> Prof {
    client.stop();
    client.quit();
    open_complete(&only_prof_dir(&home.output()))
}

#[test]
fn an_account_that_cannot_be_renewed_for_a_while_ends_no_capture() {
    let home = Home::new();
    let (mut puppet, client) = capturing(&home);
    assert_eq!(puppet.tell("api 1000 1"), "0");
    wait_until("records on disk", || {
        slice(&home)
            .metadata()
            .is_ok_and(|meta| meta.len() == 40_000)
    });
    allow_descriptors(&puppet, false);
    wait_log(&home, "is not renewed");
    // The slice is open: what is reported meanwhile is written.
    assert_eq!(puppet.tell("api 1000 2"), "0");
    allow_descriptors(&puppet, true);
    let prof = stop(client, &home);
    assert_eq!(prof.api().len(), 2000);
    assert_eq!(lost(&prof.ledger()), 0);
    let notes = prof.ledger()["notes"].to_string();
    assert!(notes.contains("could not be renewed"), "{notes}");
    puppet.finish().expect_code(0);
}

#[test]
fn a_slice_that_cannot_be_opened_for_a_moment_is_opened_later_and_nothing_is_lost() {
    let home = Home::new();
    let (mut puppet, client) = capturing(&home);
    allow_descriptors(&puppet, false);
    assert_eq!(puppet.tell("api 1000 1"), "0");
    wait_log(&home, "tried again for a while");
    allow_descriptors(&puppet, true);
    let prof = stop(client, &home);
    assert_eq!(prof.api().len(), 1000);
    assert_eq!(lost(&prof.ledger()), 0);
    puppet.finish().expect_code(0);
}

#[test]
fn a_device_that_is_opened_without_descriptors_has_its_directory_later() {
    let home = Home::new();
    let (mut puppet, client) = capturing(&home);
    allow_descriptors(&puppet, false);
    assert_eq!(puppet.tell("device 3 1"), "0");
    wait_log(&home, "tried again for a while");
    allow_descriptors(&puppet, true);
    let prof = stop(client, &home);
    assert_eq!(prof.ledger()["devices"], serde_json::json!([3]));
    assert!(
        only_prof_dir(&home.output())
            .join("device_3/info.json.3")
            .exists()
    );
    puppet.finish().expect_code(0);
}

#[test]
fn a_want_of_descriptors_that_does_not_end_ends_the_capture_with_its_reason_and_exact_counts() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut client = puppet.connect();
    client.introduce_extended(&params(&home.output()));
    assert_eq!(client.ask("start")["outcome"], "success");
    allow_descriptors(&puppet, false);
    assert_eq!(puppet.tell("api 1000 1"), "0");
    wait_log(&home, "capture ended");
    allow_descriptors(&puppet, true);
    let stopped = client.ask("stop");
    assert_eq!(stopped["outcome"], "failed", "{stopped}");
    let why = stopped["error"].as_str().expect("a reason");
    assert!(why.contains("ulimit -n"), "{why}");
    let ledger = &stopped["ledger"];
    assert_eq!(ledger["reported"]["runtime-api"], 1000);
    assert_eq!(lost(ledger), 1000);
    assert_eq!(client.ask("quit")["outcome"], "success");
    puppet.finish().expect_code(0);
}
