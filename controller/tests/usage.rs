//! The command line from outside: refusals, help, notes.

mod support;

use std::io::ErrorKind;
use std::time::Instant;
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
            &["--inject=LD_PRELOAD"],
            &["--inject", "LD_PRELOAD", "both, preload, libprofapi, none"],
        ),
        (&["--inject="], &["--inject", "missing", "libprofapi"]),
        (
            &["--inject=none", "--agent-lib=/no/such.so"],
            &["--inject=none and --agent-lib"],
        ),
        (
            &["--inject=libprofapi", "--agent-lib=/etc/passwd"],
            &["no libprofapi.so", "/etc/passwd", "--inject=preload"],
        ),
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
    let run = || {
        let mut command = std::process::Command::new(&copy);
        command
            .args(["--dynamic=on", "true"])
            .env_remove("MSPROF_AGENT_LIB")
            .env("HOME", lab.path("home"));
        command.output()
    };
    // A process that another test has just begun holds the copy open for writing until it becomes its program.
    let deadline = Instant::now() + DEADLINE;
    let output = loop {
        match run() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                assert!(Instant::now() < deadline, "{error}");
            }
            output => break output.expect("runs"),
        }
    };
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
        .says("usage: msprof")
        .says("\n  Ctrl-C again     does not wait for the captures")
        .says("130 after a second Ctrl-C with --pid;");
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

#[test]
fn what_hides_or_turns_round_a_part_of_a_command_line_is_not_shown_as_it_is() {
    let lab = Lab::new();
    let file = lab.path("exe.\u{202e}txt");
    std::fs::write(&file, "x").expect("written");
    let output = format!("--output={}", file.display());
    for words in [
        &["--dynamic=on", "--pid=1", "--l2=o\u{200b}n"][..],
        &["--dynamic=on", "--pid=1", "--l\u{2066}2=on"],
        &["--dynamic=on", "--pid=1", &output],
        &["\u{202e}yrammus"],
        &["--export=on", "--ty\u{202e}pe=db"],
        &["--export=on", "--type=d\u{202e}b"],
    ] {
        let mut command = lab.msprof();
        command.args(words);
        let ended = Run::start(command).ended();
        ended.exits(2);
        let said = &ended.err;
        assert!(
            said.lines().count() == 1 && !said.contains(['\u{200b}', '\u{202e}', '\u{2066}']),
            "{words:?}: {said:?}"
        );
    }
}
