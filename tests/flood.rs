//! More records than can be written: every one of them is written or counted as lost.

mod support;

use serde_json::Value;
use std::collections::HashSet;
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::proc::Proc;
use support::puppet::{self, Puppet, capturing};
use support::rules::{lost, open_complete};

/// Stops, quits, and returns the records' items and the ledger.
fn outcome(home: &Home, mut client: ByteClient) -> (Vec<u64>, Value) {
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    let items = prof.api().iter().map(|record| record.item).collect();
    (items, prof.ledger())
}

#[track_caller]
fn assert_no_duplicates(items: &[u64]) {
    let distinct: HashSet<u64> = items.iter().copied().collect();
    assert_eq!(distinct.len(), items.len(), "a record was written twice");
}

fn reported(ledger: &Value) -> u64 {
    ledger["reported"]["runtime-api"].as_u64().expect("a count")
}

#[test]
fn a_flood_is_accounted_for_to_the_record() {
    for threads in [1u64, 2, 4, 16] {
        let home = Home::new();
        let program = home
            .armed(puppet::path())
            .env("MSPROF_AGENT_BUFFER_MB", "1");
        let mut puppet = Puppet::start_armed(&home, program);
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        client.start();
        let each = 400_000 / threads;
        let answer = puppet.tell(&format!("flood {threads} {each}"));
        assert_eq!(answer, "0", "a full buffer is no error of the program's");
        let (items, ledger) = outcome(&home, client);
        assert_eq!(reported(&ledger), threads * each, "{threads} threads");
        assert_eq!(items.len() as u64 + lost(&ledger), threads * each);
        assert_no_duplicates(&items);
        let notes = ledger["notes"].to_string();
        let why = format!(
            "{} records were lost because the buffers were full; raise MSPROF_AGENT_BUFFER_MB",
            lost(&ledger)
        );
        assert_eq!(notes.contains(&why), lost(&ledger) > 0, "{notes}");
    }
}

#[test]
fn each_thread_of_a_flood_has_its_row_in_the_ledger() {
    let home = Home::new();
    let (mut puppet, client) = capturing(&home);
    assert_eq!(puppet.tell("flood 4 50000"), "0");
    let (_, ledger) = outcome(&home, client);
    let rows = ledger["threads"].as_array().expect("rows");
    let counts: Vec<u64> = rows
        .iter()
        .map(reported)
        .filter(|count| *count > 0)
        .collect();
    assert_eq!(counts, [50_000; 4]);
}

#[test]
fn threads_that_live_for_a_moment_lose_nothing() {
    let home = Home::new();
    // Room for all of them, should the machine be too busy for the drain to run beside them.
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_BUFFER_MB", "256");
    let mut puppet = Puppet::start_armed(&home, program);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("brief 2000 5"), "0");
    let (items, ledger) = outcome(&home, client);
    assert_eq!(lost(&ledger), 0);
    assert_eq!(items.len(), 10_000);
    assert_no_duplicates(&items);
}

#[test]
fn threads_that_come_and_go_do_not_make_the_process_grow() {
    let home = Home::new();
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_BUFFER_MB", "4");
    let mut puppet = Puppet::start_armed(&home, program);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    let proc = Proc::of(puppet.pid());
    assert_eq!(puppet.tell("brief 1000 5"), "0");
    let before = proc.resident_kib();
    assert_eq!(puppet.tell("brief 8000 5"), "0");
    let after = proc.resident_kib();
    // The buffers' budget and a little more; a page kept for each thread would be 32 MB.
    assert!(after < before + 8192, "{before} KiB, then {after} KiB");
    let (items, ledger) = outcome(&home, client);
    assert_eq!(items.len() as u64 + lost(&ledger), 45_000);
}
