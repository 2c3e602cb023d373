//! What a stock client sees on the control socket, good and bad manners included.

mod support;

use serde_json::json;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;
use support::client::{
    ALREADY_STARTED, ByteClient, DISCONNECT, FAILED, NO_DEVICE, NOT_STARTED, PARAMS, QUIT, START,
    STOP, SUCCESS, assert_serves, params, params_message,
};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::Proc;
use support::puppet::{self, Puppet};
use support::rules::{lost, open_complete};
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

// ---- several clients --------------------------------------------------------

#[test]
fn a_second_stock_client_gets_silence_and_then_a_close() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut first = ByteClient::open(puppet.socket(), &params(&home.output()));
    first.start();
    let mut second = puppet.connect();
    let begin = Instant::now();
    second.send(&params_message(&params(&home.output()).to_string()));
    let (_, replies) = second.wait_closed(PATIENCE);
    let waited = begin.elapsed();
    assert_eq!(replies, [], "a stock client is told by silence");
    let expected = Duration::from_millis(1100)..Duration::from_millis(1200) + SLACK;
    assert!(expected.contains(&waited), "closed after {waited:?}");
    assert_eq!(puppet.tell("api 5 1"), "0");
    first.stop();
    first.quit();
    assert_eq!(open_complete(&only_prof_dir(&home.output())).api().len(), 5);
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn a_second_client_of_our_own_hears_at_once_who_is_there() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut first = ByteClient::open(puppet.socket(), &params(&home.output()));
    first.start();
    let mut second = puppet.connect();
    let begin = Instant::now();
    let hello = second.introduce_extended(&params(&home.output()));
    assert!(begin.elapsed() < Duration::from_secs(1));
    assert_eq!(hello["busy"]["pid"], std::process::id());
    // SAFETY: getuid has no preconditions.
    assert_eq!(hello["busy"]["uid"], unsafe { libc::getuid() });
    assert_eq!(
        second.receive_within(PATIENCE),
        None,
        "closed after the hello"
    );
    first.stop();
    first.quit();
    let mut third = puppet.connect();
    let hello = third.introduce_extended(&params(&home.output()));
    assert!(hello["busy"].is_null(), "{hello}");
    assert_eq!(hello["pid"], puppet.pid());
}

#[test]
fn a_client_of_our_own_hears_paths_counts_and_reasons() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut client = puppet.connect();
    client.introduce_extended(&params(&home.output()));
    let stopped = client.ask("stop");
    assert_eq!(stopped["outcome"], "not-started");
    let started = client.ask("start");
    assert_eq!(started["outcome"], "success", "{started}");
    assert_eq!(client.ask("start")["outcome"], "already-started");
    assert_eq!(puppet.tell("api 70 1"), "0");
    let state = client.ask("status");
    assert_eq!(state["capturing"], true);
    let stopped = client.ask("stop");
    assert_eq!(stopped["outcome"], "success", "{stopped}");
    assert_eq!(stopped["path"], started["path"]);
    assert_eq!(stopped["ledger"]["written"]["runtime-api"], 70);
    assert_eq!(lost(&stopped["ledger"]), 0);
    let unknown = client.ask("teleport");
    assert_eq!(unknown["outcome"], "failed");
    assert_eq!(client.ask("quit")["outcome"], "success");
    let path = PathBuf::from(stopped["path"].as_str().expect("a path"));
    assert_eq!(open_complete(&path).api().len(), 70);
}

#[test]
fn three_hundred_connections_leave_nothing_behind() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    // The first use makes what stays.
    assert_serves(puppet.socket(), &home.output());
    let proc = Proc::of(puppet.pid());
    let before = proc.idle_resources();
    for round in 0..300 {
        let client = ByteClient::open(puppet.socket(), &params(&home.output()));
        if round % 3 == 0 {
            drop(client);
        } else {
            client.quit();
        }
    }
    proc.wait_for_resources(&before);
}

#[test]
fn a_crowd_of_silent_connections_leaves_nothing_behind() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    // The first use makes what stays.
    assert_serves(puppet.socket(), &home.output());
    let proc = Proc::of(puppet.pid());
    let before = proc.idle_resources();
    let crowd: Vec<ByteClient> = (0..12).map(|_| puppet.connect()).collect();
    assert_serves(puppet.socket(), &home.output());
    drop(crowd);
    proc.wait_for_resources(&before);
}

// ---- limits -----------------------------------------------------------------

#[test]
fn after_the_last_command_of_a_connection_the_next_one_is_answered_by_a_disconnect() {
    let home = Home::new();
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_MAX_COMMANDS", "3");
    let puppet = Puppet::start_program(&home, program);
    puppet.wait_socket();
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    for _ in 0..3 {
        assert_eq!(client.command(STOP), NOT_STARTED);
    }
    client.request(START);
    let reply = client.receive_within(PATIENCE).expect("an answer");
    assert_eq!(reply.kind, DISCONNECT);
    // What the client still says is read, so that it is not killed by SIGPIPE.
    client
        .try_send(&[0; 8])
        .expect("the other end is still open");
    drop(client);
    assert_eq!(prof_dirs(&home.output()), [] as [PathBuf; 0]);
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn a_connection_takes_a_hundred_commands_unless_told_otherwise() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    for number in 1..=100 {
        assert_eq!(client.command(STOP), NOT_STARTED, "command {number}");
    }
    client.request(STOP);
    let reply = client.receive_within(PATIENCE).expect("an answer");
    assert_eq!(reply.kind, DISCONNECT);
}

#[test]
fn an_idle_session_is_answered_by_a_disconnect_and_gives_way_to_others() {
    let home = Home::new();
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_IDLE_TIMEOUT", "1");
    let puppet = Puppet::start_program(&home, program);
    puppet.wait_socket();
    let mut idle = ByteClient::open(puppet.socket(), &params(&home.output()));
    // The stimulus: nothing is said for longer than allowed.
    std::thread::sleep(Duration::from_millis(1200));
    assert_serves(puppet.socket(), &home.output());
    idle.request(START);
    let reply = idle.receive_within(PATIENCE).expect("an answer");
    assert_eq!(reply.kind, DISCONNECT);
    drop(idle);
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn a_capture_is_not_idleness() {
    let home = Home::new();
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_IDLE_TIMEOUT", "1");
    let puppet = Puppet::start_program(&home, program);
    puppet.wait_socket();
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    std::thread::sleep(Duration::from_millis(1300));
    client.stop();
    client.quit();
}

#[test]
fn where_a_device_is_needed_a_start_before_the_first_says_so() {
    let home = Home::new();
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_NEED_DEVICE", "1");
    let mut puppet = Puppet::start_program(&home, program);
    puppet.wait_socket();
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    assert_eq!(client.command(START), NO_DEVICE);
    assert_eq!(client.command(STOP), NOT_STARTED);
    assert_eq!(prof_dirs(&home.output()), [] as [PathBuf; 0]);
    assert_eq!(puppet.tell("device 0 1"), "0");
    client.start();
    client.stop();
    assert_eq!(puppet.tell("device 0 0"), "0");
    assert_eq!(client.command(START), NO_DEVICE);
    client.quit();
}
