//! Ends of a process, and captures that it makes of itself.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use support::client::{ALREADY_STARTED, ByteClient, START, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::{IDLE_SOCKETS, Proc};
use support::puppet::{self, Puppet, capturing};
use support::rules::{lost, open_complete};
use support::task::{Task, Way};
use support::wait::{PATIENCE, wait_until};

// ---- ends -------------------------------------------------------------------

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
    // The thread gives a client some time to close.
    drop(client);
    wait_until("the control thread to end", || {
        Proc::of(puppet.pid()).agent_threads().is_empty()
    });
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

// ---- the program's own captures ---------------------------------------------

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
    // The thread of the last stop ends after its answer.
    wait_until("the agent's threads to end", || {
        Proc::of(puppet.pid()).agent_threads().is_empty()
    });
}

#[test]
fn a_client_and_the_program_itself_do_not_disturb_each_other() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let own = home.path().join("own");
    assert_eq!(puppet.tell(&format!("start {}", own.display())), "0");
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    assert_eq!(client.command(START), ALREADY_STARTED);
    drop(client);
    wait_until("the client to be gone", || {
        Proc::of(puppet.pid()).sockets() == IDLE_SOCKETS
    });
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
