//! Component handlers: hanging ones, late ones, and those that call back.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;
use std::time::Instant;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::msprof::{dynamic, run_script};
use support::prof::Prof;
use support::puppet::{Puppet, capturing};
use support::rules::open_complete;
use support::wait::PATIENCE;

/// What all component handlers together may take at a start or stop, and a machine's slowness.
const COMPONENT_LIMIT: Duration = Duration::from_secs(5);
const SLACK: Duration = Duration::from_secs(4);

#[test]
fn a_handler_that_hangs_delays_start_and_stop_by_a_bound_and_others_are_captured() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    assert_eq!(puppet.tell("device 0 1"), "0");
    assert_eq!(puppet.tell("handler 7 plain"), "0");
    assert_eq!(puppet.tell("handler 45 hang"), "0");
    assert_eq!(puppet.tell("handler 48 plain"), "0");
    let mut client = puppet.connect();
    client.introduce_extended(&params(&home.output()));
    let begin = Instant::now();
    let started = client.ask("start");
    let waited = begin.elapsed();
    assert_eq!(started["outcome"], "success", "{started}");
    assert!(waited < COMPONENT_LIMIT + SLACK, "start took {waited:?}");
    assert!(
        started["notes"].to_string().contains("GE"),
        "the module is named: {started}"
    );
    assert_eq!(puppet.tell("heard"), "2 0", "the others were told");
    assert_eq!(puppet.tell("api 100 1"), "0");
    let begin = Instant::now();
    let stopped = client.ask("stop");
    let waited = begin.elapsed();
    assert_eq!(stopped["outcome"], "success", "{stopped}");
    assert!(waited < COMPONENT_LIMIT + SLACK, "stop took {waited:?}");
    assert_eq!(puppet.tell("heard"), "2 2");
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 100);
    assert!(
        prof.ledger()["notes"].to_string().contains("GE"),
        "{}",
        prof.ledger()["notes"]
    );

    // It comes back and is served again.
    assert_eq!(puppet.tell("release"), "0");
    let begin = Instant::now();
    assert_eq!(client.ask("start")["outcome"], "success");
    assert_eq!(client.ask("stop")["outcome"], "success");
    assert!(begin.elapsed() < COMPONENT_LIMIT);
    assert_eq!(client.ask("quit")["outcome"], "success");
}

#[test]
fn a_stock_client_is_served_while_a_handler_hangs() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    assert_eq!(puppet.tell("device 0 1"), "0");
    assert_eq!(puppet.tell("handler 7 hang"), "0");
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("api 100 1"), "0");
    client.stop();
    client.quit();
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        100
    );
    assert_eq!(puppet.tell("release"), "0");
    puppet.finish().expect_code(0);
}

#[test]
fn exit_while_a_handler_hangs_is_no_hang() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    assert_eq!(puppet.tell("device 0 1"), "0");
    assert_eq!(puppet.tell("handler 7 hang"), "0");
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("api 100 1"), "0");
    let begin = Instant::now();
    puppet.order("exit 3");
    assert_eq!(puppet.wait_end().code(), Some(3));
    assert!(begin.elapsed() < Duration::from_secs(2) + SLACK);
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        100
    );
}

#[test]
fn a_handler_may_call_back_into_the_library() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    assert_eq!(puppet.tell("device 0 1"), "0");
    assert_eq!(puppet.tell("handler 7 callback"), "0");
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    for round in 1..=3 {
        let begin = Instant::now();
        client.start();
        client.stop();
        assert!(
            begin.elapsed() < COMPONENT_LIMIT,
            "round {round}: no deadlock"
        );
    }
    client.quit();
    for dir in prof_dirs(&home.output()) {
        let prof = open_complete(&dir);
        assert!(!prof.api().is_empty(), "what the handler reported");
    }
}

#[test]
fn a_device_that_opens_during_a_start_gets_its_directory() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    assert_eq!(puppet.tell("device 0 1"), "0");
    // Opens device 5 when it is told to start.
    assert_eq!(puppet.tell("handler 7 callback"), "0");
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    let devices: Vec<u32> = prof.devices.keys().copied().collect();
    assert_eq!(devices, [0, 5]);
    assert_eq!(prof.ledger()["devices"], serde_json::json!([0, 5]));
}

#[test]
fn a_component_that_registers_late_is_told_to_start_and_to_stop() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    assert_eq!(puppet.tell("handler 7 plain"), "0");
    assert_eq!(puppet.tell("heard"), "0 0", "no device is open");
    assert_eq!(puppet.tell("device 0 1"), "0");
    assert_eq!(puppet.tell("heard"), "1 0");
    assert_eq!(puppet.tell("handler 45 plain"), "0");
    assert_eq!(puppet.tell("heard"), "2 0");
    assert_eq!(
        puppet.tell("handler 45 plain"),
        "0",
        "the same pair twice is one"
    );
    assert_eq!(puppet.tell("heard"), "2 0");
    for _ in 0..100 {
        assert_eq!(puppet.tell("device 0 1"), "0", "a repeat commands nobody");
    }
    assert_eq!(puppet.tell("heard"), "2 0");
    client.stop();
    assert_eq!(puppet.tell("heard"), "2 2");
    client.quit();
    assert!(
        open_complete(&only_prof_dir(&home.output()))
            .devices
            .contains_key(&0)
    );
}

/// A program with a handler that does not come back in a regular way, and what its controller hears.
fn crash_in_handler(source: &str) -> ExitStatus {
    let home = Home::new();
    let mut program = home.armed(build(source, Linkage::Shared)).spawn();
    program.line("ready", |line| (line == "ready").then_some(()));
    home.wait_socket(program.pid());
    let begin = Instant::now();
    let controller = dynamic(&home, &home.output()).arg(format!("--pid={}", program.pid()));
    let finished = run_script(controller, &["start", "quit"]);
    finished.expect_code(1);
    let text = finished.text();
    assert!(text.contains("start failed"), "{finished:#?}");
    assert!(text.contains("the process has ended"), "{finished:#?}");
    assert!(begin.elapsed() < COMPONENT_LIMIT + SLACK, "no hang");
    let status = program.wait_end(PATIENCE);
    for dir in prof_dirs(&home.output()) {
        // Cut off, but to be read.
        Prof::open(&dir);
    }
    status
}

#[test]
fn a_handler_that_panics_or_throws_ends_the_program_at_once_as_it_would_without_us() {
    // No library can catch what comes out of another one's handler: a Rust handler does not let it out, and
    // nobody may unwind through frames of another language. What counts: no hang, and a controller that says it.
    for source in ["tests/rust/panicking.rs", "tests/c/throwing.cpp"] {
        let status = crash_in_handler(source);
        assert_eq!(status.signal(), Some(libc::SIGABRT), "{source}");
    }
}
