//! Other libraries that are preloaded beside ours, before it and after it: allocators, a sanitizer's runtime, a
//! faked clock. The task runs and ends as without them, and its captures hold every call.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::artifacts::artifacts;
use support::builder::{Linkage, build, compiler};
use support::client::{ByteClient, params};
use support::home::{Home, prof_dirs};
use support::proc::Proc;
use support::process::Program;
use support::prof::Prof;
use support::rules::{lost, open_complete};
use support::task::{self, EASY, Task, Way};
use support::wait::{PATIENCE, wait_for};

/// A library that programs are run with.
struct Companion {
    name: &'static str,
    library: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Companion {
    /// A companion with the file of that name; `None`, with the Debian package that has it on stderr, where it is not
    /// installed.
    fn find(name: &'static str, package: &'static str, file: &str) -> Option<Companion> {
        let library = find_library(file);
        if library.is_none() {
            support::skip::skipped(format_args!(
                "{name} is not installed (package {package}, file {file})"
            ));
        }
        Some(Companion {
            name,
            library: library?,
            environment: Vec::new(),
        })
    }

    fn env(mut self, key: &'static str, value: impl Into<String>) -> Companion {
        self.environment.push((key, value.into()));
        self
    }

    /// The program with ours and this one preloaded.
    fn beside(&self, program: Program, order: Order) -> Program {
        let (ours, theirs) = (&artifacts().library, &self.library);
        let both = match order {
            Order::Before => [theirs, ours],
            Order::After => [ours, theirs],
        };
        let both = both.map(|library| library.display().to_string()).join(":");
        let program = program.env("LD_PRELOAD", both);
        self.environment
            .iter()
            .fold(program, |program, (key, value)| program.env(key, value))
    }
}

/// Where the companion stands in LD_PRELOAD, seen from ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Before,
    After,
}

/// Asks the compiler, which knows the directories of its machine's libraries.
fn find_library(file: &str) -> Option<PathBuf> {
    let output = Command::new(compiler("cc", "gcc"))
        .arg(format!("-print-file-name={file}"))
        .output()
        .expect("a C compiler");
    let path = String::from_utf8(output.stdout).expect("UTF-8");
    // One that it does not find comes back as it was.
    std::fs::canonicalize(path.trim())
        .ok()
        .filter(|path| path.is_absolute() && path.file_name().is_some())
}

/// Runs the task with the companion in both places, captures it twice each, and hands every capture to `look`.
#[track_caller]
fn captured_twice(companion: &Companion, look: impl Fn(&Prof)) {
    for order in [Order::Before, Order::After] {
        let home = Home::new();
        let program = companion.beside(task::program(&home, Way::None, EASY), order);
        let mut task = Task::start_program(&home, program, true);
        let proc = Proc::of(task.pid());
        let file = companion.library.to_str().expect("UTF-8");
        assert!(proc.maps_file(file), "{} is loaded", companion.name);
        let mut after_first = None;
        for number in 1..=2 {
            let output = home.path().join(format!("capture-{number}"));
            let mut client = ByteClient::open(task.socket(), &params(&output));
            client.start();
            task::wait_runs(&output, 20);
            client.stop();
            client.quit();
            let window = task.window(number);
            assert_eq!(window.bad_commands(), 0);
            let dirs = prof_dirs(&output);
            assert_eq!(dirs.len(), 1, "{} {order:?}", companion.name);
            let prof = open_complete(&dirs[0]);
            window.assert_matches(&prof);
            assert!(window.total() > 100, "{} {order:?}", companion.name);
            assert_eq!(lost(&prof.ledger()), 0);
            look(&prof);
            // The buffers' memory file is made once and stays.
            match &after_first {
                None => after_first = Some(proc.idle_resources()),
                Some(before) => proc.wait_for_resources(before),
            }
        }
        assert_no_spin(proc, companion);
        task.terminate();
        assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    }
    own_status(companion);
}

/// A program that ends with a status of its own, in mid capture of nothing, still does.
#[track_caller]
fn own_status(companion: &Companion) {
    for order in [Order::Before, Order::After] {
        let home = Home::new();
        let program = task::program(&home, Way::None, "--no-such-option");
        let finished = companion.beside(program, order).run();
        finished.expect_code(2);
        assert_eq!(finished.stdout, [] as [&str; 0]);
        let own = "mlp_task: bad option";
        assert!(finished.stderr[0].starts_with(own), "{finished:#?}");
        assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    }
}

/// While nobody is connected, the agent uses no CPU time, whatever clock the program sees.
#[track_caller]
fn assert_no_spin(proc: Proc, companion: &Companion) {
    let before = proc.agent_ticks();
    // The stimulus: half a second in which a thread that spins would use some 50 ticks.
    std::thread::sleep(Duration::from_millis(500));
    let used = proc.agent_ticks() - before;
    assert!(used <= 5, "{}: {used} ticks", companion.name);
}

// ---- allocators ---------------------------------------------------------------

#[test]
fn jemalloc_beside_us_changes_nothing() {
    if let Some(companion) = Companion::find("jemalloc", "libjemalloc2", "libjemalloc.so.2") {
        captured_twice(&companion, |_| {});
    }
}

#[test]
fn tcmalloc_beside_us_changes_nothing() {
    let file = "libtcmalloc_minimal.so.4";
    if let Some(companion) = Companion::find("tcmalloc", "libtcmalloc-minimal4", file) {
        captured_twice(&companion, |_| {});
    }
}

#[test]
fn tcmalloc_that_checks_every_block_beside_us_finds_nothing() {
    let file = "libtcmalloc_minimal_debug.so.4";
    if let Some(companion) = Companion::find("tcmalloc (debug)", "libtcmalloc-minimal4", file) {
        captured_twice(&companion, |_| {});
    }
}

#[test]
fn mimalloc_beside_us_changes_nothing() {
    if let Some(companion) = Companion::find("mimalloc", "libmimalloc2.0", "libmimalloc.so.2") {
        captured_twice(&companion, |_| {});
    }
}

#[test]
fn the_c_librarys_checking_allocator_beside_us_finds_nothing() {
    let file = "libc_malloc_debug.so.0";
    if let Some(companion) = Companion::find("libc_malloc_debug", "libc6", file) {
        let companion = companion
            .env("MALLOC_CHECK_", "3")
            .env("MALLOC_PERTURB_", "165")
            .env(
                "GLIBC_TUNABLES",
                "glibc.malloc.check=3:glibc.malloc.perturb=165",
            );
        captured_twice(&companion, |_| {});
    }
}

/// What is opened with RTLD_DEEPBIND takes the C library's allocator, beside a program that has another one: nothing
/// that one of them gave may go to the other.
#[test]
fn opened_with_deepbind_beside_another_allocator_it_is_captured() {
    let allocators = [
        Companion::find("jemalloc", "libjemalloc2", "libjemalloc.so.2"),
        Companion::find(
            "tcmalloc",
            "libtcmalloc-minimal4",
            "libtcmalloc_minimal.so.4",
        ),
        Companion::find("mimalloc", "libmimalloc2.0", "libmimalloc.so.2"),
    ];
    for companion in allocators.into_iter().flatten() {
        let home = Home::new();
        let mut opener = home
            .armed(build("tests/c/opener.c", Linkage::Without))
            .arg(&artifacts().library)
            .env("LD_PRELOAD", &companion.library)
            .spawn();
        assert_eq!(opener.answer(PATIENCE), "ready");
        assert_eq!(opener.tell("open 2"), "0");
        let socket = home.wait_socket(opener.pid());
        for number in 1..=2 {
            let output = home.path().join(format!("capture-{number}"));
            let mut client = ByteClient::open(&socket, &params(&output));
            client.start();
            assert_eq!(opener.tell(&format!("report 1000 {number}")), "0");
            client.stop();
            client.quit();
            let prof = open_complete(&prof_dirs(&output)[0]);
            assert_eq!(prof.api().len(), 1000, "{}", companion.name);
        }
        opener.finish().expect_code(0);
        assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    }
}

// ---- a sanitizer --------------------------------------------------------------

#[test]
fn address_sanitizers_runtime_beside_us_finds_nothing() {
    if let Some(companion) = Companion::find("libasan", "libasan8", "libasan.so") {
        // Behind ours it complains of not being the first, unless it is told not to.
        let companion = companion.env("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
        captured_twice(&companion, |_| {});
    }
}

// ---- a faked clock ------------------------------------------------------------

fn faketime(time: &str) -> Option<Companion> {
    let file = "faketime/libfaketimeMT.so.1";
    let found = Companion::find("libfaketime", "libfaketime", file)?;
    Some(found.env("FAKETIME", time))
}

/// The capture is of now, and its records lie in the time for which it ran, by the machine's own clocks.
#[track_caller]
fn assert_real_time(prof: &Prof) {
    let (start, stop) = (&prof.ledger()["start"], &prof.ledger()["stop"]);
    let ns = |anchor: &serde_json::Value, clock: &str| anchor[clock].as_u64().expect("ns");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("later");
    let age = (now.as_nanos() as u64).saturating_sub(ns(stop, "realtime_ns"));
    assert!(age < PATIENCE.as_nanos() as u64, "stopped {age} ns ago");
    let lasted = |clock: &str| ns(stop, clock) - ns(start, clock);
    let (raw, real) = (lasted("monotonic_raw_ns"), lasted("realtime_ns"));
    assert!(raw > 1_000_000, "{raw}");
    // NTP may slew one of them.
    assert!(raw.abs_diff(real) < raw / 100 + 1_000_000, "{raw} {real}");
    let within =
        ns(start, "monotonic_raw_ns") - 1_000_000..=ns(stop, "monotonic_raw_ns") + 1_000_000;
    let api = prof.api();
    assert!(api.len() > 100);
    // Events that the start or the stop has cut have no time any more.
    for record in api.iter().filter(|record| !record.is_partial()) {
        assert!(within.contains(&record.begin), "{record:?} {within:?}");
        let end_is_in = record.is_event() || within.contains(&record.end);
        assert!(end_is_in, "{record:?} {within:?}");
    }
    let distinct: std::collections::BTreeSet<u64> = api.iter().map(|record| record.begin).collect();
    assert!(distinct.len() > api.len() / 2, "time goes on");
}

#[test]
fn a_clock_that_is_set_to_another_day_moves_nothing_of_ours() {
    for time in ["-3650d", "+400d"] {
        if let Some(companion) = faketime(time) {
            captured_twice(&companion, assert_real_time);
        }
    }
}

#[test]
fn a_clock_that_stands_still_stops_nothing_of_ours() {
    if let Some(companion) = faketime("2020-01-01 00:00:00") {
        captured_twice(&companion, assert_real_time);
    }
}

#[test]
fn a_clock_that_runs_ten_times_as_fast_hurries_nothing_of_ours() {
    if let Some(companion) = faketime("+0 x10") {
        captured_twice(&companion, assert_real_time);
    }
}

#[test]
fn a_session_that_is_idle_ends_in_its_time_although_the_clock_stands_still() {
    for order in [Order::Before, Order::After] {
        let Some(companion) = faketime("2020-01-01 00:00:00") else {
            return;
        };
        let companion = companion.env("MSPROF_AGENT_IDLE_TIMEOUT", "1");
        let home = Home::new();
        let program = companion.beside(task::program(&home, Way::None, EASY), order);
        let task = Task::start_program(&home, program, true);
        // Says nothing for longer than it may, which is 5 s.
        let mut silent = ByteClient::connect(task.socket());
        let (waited, replies) = silent.wait_closed(PATIENCE);
        assert!(waited > Duration::from_secs(4), "{waited:?}");
        assert_eq!(replies, []);
        let first = ByteClient::open(task.socket(), &params(&home.output()));
        // The first one keeps the session for a second.
        let second = wait_for("the place of the idle one", PATIENCE, || {
            let mut second = ByteClient::connect(task.socket());
            second.send(&support::client::params_message(
                &params(&home.output()).to_string(),
            ));
            // Turned away without an answer, after a second.
            second.receive_within(PATIENCE)
        });
        assert_eq!(second.status, support::client::SUCCESS);
        drop(first);
        task.terminate();
    }
}

#[test]
fn a_program_that_ends_in_mid_capture_leaves_it_complete_although_the_clock_stands_still() {
    for order in [Order::Before, Order::After] {
        let Some(companion) = faketime("2020-01-01 00:00:00") else {
            return;
        };
        let home = Home::new();
        let program = companion.beside(task::program(&home, Way::None, EASY), order);
        let mut task = Task::start_program(&home, program, true);
        let mut client = ByteClient::open(task.socket(), &params(&home.output()));
        client.start();
        task::wait_runs(&home.output(), 20);
        task.signal(libc::SIGTERM);
        assert_eq!(task.wait_end(PATIENCE).code(), Some(0), "{order:?}");
        drop(client);
        let dirs = prof_dirs(&home.output());
        let prof = open_complete(&dirs[0]);
        task.windows()[0].assert_matches(&prof);
        assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    }
}

/// Else a test of one that is not there would pass for one of nothing.
#[test]
fn a_companion_is_told_from_one_that_is_not_installed() {
    assert!(Companion::find("nothing", "no-such-package", "libno-such-companion.so").is_none());
    assert!(find_library("libc.so.6").is_some_and(|path| path.starts_with(Path::new("/"))));
}
