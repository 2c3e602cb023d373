//! `msprof record`: start, wait and stop in one call, whatever happens meanwhile.

mod support;

use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::artifacts::artifacts;
use support::home::{Home, only_prof_dir, prof_dirs};
use support::process::{Program, Running};
use support::puppet::Puppet;
use support::rules::{open_complete, open_recovered};
use support::stock_server::StockProcess;
use support::task::{EASY, Task, Way};
use support::verbs::{object, refused, row, run, verb};
use support::wait::{PATIENCE, wait_until};

fn record(home: &Home, pids: &[u32], duration: &str) -> Program {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let pids = format!("--pid={}", pids.join(","));
    let output = format!("--output={}", home.output().display());
    let traces = ["--runtime-api=on", "--model-execution=on", "--aicpu=on"];
    verb(
        home,
        &["record", &pids, &output, &format!("--duration={duration}")],
    )
    .args(traces)
}

/// Waits until the captures of so many processes have begun.
fn wait_started(running: &mut Running, pids: &[u32]) {
    for pid in pids {
        let expected = format!("dynamic profiling for pid {pid} start success");
        running.line(&expected, |line| line.contains(&expected).then_some(()));
    }
}

#[test]
fn two_tasks_are_captured_at_the_same_time_and_for_that_long() {
    let home = Home::new();
    let mut tasks = [
        Task::start(&home, Way::Preload, EASY),
        Task::start(&home, Way::Linked, EASY),
    ];
    let pids = [tasks[0].pid(), tasks[1].pid()];
    let begin = Instant::now();
    let finished = record(&home, &pids, "700ms").arg("--json").run();
    let took = begin.elapsed();
    let (object, code) = object(&finished);
    assert_eq!(code, 0, "{object}");
    let began: Vec<u64> = pids
        .iter()
        .filter_map(|pid| row(&object, *pid)["started_ns"].as_u64())
        .collect();
    let apart = began[0].abs_diff(began[1]);
    assert!(
        Duration::from_nanos(apart) < Duration::from_secs(5),
        "{apart} ns apart"
    );
    assert!(
        finished
            .stderr
            .iter()
            .any(|line| line.starts_with("start times of 2 processes"))
    );
    for task in &mut tasks {
        let row = row(&object, task.pid());
        assert_eq!(
            (&row["ok"], &row["ended_early"]),
            (&json!(true), &json!(false))
        );
        let captured = row["captured_ms"].as_u64().expect("ms");
        assert!(
            captured >= 700 && u128::from(captured) <= took.as_millis(),
            "{captured}"
        );
        let dir = PathBuf::from(row["directory"].as_str().expect("a directory"));
        let prof = open_complete(&dir);
        task.window(1).assert_matches(&prof);
        assert_eq!(row["written"], prof.ledger()["written"]);
        assert!(row["written"]["runtime-api"].as_u64() > Some(0));
    }
    assert_eq!(prof_dirs(&home.output()).len(), 2);
    for task in tasks {
        task.terminate();
    }
}

#[test]
fn people_see_the_account_of_a_recording() {
    let home = Home::new();
    let task = Task::start(&home, Way::Preload, EASY);
    let finished = record(&home, &[task.pid()], "200ms").run();
    finished.expect_code(0);
    let pid = task.pid();
    finished.line_with(&format!("dynamic profiling for pid {pid} start success"));
    finished.line_with(&format!("dynamic profiling for pid {pid} stop success"));
    finished.line_with(&format!(
        "  directory: {}",
        only_prof_dir(&home.output()).display()
    ));
    finished.line_with("  captured: ");
    finished.line_with("  lost 0");
    task.terminate();
}

#[test]
fn a_signal_ends_a_recording_early_and_keeps_it() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let home = Home::new();
        let mut puppet = Puppet::start(&home);
        let pid = puppet.pid();
        let mut running = record(&home, &[pid], "1h").spawn();
        wait_started(&mut running, &[pid]);
        assert_eq!(puppet.tell("api 10 1"), "0");
        running.signal(signal);
        let finished = running.finish();
        finished.expect_code(0);
        finished.line_with("  note: interrupted, it ended before its time");
        assert_eq!(
            open_complete(&only_prof_dir(&home.output())).api().len(),
            10
        );
        assert_eq!(puppet.tell("state"), "0 1 0 1");
    }
}

#[test]
fn a_recording_under_timeout_is_kept_though_timeout_sends_its_signal_twice() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let pid = puppet.pid();
    let output = format!("--output={}", home.output().display());
    let mut running = home
        .plain("timeout")
        .args(["3600"])
        .arg(&artifacts().msprof)
        .args(["record", &format!("--pid={pid}"), &output])
        .args(["--duration=1h", "--runtime-api=on"])
        .spawn();
    wait_started(&mut running, &[pid]);
    assert_eq!(puppet.tell("api 10 1"), "0");
    // It hands the signal on as it would its own: to msprof, and to the group in which msprof is.
    running.signal(libc::SIGTERM);
    let finished = running.finish();
    finished.expect_code(0);
    finished.line_with("  note: interrupted, it ended before its time");
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        10
    );
}

#[test]
fn a_recording_that_is_killed_leaves_a_complete_directory_and_a_free_process() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut running = record(&home, &[puppet.pid()], "1h").spawn();
    wait_started(&mut running, &[puppet.pid()]);
    assert_eq!(puppet.tell("api 10 1"), "0");
    running.kill();
    record(&home, &[puppet.pid()], "100ms").run().expect_code(0);
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), 2);
    assert_eq!(open_complete(&dirs[0]).api().len(), 10);
}

#[test]
fn a_process_that_ends_before_is_said_and_the_other_is_captured_to_its_end() {
    let home = Home::new();
    let (mut short, mut other) = (Puppet::start(&home), Puppet::start(&home));
    let pids = [short.pid(), other.pid()];
    let mut running = record(&home, &pids, "2s").arg("--json").spawn();
    let started = |running: &Running| {
        let lines = running.stderr();
        lines
            .iter()
            .filter(|line| line.ends_with("start success"))
            .count()
            == 2
    };
    wait_until("both captures", || started(&running));
    assert_eq!(short.tell("api 10 1"), "0");
    assert_eq!(other.tell("api 20 1"), "0");
    short.finish().expect_code(0);
    let status = running.wait_end(PATIENCE);
    assert_eq!(status.code(), Some(0), "both are complete");
    let finished = running.finish();
    let (object, _) = object(&finished);
    let ended = row(&object, pids[0]);
    assert_eq!(
        (&ended["ok"], &ended["ended_early"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(ended["written"]["runtime-api"], 10);
    let said = format!("dynamic profiling for pid {} is over: ", pids[0]);
    assert!(
        finished.stderr.iter().any(|line| line.starts_with(&said)),
        "{finished:#?}"
    );
    let whole = row(&object, pids[1]);
    assert_eq!(
        (&whole["ended_early"], &whole["written"]["runtime-api"]),
        (&json!(false), &json!(20))
    );
    assert!(whole["captured_ms"].as_u64() >= Some(2000));
    for dir in prof_dirs(&home.output()) {
        open_complete(&dir);
    }
}

#[test]
fn a_process_that_is_killed_is_rescued_and_is_a_failure() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let pid = puppet.pid();
    let mut running = record(&home, &[pid], "1h").spawn();
    wait_started(&mut running, &[pid]);
    assert_eq!(puppet.tell("api 500 1"), "0");
    puppet.kill();
    let finished = running.finish();
    finished.expect_code(1);
    let text = finished.text();
    assert!(
        text.contains("; what it still had in memory is written"),
        "{text}"
    );
    assert_eq!(
        open_recovered(&only_prof_dir(&home.output())).api().len(),
        500
    );
}

#[test]
fn a_stock_process_is_recorded_and_serves_the_next_one() {
    let home = Home::new();
    let stock = StockProcess::start(&home);
    for _ in 0..2 {
        let (object, code) = object(&record(&home, &[stock.pid()], "100ms").arg("--json").run());
        assert_eq!(code, 0, "{object}");
        let row = row(&object, stock.pid());
        assert_eq!((&row["ok"], &row["stock"]), (&json!(true), &json!(true)));
        assert_eq!(
            (&row["written"], &row["directory"]),
            (&json!(null), &json!(null))
        );
    }
    let once = ["client", "params", "start", "stop", "quit"];
    assert_eq!(stock.met(), [once, once].concat());
}

#[test]
fn a_stock_process_hears_a_quit_whenever_a_recording_is_interrupted() {
    for signals in [&[libc::SIGTERM][..], &[libc::SIGINT, libc::SIGTERM]] {
        let home = Home::new();
        let stock = StockProcess::start(&home);
        // It answers nothing for now, so that the signals come before the session.
        stock.signal(libc::SIGSTOP);
        let running = record(&home, &[stock.pid()], "1h").arg("--json").spawn();
        running.wait_takes_signals();
        for signal in signals {
            running.signal(*signal);
        }
        let twice = signals.len() > 1;
        if twice {
            let said = "the vendor's library has to be left with a quit, which is waited for";
            wait_until(said, || {
                running.stderr().iter().any(|line| line.ends_with(said))
            });
        }
        stock.signal(libc::SIGCONT);
        let (object, code) = object(&running.finish());
        let row = row(&object, stock.pid());
        if twice {
            assert_eq!((code, &row["code"]), (1, &json!("interrupted")), "{object}");
            assert_eq!(stock.met(), ["client", "params", "quit"]);
        } else {
            // The answer of the process can overtake the signal; then it has begun.
            let met = stock.met();
            assert!(
                met.starts_with(&["client", "params"].map(str::to_owned)),
                "{met:?}: {object}"
            );
            assert_eq!(met.last().map(String::as_str), Some("quit"), "{object}");
        }
        let next = record(&home, &[stock.pid()], "1ms").arg("--json");
        let (object, code) = support::verbs::object(&next.run());
        assert_eq!(code, 0, "it serves the next one: {object}");
    }
}

#[test]
fn what_cannot_be_recorded_fails_and_wrong_words_are_refused() {
    let home = Home::new();
    let stranger = home.plain("sleep").arg("60").spawn();
    let finished = record(&home, &[stranger.pid()], "1h").arg("--json").run();
    let (object, code) = object(&finished);
    assert_eq!(
        (code, &row(&object, stranger.pid())["code"]),
        (1, &json!("mode-missing"))
    );
    for (words, part) in [
        (&["record", "--pid=1"][..], "--duration is missing"),
        (&["record", "--duration=5s"], "--pid is missing"),
        (
            &["record", "--pid=1", "--duration=5"],
            "valid range is 1 ms~30 d",
        ),
        (
            &["record", "--pid=1", "--duration=5s", "--output=/dev/null"],
            "no directory",
        ),
        (
            &["record", "--pid=1", "--durations=5s"],
            "did you mean --duration?",
        ),
    ] {
        let refused = refused(&home, words);
        assert!(refused.stderr[0].contains(part), "{refused:#?}");
    }
    assert!(run(&home, &["record", "-h"]).stdout[0].starts_with("usage: msprof record"));
}
