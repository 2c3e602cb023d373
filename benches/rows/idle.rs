//! An armed process that is left alone: memory, time at load, wake-ups. Measured in a child of its own.

use crate::support::cores;
use crate::support::library::{self, Library};
use crate::support::proc;
use crate::support::table::{Row, Table};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Argument that makes this program the child.
pub const CHILD: &str = "--idle-child";
/// How long wake-ups are counted, s.
const WATCHED_S: u64 = 10;
/// Children: each load is a sample.
const LOADS: usize = 15;

/// Measures them; sockets go below `dir`.
pub fn add(dir: &Path, table: &mut Table) {
    table.section("An armed and idle process");
    let mut load = Row::new("time of dlopen, ms", &["agent"]);
    let mut memory = Row::new("resident memory added, KB", &["agent"]);
    for _ in 0..LOADS {
        let [ms, kb, _] = child(dir, 0);
        load.add("agent", ms);
        memory.add("agent", kb);
    }
    let mut wakes = Row::new("wake-ups in 10 s", &["agent"]);
    wakes.add("agent", child(dir, WATCHED_S)[2]);
    table.at_most(
        "wake-ups of an idle armed process in 10 s",
        wakes.samples("agent").median(),
        0.0,
    );
    table.at_most(
        "resident memory added, MB",
        memory.samples("agent").median() / 1024.0,
        2.0,
    );
    table.at_most("added at load, ms", load.samples("agent").median(), 2.0);
    for row in [load, memory, wakes] {
        table.row(row);
    }
}

fn child(dir: &Path, watch_s: u64) -> [f64; 3] {
    let output = Command::new(std::env::current_exe().expect("every process has a program"))
        .args([CHILD, &watch_s.to_string()])
        .env("PROFILING_MODE", "dynamic")
        .env("MSPROF_AGENT_SOCKET_DIR", dir)
        .output()
        .expect("a child");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
    numbers
        .try_into()
        .unwrap_or_else(|_| panic!("the child printed {text:?}"))
}

/// The child: loads the agent, waits, prints three numbers.
pub fn run_child(watch_s: u64) -> ExitCode {
    let before = proc::resident_kb();
    let begin = Instant::now();
    let _agent = Library::open(&library::agent_path());
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    // The control thread makes its socket; then it sleeps.
    std::thread::sleep(Duration::from_millis(200));
    let added = proc::resident_kb() - before;
    let wakes = wake_ups();
    std::thread::sleep(Duration::from_secs(watch_s));
    let wakes = wake_ups() - wakes;
    println!("{ms} {added} {wakes}");
    ExitCode::SUCCESS
}

/// Times that threads of the agent went to sleep: all but this one are its own.
fn wake_ups() -> f64 {
    // It is there: an agent that left the process alone would wake up least of all.
    cores::thread_named("msprof-ctl");
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let own = std::process::id().to_string();
    let threads = tasks
        .flatten()
        .filter(|task| task.file_name() != own.as_str());
    threads
        .map(|task| {
            let path = task.path().join("status");
            proc::field(&path.to_string_lossy(), "voluntary_ctxt_switches:")
        })
        .sum()
}
