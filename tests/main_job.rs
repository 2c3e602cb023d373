//! The main job: the controller starts an AI task, captures some of it, and says what it got.

mod support;

use std::path::PathBuf;
use support::artifacts::artifacts;
use support::counting::Window;
use support::home::{Home, only_prof_dir, prof_dirs};
use support::msprof::{dynamic, prof_dirs_named, run_script};
use support::process::{Finished, Program};
use support::rules::{assert_named, lost, open_complete};

/// A launch of the demo by the documented command line.
fn launch(home: &Home, options: &str) -> Program {
    let task = format!("{} {options}", artifacts().task.display());
    dynamic(home, &home.output()).arg(format!("--application={task}"))
}

/// Windows that the task printed between the controller's lines.
fn windows(finished: &Finished) -> Vec<Window> {
    let lines = finished.stdout.iter();
    lines.filter_map(|line| Window::from_line(line)).collect()
}

/// The task's pid, from its own line.
fn task_pid(finished: &Finished) -> u32 {
    let line = finished.line_with(" ready");
    let pid = line.trim_start_matches("pid ").trim_end_matches(" ready");
    pid.parse().expect("a pid")
}

#[test]
fn a_launched_task_is_captured_and_every_call_is_there() {
    let home = Home::new();
    let program = launch(&home, "--seconds=5 --streams=2 --pause-us=1000");
    let finished = run_script(program, &["start", "sleep 2", "stop", "quit"]);
    finished.expect_code(0);
    let pid = task_pid(&finished);
    for command in ["start", "stop", "quit"] {
        finished.line_with(&format!(
            "dynamic profiling for pid {pid} {command} success"
        ));
    }
    let dir = only_prof_dir(&home.output());
    assert_eq!(
        prof_dirs_named(&finished),
        std::slice::from_ref(&dir),
        "{finished:#?}"
    );
    assert!(finished.text().contains("lost 0"), "{finished:#?}");
    finished.line_with("done runs=");

    let windows = windows(&finished);
    let [window] = windows.as_slice() else {
        panic!("one window: {finished:#?}");
    };
    assert_eq!(window.bad_commands(), 0);
    let prof = open_complete(&dir);
    assert_named(&prof);
    window.assert_matches(&prof);
    // Two seconds of two streams with a pause of a millisecond.
    for (group, call) in [
        ("runtime", "KernelLaunch"),
        ("acl", "aclmdlExecute"),
        ("model", "ModelExecute"),
    ] {
        assert!(
            window.calls(group)[call] > 50,
            "{group} {call}: {}",
            window.calls(group)[call]
        );
    }
    assert!(window.records()["aicpu"] > 50);
    let ledger = prof.ledger();
    assert_eq!(lost(&ledger), 0);
    for trace in ["runtime-api", "model-execution", "aicpu"] {
        let written = ledger["written"][trace].as_u64().expect("a count");
        assert!(written > 0, "{trace}");
        // The summary names each trace with what was written.
        let said = finished.text().contains(&written.to_string());
        assert!(said, "{trace} {written} is said: {finished:#?}");
    }
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn the_rest_of_the_command_line_may_be_the_application() {
    let home = Home::new();
    let program = dynamic(&home, &home.output()).arg(&artifacts().task).args([
        "--seconds=3",
        "--streams=1",
        "--pause-us=1000",
    ]);
    let finished = run_script(program, &["start", "sleep 0.5", "stop", "quit"]);
    finished.expect_code(0);
    let prof = open_complete(&only_prof_dir(&home.output()));
    windows(&finished)[0].assert_matches(&prof);
}

#[test]
fn each_way_in_that_may_be_asked_for_captures_the_task() {
    let artifacts = artifacts();
    for (inject, task) in [
        ("both", &artifacts.task),
        ("preload", &artifacts.task),
        ("libprofapi", &artifacts.task),
        ("none", &artifacts.task_linked),
    ] {
        let home = Home::new();
        let program = dynamic(&home, &home.output())
            .arg(format!("--inject={inject}"))
            .arg(task)
            .args(["--seconds=3", "--streams=1", "--pause-us=1000"]);
        let finished = run_script(program, &["start", "sleep 0.5", "stop", "quit"]);
        finished.expect_code(0);
        let prof = open_complete(&only_prof_dir(&home.output()));
        let windows = windows(&finished);
        windows[0].assert_matches(&prof);
        assert!(windows[0].calls("runtime")["KernelLaunch"] > 0, "{inject}");
    }
}

#[test]
fn several_captures_of_one_launch_stand_alone() {
    let home = Home::new();
    let program = launch(&home, "--seconds=4 --streams=2 --pause-us=1000");
    let script = [
        "start",
        "sleep 0.3",
        "stop",
        "start",
        "sleep 0.3",
        "stop",
        "start",
        "stop",
        "quit",
    ];
    let finished = run_script(program, &script);
    finished.expect_code(0);
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), 3);
    assert_eq!(prof_dirs_named(&finished), dirs);
    for (dir, window) in dirs.iter().zip(windows(&finished)) {
        window.assert_matches(&open_complete(dir));
    }
}

#[test]
fn without_a_command_the_task_runs_to_its_end_and_nothing_is_captured() {
    let home = Home::new();
    let finished = run_script(
        launch(&home, "--seconds=1 --streams=1 --pause-us=1000"),
        &[],
    );
    finished.expect_code(0);
    finished.line_with("done runs=");
    assert_eq!(prof_dirs(&home.output()), [] as [PathBuf; 0]);
    assert_eq!(windows(&finished).len(), 0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn the_tasks_own_exit_status_is_handed_on() {
    let home = Home::new();
    let finished = run_script(launch(&home, "--no-such-option"), &[]);
    finished.expect_code(2);
    assert!(
        finished.text().contains("mlp_task: bad option"),
        "{finished:#?}"
    );
}

#[test]
fn a_task_that_ends_in_mid_capture_leaves_a_complete_directory() {
    let home = Home::new();
    let mut running = launch(&home, "--seconds=2 --streams=1 --pause-us=1000").spawn();
    running.say("start");
    // stdin stays open: the end of the task ends the prompt.
    let status = running.wait_end(std::time::Duration::from_secs(60));
    assert_eq!(status.code(), Some(0));
    let finished = running.finish();
    let prof = open_complete(&only_prof_dir(&home.output()));
    windows(&finished)[0].assert_matches(&prof);
}

#[test]
fn a_trace_that_was_not_asked_for_is_not_written() {
    let home = Home::new();
    let task = format!(
        "{} --seconds=3 --streams=1 --pause-us=1000",
        artifacts().task.display()
    );
    let program = home
        .plain(&artifacts().msprof)
        .arg("--dynamic=on")
        .arg(format!("--output={}", home.output().display()))
        .arg("--runtime-api=on")
        .arg(format!("--application={task}"));
    let finished = run_script(program, &["start", "sleep 0.5", "stop", "quit"]);
    finished.expect_code(0);
    let prof = open_complete(&only_prof_dir(&home.output()));
    let ledger = prof.ledger();
    assert!(ledger["written"]["runtime-api"].as_u64() > Some(0));
    assert_eq!(ledger["written"]["aicpu"], 0);
    assert_eq!(prof.aicpu(), []);
    // GE reports runs of a model by the task level, whoever asked for them.
    assert_eq!(ledger["written"]["model-execution"], 0);
    windows(&finished)[0].assert_matches_without(&["model"], &prof);
}

#[test]
fn a_session_that_the_agent_has_ended_for_being_idle_goes_on_with_the_next_command() {
    let home = Home::new();
    let program = launch(&home, "--seconds=6 --streams=1 --pause-us=1000")
        .arg("--environment=MSPROF_AGENT_IDLE_TIMEOUT=1");
    // The stimulus: nothing is captured for longer than allowed.
    let commands = [
        "start",
        "sleep 0.2",
        "stop",
        "sleep 1.3",
        "start",
        "sleep 0.2",
        "stop",
        "quit",
    ];
    let finished = run_script(program, &commands);
    finished.expect_code(0);
    let said = |what: &str| finished.text().matches(what).count();
    assert_eq!((said("start success"), said("stop success")), (2, 2));
    finished.line_with(
        "note: the process had ended the session (nothing was captured for 1 s); this is a new one",
    );
    let windows = windows(&finished);
    let dirs = prof_dirs(&home.output());
    assert_eq!((windows.len(), dirs.len()), (2, 2), "{finished:#?}");
    for (window, dir) in windows.iter().zip(&dirs) {
        window.assert_matches(&open_complete(dir));
    }
}
