//! Sessions that end although nobody asked for it: processes that die, agents that have waited for long enough.

mod support;

use msprof_agent_core::control::extension::{Hello, Holder, Op, Outcome};
use msprof_agent_core::control::wire::kind;
use std::time::{Duration, Instant};
use support::*;

const PID: &str = "dynamic profiling for pid";

#[test]
fn an_unasked_disconnect_ends_the_session_with_a_message() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), |mut client| {
        client.read_params();
        client.say(kind::PARAMS_REPLY, 0);
        client.say(kind::DISCONNECT, 0);
        client.wait_for_close();
    });
    let mut run = lab.attach(&[pid]);
    run.wait_for("the process has ended the session");
    run.ended().exits(0);
    server.join();
}

#[test]
fn the_death_of_an_idle_target_is_told_within_a_second() {
    let (lab, mut target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let ready = Gate::default();
    let opened = ready.clone();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        opened.open();
        // The connection stays open, as with a forked child: only the process is gone.
        client.wait_for_close();
    });
    let mut run = lab.attach(&[pid]);
    ready.wait();
    target.kill();
    let killed = Instant::now();
    let told = run.wait_for(&format!("{PID} {pid} is over: the process has ended"));
    assert!(
        told - killed < Duration::from_secs(2),
        "{:?}",
        told - killed
    );
    run.ended();
    server.join();
}

#[test]
fn a_target_that_dies_in_the_middle_of_a_command_fails_it() {
    let (lab, mut target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let asked = Gate::default();
    let opened = asked.clone();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        client.read_request().expect("start");
        opened.open();
        client.wait_for_close();
    });
    let mut run = lab.attach(&[pid]);
    run.send("start\n");
    asked.wait();
    target.kill();
    run.wait_for(&format!("{PID} {pid} start failed: the process has ended"));
    run.ended().exits(1);
    server.join();
}

/// A target that ends while it captures, with a stop on its way or not.
fn ends_while_capturing(complete: bool, stop: bool) -> Ended {
    let (lab, mut target) = (Lab::new(), Sleeper::new());
    let (pid, dir) = (target.pid(), lab.path("out").join("PROF_000001_x"));
    let (asked, left, own) = (Gate::default(), Gate::default(), dir.clone());
    let gates = (asked.clone(), left.clone());
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_start(&mut client, pid, &own);
        if stop {
            client.read_request().expect("stop");
        }
        gates.0.open();
        gates.1.wait();
    });
    let mut run = lab.attach(&[pid]);
    run.send(if stop { "start\nstop\n" } else { "start\n" });
    run.wait_for("start success");
    asked.wait();
    leave_capture(&dir, complete);
    target.kill();
    left.open();
    let ended = run.ended();
    server.join();
    ended
}

#[test]
fn a_capture_that_its_process_has_completed_at_its_end_is_told_and_no_failure() {
    for stop in [false, true] {
        let ended = ends_while_capturing(true, stop);
        ended
            .exits(0)
            .says("is over: the process has ended; its capture is complete\n  directory: /")
            .says("PROF_000001_x\n  captured: 0.000 s\n  records: 2 (runtime-api 2)\n  bytes: 80\n  lost 0\n");
        assert_eq!(ended.err, "", "stop: {stop}");
    }
}

#[test]
fn a_capture_that_was_cut_off_is_a_failure_of_unknown_loss() {
    for stop in [false, true] {
        ends_while_capturing(false, stop)
            .exits(1)
            .warns(
                "its capture is not complete, and what was lost of it is not known\n  directory: /",
            )
            .warns("\n  finish it with: msprof recover /");
    }
}

#[test]
fn a_capture_that_the_process_ended_before_the_stop_is_told_as_stopped() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let (pid, dir) = (target.pid(), lab.path("out").join("PROF_000001_x"));
    leave_capture(&dir, true);
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_start(&mut client, pid, &dir);
        let (id, _) = client.read_request().expect("stop");
        client.reply(id, &outcome(Outcome::NotStarted));
        let (id, _) = client.read_request().expect("quit");
        client.reply(id, &outcome(Outcome::Success));
    });
    let ended = lab.attach(&[pid]).script("start\nstop\n");
    ended.exits(0).says("stop success\n  directory: /");
    server.join();
}

/// Answers one command as an agent does that has waited for a command for too long, and closes.
fn serve_idle(client: &mut Client, pid: u32, asked: Op) {
    client.greet(pid);
    let (id, op) = client.read_request().expect("a command");
    assert_eq!(op, asked);
    client.reply(id, &idled());
}

#[test]
fn a_session_that_was_idle_for_too_long_is_begun_anew_for_the_next_command() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::each(
        &lab.socket(pid),
        vec![
            Box::new(move |mut client| serve_idle(&mut client, pid, Op::Start)),
            Box::new(move |mut client| serve_extended(&mut client, pid)),
        ],
    );
    let ended = lab.attach(&[pid]).script("start\nstop\nquit\n");
    ended
        .exits(0)
        .says(&format!(
            "{PID} {pid} start success\n  note: the process had ended the session (nothing was captured for 1800 s); this is a new one\n"
        ))
        .says(&format!("{PID} {pid} stop success"))
        .says(&format!("{PID} {pid} quit success"));
    assert_eq!(ended.err, "");
    server.join();
}

#[test]
fn a_session_that_was_idle_and_cannot_be_begun_anew_says_both_reasons() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::each(
        &lab.socket(pid),
        vec![
            Box::new(move |mut client| serve_idle(&mut client, pid, Op::Stop)),
            Box::new(move |mut client| {
                client.read_params();
                let holder = Holder { uid: 7, pid: 4711 };
                client.extend(&Hello {
                    busy: Some(holder),
                    ..hello(pid)
                });
            }),
        ],
    );
    let ended = lab.attach(&[pid]).script("stop\n");
    ended.exits(1).warns(&format!(
        "{PID} {pid} stop failed: the process has ended the session: nothing was captured for 1800 s; attach again; a new one cannot begin: busy: held by pid 4711"
    ));
    server.join();
}

#[test]
fn the_end_of_a_session_in_mid_capture_is_not_made_good_by_a_new_one() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let (pid, dir) = (target.pid(), lab.path("out").join("PROF_000001_x"));
    leave_capture(&dir, true);
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_start(&mut client, pid, &dir);
        let (id, _) = client.read_request().expect("stop");
        client.reply(id, &idled());
    });
    let ended = lab.attach(&[pid]).script("start\nstop\n");
    ended
        .exits(0)
        .says("is over: the process has ended the session: nothing was captured")
        .says("its capture is complete");
    server.join();
}
