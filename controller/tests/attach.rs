//! One process: what is said on the wire and what the user reads.

mod support;

use msprof_agent_core::control::extension::{Holder, Op, Outcome, Reply};
use msprof_agent_core::control::wire::{kind, status};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
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
        client.read_params();
        client.extend(&hello(pid));
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
        client.read_params();
        client.extend(&hello(pid));
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
fn refusals_of_the_params_are_told_apart() {
    type Answer = fn(&mut Client, u32);
    let cases: [(Answer, &str); 6] = [
        (
            |client, pid| {
                let holder = Holder {
                    uid: 1000,
                    pid: 4711,
                };
                client.extend(&msprof_agent_core::control::extension::Hello {
                    busy: Some(holder),
                    ..hello(pid)
                });
            },
            "busy: held by pid 4711 of uid 1000",
        ),
        (
            |client, pid| {
                client.extend(&msprof_agent_core::control::extension::Hello {
                    error: Some("no such directory".into()),
                    ..hello(pid)
                });
            },
            "refused: no such directory",
        ),
        (
            |client, _| client.say(kind::PARAMS_REPLY, status::FAILED),
            "refused by the process",
        ),
        (|_, _| {}, "closed the connection at once"),
        (|client, _| client.say(9, 9), "unexpected answer (type 9"),
        (
            |client, _| {
                use std::io::Write;
                client.say(kind::PARAMS_REPLY, status::EXTENDED);
                client.stream.write_all(&[0xFF; 8]).expect("written");
            },
            "unreadable answer",
        ),
    ];
    for (answer, reason) in cases {
        let (lab, target) = (Lab::new(), Sleeper::new());
        let pid = target.pid();
        let server = Server::once(&lab.socket(pid), move |mut client| {
            client.read_params();
            answer(&mut client, pid);
        });
        let ended = lab.attach(&[pid]).ended();
        ended
            .exits(1)
            .warns(&format!("{PID} {pid} cannot begin: "))
            .warns(reason);
        server.join();
    }
}

#[test]
fn a_silent_server_is_given_up_after_5_seconds() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), |mut client| client.wait_for_close());
    let began = Instant::now();
    let ended = lab.attach(&[pid]).script("start\n");
    ended
        .exits(1)
        .warns("no answer to the connection within 5 s");
    let took = began.elapsed();
    assert!(
        took > Duration::from_secs(4) && took < Duration::from_secs(12),
        "{took:?}"
    );
    server.join();
}

#[test]
fn the_death_of_an_idle_target_is_told_within_a_second() {
    let (lab, mut target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let ready = Gate::default();
    let opened = ready.clone();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.read_params();
        client.extend(&hello(pid));
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
        client.read_params();
        client.extend(&hello(pid));
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

#[test]
fn targets_that_cannot_be_reached_are_told_apart() {
    let lab = Lab::new();
    // No such process: the largest pid is never in use here.
    let ended = lab.attach(&[2_147_483_647]).script("start\n");
    ended.exits(1).warns("no such pid");

    let target = Sleeper::new();
    let ended = lab.attach(&[target.pid()]).script("start\n");
    ended
        .exits(1)
        .warns("not armed: no socket in ")
        .warns("PROFILING_MODE=dynamic");

    let stale = lab.socket(target.pid());
    drop(UnixListener::bind(&stale).expect("bound"));
    let ended = lab.attach(&[target.pid()]).script("start\n");
    ended.exits(1).warns("is stale");
}

#[test]
fn sockets_of_dead_processes_are_swept_and_live_ones_stay() {
    let lab = Lab::new();
    let dead = lab.socket(2_147_483_646);
    drop(UnixListener::bind(&dead).expect("bound"));
    let live = lab.socket(2_147_483_645);
    let listener = UnixListener::bind(&live).expect("bound");
    let other = lab.path("sockets").join("dynamic_profiling_socket_x");
    drop(UnixListener::bind(&other).expect("bound"));
    lab.attach(&[2_147_483_647]).ended().exits(1);
    assert!(!dead.exists() && live.exists() && other.exists());
    listener.set_nonblocking(true).expect("set");
    let nobody = listener
        .accept()
        .expect_err("the live one was not even connected to");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_late_reply_is_not_taken_for_the_next_ones() {
    // The reply to request 1 comes twice; the second must not answer request 2.
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.read_params();
        client.extend(&hello(pid));
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
        ends_while_capturing(false, stop).exits(1).warns(
            "its capture is not complete, and what was lost of it is not known\n  directory: /",
        );
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

#[test]
fn a_target_that_has_only_begun_is_given_time_to_open_its_socket() {
    let lab = Lab::new();
    let target = Sleeper::with(&[("PROFILING_MODE", "dynamic")]);
    let pid = target.pid();
    let mut run = lab.attach(&[pid]);
    run.send("start\nstop\nquit\n");
    std::thread::sleep(Duration::from_millis(500));
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    let ended = run.ended();
    ended.exits(0).says("start success").says("stop success");
    server.join();
}

#[test]
fn a_target_that_never_opens_its_socket_is_given_up_after_3_seconds() {
    let lab = Lab::new();
    let target = Sleeper::with(&[("PROFILING_MODE", "dynamic")]);
    let began = Instant::now();
    let ended = lab.attach(&[target.pid()]).script("start\n");
    ended.exits(1).warns("not armed: no socket in ");
    let took = began.elapsed();
    assert!(
        took > Duration::from_secs(2) && took < Duration::from_secs(10),
        "{took:?}"
    );
}

#[test]
fn a_note_that_the_start_gave_is_not_repeated() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.read_params();
        client.extend(&hello(pid));
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
