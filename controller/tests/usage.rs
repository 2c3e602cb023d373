//! The command line from outside: refusals, help, notes.

mod support;

use support::*;

#[track_caller]
fn refused(words: &[&str], parts: &[&str]) {
    let lab = Lab::new();
    let marker = lab.path("out/started");
    let mut command = lab.msprof();
    command.args(words).env("MARKER", &marker);
    let ended = Run::start(command).ended();
    ended.exits(2);
    assert_eq!(ended.out, "", "{words:?}");
    assert_eq!(ended.err.lines().count(), 1, "{words:?}: {}", ended.err);
    for part in parts {
        ended.warns(part);
    }
    assert!(!marker.exists(), "nothing is started");
}

#[test]
fn every_bad_option_is_refused_on_one_line_before_anything_is_started() {
    let program = ["--application=sh -c 'touch $MARKER'"];
    let cases: &[(&[&str], &[&str])] = &[
        (&["--runtime-api=yes"], &["--runtime-api", "yes", "on, off"]),
        (&["--model-execution=1"], &["--model-execution", "on, off"]),
        (&["--aicpu="], &["--aicpu", "missing", "on, off"]),
        (&["--ascendcl=ON"], &["--ascendcl", "ON", "on, off"]),
        (&["--task-time=l4"], &["--task-time", "l4", "l3"]),
        (&["--ge-api=on"], &["--ge-api", "l0, l1"]),
        (
            &["--storage-limit=100MB"],
            &["--storage-limit", "100MB", "200MB~4294967295MB"],
        ),
        (&["--output=a|b"], &["--output", "a|b"]),
        (&["--output=a\tb"], &["--output", "a\\tb"]),
        (&["--aic-freq=101"], &["--aic-freq", "101", "1~100"]),
        (
            &["--sys-sampling-freq=11"],
            &["--sys-sampling-freq", "1~10"],
        ),
        (&["--host-sys=gpu"], &["--host-sys", "gpu", "cpu, mem"]),
        (
            &["--aic-metrics=Everything"],
            &["--aic-metrics", "PipeUtilization"],
        ),
        (
            &["--instr-profiling-freq=299"],
            &["--instr-profiling-freq", "300~30000"],
        ),
        (
            &["--sys-cpu-profiling=on"],
            &["--dynamic", "--sys-cpu-profiling"],
        ),
        (&["--sys-period=5"], &["--dynamic", "--sys-period"]),
        (&["--sys-devices=all"], &["--dynamic", "--sys-devices"]),
        (&["--delay=1"], &["--dynamic", "--delay"]),
        (&["--duration=1"], &["--dynamic", "--duration"]),
        (&["--environment=A"], &["--environment", "K=V"]),
        (&["--environment=PROFILING_MODE=off"], &["PROFILING_MODE"]),
        (
            &["--environment=PROFILING_OPTIONS={}"],
            &["PROFILING_OPTIONS"],
        ),
        (&["--pid=1"], &["--pid", "--application"]),
        (&["--no-such=on"], &["--no-such", "unknown option"]),
        (
            &["--agent-lib=/no/such.so"],
            &["/no/such.so", "--agent-lib"],
        ),
    ];
    for (words, parts) in cases {
        let all: Vec<&str> = std::iter::once("--dynamic=on")
            .chain(words.iter().copied())
            .chain(program)
            .collect();
        refused(&all, parts);
    }
}

#[test]
fn an_output_that_is_a_file_and_one_that_is_too_long_are_refused() {
    refused(
        &["--dynamic=on", "--pid=1", "--output=/etc/passwd"],
        &["--output", "/etc/passwd", "no directory"],
    );
    let long = format!("--output=/{}", "x".repeat(2000));
    refused(&["--dynamic=on", "--pid=1", &long], &["shorter --output"]);
}

#[test]
fn a_missing_library_is_named_with_the_way_out() {
    let lab = Lab::new();
    // Run from a directory of its own, so that nothing lies beside it.
    let copy = lab.path("msprof");
    std::fs::copy(env!("CARGO_BIN_EXE_msprof"), &copy).expect("copied");
    let output = std::process::Command::new(&copy)
        .args(["--dynamic=on", "true"])
        .env_remove("MSPROF_AGENT_LIB")
        .env("HOME", lab.path("home"))
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(text.contains("libmsprof_agent.so is not found") && text.contains("MSPROF_AGENT_LIB"));
}

#[test]
fn help_and_version_go_to_stdout() {
    let lab = Lab::new();
    let mut command = lab.msprof();
    command.arg("--help");
    Run::start(command)
        .ended()
        .exits(0)
        .says("--runtime-api")
        .says("usage: msprof");
    let mut command = lab.msprof();
    command.arg("--version");
    Run::start(command).ended().exits(0).says("msprof 0.1.0");
}

#[test]
fn what_is_only_passed_through_is_said_once() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    let mut command = lab.msprof();
    command.args(["--dynamic=on", "--host-sys=cpu", "--dvpp-profiling=on"]);
    command.arg(format!("--pid={pid}"));
    let ended = Run::start(command).script("quit\n");
    ended
        .exits(0)
        .warns("note: --host-sys, --dvpp-profiling is handed on");
    assert_eq!(ended.err.lines().count(), 1);
    server.join();
}
