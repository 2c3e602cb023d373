//! Processes that are to be attached to: found, waited for, or refused with the reason.

mod support;

use msprof_agent_core::control::extension::Holder;
use msprof_agent_core::control::wire::{kind, status};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
use support::*;

const PID: &str = "dynamic profiling for pid";

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
fn what_a_process_without_a_socket_was_started_with_is_named() {
    let lab = Lab::new();
    let missing = lab.path("missing");
    let missing = missing.to_str().expect("UTF-8");
    let cases: [(&[(&str, &str)], String); 4] = [
        (&[], "; it was started without PROFILING_MODE: start it with PROFILING_MODE=dynamic".into()),
        (
            &[("PROFILING_MODE", "static\u{1b}[2J")],
            "; its PROFILING_MODE is \"static?[2J\": start it with".into(),
        ),
        (
            &[("PROFILING_MODE", "dynamic"), ("MSPROF_AGENT_BIND", "off")],
            "; its MSPROF_AGENT_BIND is off, so that it opens no socket: start it without that variable".into(),
        ),
        (
            &[("MSPROF_AGENT_BIND", "off")],
            "; it was started without PROFILING_MODE: ".into(),
        ),
    ];
    for (variables, reason) in cases {
        let target = Sleeper::with(variables);
        let began = Instant::now();
        lab.attach(&[target.pid()])
            .script("")
            .exits(1)
            .warns("not armed: no socket in ")
            .warns(&reason);
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "nothing is waited for"
        );
    }
    let target = Sleeper::with(&[("PROFILING_MODE", "dynamic")]);
    let mut command = lab.msprof();
    command
        .arg("--dynamic=on")
        .arg(format!("--pid={}", target.pid()))
        .env("MSPROF_AGENT_SOCKET_DIR", missing);
    Run::start(command).script("").exits(1).warns(&format!(
        "; MSPROF_AGENT_SOCKET_DIR: there is no directory {missing}; make it, or name another\n"
    ));
}

/// Waits for a thread of a process to wait itself.
fn wait_until_asleep(process: u32, thread: &str) {
    let sleeps = || {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("lives");
        let stats = tasks
            .flatten()
            .map(|task| std::fs::read_to_string(task.path().join("stat")));
        stats
            .flatten()
            .any(|stat| stat.contains(&format!("({thread}) S ")))
    };
    let deadline = Instant::now() + DEADLINE;
    while !sleeps() {
        assert!(Instant::now() < deadline, "{thread} does not wait");
        std::thread::yield_now();
    }
}

#[test]
fn a_target_that_ends_while_its_socket_is_waited_for_is_said_to_have_ended() {
    let lab = Lab::new();
    let mut target = Sleeper::with(&[("PROFILING_MODE", "dynamic")]);
    let pid = target.pid();
    let mut run = lab.attach(&[pid]);
    wait_until_asleep(run.pid(), &format!("target-{pid}"));
    target.kill();
    run.close_stdin();
    run.ended().exits(1).warns(&format!(
        "{PID} {pid} cannot begin: the process has ended before it opened a socket\n"
    ));
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
