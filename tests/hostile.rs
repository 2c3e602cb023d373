//! Programs that do what no program should: they and what they have reported survive it.

mod support;

use msprof_agent_core::profdir::check::{Severity, check};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, PARAMS, STOP, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::Proc;
use support::process::{Finished, Program};
use support::prof::Prof;
use support::puppet::{self, Puppet};
use support::rules::{lost, open_by_rules, open_complete};
use support::task::{self, EASY, Task, Way};
use support::wait::{PATIENCE, wait_until};

fn path_of(name: &str) -> PathBuf {
    build(&format!("tests/c/{name}.c"), Linkage::Shared)
}

/// A program that captures itself into the home's output directory.
fn own_capture(home: &Home, name: &str) -> Program {
    home.plain(path_of(name)).arg(home.output())
}

#[track_caller]
fn assert_captured(finished: &Finished) {
    finished.expect_code(0);
    finished.line_with("start 0");
    finished.line_with("stop 0");
}

/// Numbers behind the first word of a line.
fn numbers(finished: &Finished, word: &str) -> Vec<u64> {
    let line = finished.line_with(word);
    let numbers = line.split(' ').skip(1).map(str::parse);
    numbers.collect::<Result<_, _>>().expect("numbers")
}

fn count(prof: &Prof, column: &str, trace: &str) -> u64 {
    prof.ledger()[column][trace].as_u64().unwrap_or(0)
}

#[track_caller]
fn assert_nothing_fatal(dir: &Path) {
    let found: Vec<String> = check(dir)
        .iter()
        .filter(|found| found.severity == Severity::Fatal)
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, [] as [String; 0]);
}

// ---- signal handlers --------------------------------------------------------

#[test]
fn a_signal_handler_that_reports_in_the_middle_of_reports_is_accounted_for() {
    let home = Home::new();
    let finished = own_capture(&home, "interrupted").run();
    assert_captured(&finished);
    let calls = numbers(&finished, "calls");
    assert!(calls[1] > 0, "the handler ran");
    // Reported is what is written and lost: by the rules.
    let prof = open_complete(&only_prof_dir(&home.output()));
    let reported = count(&prof, "reported", "runtime-api");
    assert_eq!(reported, calls.iter().sum::<u64>());
    // What interrupted a report is in the row of no thread, which is explained.
    let ledger = prof.ledger();
    let rows = ledger["threads"].as_array().expect("rows");
    let nested = rows.iter().find(|row| row["tid"] == 0);
    let nested = nested.map_or(0, |row| {
        row["lost"]["runtime-api"].as_u64().expect("a count")
    });
    let notes = ledger["notes"].to_string();
    let why = format!("{nested} records were not taken: signal handlers");
    assert_eq!(notes.contains(&why), nested > 0, "{notes}");
    assert_eq!(notes.contains("signal handlers"), nested > 0, "{notes}");
}

// ---- descriptors ------------------------------------------------------------

/// A program that takes the agent's descriptors for its own files.
struct Taker {
    puppet: Puppet,
    params: Value,
}

impl Taker {
    fn start(home: &Home) -> Taker {
        let program = home.armed(path_of("closes_all")).arg(home.path());
        let puppet = Puppet::start_armed(home, program);
        Taker {
            puppet,
            params: params(&home.output()),
        }
    }

    #[track_caller]
    fn assert_unhurt(&mut self) {
        assert_eq!(
            self.puppet.tell("check"),
            "0 0 0",
            "closed in a child, closed here, eaten"
        );
    }

    /// When the socket's file was made; its inode may be used again.
    fn socket_made(&self) -> Option<(i64, i64)> {
        let found = std::fs::symlink_metadata(self.puppet.socket());
        found.ok().map(|found| (found.ctime(), found.ctime_nsec()))
    }

    /// Knocks until the agent has noticed that nothing of what it had open is there any more, and serves a
    /// new socket.
    fn wait_served_anew(&self, before: Option<(i64, i64)>) {
        wait_until("a new socket", || {
            // The former one's file may have changed since, when it lost its temporary name.
            let answers = UnixStream::connect(self.puppet.socket()).is_ok();
            let now = self.socket_made();
            answers && now.is_some() && now != before
        });
        drop(ByteClient::open(self.puppet.socket(), &self.params));
    }

    fn finish(self) {
        self.puppet.finish().expect_code(0);
    }
}

#[test]
fn a_program_that_closes_all_descriptors_keeps_the_files_it_opens_in_their_place() {
    let home = Home::new();
    let mut taker = Taker::start(&home);
    let before = taker.socket_made();
    assert_eq!(taker.puppet.tell("close"), "0");
    taker.assert_unhurt();
    taker.wait_served_anew(before);
    taker.assert_unhurt();
    assert_eq!(taker.puppet.tell("init"), "0");
    taker.assert_unhurt();
    taker.finish();
}

#[test]
fn a_client_of_a_program_that_closes_all_descriptors_does_not_hurt_its_files() {
    let home = Home::new();
    let mut taker = Taker::start(&home);
    let mut client = ByteClient::open(taker.puppet.socket(), &params(&home.output()));
    let before = taker.socket_made();
    assert_eq!(taker.puppet.tell("close"), "0");
    taker.assert_unhurt();
    // It may be gone already.
    let _ = client.try_send(&[3, 0, 0, 0, 0, 0, 0, 0]);
    drop(client);
    taker.wait_served_anew(before);
    taker.assert_unhurt();
    taker.finish();
}

#[test]
fn a_program_that_opens_event_counters_in_place_of_our_descriptors_keeps_them() {
    let home = Home::new();
    let mut taker = Taker::start(&home);
    let before = taker.socket_made();
    assert_eq!(taker.puppet.tell("counters"), "0");
    taker.assert_unhurt();
    taker.wait_served_anew(before);
    taker.assert_unhurt();
    taker.finish();
}

#[test]
fn a_program_that_takes_our_descriptors_as_soon_as_the_socket_is_there_keeps_its_own() {
    // The agent is at another point each time of what it has to do once the file is there.
    for _ in 0..20 {
        let home = Home::new();
        let mut taker = Taker::start(&home);
        let before = taker.socket_made();
        assert_eq!(taker.puppet.tell("counters"), "0");
        taker.wait_served_anew(before);
        taker.assert_unhurt();
        taker.finish();
    }
}

#[test]
fn the_socket_of_a_program_that_closed_all_descriptors_comes_back_with_an_init() {
    let home = Home::new();
    let mut taker = Taker::start(&home);
    let before = taker.socket_made();
    assert_eq!(taker.puppet.tell("close"), "0");
    taker.wait_served_anew(before);
    assert_eq!(taker.puppet.tell("init"), "0");
    wait_until("the socket to be served", || {
        UnixStream::connect(taker.puppet.socket()).is_ok()
    });
    let mut client = ByteClient::open(taker.puppet.socket(), &params(&home.output()));
    client.start();
    client.stop();
    client.quit();
    taker.assert_unhurt();
    taker.finish();
}

// ---- poisoned records -------------------------------------------------------

#[test]
fn records_that_an_exporter_would_choke_on_are_counted_and_left_out() {
    const GOOD: usize = 40;
    let home = Home::new();
    let finished = own_capture(&home, "poisoned").run();
    assert_captured(&finished);
    let dir = only_prof_dir(&home.output());
    let prof = open_by_rules(&dir);
    assert_nothing_fatal(&dir);
    assert_eq!(
        prof.ledger()["unreadable"].as_u64(),
        Some(numbers(&finished, "bad")[0])
    );
    assert_eq!(prof.api().len(), GOOD);
    assert_eq!(prof.compact("node_basic_info").len(), GOOD);
    assert_eq!(prof.additional("context_id_info").len(), GOOD);
    assert_eq!(prof.additional("tensor_info").len(), GOOD);
    assert_eq!(lost(&prof.ledger()), 0);
}

// ---- ends -------------------------------------------------------------------

#[test]
fn what_destructors_report_at_the_end_of_a_thread_and_of_the_program_is_captured() {
    let home = Home::new();
    let finished = own_capture(&home, "late_reports").run();
    finished.expect_code(0);
    finished.line_with("start 0");
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    // Main, thread, its destructor, atexit, the program's destructor.
    for (tag, expected) in [(1, 1000), (2, 200), (3, 100), (4, 300), (5, 400)] {
        let found = prof.api().iter().filter(|api| api.item == tag).count();
        assert_eq!(found, expected, "item {tag}");
    }
}

#[test]
fn a_return_from_main_while_a_component_is_slow_to_stop_leaves_a_complete_directory() {
    let home = Home::new();
    let mut running = home.armed(path_of("slow_stop")).spawn();
    running.line("ready", |line| (line == "ready").then_some(()));
    let socket = home.wait_socket(running.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    running.say("report");
    running.line("records", |line| (line == "reported").then_some(()));
    client.request(STOP);
    running.line("the handler", |line| (line == "stopping").then_some(()));
    running.finish().expect_code(0);
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 1000);
    assert_eq!(lost(&prof.ledger()), 0);
    assert!(!prof.ledger()["stop"].is_null(), "{}", prof.ledger());
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

// ---- limits -----------------------------------------------------------------

#[test]
fn a_file_size_limit_ends_a_capture_with_a_reason_and_not_the_program() {
    let home = Home::new();
    let finished = own_capture(&home, "file_limit").arg("1048576").run();
    finished.expect_code(0);
    finished.line_with("start 0");
    let stop = finished.line_with("stop 5");
    assert!(stop.contains("file size limit"), "{stop}");
    finished.line_with("alive");
}

#[test]
fn a_file_size_limit_of_nothing_fails_the_start_with_a_reason_and_not_the_program() {
    let home = Home::new();
    let finished = own_capture(&home, "file_limit").arg("0").run();
    finished.expect_code(0);
    let start = finished.line_with("start 5");
    assert!(start.contains("file size limit"), "{start}");
    finished.line_with("alive");
}

// ---- threads that are cancelled ---------------------------------------------

#[test]
fn threads_that_are_cancelled_in_a_start_or_stop_end_and_the_program_captures_on() {
    let home = Home::new();
    let finished = own_capture(&home, "cancelled").run();
    assert_captured(&finished);
    let path = finished.line_with("path ").trim_start_matches("path ");
    let prof = open_complete(Path::new(path));
    assert_eq!(prof.api().len(), 100);
    assert_eq!(lost(&prof.ledger()), 0);
}

// ---- two copies -------------------------------------------------------------

#[test]
fn a_program_with_two_copies_of_the_library_is_captured_by_the_one_that_answers() {
    for attempt in 1..=5 {
        let home = Home::new();
        let copy = home.path().join("libcopy.so");
        std::fs::copy(&artifacts().library, &copy).expect("a copy");
        let both = format!("{}:{}", artifacts().library.display(), copy.display());
        let program = task::program(&home, Way::None, EASY).env("LD_PRELOAD", both);
        let task = Task::start_program(&home, program, true);
        assert!(Proc::of(task.pid()).maps_file("libcopy.so"));
        let mut client = ByteClient::open(task.socket(), &params(&home.output()));
        client.start();
        let slice = "host/data/aging.api_event.data.slice_0";
        wait_until("records", || {
            let dirs = prof_dirs(&home.output());
            dirs.first().is_some_and(|dir| dir.join(slice).exists())
        });
        client.stop();
        client.quit();
        let prof = open_complete(&only_prof_dir(&home.output()));
        assert!(!prof.api().is_empty(), "attempt {attempt}");
        task.terminate();
        assert_eq!(home.sockets(), [] as [PathBuf; 0], "attempt {attempt}");
    }
}

// ---- a standard error that nobody reads -------------------------------------

/// Gives the calling process a standard error that is full and that nobody reads. In a forked child:
/// makes system calls only.
fn fill_standard_error() -> std::io::Result<()> {
    let mut ends = [0; 2];
    let bytes = [b'x'; 4096];
    // SAFETY: system calls on descriptors and a buffer of this function.
    unsafe {
        // The reading end stays open: else a write would end with SIGPIPE.
        if libc::pipe(ends.as_mut_ptr()) != 0 || libc::dup2(ends[1], 2) != 2 {
            return Err(std::io::Error::last_os_error());
        }
        libc::close(ends[1]);
        libc::fcntl(2, libc::F_SETFL, libc::O_NONBLOCK);
        while libc::write(2, bytes.as_ptr().cast(), bytes.len()) > 0 {}
        libc::fcntl(2, libc::F_SETFL, 0);
    }
    Ok(())
}

#[test]
fn malformed_clients_do_not_hold_up_the_next_when_nobody_reads_the_warnings() {
    let home = Home::new();
    // SAFETY: the function makes system calls only.
    let program = unsafe {
        home.armed(puppet::path())
            .without("MSPROF_AGENT_LOG_FILE")
            .before_exec(fill_standard_error)
    };
    let mut puppet = Puppet::start_armed(&home, program);
    for _ in 0..1000 {
        let mut client = puppet.connect();
        // The agent may refuse at the length already.
        let _ = client.try_send(&[0xFF; PARAMS]);
        client.wait_closed(PATIENCE);
    }
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("api 10 1"), "0");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 10);
    puppet.finish().expect_code(0);
}

// ---- types by turns ---------------------------------------------------------

/// Reports compact records of two types by turns and returns what there is of each.
fn alternate(home: &Home, records: u64, per_second: u64) -> (Prof, [u64; 2]) {
    let finished = own_capture(home, "alternating")
        .arg(records.to_string())
        .arg(per_second.to_string())
        .run();
    assert_captured(&finished);
    let dir = only_prof_dir(&home.output());
    let prof = open_by_rules(&dir);
    assert_nothing_fatal(&dir);
    let written = ["even", "odd"].map(|name| prof.compact(name).len() as u64);
    (prof, written)
}

#[test]
fn types_by_turns_at_full_speed_are_accounted_for() {
    const RECORDS: u64 = 300_000;
    let home = Home::new();
    let (prof, written) = alternate(&home, RECORDS, 0);
    assert_eq!(count(&prof, "reported", "task"), RECORDS);
    let written = written.iter().sum::<u64>();
    assert_eq!(written + lost(&prof.ledger()), RECORDS);
}

#[test]
fn types_by_turns_at_a_steady_rate_are_written_whole() {
    const RECORDS: u64 = 200_000;
    let home = Home::new();
    let begin = Instant::now();
    let (prof, written) = alternate(&home, RECORDS, RECORDS);
    assert!(begin.elapsed() >= Duration::from_secs(1) * 9 / 10);
    assert_eq!(lost(&prof.ledger()), 0);
    assert_eq!(written, [RECORDS / 2; 2]);
}
