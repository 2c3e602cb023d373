//! Forks by the thousand while something is captured.

mod support;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::proc::Proc;
use support::process::Running;
use support::puppet::capturing;
use support::rules::{lost, open_complete};
use support::wait::wait_until;
use support::watcher::Watcher;

/// Threads that fork, and children of each: the parent's other threads are in the middle of anything.
const THREADS: u64 = 8;
const CHILDREN: u64 = 1_000;
/// Every so many children use the ABI.
const USE: u64 = 100;
/// All of them on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
/// A child that waits for something waits for seconds.
const AT_ONCE_US: u64 = 2_000_000;

/// A pool that waits for its go, and its socket.
fn pool(home: &Home, program: support::process::Program) -> (Running, PathBuf) {
    let counts = [THREADS, CHILDREN, USE].map(|count| count.to_string());
    let mut pool = program.args(counts).spawn();
    pool.line("ready", |line| (line == "ready").then_some(()));
    let socket = home.socket(pool.pid());
    (pool, socket)
}

/// Lets the pool go; all its children end well and at once.
fn run(pool: &mut Running) {
    pool.say("go");
    let (bad, longest) = pool.line_from(0, "the children", LIMIT, |line| {
        let (bad, longest) = line.strip_prefix("children ")?.split_once(' ')?;
        Some((bad.parse::<u64>().ok()?, longest.parse::<u64>().ok()?))
    });
    assert_eq!(bad, 0, "children that ended badly");
    assert!(longest < AT_ONCE_US, "a child lived for {longest} us");
}

#[test]
fn eight_thousand_children_end_at_once_and_the_parents_capture_is_exact() {
    let home = Home::new();
    let mut watcher = Watcher::of(home.path());
    let program = home.armed(build("tests/c/pool.c", Linkage::Shared));
    let (mut pool, socket) = pool(&home, program);
    wait_until("the socket", || socket.exists());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    let before = Proc::of(pool.pid()).descriptors().len();
    run(&mut pool);
    // Nothing of the children has come to the parent.
    wait_until("its descriptors to come to be what they were", || {
        Proc::of(pool.pid()).descriptors().len() <= before + 8
    });
    client.stop();
    client.quit();

    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    let items: HashSet<u64> = prof.api().iter().map(|record| record.item).collect();
    let expected: HashSet<u64> = (1..=THREADS)
        .flat_map(|thread| (1..=CHILDREN).map(move |number| thread << 40 | number))
        .collect();
    assert_eq!(prof.api().len() as u64, THREADS * CHILDREN);
    assert!(items == expected, "each record of the parent, and no other");

    // Whoever used the ABI may have had a socket of its own, once; nobody else had one.
    let parent = pool.pid();
    let appeared = watcher.appeared();
    assert_eq!(appeared.get(&parent), Some(&1));
    assert!(appeared.len() as u64 <= 1 + THREADS * CHILDREN / USE);
    assert!(appeared.values().all(|&times| times == 1), "{appeared:?}");
    assert_eq!(home.sockets(), [socket], "what children had is gone");
    pool.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    let left = home.entries(|name| name != "output" && name != "agent.log");
    assert_eq!(left, [] as [PathBuf; 0]);
}

#[test]
fn children_of_an_unarmed_pool_end_at_once_too() {
    let home = Home::new();
    let program = home.plain(build("tests/c/pool.c", Linkage::Shared));
    let (mut pool, _) = pool(&home, program);
    run(&mut pool);
    pool.finish().expect_code(0);
    assert_eq!(home.entries(|_| true), [] as [PathBuf; 0]);
}

#[test]
fn children_by_vfork_and_grandchildren_leave_a_capture_under_load_exact() {
    const ROUNDS: u64 = 100;
    let home = Home::new();
    let mut watcher = Watcher::of(home.path());
    let (mut puppet, mut client) = capturing(&home);
    for _ in 0..ROUNDS {
        assert_eq!(puppet.tell("api 10 1"), "0");
        for order in ["vfork", "double", "fork exit"] {
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
    }
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len() as u64, ROUNDS * 10);
    assert_eq!(lost(&prof.ledger()), 0);
    let pid = puppet.pid();
    assert_eq!(watcher.appeared().keys().collect::<Vec<_>>(), [&pid]);
    puppet.finish().expect_code(0);
}
