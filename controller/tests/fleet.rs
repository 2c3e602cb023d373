//! Several processes at once.

mod support;

use msprof_agent_core::control::extension::{Op, Outcome, Reply};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use support::*;

#[test]
fn one_late_and_one_dead_of_eight_do_not_delay_the_others() {
    let lab = Lab::new();
    let mut targets: Vec<Sleeper> = (0..8).map(|_| Sleeper::new()).collect();
    let pids: Vec<u32> = targets.iter().map(Sleeper::pid).collect();
    let release = Gate::default();
    let ready = Gate::default();
    let (starts, started) = channel();
    let mut servers = Vec::new();
    for (index, pid) in pids.iter().copied().enumerate() {
        let starts = starts.clone();
        let (ready, release) = (ready.clone(), release.clone());
        servers.push(Server::once(&lab.socket(pid), move |mut client| {
            client.greet(pid);
            if index == 1 {
                ready.open();
            }
            while let Some((id, op)) = client.read_request() {
                if op == Op::Start {
                    starts.send((index, Instant::now())).expect("sent");
                    if index == 0 {
                        release.wait();
                    }
                }
                let reply = Reply {
                    started_ns: Some(index as u64 * 1000),
                    ..outcome(Outcome::Success)
                };
                client.reply(id, &reply);
            }
        }));
    }
    let mut run = lab.attach(&pids);
    // The dead one: its session has begun, then it is killed.
    ready.wait();
    targets[1].kill();
    run.wait_for(&format!("pid {} is over", pids[1]));
    run.send("start\n");
    for pid in &pids[2..] {
        run.wait_for(&format!("pid {pid} start success"));
    }
    let late = format!("pid {} start success", pids[0]);
    assert!(!run.seen.iter().any(|(_, line, _)| line.contains(&late)));
    release.open();
    run.wait_for(&late);
    run.wait_for("start times of 7 processes lie within 0.007 ms");
    let mut times: Vec<Instant> = Vec::new();
    while let Ok((_, at)) = started.try_recv() {
        times.push(at);
    }
    let spread = *times.iter().max().expect("7") - *times.iter().min().expect("7");
    assert_eq!(times.len(), 7);
    // 5 ms on a quiet machine; the tests may share two cores with others.
    assert!(spread < Duration::from_millis(200), "{spread:?}");
    run.send("quit\n");
    run.ended().exits(0);
    servers.into_iter().for_each(Server::join);
}

#[test]
fn a_wedged_process_does_not_keep_the_next_command_from_the_others() {
    let lab = Lab::new();
    let targets: Vec<Sleeper> = (0..2).map(|_| Sleeper::new()).collect();
    let pids: Vec<u32> = targets.iter().map(Sleeper::pid).collect();
    let release = Gate::default();
    let gate = release.clone();
    let wedged = pids[0];
    let slow = Server::once(&lab.socket(wedged), move |mut client| {
        client.greet(wedged);
        let (id, _) = client.read_request().expect("start");
        gate.wait();
        client.reply(id, &outcome(Outcome::Success));
        while let Some((id, op)) = client.read_request() {
            let reply = if op == Op::Stop {
                stopped()
            } else {
                outcome(Outcome::Success)
            };
            client.reply(id, &reply);
        }
    });
    let quick_pid = pids[1];
    let quick = Server::once(&lab.socket(quick_pid), move |mut client| {
        serve_extended(&mut client, quick_pid);
    });
    let mut run = lab.attach(&pids);
    run.send("start\nstop\nquit\n");
    run.wait_for(&format!("pid {wedged} has not answered start yet"));
    run.wait_for(&format!("pid {quick_pid} stop success"));
    release.open();
    let ended = run.ended();
    ended.exits(0).says(&format!("pid {wedged} stop success"));
    slow.join();
    quick.join();
}

#[test]
fn one_bad_pid_is_reported_and_left_out() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    let ended = lab
        .attach(&[2_147_483_647, pid])
        .script("start\nstop\nquit\n");
    ended
        .exits(1)
        .warns("pid 2147483647 cannot begin: no such pid")
        .says(&format!("pid {pid} stop success"));
    assert!(
        !ended.out.contains("start times of"),
        "one process has no spread"
    );
    server.join();
}

#[test]
fn the_last_target_that_goes_ends_the_prompt() {
    let lab = Lab::new();
    let mut targets: Vec<Sleeper> = (0..2).map(|_| Sleeper::new()).collect();
    let pids: Vec<u32> = targets.iter().map(Sleeper::pid).collect();
    let servers: Vec<Server> = pids
        .iter()
        .map(|pid| {
            let pid = *pid;
            Server::once(&lab.socket(pid), move |mut client| {
                serve_extended(&mut client, pid)
            })
        })
        .collect();
    let mut run = lab.attach(&pids);
    run.send("start\n");
    run.wait_for(&format!("pid {} start success", pids[0]));
    run.wait_for(&format!("pid {} start success", pids[1]));
    for target in &mut targets {
        target.kill();
    }
    // They died while capturing, and nobody could be told what was kept.
    let ended = run.ended();
    ended
        .exits(1)
        .warns(&format!("pid {} is over: the process has ended", pids[1]));
    servers.into_iter().for_each(Server::join);
}
