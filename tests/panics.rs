//! A panic anywhere in the agent: the program goes on, and the agent says that it is off.

mod support;

use std::path::PathBuf;
use std::time::Instant;
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, PARAMS, params};
use support::home::{Home, prof_dirs};
use support::msprof::{dynamic, run_script};
use support::prof::Prof;
use support::puppet::Puppet;
use support::wait::{PATIENCE, wait_until};

/// What `state` says of an agent that is off.
const OFF: &str = "0 4 ";

fn program(home: &Home) -> Puppet {
    let program = home.armed(build("tests/c/broken_write.c", Linkage::Shared));
    let program = Puppet::start_armed(home, program);
    // What is broken next is not to be this line.
    wait_until("the agent to log its socket", || {
        home.log().contains("control socket")
    });
    program
}

/// Waits until the thread of that name has met the fault and the agent is off.
#[track_caller]
fn wait_off(program: &mut Puppet, thread: &str) {
    wait_until(&format!("{thread} to meet the fault"), || {
        program.tell("broken") == "1"
    });
    wait_until("the agent to be off", || {
        program.tell("state").starts_with(OFF)
    });
}

/// Nothing of the program fails; whoever wants to profile it is told at once that this is over.
#[track_caller]
fn assert_off_and_unharmed(home: &Home, mut program: Puppet) {
    assert_eq!(program.tell("api 1000 9"), "0");
    assert_eq!(program.tell("device 0 1"), "0");
    assert_eq!(program.tell("init"), "0");
    let output = home.path().join("late");
    let refused = program.tell(&format!("start {}", output.display()));
    assert!(refused.starts_with("5 "), "{refused}");
    let begin = Instant::now();
    let controller = dynamic(home, &output).arg(format!("--pid={}", program.pid()));
    let finished = run_script(controller, &["start", "quit"]);
    finished.expect_code(1);
    assert!(begin.elapsed() < PATIENCE / 2, "{finished:#?}");
    assert!(prof_dirs(&output).is_empty());
    assert!(home.log().contains("turns itself off"), "{}", home.log());
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn a_panic_of_the_control_thread_turns_the_agent_off() {
    let home = Home::new();
    let mut program = program(&home);
    assert_eq!(program.tell("break msprof-ctl"), "0");
    // It logs that these are no params.
    let mut stranger = ByteClient::connect(program.socket());
    let _ = stranger.try_send(&[0xFF; PARAMS]);
    wait_off(&mut program, "msprof-ctl");
    wait_until("the socket to go, since nobody serves it", || {
        home.sockets().is_empty()
    });
    assert_off_and_unharmed(&home, program);
}

#[test]
fn a_panic_of_the_control_thread_as_it_binds_leaves_no_socket() {
    let home = Home::new();
    let mut program = program(&home);
    assert_eq!(program.tell("finalize"), "0");
    wait_until("the former socket to go", || home.sockets().is_empty());
    assert_eq!(program.tell("break msprof-ctl"), "0");
    // It logs where the new socket is.
    assert_eq!(program.tell("init"), "0");
    wait_off(&mut program, "msprof-ctl");
    wait_until("the socket to go, since nobody serves it", || {
        home.sockets().is_empty()
    });
    assert_off_and_unharmed(&home, program);
}

#[test]
fn a_panic_of_the_control_thread_in_mid_capture_leaves_whole_records() {
    let home = Home::new();
    let mut program = program(&home);
    let mut client = ByteClient::open(program.socket(), &params(&home.output()));
    client.start();
    assert_eq!(program.tell("api 1000 1"), "0");
    assert_eq!(program.tell("break msprof-ctl"), "0");
    // It logs either.
    let _ = client.try_send(&[0xFF; 8]);
    drop(client);
    wait_off(&mut program, "msprof-ctl");
    let dirs = prof_dirs(&home.output());
    assert_off_and_unharmed(&home, program);
    assert_eq!(Prof::open(&dirs[0]).api().len(), 1000);
}

#[test]
fn a_panic_of_an_operation_turns_the_agent_off_and_is_no_silence_for_the_client() {
    let home = Home::new();
    let mut program = program(&home);
    let mut client = program.connect();
    client.introduce_extended(&params(&home.output()));
    assert_eq!(program.tell("break msprof-op"), "0");
    let reply = client.ask("start");
    assert_eq!(reply["outcome"], "failed", "{reply}");
    wait_off(&mut program, "msprof-op");
    assert_off_and_unharmed(&home, program);
}

#[test]
fn a_panic_of_the_drain_ends_the_capture_with_whole_records() {
    let home = Home::new();
    let mut program = program(&home);
    let mut client = program.connect();
    client.introduce_extended(&params(&home.output()));
    let started = client.ask("start");
    assert_eq!(started["outcome"], "success", "{started}");
    assert_eq!(client.ask("status").get("disabled"), None);
    assert_eq!(program.tell("api 1000 1"), "0");
    assert_eq!(program.tell("break msprof-drain"), "0");
    wait_off(&mut program, "msprof-drain");
    assert_eq!(program.tell("api 1000 2"), "0");
    let stopped = client.ask("stop");
    assert_eq!(stopped["outcome"], "failed", "{stopped}");
    // Whoever asks is told why, this client and the next.
    let why = client.ask("status")["disabled"].clone();
    assert!(
        why.as_str().is_some_and(|why| why.contains("msprof-drain")),
        "{why}"
    );
    client.ask("quit");
    let mut next = program.connect();
    assert_eq!(
        next.introduce_extended(&params(&home.output()))["disabled"],
        why
    );
    drop((client, next));
    let dir = prof_dirs(&home.output()).remove(0);
    assert_off_and_unharmed(&home, program);
    let prof = Prof::open(&dir);
    assert!(prof.api().len() <= 1000);
    for slices in prof.host.get("aging.api_event.data").into_iter() {
        assert!(slices.values().all(|bytes| bytes.len() % 40 == 0));
    }
}

#[test]
fn a_panic_in_a_call_is_an_error_of_that_call_and_turns_the_agent_off() {
    let home = Home::new();
    let mut program = program(&home);
    assert!(artifacts().library.exists());
    let output = home.output();
    assert!(
        program
            .tell(&format!("start {}", output.display()))
            .starts_with("0 ")
    );
    // The main thread's name is what started it, cut to what the kernel keeps. It logs the end of the capture.
    let name = std::fs::read_to_string(format!("/proc/{}/comm", program.pid()));
    let order = format!("break {}", name.expect("its name").trim_end());
    assert_eq!(program.tell(&order), "0");
    let answer = program.tell("finalize");
    assert_eq!(program.tell("broken"), "1");
    assert_eq!(answer, "5", "MSPROF_ERROR");
    wait_off(&mut program, "the main thread");
    assert_off_and_unharmed(&home, program);
}
