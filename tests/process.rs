//! Ends, forks, and components that misbehave: the process goes on as if we were not there.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::Proc;
use support::puppet::{self, Puppet};
use support::rules::{lost, open_complete};
use support::task::{Task, Way};
use support::wait::{PATIENCE, wait_for, wait_until};

/// What all component handlers together may take at a start or stop, and a machine's slowness.
const COMPONENT_LIMIT: Duration = Duration::from_secs(5);
const SLACK: Duration = Duration::from_secs(4);

/// A puppet with a capture under way.
fn capturing(home: &Home) -> (Puppet, ByteClient) {
    let puppet = Puppet::start(home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    (puppet, client)
}

/// Sockets that a process has open.
fn sockets_of(pid: u32) -> usize {
    let descriptors = Proc::of(pid).descriptors();
    descriptors
        .values()
        .filter(|kind| *kind == "socket")
        .count()
}

// ---- ends --------------------------------------------------------------------

#[test]
fn exit_in_mid_capture_leaves_a_complete_directory_and_no_socket() {
    let home = Home::new();
    let (mut puppet, _client) = capturing(&home);
    assert_eq!(puppet.tell("api 1000 1"), "0");
    puppet.order("exit 7");
    assert_eq!(puppet.wait_end().code(), Some(7));
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 1000);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn a_return_from_main_in_mid_capture_leaves_a_complete_directory_and_no_socket() {
    let home = Home::new();
    let (mut puppet, _client) = capturing(&home);
    assert_eq!(puppet.tell("api 1000 1"), "0");
    puppet.finish().expect_code(0);
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        1000
    );
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn exit_while_other_threads_report_leaves_a_complete_directory() {
    let home = Home::new();
    let (mut puppet, _client) = capturing(&home);
    assert_eq!(puppet.tell("reporters 4"), "0");
    assert_eq!(puppet.tell("api 1000 1"), "0");
    puppet.order("exit 0");
    assert_eq!(puppet.wait_end().code(), Some(0));
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert!(prof.api().len() >= 1000);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn a_task_that_never_finalizes_leaves_a_complete_directory() {
    let home = Home::new();
    let mut task = Task::start(
        &home,
        Way::Preload,
        "--seconds=-1 --pause-us=1000 --no-finalize",
    );
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    let output = home.output();
    wait_until("records", || {
        let dirs = prof_dirs(&output);
        let slice = dirs
            .first()
            .map(|dir| dir.join("host/data/aging.api_event.data.slice_0"));
        slice.is_some_and(|slice| slice.exists())
    });
    task.signal(libc::SIGTERM);
    assert_eq!(task.wait_end(PATIENCE).code(), Some(0));
    let prof = open_complete(&only_prof_dir(&output));
    assert_eq!(lost(&prof.ledger()), 0);
    assert!(prof.calls().keys().any(|(_, name)| name == "KernelLaunch"));
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn finalize_ends_the_capture_and_the_socket_and_init_brings_it_back() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    assert_eq!(puppet.tell("api 10 1"), "0");
    assert_eq!(puppet.tell("finalize"), "0");
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        10
    );
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    client.wait_closed(PATIENCE);
    assert_eq!(Proc::of(puppet.pid()).agent_threads(), [] as [String; 0]);
    assert_eq!(puppet.tell("init"), "0");
    puppet.wait_socket();
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    client.stop();
    client.quit();
}

#[test]
fn a_killed_process_leaves_whole_records_and_control_files() {
    let home = Home::new();
    let (mut puppet, _client) = capturing(&home);
    assert_eq!(puppet.tell("api 1000 1"), "0");
    let dir = only_prof_dir(&home.output());
    let slice = dir.join("host/data/aging.api_event.data.slice_0");
    wait_until("the records to be written", || {
        slice.metadata().is_ok_and(|meta| meta.len() == 40_000)
    });
    puppet.kill();
    let prof = support::prof::Prof::open(&dir);
    assert_eq!(prof.api().len(), 1000);
    for name in ["info.json", "sample.json", "start_info", "host_start.log"] {
        assert!(dir.join("host").join(name).exists(), "{name}");
    }
    assert_eq!(prof.ledger()["state"], "capturing");
}

#[test]
fn an_aborting_process_aborts_as_without_us() {
    let home = Home::new();
    let (mut puppet, _client) = capturing(&home);
    puppet.order("abort");
    assert_eq!(puppet.wait_end().signal(), Some(libc::SIGABRT));
}

// ---- children ----------------------------------------------------------------

/// Every kind of child, with its order to the puppet.
const CHILDREN: [&str; 4] = ["fork exit", "fork _exit", "vfork", "double"];

#[test]
fn children_of_an_armed_process_end_well_and_leave_its_socket_alone() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    for order in CHILDREN {
        for _ in 0..5 {
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
        assert_eq!(home.sockets(), [puppet.socket().clone()], "{order}");
        ByteClient::open(puppet.socket(), &params(&home.output())).quit();
    }
    assert_eq!(prof_dirs(&home.output()), [] as [PathBuf; 0]);
}

#[test]
fn children_of_a_capturing_process_end_well_and_leave_its_capture_alone() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    let mut reported = 0;
    for order in CHILDREN {
        for _ in 0..5 {
            assert_eq!(puppet.tell("api 100 1"), "0");
            reported += 100;
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
    }
    assert_eq!(puppet.tell("state"), "0 2 0 1", "still capturing");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), reported);
    assert_eq!(home.sockets(), [puppet.socket().clone()]);
}

#[test]
fn children_of_a_process_whose_threads_report_end_well() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    assert_eq!(puppet.tell("reporters 4"), "0");
    for _ in 0..25 {
        for order in CHILDREN {
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
    }
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    assert!(!prof.api().is_empty());
}

#[test]
fn a_child_that_reports_becomes_an_agent_of_its_own() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    assert_eq!(puppet.tell("api 100 1"), "0");
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    let socket = home.socket(child);
    wait_for("the child's socket", PATIENCE, || {
        socket.exists().then_some(())
    });

    // A capture of the child beside the parent's.
    let child_output = home.path().join("child");
    let mut second = ByteClient::open(&socket, &params(&child_output));
    second.start();
    wait_until("records of the child", || {
        let dirs = prof_dirs(&child_output);
        let slice = dirs
            .first()
            .map(|dir| dir.join("host/data/aging.api_event.data.slice_0"));
        slice.is_some_and(|slice| slice.exists())
    });
    assert_eq!(puppet.tell("api 100 1"), "0");
    second.stop();
    let of_child = open_complete(&only_prof_dir(&child_output));
    assert!(!of_child.api().is_empty());
    assert!(
        of_child.api().iter().all(|record| record.item >> 40 == 0),
        "its own records only"
    );
    assert_eq!(of_child.ledger()["pid"], child);
    second.quit();

    client.stop();
    client.quit();
    let of_parent = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(of_parent.api().len(), 200);
    assert!(
        of_parent.api().iter().all(|record| record.item >> 40 == 1),
        "its own records only"
    );
    assert_eq!(puppet.tell("let"), "0", "exit status of the child");
    assert_eq!(
        home.sockets(),
        [puppet.socket().clone()],
        "the child's socket is gone"
    );
}

#[test]
fn a_child_that_ends_in_mid_capture_completes_its_own_directory_only() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    let socket = home.socket(child);
    wait_for("the child's socket", PATIENCE, || {
        socket.exists().then_some(())
    });
    let child_output = home.path().join("child");
    let mut second = ByteClient::open(&socket, &params(&child_output));
    second.start();
    assert_eq!(puppet.tell("let"), "0", "exit status of the child");
    open_complete(&only_prof_dir(&child_output));
    assert_eq!(puppet.tell("api 100 1"), "0");
    assert_eq!(puppet.tell("state"), "0 2 0 1", "still capturing");
    client.stop();
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        100
    );
}

#[test]
fn a_forked_child_holds_no_socket_of_its_parent() {
    let home = Home::new();
    let (mut puppet, client) = capturing(&home);
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    let socket = home.socket(child);
    wait_for("the child's socket", PATIENCE, || {
        socket.exists().then_some(())
    });
    drop(client);
    wait_until("one socket each", || {
        sockets_of(puppet.pid()) == 1 && sockets_of(child) == 1
    });
    let parents = puppet.socket().clone();
    puppet.kill();
    let error = std::os::unix::net::UnixStream::connect(parents).expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

// ---- components --------------------------------------------------------------

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
#[ignore = "Captures::device_opened does not know of a capture that is just starting"]
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

// ---- the program's own captures ----------------------------------------------

#[test]
fn a_program_captures_itself_without_dynamic_mode() {
    let home = Home::new();
    let mut puppet = Puppet::start_program(&home, home.plain(puppet::path()));
    assert_eq!(puppet.tell("state"), "0 0 0 0", "inert");
    assert_eq!(puppet.tell("name"), "0");
    for capture in 1..=3 {
        let output = home.path().join(format!("own-{capture}"));
        assert_eq!(puppet.tell(&format!("start {}", output.display())), "0");
        assert_eq!(puppet.tell("state"), format!("0 2 0 {capture}"));
        assert_eq!(puppet.tell("api 50 1"), "0");
        let dir = only_prof_dir(&output);
        assert_eq!(puppet.tell("path"), dir.to_str().expect("UTF-8"));
        assert_eq!(puppet.tell("stop"), format!("0 {}", dir.display()));
        assert_eq!(open_complete(&dir).api().len(), 50);
        assert_eq!(puppet.tell("path"), "");
    }
    assert!(puppet.tell("stop").starts_with("5"), "nothing to stop");
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    assert_eq!(Proc::of(puppet.pid()).agent_threads(), [] as [String; 0]);
}

#[test]
fn a_client_and_the_program_itself_do_not_disturb_each_other() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let own = home.path().join("own");
    assert_eq!(puppet.tell(&format!("start {}", own.display())), "0");
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    assert_eq!(
        client.command(support::client::START),
        support::client::ALREADY_STARTED
    );
    drop(client);
    wait_until("the client to be gone", || sockets_of(puppet.pid()) == 1);
    assert_eq!(puppet.tell("api 10 1"), "0");
    assert_eq!(
        puppet.tell("state"),
        "0 2 0 1",
        "a client's end leaves the program's capture"
    );
    assert!(puppet.tell("stop").starts_with("0 "));
    assert_eq!(open_complete(&only_prof_dir(&own)).api().len(), 10);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    let refused = puppet.tell(&format!("start {}", own.display()));
    assert!(refused.starts_with("5 "), "{refused}");
    client.stop();
    client.quit();
}

#[test]
#[ignore = "Session::request stops whatever runs at quit, also what the program started itself"]
fn a_client_that_quits_leaves_the_programs_own_capture() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let own = home.path().join("own");
    assert_eq!(puppet.tell(&format!("start {}", own.display())), "0");
    ByteClient::open(puppet.socket(), &params(&home.output())).quit();
    assert_eq!(puppet.tell("api 10 1"), "0");
    assert_eq!(puppet.tell("state"), "0 2 0 1", "still capturing");
    assert!(puppet.tell("stop").starts_with("0 "));
    assert_eq!(open_complete(&only_prof_dir(&own)).api().len(), 10);
}
