//! What the agent's own log tells at level info.

mod support;

use support::home::{Home, only_prof_dir};
use support::puppet::{self, Puppet, capturing};
use support::rules::open_complete;

#[test]
fn the_log_tells_version_and_socket_and_each_capture_with_its_directory_clock_and_counts() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    assert_eq!(puppet.tell("api 100 1"), "0");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    let clocks = prof.ledger()["clocks"].clone();
    let first = clocks[0].as_str().expect("a clock").to_owned();
    assert!(
        ["kernel", "cpu-counter"].contains(&first.as_str()),
        "{clocks}"
    );
    let dir = only_prof_dir(&home.output());
    let lines = [
        format!(
            "agent {}, control socket {}",
            msprof_agent_core::VERSION,
            puppet.socket().display()
        ),
        format!("capture 1: time from {first}"),
        format!("capture 1 runs: {}", dir.display()),
        format!(
            "capture 1 ended: 100 records written, 0 lost, 0 aged out: {}",
            dir.display()
        ),
    ];
    let log = home.log();
    for line in lines {
        assert!(log.contains(&line), "no {line:?} in {log}");
    }
    puppet.finish().expect_code(0);
}

#[test]
fn a_program_that_is_told_to_have_no_socket_says_so_in_its_log() {
    let home = Home::new();
    let program = home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "off");
    Puppet::start_program(&home, program)
        .finish()
        .expect_code(0);
    let expected = "no control socket: MSPROF_AGENT_BIND=off";
    assert!(home.log().contains(expected), "{}", home.log());
}
