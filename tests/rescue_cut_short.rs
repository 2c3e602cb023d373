//! The controller is killed, too, in the midst of a rescue: `msprof recover` makes a sound directory of what it left,
//! in which no record is torn or doubled.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::home::{Home, only_prof_dir};
use support::msprof::{dynamic, give};
use support::process::{Program, Running, words};
use support::prof::{Prof, record_size};
use support::rules::open_recovered;
use support::wait::{PATIENCE, wait_until};

/// Changes of files that the controller is let make: the first ones each, then at growing distances, as far as there is
/// time.
const STEPS: [u32; 14] = [0, 1, 2, 3, 5, 8, 12, 17, 23, 30, 40, 55, 80, 120];
const TIME: Duration = Duration::from_secs(60);
/// tests/c/stepper.c: not permitted.
const NOT_PERMITTED: i32 = 77;
/// Records that were reported at the kill, at least, by the account of tests/c/mortal.c.
const RECORDS: u64 = 20_000;
/// Words of a thread in it: its number and its counts by size.
const SLOT: usize = 5;

/// What the program's threads say that they have reported.
fn reported(home: &Home) -> u64 {
    let bytes = fs::read(home.path().join("account")).unwrap_or_default();
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight")));
    let words: Vec<u64> = words.collect();
    words.chunks_exact(SLOT).flat_map(|slot| &slot[1..]).sum()
}

/// The thread of the controller that serves a process.
fn thread_of(msprof: u32, target: u32) -> u32 {
    let name = format!("target-{target}");
    let tasks = fs::read_dir(format!("/proc/{msprof}/task")).expect("lives");
    let mut tasks = tasks.flatten().filter(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    let task = tasks.next().expect("a thread for the process");
    task.file_name()
        .to_str()
        .and_then(|name| name.parse().ok())
        .expect("a thread id")
}

/// Each record is there once, by thread and number.
fn assert_no_doubles(prof: &Prof) {
    let families = prof.devices.values().chain([&prof.host]).flatten();
    for (family, slices) in families {
        let Some(size) = record_size(family) else {
            continue;
        };
        let number_at = if size == 40 { 32 } else { 24 };
        let mut seen = BTreeSet::new();
        let bytes: Vec<u8> = slices.values().flatten().copied().collect();
        for record in bytes.chunks(size) {
            let key = (
                record[8..12].to_vec(),
                record[number_at..number_at + 8].to_vec(),
            );
            assert!(seen.insert(key), "{family}: a record twice");
        }
    }
}

fn api_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir.join("host/data")).expect("data").flatten();
    let of_api = files.filter(|file| {
        file.file_name()
            .to_string_lossy()
            .contains("api_event.data.slice_")
    });
    let whole = of_api.filter(|file| !file.file_name().to_string_lossy().ends_with(".done"));
    whole
        .map(|file| file.metadata().expect("there").len())
        .sum()
}

/// Kills a program, and its controller after so many steps of the rescue. False if there were no more steps than that,
/// `None` where that cannot be tried.
fn cut_short(steps: u32) -> Option<bool> {
    let home = Home::new();
    let mut program = home
        .armed(build("tests/c/mortal.c", Linkage::Shared))
        .env("MSPROF_AGENT_BUFFER_MB", "256")
        .arg(home.path().join("account"))
        .args(words("3 300 3000 0"))
        .spawn();
    program.line("the program", |line| (line == "ready").then_some(()));
    let pid = program.pid();
    wait_until("the socket", || home.socket(pid).exists());
    let mut msprof = dynamic(&home, &home.output())
        .arg(format!("--pid={pid}"))
        .spawn();
    give(&mut msprof, &["start"]);
    let started = format!("dynamic profiling for pid {pid} start success");
    msprof.line("the start", |line| (line == started).then_some(()));
    program.say("go");
    wait_until("records", || reported(&home) >= RECORDS);
    let mut stepper: Running = Program::new(build("tests/c/stepper.c", Linkage::Without))
        .args([msprof.pid(), thread_of(msprof.pid(), pid), steps].map(|number| number.to_string()))
        .spawn();
    wait_until("the stepper", || {
        stepper.has_ended() || !stepper.stdout().is_empty()
    });
    if stepper.has_ended() {
        let finished = stepper.finish();
        assert_eq!(finished.status.code(), Some(NOT_PERMITTED), "{finished:#?}");
        support::skip::skipped(format_args!("this host lets nobody be debugged"));
        return None;
    }
    program.kill();
    stepper.wait_end(PATIENCE);
    let stepper = stepper.finish();
    let killed = match stepper.stdout.last().map(String::as_str) {
        Some("killed") => true,
        Some("ended") => false,
        other => panic!("{other:?}"),
    };
    msprof.wait_end(PATIENCE);
    drop(msprof.finish());
    let dir = only_prof_dir(&home.output());
    let before = api_bytes(&dir);
    let recover = || {
        home.plain(&artifacts().msprof)
            .arg("recover")
            .arg(&dir)
            .run()
    };
    recover().expect_code(0);
    let prof = open_recovered(&dir);
    assert_no_doubles(&prof);
    // What the rescue had put there is kept, but for a record that was torn.
    assert_eq!(prof.api().len() as u64, before / 40);
    recover().expect_code(0).line_with("nothing to recover");
    Some(killed)
}

#[test]
fn a_rescue_that_is_cut_short_anywhere_leaves_what_a_recovery_finishes() {
    let until = Instant::now() + TIME;
    let mut cut = 0;
    for steps in STEPS {
        match cut_short(steps) {
            None => return,
            Some(false) => break,
            Some(true) => cut += 1,
        }
        if Instant::now() > until {
            break;
        }
    }
    eprintln!("{cut} rescues were cut short");
    assert!(cut >= 3, "{cut}");
}
