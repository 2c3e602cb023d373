//! The prompt on a terminal, by way of a pseudo-terminal.

mod support;

use std::io::Write;
use std::time::{Duration, Instant};
use support::*;

fn target() -> (Lab, Sleeper, Server) {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    (lab, target, server)
}

#[test]
fn the_prompt_takes_start_stop_and_quit() {
    let (lab, target, server) = target();
    let mut terminal = Terminal::attach(&lab, target.pid());
    for (command, result) in [
        ("start", "start success"),
        ("stop", "lost 0"),
        ("q", "quit success"),
    ] {
        terminal.wait_for("(msprof) ");
        terminal.type_in(&format!("{command}\r"));
        terminal.wait_for(result);
    }
    terminal.exits(0);
    assert!(terminal.is_cooked());
    server.join();
}

#[test]
fn control_d_and_control_c_mean_quit() {
    for key in ["\u{4}", "\u{3}"] {
        let (lab, target, server) = target();
        let mut terminal = Terminal::attach(&lab, target.pid());
        terminal.wait_for("(msprof) ");
        terminal.type_in(key);
        terminal.wait_for("quit success");
        terminal.exits(0);
        server.join();
    }
}

#[test]
fn commands_typed_ahead_are_all_carried_out() {
    let (lab, target, server) = target();
    let mut terminal = Terminal::attach(&lab, target.pid());
    terminal.wait_for("(msprof) ");
    terminal.type_in("start\rstop\rquit\r");
    for result in ["start success", "stop success", "quit success"] {
        terminal.wait_for(result);
    }
    terminal.exits(0);
    server.join();
}

#[test]
fn an_earlier_command_comes_back_with_the_up_key() {
    let (lab, target, server) = target();
    let mut terminal = Terminal::attach(&lab, target.pid());
    terminal.wait_for("(msprof) ");
    terminal.type_in("start\r");
    terminal.wait_for("start success");
    terminal.wait_for("(msprof) ");
    terminal.type_in("\u{1b}[A\r");
    terminal.wait_for("start success");
    terminal.wait_for("(msprof) ");
    terminal.type_in("quit\r");
    terminal.exits(0);
    server.join();
}

#[test]
fn bytes_that_are_no_text_do_not_end_the_session() {
    let (lab, target, server) = target();
    let mut terminal = Terminal::attach(&lab, target.pid());
    terminal.wait_for("(msprof) ");
    terminal.keyboard.write_all(b"\xff\xfe\r").expect("typed");
    // What arrives together with the garbage is lost with it.
    let deadline = Instant::now() + DEADLINE;
    while !terminal.shows("start success", Duration::from_millis(300)) {
        assert!(Instant::now() < deadline, "no start: {:?}", terminal.seen);
        terminal.type_in("\rstart\r");
    }
    terminal.wait_for("(msprof) ");
    terminal.type_in("quit\r");
    terminal.wait_for("quit success");
    server.join();
}

#[test]
fn a_message_at_the_prompt_leaves_the_half_typed_command_alone() {
    let lab = Lab::new();
    let mut targets: Vec<Sleeper> = (0..2).map(|_| Sleeper::new()).collect();
    let pids: Vec<u32> = targets.iter().map(Sleeper::pid).collect();
    let servers: Vec<Server> = pids
        .iter()
        .map(|&pid| {
            Server::once(&lab.socket(pid), move |mut client| {
                serve_extended(&mut client, pid);
            })
        })
        .collect();
    let mut command = lab.msprof();
    command.args(["--dynamic=on", &format!("--pid={},{}", pids[0], pids[1])]);
    let mut terminal = Terminal::start(command);
    terminal.wait_for("(msprof) ");
    terminal.type_in("sta");
    terminal.wait_for("(msprof) sta");
    targets[0].kill();
    terminal.wait_for(&format!("pid {} is over: the process has ended", pids[0]));
    terminal.type_in("rt");
    terminal.wait_for("(msprof) start");
    terminal.type_in("\r");
    terminal.wait_for(&format!("pid {} start success", pids[1]));
    terminal.wait_for("(msprof) ");
    terminal.type_in("quit\r");
    terminal.exits(0);
    servers.into_iter().for_each(Server::join);
}

#[test]
fn a_death_at_the_prompt_is_told_and_the_terminal_is_given_back() {
    let (lab, mut target, server) = target();
    let mut terminal = Terminal::attach(&lab, target.pid());
    terminal.wait_for("(msprof) ");
    assert!(!terminal.is_cooked(), "the editor has the terminal");
    target.kill();
    terminal.wait_for("the process has ended");
    terminal.exits(0);
    assert!(terminal.is_cooked());
    server.join();
}

#[test]
fn control_c_during_a_sleep_ends_the_session() {
    let (lab, target, server) = target();
    let mut terminal = Terminal::attach(&lab, target.pid());
    terminal.wait_for("(msprof) ");
    terminal.type_in("start\r");
    terminal.wait_for("start success");
    terminal.wait_for("(msprof) ");
    terminal.type_in("sleep 600\r");
    terminal.wait_for("sleep 600");
    terminal.wait_for("\r\n");
    terminal.wait_until_cooked();
    terminal.type_in("\u{3}");
    terminal.wait_for("quit success");
    terminal.exits(0);
    server.join();
}

#[test]
fn control_c_after_quit_ends_the_program_and_a_second_one_kills_it() {
    // Ctrl-D ends the editor as well, which must not take the signals with it.
    for keys in ["quit\r", "\u{4}"] {
        let lab = Lab::new();
        let mut command = lab.msprof();
        command
            .arg("--dynamic=on")
            .arg(format!("--agent-lib={}", lab.library().display()))
            .args(["sh", "-c"])
            .arg("trap '' TERM; echo up; while :; do sleep 0.05; done");
        let mut terminal = Terminal::start(command);
        terminal.wait_for("up");
        terminal.wait_until_raw();
        terminal.type_in(keys);
        terminal.wait_for("the program runs on; waiting for it to end (Ctrl-C ends it)");
        terminal.type_in("\u{3}");
        terminal.wait_for("ending the program; Ctrl-C again kills it");
        until_a_signal_is_another();
        terminal.type_in("\u{3}");
        terminal.wait_for("killing the program");
        terminal.exits(137);
    }
}

#[test]
fn an_export_shows_its_progress_and_takes_it_away_again() {
    let lab = Lab::new();
    let host = lab.path("out").join("PROF_1/host/data");
    std::fs::create_dir_all(host).expect("made");
    let mut command = lab.msprof();
    command.args(["--export=on", "--output=."]);
    let mut terminal = Terminal::start(command);
    terminal.wait_for("exporting [");
    terminal.wait_for("there is nothing in it to export");
    terminal.exits(1);
    terminal.shows("exporting [", Duration::from_millis(1));
    let last = terminal.seen.rsplit('\r').next().unwrap_or_default();
    assert!(!last.contains("exporting"), "{:?}", terminal.seen);
}
