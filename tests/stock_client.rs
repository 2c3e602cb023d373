//! What a stock client sees on the control socket, good and bad manners included.

mod support;

use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;
use support::client::{
    ALREADY_STARTED, ByteClient, FAILED, NOT_STARTED, PARAMS, QUIT, START, STOP, SUCCESS,
    assert_serves, params, params_message,
};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::puppet::Puppet;
use support::rules::open_complete;
use support::task::{EASY, Task, Way};
use support::wait::{PATIENCE, wait_for, wait_until};

/// How long a silent client is listened to, and what a loaded machine adds to a time limit.
const SILENT_LIMIT: Duration = Duration::from_secs(5);
const SLACK: Duration = Duration::from_secs(4);

/// The agent answers `failed` to what was sent in place of params and closes; others are served.
#[track_caller]
fn assert_refused(puppet: &Puppet, home: &Home, message: &[u8]) {
    let mut client = puppet.connect();
    client.send(message);
    let reply = client.receive_within(PATIENCE).expect("an answer");
    assert_eq!((reply.kind, reply.status), (0, FAILED));
    assert_eq!(
        client.receive_within(PATIENCE),
        None,
        "closed after the answer"
    );
    assert_serves(puppet.socket(), &home.output());
}

// ---- a session --------------------------------------------------------------

#[test]
fn a_session_gets_the_answers_that_a_stock_client_expects() {
    let home = Home::new();
    let mut task = Task::start(&home, Way::Preload, EASY);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    assert_eq!(client.command(STOP), NOT_STARTED, "stop while idle");
    assert_eq!(client.command(START), SUCCESS);
    assert_eq!(
        client.command(START),
        ALREADY_STARTED,
        "start while started"
    );
    assert_eq!(client.command(STOP), SUCCESS);
    assert_eq!(client.command(STOP), NOT_STARTED);
    assert_eq!(client.command(START), SUCCESS, "a second capture");
    assert_eq!(client.command(STOP), SUCCESS);
    assert_eq!(client.command(QUIT), SUCCESS);
    let (_, rest) = client.wait_closed(PATIENCE);
    for reply in rest {
        let known = [(6, SUCCESS), (7, SUCCESS)].contains(&(reply.kind, reply.status));
        assert!(
            known,
            "more answers to quit are harmless, but only those: {reply:?}"
        );
    }
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), 2, "one directory for each capture");
    for (dir, number) in dirs.iter().zip(1..) {
        task.window(number).assert_matches(&open_complete(dir));
    }
    task.terminate();
}

#[test]
fn quit_ends_a_running_capture_and_its_directory_is_complete() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("api 100 1"), "0");
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 100);
}

#[test]
fn commands_sent_without_waiting_are_answered_in_order() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut client = puppet.connect();
    client.send(&params_message(&params(&home.output()).to_string()));
    for kind in [START, STOP, START, START, STOP, STOP, QUIT] {
        client.request(kind);
    }
    let expected = [
        (0, SUCCESS),
        (2, SUCCESS),
        (4, SUCCESS),
        (2, SUCCESS),
        (2, ALREADY_STARTED),
        (4, SUCCESS),
        (4, NOT_STARTED),
        (6, SUCCESS),
    ];
    for (kind, status) in expected {
        let reply = client.receive_within(PATIENCE).expect("an answer");
        assert_eq!((reply.kind, reply.status), (kind, status));
    }
}

#[test]
fn params_in_two_writes_are_put_together() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let message = params_message(&params(&home.output()).to_string());
    for cut in [1, 3, 4, 5, 2000, PARAMS - 1] {
        let mut client = puppet.connect();
        client.send(&message[..cut]);
        assert!(!client.hears_within(Duration::from_millis(50)), "too early");
        client.send(&message[cut..]);
        let reply = client.receive_within(PATIENCE).expect("an answer");
        assert_eq!((reply.kind, reply.status), (0, SUCCESS));
        client.start();
        client.stop();
        client.quit();
    }
}

#[test]
fn a_command_in_two_writes_is_put_together() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.send(&START.to_le_bytes());
    assert!(
        !client.hears_within(Duration::from_millis(50)),
        "half a message"
    );
    client.send(&[0xAA; 4]);
    let reply = client.receive_within(PATIENCE).expect("an answer");
    assert_eq!((reply.kind, reply.status), (START + 1, SUCCESS));
    client.stop();
    client.quit();
}

// ---- bad clients ------------------------------------------------------------

#[test]
fn a_client_that_connects_and_closes_does_no_harm() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    for bytes in [0, 1, 4, 8, PARAMS - 1] {
        let mut client = puppet.connect();
        client.send(&vec![b'x'; bytes]);
        drop(client);
        assert_serves(puppet.socket(), &home.output());
    }
}

#[test]
fn a_params_length_that_cannot_be_is_refused() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    for len in [0, 4096, 4097, u32::MAX] {
        let mut message = params_message(&params(&home.output()).to_string());
        message[..4].copy_from_slice(&len.to_le_bytes());
        assert_refused(&puppet, &home, &message);
    }
}

#[test]
fn params_that_are_no_json_object_are_refused() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    for text in ["x", "[]", "{\"result_dir\":", "\"text\"", "{}{}", "null"] {
        assert_refused(&puppet, &home, &params_message(text));
    }
    let mut not_utf8 = params_message("{\"a\":\"bb\"}");
    not_utf8[11] = 0xFF;
    assert_refused(&puppet, &home, &not_utf8);
}

#[test]
fn values_of_the_wrong_type_in_params_do_no_harm() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut odd = params(&home.output());
    for key in [
        "runtimeApi",
        "prof_level",
        "storageLimit",
        "devices",
        "job_id",
        "host_sys_pid",
    ] {
        odd[key] = json!({"a": [1, null]});
    }
    let mut client = puppet.connect();
    let status = client.introduce(&odd);
    assert!([SUCCESS, FAILED].contains(&status));
    drop(client);
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn a_silent_client_is_dropped_after_five_seconds_and_holds_nobody_up() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut silent = puppet.connect();
    let begin = Instant::now();
    assert_serves(puppet.socket(), &home.output());
    assert!(
        begin.elapsed() < SILENT_LIMIT,
        "another client is served meanwhile"
    );
    let (_, replies) = silent.wait_closed(PATIENCE);
    assert_eq!(replies, []);
    let waited = begin.elapsed();
    let expected = SILENT_LIMIT - Duration::from_millis(100)..SILENT_LIMIT + SLACK;
    assert!(expected.contains(&waited), "dropped after {waited:?}");
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn an_unknown_message_type_ends_the_session_and_its_capture_is_complete() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    for (kind, captures) in [(0, 1), (2, 2), (8, 3), (0xFFFF_FFFF, 4)] {
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        client.start();
        assert_eq!(puppet.tell("api 10 1"), "0");
        client.request(kind);
        let (_, replies) = client.wait_closed(PATIENCE);
        assert!(
            replies.iter().all(|reply| reply.status == FAILED),
            "{replies:?}"
        );
        wait_until("the capture to end", || {
            puppet.tell("state").starts_with("0 1 ")
        });
        let dirs = prof_dirs(&home.output());
        assert_eq!(dirs.len(), captures);
        assert_eq!(open_complete(&dirs[captures - 1]).api().len(), 10);
    }
}

#[test]
fn half_a_message_and_then_silence_ends_the_session() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.send(&[1, 0, 0, 0]);
    let begin = Instant::now();
    client.wait_closed(PATIENCE);
    assert!(begin.elapsed() < SILENT_LIMIT + SLACK);
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn a_client_that_dies_in_mid_capture_leaves_a_complete_directory_and_a_free_agent() {
    let home = Home::new();
    let mut task = Task::start(&home, Way::Preload, EASY);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    drop(client);
    let window = task.window(1);
    let dir = only_prof_dir(&home.output());
    wait_until("end_info", || dir.join("host/end_info.done").exists());
    wait_until("the ledger", || is_complete(&dir));
    window.assert_matches(&open_complete(&dir));
    assert_serves(task.socket(), &home.output());
    task.terminate();
}

/// Whether the ledger says that everything is written.
fn is_complete(dir: &Path) -> bool {
    let text = fs::read_to_string(dir.join("msprof_agent.json")).unwrap_or_default();
    text.contains("\"state\":\"complete\"")
}

#[test]
fn clients_that_die_right_after_start_leave_no_capture_running() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    for _ in 0..20 {
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        client.request(START);
        drop(client);
    }
    wait_until("the agent to be free", || {
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        let started = client.command(START) == SUCCESS;
        client.quit();
        started
    });
    // A start that waited for its turn may still begin and end a capture.
    let dirs = wait_for("every capture to end", PATIENCE, || {
        let dirs = prof_dirs(&home.output());
        let over = dirs.iter().all(|dir| is_complete(dir));
        (over && puppet.tell("state").starts_with("0 1 ")).then_some(dirs)
    });
    for dir in dirs {
        open_complete(&dir);
    }
}

#[test]
fn the_next_client_never_meets_the_capture_of_a_dead_one() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    for _ in 0..50 {
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        client.request(START);
        drop(client);
        assert_serves(puppet.socket(), &home.output());
    }
}
