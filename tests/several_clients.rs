//! Clients beside each other and in crowds: one has the session, and the others are told so in their own language.

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::client::{ByteClient, assert_serves, params, params_message};
use support::home::{Home, only_prof_dir};
use support::proc::Proc;
use support::puppet::Puppet;
use support::rules::{lost, open_complete};
use support::wait::PATIENCE;

/// What a loaded machine adds to a time limit.
const SLACK: Duration = Duration::from_secs(4);

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
