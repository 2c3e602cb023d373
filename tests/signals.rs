//! Signals that rain on the program, that stop it and let it go, and a debugger: the capture goes on and its
//! account is exact.

mod support;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::proc::Proc;
use support::process::{Program, Running};
use support::rules::{lost, open_complete};
use support::wait::{wait_for, wait_until};

/// How often each signal comes, a thousand times a second.
const TIMES: u64 = 1_000;
/// Two seconds of storm on a machine that does other things too, and held by a debugger now and then.
const LIMIT: Duration = Duration::from_secs(60);
/// What the debugger says where it may not attach.
const NOT_PERMITTED: i32 = 77;

/// A program that the storm will break over, and a capture of it.
struct Storm {
    running: Running,
    client: ByteClient,
    /// Goes last: a program that lives puts its socket back.
    home: Home,
}

impl Storm {
    fn new(times: u64) -> Storm {
        let home = Home::new();
        let program = home.armed(build("tests/c/storm.c", Linkage::Shared));
        let mut running = program.arg(times.to_string()).spawn();
        running.line("ready", |line| (line == "ready").then_some(()));
        let socket = home.wait_socket(running.pid());
        let mut client = ByteClient::open(&socket, &params(&home.output()));
        client.start();
        Storm {
            home,
            running,
            client,
        }
    }

    fn has_begun_to_write(&self) -> bool {
        let slice =
            only_prof_dir(&self.home.output()).join("host/data/aging.api_event.data.slice_0");
        slice.metadata().is_ok_and(|meta| meta.len() > 0)
    }

    /// Waits for its end; every record of threads and handlers is in the capture, once.
    #[track_caller]
    fn assert_all_captured(mut self, times: u64) {
        let counts = self
            .running
            .line_from(0, "the storm to be over", LIMIT, |line| {
                let numbers = line.strip_prefix("records ")?.split(' ').map(str::parse);
                numbers.collect::<Result<Vec<u64>, _>>().ok()
            });
        assert_eq!(counts[0], 0, "a report failed");
        assert!(
            counts[2..].iter().all(|&count| count >= times),
            "{counts:?}"
        );
        self.client.stop();
        self.client.quit();
        let prof = open_complete(&only_prof_dir(&self.home.output()));
        let ledger = prof.ledger();
        let total: u64 = counts[1..].iter().sum();
        assert_eq!(ledger["reported"]["runtime-api"], total);
        assert_eq!(prof.api().len() as u64 + lost(&ledger), total);
        let items: HashSet<u64> = prof.api().iter().map(|record| record.item).collect();
        assert_eq!(items.len(), prof.api().len(), "a record was written twice");
        // Only what a handler reports in the middle of a report may be lost.
        let of_threads = items.iter().filter(|item| *item >> 40 == 1).count();
        assert_eq!(of_threads as u64, counts[1]);
        for item in items {
            let (who, number) = (item >> 40, item & ((1 << 40) - 1));
            assert!(
                number <= counts[who as usize],
                "{item:#x} was never reported"
            );
        }
        self.running.finish().expect_code(0);
        assert_eq!(self.home.sockets(), [] as [PathBuf; 0]);
    }
}

#[test]
fn a_storm_of_signals_whose_handlers_report_is_captured_to_the_record() {
    let mut storm = Storm::new(TIMES);
    storm.running.say("go");
    storm.assert_all_captured(TIMES);
}

#[test]
fn a_program_that_is_stopped_and_continued_under_load_is_captured_to_the_record() {
    let mut storm = Storm::new(TIMES);
    storm.running.say("go");
    wait_until("records", || storm.has_begun_to_write());
    for _ in 0..20 {
        storm.running.signal(libc::SIGSTOP);
        let proc = Proc::of(storm.running.pid());
        wait_until("the process to stop", || {
            proc.status("State").starts_with('T')
        });
        storm.running.signal(libc::SIGCONT);
        wait_until("the process to go on", || {
            !proc.status("State").starts_with('T')
        });
    }
    storm.assert_all_captured(TIMES);
}

#[test]
fn a_debugger_that_comes_and_goes_leaves_a_capture_that_is_exact() {
    let mut storm = Storm::new(TIMES);
    storm.running.say("go");
    wait_until("records", || storm.has_begun_to_write());
    let tracer = Program::new(build("tests/c/tracer.c", Linkage::Without))
        .args([storm.running.pid().to_string(), "40".to_owned()])
        .run();
    if tracer.status.code() == Some(NOT_PERMITTED) {
        support::skip::skipped(format_args!("this host lets nobody be debugged"));
        return;
    }
    tracer.expect_code(0);
    let looked_at: u64 = tracer
        .line_with("looked at ")
        .trim_start_matches("looked at ")
        .parse()
        .expect("a number");
    assert!(looked_at >= 40, "it held threads: {looked_at}");
    storm.assert_all_captured(TIMES);
}

#[test]
fn a_stopped_program_answers_its_client_when_it_is_continued() {
    let mut storm = Storm::new(1);
    storm.running.signal(libc::SIGSTOP);
    let proc = Proc::of(storm.running.pid());
    wait_until("the process to stop", || {
        proc.status("State").starts_with('T')
    });
    storm.client.request(support::client::STOP);
    storm.running.signal(libc::SIGCONT);
    let reply = wait_for("the answer", LIMIT, || storm.client.receive_within(LIMIT));
    assert_eq!(reply.status, support::client::SUCCESS);
    open_complete(&only_prof_dir(&storm.home.output()));
    storm.running.finish().expect_code(0);
}

#[test]
fn handlers_that_mark_and_name_amid_marks_and_names_are_refused_and_never_hang() {
    let home = Home::new();
    let program = home.plain(build("tests/c/handlers.c", Linkage::Shared));
    let finished = program.arg(home.output()).run();
    finished.expect_code(0);
    finished.line_with("start 0");
    finished.line_with("stop 0");
    let counts: Vec<&str> = finished.line_with("signals ").split(' ').collect();
    assert_eq!(counts[5], "0", "a call failed: {counts:?}");
    let prof = open_complete(&only_prof_dir(&home.output()));
    let (ledger, marks) = (prof.ledger(), &prof.host["unaging.additional.msproftx"]);
    let written: usize = marks.values().map(|records| records.len() / 256).sum();
    let of_main = counts[7].parse::<usize>().expect("a number");
    let of_handlers = counts[9].parse::<usize>().expect("a number");
    // Each call that was refused is a record that was lost, and no other is.
    assert_eq!(lost(&ledger), counts[11].parse::<u64>().expect("a number"));
    assert_eq!(written, of_main + of_handlers);
}
