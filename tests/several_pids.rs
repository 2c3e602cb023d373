//! `msprof --dynamic=on --pid=A,B,...`: each process by itself.

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use support::home::{Home, prof_dirs};
use support::msprof::{dynamic, give, prof_dirs_named, run_script};
use support::process::{Program, Running};
use support::rules::open_complete;
use support::task::{EASY, Task, Way};
use support::wait::{PATIENCE, wait_until};

fn attach(home: &Home, pids: &[u32]) -> Program {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    dynamic(home, &home.output()).arg(format!("--pid={}", pids.join(",")))
}

/// Waits for a result line of a pid.
fn wait_result(running: &mut Running, pid: u32, command: &str) {
    let expected = format!("dynamic profiling for pid {pid} {command} success");
    running.line(&expected, |line| line.contains(&expected).then_some(()));
}

/// The PROF directory of a process, by its ledger.
fn dir_of(home: &Home, pid: u32) -> PathBuf {
    let mut dirs = prof_dirs(&home.output());
    dirs.retain(|dir| support::prof::Prof::open(dir).ledger()["pid"] == pid);
    assert_eq!(dirs.len(), 1, "one directory of {pid}");
    dirs.remove(0)
}

#[test]
fn two_processes_are_started_and_stopped_together_each_with_its_own_directory() {
    let home = Home::new();
    let mut tasks = [
        Task::start(&home, Way::Preload, EASY),
        Task::start(&home, Way::Linked, EASY),
    ];
    let pids = [tasks[0].pid(), tasks[1].pid()];
    let finished = run_script(attach(&home, &pids), &["start", "sleep 1", "stop", "quit"]);
    finished.expect_code(0);
    for pid in pids {
        for command in ["start", "stop", "quit"] {
            finished.line_with(&format!(
                "dynamic profiling for pid {pid} {command} success"
            ));
        }
    }
    let named: BTreeSet<PathBuf> = prof_dirs_named(&finished).into_iter().collect();
    for task in &mut tasks {
        let dir = dir_of(&home, task.pid());
        assert!(named.contains(&dir), "{finished:#?}");
        task.window(1).assert_matches(&open_complete(&dir));
    }
    assert_eq!(named.len(), 2);
    for task in tasks {
        task.terminate();
    }
}

#[test]
fn the_death_of_one_process_is_said_and_does_not_disturb_the_other() {
    let home = Home::new();
    let killed = Task::start(&home, Way::Preload, EASY);
    let mut other = Task::start(&home, Way::Preload, EASY);
    let (gone, pid) = (killed.pid(), other.pid());
    let mut running = attach(&home, &[gone, pid]).spawn();
    give(&mut running, &["start"]);
    wait_result(&mut running, gone, "start");
    wait_result(&mut running, pid, "start");
    killed.kill();
    let before = |running: &Running| [running.stdout(), running.stderr()].concat();
    wait_until("the death to be said", || {
        let lines = before(&running);
        lines
            .iter()
            .any(|line| line.contains(&gone.to_string()) && !line.contains("success"))
    });
    give(&mut running, &["stop", "quit"]);
    wait_result(&mut running, pid, "stop");
    let finished = running.finish_within(PATIENCE);
    finished.expect_code(1);
    other
        .window(1)
        .assert_matches(&open_complete(&dir_of(&home, pid)));
    other.terminate();
}

#[test]
fn one_bad_pid_of_three_is_named_and_left_out() {
    let home = Home::new();
    let mut tasks = [
        Task::start(&home, Way::Preload, EASY),
        Task::start(&home, Way::Preload, EASY),
    ];
    // A process that exists and has no agent.
    let stranger = home.plain("/bin/cat").spawn();
    let pids = [tasks[0].pid(), stranger.pid(), tasks[1].pid()];
    let finished = run_script(
        attach(&home, &pids),
        &["start", "sleep 0.5", "stop", "quit"],
    );
    assert!(
        finished.text().contains(&stranger.pid().to_string()),
        "{finished:#?}"
    );
    for task in &mut tasks {
        let pid = task.pid();
        finished.line_with(&format!("dynamic profiling for pid {pid} stop success"));
        task.window(1)
            .assert_matches(&open_complete(&dir_of(&home, pid)));
    }
    for task in tasks {
        task.terminate();
    }
}

#[test]
fn no_good_pid_at_all_is_an_error_and_exit_status_1() {
    let home = Home::new();
    let stranger = home.plain("/bin/cat").spawn();
    let finished = run_script(attach(&home, &[stranger.pid()]), &["start", "quit"]);
    finished.expect_code(1);
    assert!(
        finished.text().contains(&stranger.pid().to_string()),
        "{finished:#?}"
    );
    assert!(!finished.text().contains("success"), "{finished:#?}");
}

#[test]
fn a_stop_of_one_session_leaves_the_capture_of_another() {
    let home = Home::new();
    let mut tasks = [
        Task::start(&home, Way::Preload, EASY),
        Task::start(&home, Way::Preload, EASY),
    ];
    let mut first = attach(&home, &[tasks[0].pid()]).spawn();
    give(&mut first, &["start"]);
    wait_result(&mut first, tasks[0].pid(), "start");
    let second = run_script(
        attach(&home, &[tasks[1].pid()]),
        &["start", "sleep 0.2", "stop", "quit"],
    );
    second.expect_code(0);
    assert_eq!(tasks[0].windows().len(), 0, "still capturing");
    give(&mut first, &["stop", "quit"]);
    first.finish_within(PATIENCE).expect_code(0);
    for task in &mut tasks {
        let dir = dir_of(&home, task.pid());
        task.window(1).assert_matches(&open_complete(&dir));
    }
}

#[test]
fn a_second_controller_is_told_who_holds_the_process() {
    let home = Home::new();
    let task = Task::start(&home, Way::Preload, EASY);
    let mut first = attach(&home, &[task.pid()]).spawn();
    give(&mut first, &["start"]);
    wait_result(&mut first, task.pid(), "start");
    let second = run_script(attach(&home, &[task.pid()]), &["start", "quit"]);
    second.expect_code(1);
    assert!(
        second.text().contains(&first.pid().to_string()),
        "{second:#?}"
    );
    give(&mut first, &["stop", "quit"]);
    first.finish_within(PATIENCE).expect_code(0);
}

#[test]
fn a_controller_killed_in_mid_capture_leaves_a_complete_directory_and_a_free_agent() {
    let home = Home::new();
    let mut task = Task::start(&home, Way::Preload, EASY);
    let mut killed = attach(&home, &[task.pid()]).spawn();
    give(&mut killed, &["start"]);
    wait_result(&mut killed, task.pid(), "start");
    killed.kill();
    let window = task.window(1);
    let dir = prof_dirs(&home.output()).remove(0);
    wait_until("the directory to be complete", || {
        let ledger = std::fs::read_to_string(dir.join("msprof_agent.json"));
        ledger.is_ok_and(|text| text.contains("\"state\":\"complete\""))
    });
    window.assert_matches(&open_complete(&dir));
    let script = ["start", "sleep 0.2", "stop", "quit"];
    run_script(attach(&home, &[task.pid()]), &script).expect_code(0);
    assert_eq!(prof_dirs(&home.output()).len(), 2);
    task.terminate();
}
