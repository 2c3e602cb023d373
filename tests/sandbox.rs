//! A kernel that answers EPERM to what a strict container may forbid (tests/c/sandbox.c): all is as without, but for
//! what is said to be missing.

mod support;

use std::path::PathBuf;
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, prof_dirs};
use support::proc::Proc;
use support::process::{Program, words};
use support::rules::{lost, open_complete};
use support::task::{EASY, Task, wait_runs};
use support::wait::{PATIENCE, wait_until};

/// The task with the agent preloaded, in the sandbox.
fn boxed(home: &Home, options: &str) -> Program {
    home.armed(build("tests/c/sandbox.c", Linkage::Without))
        .arg(&artifacts().library)
        .arg(&artifacts().task)
        .args(words(options))
}

#[test]
fn where_much_is_forbidden_captures_hold_every_call() {
    let home = Home::new();
    let mut task = Task::start_program(&home, boxed(&home, EASY), true);
    for number in 1..=2 {
        let output = home.path().join(format!("capture-{number}"));
        let mut client = ByteClient::open(task.socket(), &params(&output));
        client.start();
        wait_runs(&output, 20);
        client.stop();
        client.quit();
        let window = task.window(number);
        let prof = open_complete(&prof_dirs(&output)[0]);
        window.assert_matches(&prof);
        assert!(window.total() > 100);
        assert_eq!(lost(&prof.ledger()), 0);
    }
    // Without memory files there is nothing to hand to a controller.
    let proc = Proc::of(task.pid());
    let descriptors = proc.descriptors();
    assert!(!descriptors.values().any(|kind| kind.contains("memfd")));
    task.terminate();
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn where_watches_are_forbidden_a_removed_socket_comes_back_all_the_same() {
    let home = Home::new();
    let task = Task::start_program(&home, boxed(&home, EASY), true);
    let proc = Proc::of(task.pid());
    let watches = |kind: &String| kind.contains("inotify");
    assert!(!proc.descriptors().values().any(watches));
    std::fs::remove_file(task.socket()).expect("it is there");
    wait_until("the socket to come back", || task.socket().exists());
    support::client::assert_serves(task.socket(), &home.output());
    task.terminate();
}

#[test]
fn where_much_is_forbidden_a_program_ends_with_its_own_status() {
    let home = Home::new();
    let finished = boxed(&home, "--no-such-option").run();
    finished.expect_code(2);
    assert!(finished.stderr[0].starts_with("mlp_task: bad option"));
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    // In mid capture, too.
    let mut task = Task::start_program(&home, boxed(&home, EASY), true);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    wait_runs(&home.output(), 10);
    task.signal(libc::SIGTERM);
    assert_eq!(task.wait_end(PATIENCE).code(), Some(0));
    drop(client);
    let prof = open_complete(&prof_dirs(&home.output())[0]);
    task.windows()[0].assert_matches(&prof);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}
