//! Against a server that is as easily killed as the stock one, and as little talkative.

mod support;

use msprof_agent_core::control::wire::{kind, status};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use support::stock::{Met, Stock};
use support::*;

const PID: &str = "dynamic profiling for pid";

fn target() -> (Lab, Sleeper, Stock) {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let stock = Stock::new(&lab.socket(target.pid()));
    (lab, target, stock)
}

fn succeeded(kind: u32) -> Met {
    Met::Command(kind, status::SUCCESS)
}

#[test]
fn sessions_follow_each_other_and_say_that_there_are_no_counters() {
    let (lab, target, stock) = target();
    let pid = target.pid();
    for _ in 0..2 {
        let script = "stop\nstart\nstart\nstatus\nstop\nquit\n";
        let ended = lab.attach(&[pid]).script(script);
        assert_eq!(ended.err, "");
        let lines: Vec<_> = ended.out.lines().collect();
        assert_eq!(
            lines,
            [
                format!("{PID} {pid} has not started").as_str(),
                &format!("{PID} {pid} start success"),
                &format!("{PID} {pid} already started"),
                &format!("pid {pid}: capturing, stock agent (it tells no more)"),
                &format!("{PID} {pid} stop success"),
                "  records: unknown, a stock agent gives no account; see the PROF directory in --output",
                &format!("{PID} {pid} quit success"),
            ]
        );
        ended.exits(1);
    }
    let session = [
        Met::Params,
        Met::Command(kind::STOP, status::NOT_STARTED),
        succeeded(kind::START),
        Met::Command(kind::START, status::ALREADY_STARTED),
        succeeded(kind::STOP),
        succeeded(kind::QUIT),
    ];
    assert_eq!(stock.end(), [session.clone(), session].concat());
}

#[test]
fn a_start_before_the_device_is_set_can_be_repeated() {
    let (lab, target, stock) = target();
    stock.set_device(false);
    let mut run = lab.attach(&[target.pid()]);
    run.send("start\n");
    run.wait_for(&format!(
        "device for pid {} has not been set up",
        target.pid()
    ));
    stock.set_device(true);
    run.send("start\nstop\nquit\n");
    let ended = run.ended();
    ended.exits(1).says("start success").says("stop success");
    assert_eq!(stock.end().last(), Some(&succeeded(kind::QUIT)));
}

#[test]
fn the_end_of_the_input_while_capturing_is_a_quit_and_no_disappearance() {
    let (lab, target, stock) = target();
    let ended = lab.attach(&[target.pid()]).script("start\n");
    ended.exits(0).says("quit success");
    let expected = [Met::Params, succeeded(kind::START), succeeded(kind::QUIT)];
    assert_eq!(stock.end(), expected);
}

#[test]
fn a_second_controller_gives_up_and_harms_nobody() {
    let (lab, target, stock) = target();
    let mut first = lab.attach(&[target.pid()]);
    first.send("start\n");
    first.wait_for("start success");
    let second = lab.attach(&[target.pid()]).script("start\n");
    second
        .exits(1)
        .warns("no answer to the connection within 5 s: another msprof may hold");
    first.send("stop\nquit\n");
    first.ended().exits(0).says("stop success");
    // Whoever gave up stands in the queue still; then it is the third's turn.
    let third = lab.attach(&[target.pid()]).script("start\nquit\n");
    third.exits(0).says("start success");
    let met = stock.end();
    assert!(!met.contains(&Met::Dead), "{met:?}");
}

#[test]
fn a_session_of_100_commands_ends_with_a_quit_that_is_still_served() {
    let (lab, target, stock) = target();
    let ended = lab
        .attach(&[target.pid()])
        .script(&"start\nstop\n".repeat(51));
    ended
        .exits(1)
        .warns("100 start and stop commands are the limit of a session")
        .says("quit success");
    assert_eq!(ended.out.matches("start success").count(), 50);
    let met = stock.end();
    assert_eq!(met.len(), 1 + 100 + 1);
    assert_eq!(met.last(), Some(&succeeded(kind::QUIT)));
}

#[test]
fn the_servers_own_limit_is_told_when_ours_is_lifted() {
    let (lab, target, stock) = target();
    let mut command = lab.msprof();
    command
        .args(["--dynamic=on", &format!("--pid={}", target.pid())])
        .env("MSPROF_AGENT_MAX_COMMANDS", "0");
    let ended = Run::start(command).script(&"start\nstop\n".repeat(52));
    ended
        .exits(1)
        .warns("the process has ended the session: a stock process takes 100 commands");
    assert_eq!(ended.out.matches("start success").count(), 51);
    assert!(!stock.end().contains(&Met::Dead));
}

/// A process that is no relative of this one.
struct Stranger(Pid);

impl Stranger {
    fn new() -> Stranger {
        let output = Command::new("sh")
            .args(["-c", "sleep 300 </dev/null >/dev/null 2>&1 & echo $!"])
            .output()
            .expect("sh runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let pid = text.trim().parse().expect("a number");
        Stranger(Pid::from_raw(pid).expect("a pid"))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn a_socket_of_another_process_is_left_as_a_user_leaves_it() {
    // The socket has the stranger's key, as in containers that share a home, but this process
    // serves it.
    let (lab, stranger) = (Lab::new(), Stranger::new());
    let pid = stranger.0.as_raw_nonzero().get().unsigned_abs();
    let stock = Stock::new(&lab.socket(pid));
    let ended = lab.attach(&[pid]).script("start\n");
    ended
        .exits(1)
        .warns("is served by pid ")
        .warns("not by this process");
    assert_eq!(stock.end(), [Met::Params, succeeded(kind::QUIT)]);
}

#[test]
fn a_foreign_socket_under_the_launchers_key_survives_being_looked_at() {
    let lab = Lab::new();
    let library = lab.path("libmsprof_agent.so");
    // Empty files are passed over by the loader with a remark on the program's stderr.
    std::fs::write(&library, "").expect("written");
    let mut command = lab.msprof();
    command
        .arg("--dynamic=on")
        .arg(format!("--agent-lib={}", library.display()))
        .args(["sh", "-c", "echo up; exec sleep 300"]);
    let mut run = Run::start(command);
    // A socket that is there before the program is not looked at at all.
    run.wait_for("up");
    let stock = Stock::new(&lab.socket(run.pid()));
    run.send("start\n");
    let met = stock.wait_for(2);
    assert_eq!(met, [Met::Params, succeeded(kind::QUIT)]);
    run.signal(Signal::TERM);
    run.ended().exits(143);
    assert_eq!(stock.end(), met, "looked at once only");
}
