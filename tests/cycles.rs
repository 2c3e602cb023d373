//! Many captures of one process: each stands alone, and nothing adds up.

mod support;

use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use support::client::{ByteClient, params};
use support::home::{Home, prof_dirs};
use support::proc::Proc;
use support::prof::RUNTIME;
use support::rules::{lost, open_complete};
use support::task::{Task, Way, program};
use support::wait::wait_until;

const CYCLES: u64 = 200;
/// After these nothing may grow any more.
const WARM_UP: u64 = 20;
/// The C library keeps the stacks of ended threads for the next ones: as many as were alive at once,
/// two mappings each. One kept per cycle would be far more.
const STACKS: usize = 8;
/// Item ids of runtime calls are `window << 40 | running number`.
const STAMP_BITS: u32 = 40;

/// Starts and stops once, with some records in between.
fn cycle(client: &mut ByteClient, output: &Path) {
    let before = prof_dirs(output).len();
    client.start();
    wait_until("the capture to write", || {
        let dirs = prof_dirs(output);
        let slice = dirs
            .get(before)
            .map(|dir| dir.join("host/data/aging.api_event.data.slice_0"));
        slice.is_some_and(|slice| slice.metadata().is_ok_and(|meta| meta.len() > 0))
    });
    client.stop();
}

#[test]
fn two_hundred_captures_hold_exactly_their_own_windows_and_leave_nothing_behind() {
    let home = Home::new();
    let program = program(
        &home,
        Way::Preload,
        "--seconds=-1 --streams=2 --pause-us=500",
    )
    .env("CANN_STANDIN_STAMP", "1")
    // More arenas of the C library come and go with luck; they are none of our mappings.
    .env("MALLOC_ARENA_MAX", "1")
    .env("MSPROF_AGENT_MAX_COMMANDS", "0");
    let mut task = Task::start_program(&home, program, true);
    let proc = Proc::of(task.pid());
    let before = proc.idle_resources();

    let mut mappings = 0;
    for half in 0..2 {
        let mut client = ByteClient::open(task.socket(), &params(&home.output()));
        for number in 1..=CYCLES / 2 {
            cycle(&mut client, &home.output());
            if half == 0 && number == WARM_UP {
                mappings = proc.mappings().len();
            }
        }
        client.quit();
    }
    task.window(CYCLES);
    let after = proc.idle_resources();
    assert_eq!(after.threads, before.threads);
    // The rings' memory file is made once and stays.
    let added: Vec<&String> = after
        .descriptors
        .iter()
        .filter(|kind| !before.descriptors.contains(kind))
        .collect();
    assert!(
        after.descriptors.len() <= before.descriptors.len() + 1
            && added.iter().all(|kind| kind.contains("memfd")),
        "{before:?} became {after:?}"
    );
    let now = proc.mappings().len();
    assert!(
        now <= mappings + STACKS,
        "{mappings} mappings after {WARM_UP} cycles, {now} after {CYCLES}"
    );

    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len() as u64, CYCLES);
    let windows = task.windows();
    assert_eq!(windows.len() as u64, CYCLES);
    let mut stamps = HashSet::new();
    for ((dir, window), number) in dirs.iter().zip(&windows).zip(1..) {
        assert_eq!(window.number(), number);
        assert_eq!(window.bad_commands(), 0);
        let prof = open_complete(dir);
        let ledger = prof.ledger();
        assert_eq!(ledger["capture"], number);
        assert_eq!(lost(&ledger), 0);
        window.assert_matches(&prof);
        let mut foreign = 0;
        for record in prof.api().iter().filter(|record| record.level == RUNTIME) {
            assert!(
                stamps.insert(record.item),
                "{:#x} was captured twice",
                record.item
            );
            foreign += u64::from(record.item >> STAMP_BITS != number);
        }
        let (_, carried) = window.cut("runtime");
        assert!(
            foreign <= carried,
            "{}: {foreign} records of other windows",
            dir.display()
        );
    }
    task.terminate();
}

#[test]
fn captures_without_a_record_are_complete_too() {
    let home = Home::new();
    let puppet = support::puppet::Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    for _ in 0..20 {
        client.start();
        client.stop();
    }
    client.quit();
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), 20);
    for dir in dirs {
        let prof = open_complete(&dir);
        assert_eq!(prof.api(), []);
        assert_eq!(prof.ledger()["reported"], prof.ledger()["lost"]);
        assert!(!matches!(prof.ledger()["stop"], Value::Null));
    }
}

#[test]
fn a_thousand_captures_hold_exactly_what_was_reported_in_each() {
    const CAPTURES: u64 = 1_000;
    const RECORDS: u64 = 20;
    let home = Home::new();
    let program = home
        .armed(support::puppet::path())
        .env("MSPROF_AGENT_MAX_COMMANDS", "0");
    let mut puppet = support::puppet::Puppet::start_armed(&home, program);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    for number in 1..=CAPTURES {
        // Some of them a moment long and without a record; and what is reported between them is nobody's.
        client.start();
        if number % 4 != 0 {
            assert_eq!(puppet.tell(&format!("api {RECORDS} {number}")), "0");
        }
        client.stop();
        assert_eq!(puppet.tell("api 5 77777"), "0");
    }
    client.quit();
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len() as u64, CAPTURES);
    for (dir, number) in dirs.iter().zip(1..) {
        let prof = support::prof::Prof::open(dir);
        assert_eq!(lost(&prof.ledger()), 0);
        let items: Vec<u64> = prof.api().iter().map(|record| record.item).collect();
        let expected = match number % 4 {
            0 => 1..1,
            _ => 1..RECORDS + 1,
        };
        let expected: Vec<u64> = expected.map(|n| number << STAMP_BITS | n).collect();
        assert_eq!(items, expected, "{}", dir.display());
        // All of them by the product's own check would take a minute.
        if number % 50 <= 1 {
            open_complete(dir);
        }
    }
}
