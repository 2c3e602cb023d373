//! What ends a session of a client that does nothing wrong, and what a start is refused for.

mod support;

use std::path::PathBuf;
use std::time::Duration;
use support::client::{
    ByteClient, DISCONNECT, NO_DEVICE, NOT_STARTED, START, STOP, assert_serves, params,
};
use support::home::{Home, prof_dirs};
use support::puppet::{self, Puppet};
use support::wait::PATIENCE;

/// A puppet that a variable has set a limit to.
fn start_with(home: &Home, variable: &str, value: &str) -> Puppet {
    Puppet::start_armed(home, home.armed(puppet::path()).env(variable, value))
}

#[test]
fn after_the_last_command_of_a_connection_the_next_one_is_answered_by_a_disconnect() {
    let home = Home::new();
    let puppet = start_with(&home, "MSPROF_AGENT_MAX_COMMANDS", "3");
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
    let puppet = start_with(&home, "MSPROF_AGENT_IDLE_TIMEOUT", "1");
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
    let puppet = start_with(&home, "MSPROF_AGENT_IDLE_TIMEOUT", "1");
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    std::thread::sleep(Duration::from_millis(1300));
    client.stop();
    client.quit();
}

#[test]
fn where_a_device_is_needed_a_start_before_the_first_says_so() {
    let home = Home::new();
    let mut puppet = start_with(&home, "MSPROF_AGENT_NEED_DEVICE", "1");
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
