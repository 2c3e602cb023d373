//! One process: what is said on the wire and what the user reads.

mod support;

use msprof_agent_core::control::extension::{Hello, Op, Outcome, Reply};
use msprof_agent_core::control::wire::{kind, status};
use support::*;

const PID: &str = "dynamic profiling for pid";

#[test]
fn a_session_with_our_agent_starts_stops_and_tells_the_account() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    let ended = lab.attach(&[pid]).script("start\nstatus\nstop\nquit\n");
    ended
        .exits(0)
        .says(&format!("{PID} {pid} start success"))
        .says(&format!("{PID} {pid} stop success"))
        .says("directory: /out/PROF_000001_x")
        .says("records: 2 (runtime-api 2)")
        .says("bytes: 80")
        .says("lost 0")
        .says(&format!("{PID} {pid} quit success"));
    assert_eq!(ended.err, "");
    server.join();
}

#[test]
fn a_stock_server_is_spoken_to_in_its_own_way() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), |mut client| serve_stock(&mut client));
    let ended = lab.attach(&[pid]).script("start\nstop\nstatus\nquit\n");
    ended
        .exits(0)
        .says(&format!("{PID} {pid} start success"))
        .says(&format!("{PID} {pid} stop success"))
        .says(&format!("pid {pid}: idle, stock agent"))
        .says(&format!("{PID} {pid} quit success"));
    server.join();
}

#[test]
fn the_params_carry_the_options_and_an_absolute_output() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let out = lab.path("out").canonicalize().expect("exists");
    let expected = out.join("new").to_str().expect("UTF-8").to_owned();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        let params = client.read_params();
        assert_eq!(params["result_dir"].as_str(), Some(expected.as_str()));
        assert_eq!(params["runtimeApi"], "on");
        assert_eq!(params["aicpuTrace"], "off");
        assert_eq!(params["storageLimit"], "500MB");
        let announcement = &params["msprofAgentController"];
        assert_eq!(announcement["modelExecution"], true);
        client.extend(&hello(pid));
    });
    let mut command = lab.msprof();
    command.args([
        "--dynamic=on",
        "--output=new",
        "--runtime-api=on",
        "--model-execution=on",
        "--storage-limit=500MB",
        &format!("--pid={pid}"),
    ]);
    Run::start(command).ended();
    server.join();
}

#[test]
fn stock_warnings_and_failures_have_their_lines_and_exit_status_1() {
    let cases = [
        (
            status::ALREADY_STARTED,
            format!("{PID} N already started"),
            true,
        ),
        (
            status::NO_DEVICE,
            "device for pid N has not been set up".to_owned(),
            true,
        ),
        (status::FAILED, format!("{PID} N start failed: "), false),
        (77, format!("{PID} N start failed: "), false),
    ];
    for (status, line, on_stdout) in cases {
        let (lab, target) = (Lab::new(), Sleeper::new());
        let pid = target.pid();
        let server = Server::once(&lab.socket(pid), move |mut client| {
            client.read_params();
            client.say(kind::PARAMS_REPLY, status::SUCCESS);
            client.read_message().expect("start");
            client.say(kind::START_REPLY, status);
            client.read_message().expect("quit");
            client.say(kind::QUIT_REPLY, status::SUCCESS);
            client.wait_for_close();
        });
        let ended = lab.attach(&[pid]).script("start\nquit\n");
        let line = line.replace('N', &pid.to_string());
        ended.exits(1).says("quit success");
        if on_stdout {
            ended.says(&line)
        } else {
            ended.warns(&line)
        };
        server.join();
    }
}

#[test]
fn a_stop_while_idle_has_not_started() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), |mut client| serve_stock(&mut client));
    let ended = lab.attach(&[pid]).script("stop\nquit\n");
    ended.exits(1).says(&format!("{PID} {pid} has not started"));
    server.join();
}

#[test]
fn a_failed_stop_gives_the_reason_and_what_was_kept() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        let (id, op) = client.read_request().expect("stop");
        assert_eq!(op, Op::Stop);
        let reply = Reply {
            outcome: Some(Outcome::Failed),
            error: Some("the disk is full".into()),
            ..stopped()
        };
        client.reply(id, &reply);
        let (id, _) = client.read_request().expect("quit");
        client.reply(id, &outcome(Outcome::Success));
    });
    let ended = lab.attach(&[pid]).script("stop\n");
    ended
        .exits(1)
        .warns(&format!("{PID} {pid} stop failed: the disk is full"))
        .warns("directory: /out/PROF_000001_x");
    server.join();
}

#[test]
fn a_slow_stop_is_waited_for_and_the_next_command_is_answered_right() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let (asked, release) = (Gate::default(), Gate::default());
    let gates = (asked.clone(), release.clone());
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        let (id, _) = client.read_request().expect("stop");
        for left in [5_000_000, 1_000_000] {
            client.reply(
                id,
                &Reply {
                    progress: Some(left),
                    ..outcome(Outcome::Progress)
                },
            );
        }
        gates.0.open();
        gates.1.wait();
        client.reply(id, &stopped());
        let (id, op) = client.read_request().expect("start");
        assert_eq!(op, Op::Start);
        client.reply(id, &outcome(Outcome::Success));
        let (id, _) = client.read_request().expect("quit");
        client.reply(id, &outcome(Outcome::Success));
    });
    let mut run = lab.attach(&[pid]);
    run.send("stop\nstart\nquit\n");
    asked.wait();
    assert!(run.seen.is_empty(), "no result before there is one");
    release.open();
    let ended = run.ended();
    ended.exits(0).says("stop success").says("start success");
    server.join();
}

#[test]
fn replies_may_come_in_pieces() {
    use std::io::Write;
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.read_params();
        for byte in [0u8; 8] {
            client.stream.write_all(&[byte]).expect("written");
            std::thread::yield_now();
        }
        client.read_message().expect("start");
        for byte in [2u8, 0, 0, 0, 0, 0, 0, 0] {
            client.stream.write_all(&[byte]).expect("written");
            std::thread::yield_now();
        }
        client.read_message().expect("quit");
        client.say(kind::QUIT_REPLY, 0);
        client.wait_for_close();
    });
    lab.attach(&[pid])
        .script("start\nquit\n")
        .exits(0)
        .says("start success");
    server.join();
}

#[test]
fn a_reply_of_a_wrong_type_is_a_failure() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), |mut client| {
        client.read_params();
        client.say(kind::PARAMS_REPLY, 0);
        client.read_message().expect("start");
        client.say(kind::STOP_REPLY, 0);
        client.wait_for_close();
    });
    let ended = lab.attach(&[pid]).script("start\n");
    ended
        .exits(1)
        .warns("start failed: unexpected answer (type 4");
    server.join();
}

#[test]
fn a_late_reply_is_not_taken_for_the_next_ones() {
    // The reply to request 1 comes twice; the second must not answer request 2.
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        let (id, _) = client.read_request().expect("start");
        client.reply(id, &outcome(Outcome::Success));
        client.reply(id, &outcome(Outcome::Failed));
        let (id, _) = client.read_request().expect("stop");
        client.reply(id, &stopped());
        let (id, _) = client.read_request().expect("quit");
        client.reply(id, &outcome(Outcome::Success));
    });
    lab.attach(&[pid])
        .script("start\nstop\nquit\n")
        .exits(0)
        .says("stop success");
    server.join();
}

#[test]
fn a_note_that_the_start_gave_is_not_repeated() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        while let Some((id, op)) = client.read_request() {
            let mut reply = match op {
                Op::Status | Op::Stop => stopped(),
                _ => outcome(Outcome::Success),
            };
            if op != Op::Quit {
                reply.notes = vec!["said at the start".into()];
            }
            if let Some(ledger) = &mut reply.ledger {
                ledger.notes = vec!["said at the start".into(), "came later".into()];
            }
            client.reply(id, &reply);
        }
    });
    let ended = lab
        .attach(&[pid])
        .script("start\nstatus\nstop\nstart\nquit\n");
    ended.exits(0);
    let count = |text| ended.out.matches(text).count();
    assert_eq!(count("note: said at the start"), 2, "{}", ended.out);
    assert_eq!(count("note: came later"), 2, "{}", ended.out);
    server.join();
}

#[test]
fn an_agent_that_has_turned_itself_off_says_why_at_once_and_for_every_command() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let why = "a fault of its own in ring.rs:17";
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.read_params();
        client.extend(&Hello {
            disabled: Some(why.into()),
            ..hello(pid)
        });
        while let Some((id, op)) = client.read_request() {
            let answer = match op {
                Op::Start => Reply {
                    error: Some("the agent is off".into()),
                    ..outcome(Outcome::Failed)
                },
                _ => outcome(Outcome::Success),
            };
            client.reply(
                id,
                &Reply {
                    disabled: Some(why.into()),
                    ..answer
                },
            );
        }
    });
    let off =
        format!("pid {pid}: its agent has turned itself off and captures nothing more: {why}");
    let mut run = lab.attach(&[pid]);
    run.wait_for(&off);
    run.send("start\nstatus\nquit\n");
    let ended = run.ended();
    ended
        .exits(1)
        .warns(&off)
        .warns(&format!("{PID} {pid} start failed: {why}\n"))
        .says(&format!("{off}, no device open\n"));
    server.join();
}
