//! A program is killed in mid capture, and `msprof recover` finishes what it left: every record that had been
//! written is there, in order and without a gap, and what is missing at the end is a matter of milliseconds.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::parser::{export, exported, rows, stock_parser};
use support::process::Finished;
use support::prof::Prof;
use support::rules::open_recovered;
use support::task::{Task, Way, wait_runs};
use support::wait::wait_until;

/// Slots of tests/c/numbered.c: thread id, count, and the times of the latest records.
const TIMES: u64 = 1 << 18;
const SLOT_BYTES: usize = 16 + 8 * TIMES as usize;
/// Records older than this at the kill are in the directory (README).
const IN_MEMORY: Duration = Duration::from_millis(20);
/// On a machine where the drain thread does not get a CPU in time a single attempt shows nothing.
const ATTEMPTS: usize = 5;
/// No attempt may lose more than this, however busy the machine.
const NEVER_MORE: Duration = Duration::from_secs(2);

fn monotonic_raw() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills a local of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A thread's own account of what it reported.
#[derive(Debug)]
struct Slot {
    thread: u32,
    count: u64,
    times: Vec<u64>,
}

impl Slot {
    /// When record `number` began.
    fn time(&self, number: u64) -> u64 {
        self.times[(number % TIMES) as usize]
    }
}

/// The account that the program keeps in a file.
fn slots(account: &Path) -> Vec<Slot> {
    let bytes = std::fs::read(account).expect("an account");
    let word = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight"))
    };
    let slots = bytes.chunks_exact(SLOT_BYTES).map(|slot| Slot {
        thread: word(slot, 0) as u32,
        count: word(slot, 1),
        times: (2..2 + TIMES as usize).map(|at| word(slot, at)).collect(),
    });
    slots.filter(|slot| slot.thread != 0).collect()
}

fn recover(home: &Home, path: &Path, option: Option<&str>) -> Finished {
    let program = home.plain(&artifacts().msprof).arg("recover");
    let program = program.args(option);
    program.arg(path).run()
}

/// How a program reports.
#[derive(Clone, Copy, Debug)]
struct Load {
    threads: usize,
    /// Records between two pauses of a thread.
    burst: u32,
    pause_us: u32,
    /// Records of every thread before the kill.
    records: u64,
}

/// About 150,000 records a second and thread, as far as there are CPUs for it.
const BUSY: Load = Load {
    threads: 4,
    burst: 25,
    pause_us: 100,
    records: 20_000,
};
/// So few that no segment of a ring ever fills up.
const SLOW: Load = Load {
    threads: 2,
    burst: 1,
    pause_us: 1_000,
    records: 400,
};

/// Runs the program, kills it under load, and gives when that was, and its account.
fn killed(home: &Home, load: Load) -> (u64, Vec<Slot>) {
    let account = home.path().join("account");
    let program = home
        .armed(build("tests/c/numbered.c", Linkage::Shared))
        .arg(home.output())
        .arg(&account)
        .arg(load.threads.to_string())
        .arg(load.burst.to_string())
        .arg(load.pause_us.to_string());
    let mut running = program.spawn();
    running.line("the capture", |line| (line == "capturing").then_some(()));
    let count = |slot: &Slot| slot.count;
    wait_until("records of every thread", || {
        let slots = slots(&account);
        slots.len() == load.threads && slots.iter().map(count).min() > Some(load.records)
    });
    let at = monotonic_raw();
    running.kill();
    (at, slots(&account))
}

/// Checks that each thread's records are the first of what it reported; gives how old the oldest missing one
/// was at the kill, ns, and how many are missing.
fn missing(prof: &Prof, slots: &[Slot], killed_at: u64) -> (u64, u64) {
    let mut found: BTreeMap<u32, u64> = BTreeMap::new();
    for record in prof.api() {
        let last = found.entry(record.thread).or_default();
        assert_eq!(record.item, *last + 1, "thread {}", record.thread);
        *last = record.item;
    }
    let mut oldest = 0;
    let mut missing = 0;
    for slot in slots {
        let written = found.remove(&slot.thread).unwrap_or(0);
        // A report may have been published and not counted by the program yet.
        assert!(written <= slot.count + 1, "{written} of {}", slot.count);
        if written < slot.count {
            missing += slot.count - written;
            assert!(slot.count - written < TIMES, "times are kept of all");
            oldest = oldest.max(killed_at.saturating_sub(slot.time(written + 1)));
        }
    }
    assert!(found.is_empty(), "records of threads that never were");
    (oldest, missing)
}

#[test]
fn a_killed_program_loses_its_last_milliseconds_and_nothing_else() {
    for load in [BUSY, SLOW] {
        kill_until_little_is_missing(load);
    }
}

fn kill_until_little_is_missing(load: Load) {
    let mut ages = Vec::new();
    for attempt in 0..ATTEMPTS {
        let home = Home::new();
        // The kill comes at another point of the drain's round each time.
        let records = load.records + 177 * attempt as u64;
        let (at, slots) = killed(&home, Load { records, ..load });
        let dir = only_prof_dir(&home.output());
        let recovered = recover(&home, &dir, None);
        recovered.expect_code(0);
        recovered.line_with(": recovered");
        let prof = open_recovered(&dir);
        let (age, missing) = missing(&prof, &slots, at);
        let written = prof.api().len();
        recovered.line_with(&format!("kept: {written} records (runtime-api {written})"));
        recovered.line_with("lost until the last account: 0 records");
        recovered.line_with("lost after it (made ");
        eprintln!(
            "kill {attempt}: {written} records kept, {missing} missing, the oldest {:.3} ms old",
            age as f64 / 1e6
        );
        assert!(Duration::from_nanos(age) < NEVER_MORE);
        ages.push(Duration::from_nanos(age));
        if ages.last() <= Some(&IN_MEMORY) {
            return;
        }
    }
    panic!("records older than {IN_MEMORY:?} were missing in every attempt: {ages:?}");
}

#[test]
fn a_recovered_capture_is_told_as_json_and_is_not_touched_again() {
    let home = Home::new();
    let (_, slots) = killed(&home, SLOW);
    let dir = only_prof_dir(&home.output());
    let recovered = recover(&home, &home.output(), Some("--json"));
    recovered.expect_code(0);
    let object: Value = serde_json::from_str(&recovered.stdout.join("")).expect("JSON");
    let one = &object["directories"][0];
    assert_eq!(one["done"], "recovered");
    let kept = one["kept"]["runtime-api"].as_u64().expect("a count");
    let reported: u64 = slots.iter().map(|slot| slot.count + 1).sum();
    assert!(kept > 0 && kept <= reported);
    assert!(one["account_ns"].is_u64() && one["last_record_ns"].is_u64());
    let ledger = std::fs::read(dir.join("msprof_agent.json")).expect("a ledger");
    recover(&home, &dir, None)
        .expect_code(0)
        .line_with("nothing to recover");
    let again = std::fs::read(dir.join("msprof_agent.json")).expect("a ledger");
    assert_eq!(ledger, again);
}

#[test]
fn a_capture_under_way_is_refused_and_unharmed() {
    let home = Home::new();
    let mut task = Task::start(
        &home,
        Way::Preload,
        "--seconds=-1 --streams=1 --pause-us=2000",
    );
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    let refused = recover(&home, &home.output(), None);
    refused.expect_code(1);
    let said = format!("is still being written by process {}", task.pid());
    assert!(refused.text().contains(&said), "{refused:#?}");
    client.stop();
    client.quit();
    let window = task.window(1);
    task.terminate();
    let dir = only_prof_dir(&home.output());
    window.assert_matches(&support::rules::open_complete(&dir));
    recover(&home, &dir, None)
        .expect_code(0)
        .line_with("nothing to recover");
}

/// Kills the demo task with its three traces; its client is none that could rescue anything.
fn killed_task(home: &Home) {
    let options = "--seconds=-1 --streams=2 --pause-us=2000";
    let task = Task::start(home, Way::Preload, options);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    wait_runs(&home.output(), 40);
    task.kill();
}

#[test]
fn the_stock_parser_exports_what_was_recovered_of_a_killed_task() {
    let home = Home::new();
    killed_task(&home);
    let dir = only_prof_dir(&home.output());
    recover(&home, &home.output(), None)
        .expect_code(0)
        .line_with("device_0/end_info.0: made");
    let prof = open_recovered(&dir);
    let calls = prof.calls();
    for (level, name) in [(5000, "KernelLaunch"), (20000, "aclmdlExecute")] {
        assert!(calls.contains_key(&(level, name.to_owned())), "{name}");
    }
    assert!(prof.aicpu().len() >= 40);
    let Some(parser) = stock_parser() else {
        return;
    };
    export(&parser, &dir);
    let csv = exported(&dir, "aicpu_", ".csv").expect("aicpu csv");
    assert_eq!(rows(&csv).len(), prof.aicpu().len());
    let csv = exported(&dir, "api_statistic_", ".csv").expect("api_statistic csv");
    let count = |level: &str, name: &str| -> u64 {
        let rows = rows(&csv);
        let row = rows
            .iter()
            .find(|row| row["Level"] == level && row["API Name"] == name);
        row.map_or(0, |row| row["Count"].parse().expect("a number"))
    };
    for (level, level_name, name) in [
        (5000, "runtime", "KernelLaunch"),
        (20000, "acl", "aclmdlExecute"),
    ] {
        let (apis, _) = calls[&(level, name.to_owned())];
        assert_eq!(count(level_name, name), apis, "{name}");
    }
    assert!(exported(&dir, "msprof_", ".json").is_some());
}
