//! Where commands come from and how the session ends.

mod support;

use msprof_agent_core::control::extension::Outcome;
use rustix::process::Signal;
use std::process::{Command, Stdio};
use support::*;

/// A target that serves everything, and a controller attached to it.
fn session(change: impl FnOnce(&mut Command)) -> (Lab, Sleeper, Server, Run) {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    let mut command = lab.msprof();
    command.args(["--dynamic=on", &format!("--pid={pid}")]);
    change(&mut command);
    let run = Run::start(command);
    (lab, target, server, run)
}

#[test]
fn the_end_of_the_input_is_a_quit() {
    let (_lab, target, server, run) = session(|_| {});
    let ended = run.script("start\n");
    ended.exits(0).says("start success");
    ended.says(&format!(
        "dynamic profiling for pid {} quit success",
        target.pid()
    ));
    server.join();
}

#[test]
fn no_input_at_all_quits_at_once_and_never_spins() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    let mut command = lab.msprof();
    command
        .args(["--dynamic=on", &format!("--pid={pid}")])
        .stdin(Stdio::null());
    let output = command.output().expect("runs");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(
        text,
        format!("dynamic profiling for pid {pid} quit success\n")
    );
    server.join();
}

#[test]
fn a_pipe_that_stays_open_after_quit_does_not_hold_the_controller() {
    let (_lab, _target, server, mut run) = session(|_| {});
    run.send("start\nstop\nquit\n");
    run.ended().exits(0).says("quit success");
    server.join();
}

#[test]
fn unknown_commands_are_named_and_the_session_goes_on() {
    let (_lab, _target, server, run) = session(|_| {});
    let ended = run.script("\nstrat\nstart now\n\u{1b}[31m\nsleep x\nhelp\nstart\nq\n");
    ended
        .exits(1)
        .warns("unknown command \"strat\"")
        .warns("unknown command \"start now\"")
        .warns("sleep: \"x\" is invalid")
        .says("sleep <seconds>")
        .says("start success");
    assert!(!ended.err.contains('\u{1b}'));
    server.join();
}

#[test]
fn a_flood_without_line_ends_is_one_unknown_command() {
    let (_lab, _target, server, run) = session(|_| {});
    let ended = run.script(&"x".repeat(300_000));
    ended.exits(1).warns("unknown command \"xxx");
    assert!(ended.err.len() < 2000, "{} bytes", ended.err.len());
    server.join();
}

#[test]
fn sleep_waits_between_commands() {
    let (_lab, _target, server, mut run) = session(|_| {});
    run.send("start\nsleep 0.5\nstop\nquit\n");
    let started = run.wait_for("start success");
    let stopped = run.wait_for("stop success");
    assert!(stopped - started >= std::time::Duration::from_millis(400));
    run.ended().exits(0);
    server.join();
}

#[test]
fn an_interrupt_means_quit_also_during_a_sleep() {
    for signal in [Signal::INT, Signal::TERM] {
        let (_lab, _target, server, mut run) = session(|_| {});
        run.send("start\nsleep 600\nstop\n");
        run.wait_for("start success");
        run.signal(signal);
        let ended = run.ended();
        ended.exits(0).says("quit success");
        server.join();
    }
}

#[test]
fn an_idle_session_ends_with_a_message() {
    let (_lab, _target, server, mut run) = session(|command| {
        command.env("MSPROF_AGENT_IDLE_TIMEOUT", "1");
    });
    run.wait_for("no capture has run for 1 s");
    run.ended().exits(0).says("quit success");
    server.join();
}

#[test]
fn a_running_capture_is_not_idle() {
    let (_lab, _target, server, mut run) = session(|command| {
        command.env("MSPROF_AGENT_IDLE_TIMEOUT", "1");
    });
    run.send("start\n");
    run.wait_for("start success");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    run.send("stop\n");
    run.wait_for("stop success");
    run.ended().exits(0);
    server.join();
}

#[test]
fn the_command_limit_ends_the_session_with_a_message() {
    let (_lab, _target, server, run) = session(|command| {
        command.env("MSPROF_AGENT_MAX_COMMANDS", "2");
    });
    let ended = run.script("start\nstatus\nstop\nstart\n");
    ended
        .exits(1)
        .warns("2 start and stop commands are the limit")
        .says("quit success");
    assert_eq!(ended.out.matches("start success").count(), 1);
    server.join();
}

#[test]
fn a_reader_that_goes_away_ends_the_session_properly() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        let mut ops = Vec::new();
        while let Some((id, op)) = client.read_request() {
            ops.push(op);
            client.reply(id, &stopped());
        }
        use msprof_agent_core::control::extension::Op;
        assert_eq!(ops, [Op::Start, Op::Quit]);
    });
    let mut command = lab.msprof();
    command.args(["--dynamic=on", &format!("--pid={pid}")]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("runs");
    drop(child.stdout.take());
    use std::io::Write;
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"start\n").expect("written");
    // stdin stays open: only the closed stdout can end the session.
    server.join();
    assert!(
        child.wait().expect("ends").code().is_some(),
        "not killed by SIGPIPE"
    );
    drop(stdin);
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_captures() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let asked = Gate::default();
    let opened = asked.clone();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        let (id, _) = client.read_request().expect("start");
        client.reply(id, &outcome(Outcome::Success));
        client.read_request().expect("quit");
        opened.open();
        // Its capture takes long to be written.
        client.wait_for_close();
    });
    let mut run = lab.attach(&[pid]);
    run.send("start\n");
    run.wait_for("start success");
    run.signal(Signal::INT);
    asked.wait();
    until_a_signal_is_another();
    run.signal(Signal::INT);
    run.ended()
        .exits(130)
        .warns("interrupted: running captures are finished by the processes");
    server.join();
}
