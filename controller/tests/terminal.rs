//! The prompt on a terminal, by way of a pseudo-terminal.

mod support;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::*;

/// A controller whose stdin, stdout and stderr are its controlling terminal.
struct Terminal {
    child: Child,
    keyboard: std::fs::File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(controller: std::process::Command) -> Terminal {
        // Only a controlling terminal turns Ctrl-C into a signal.
        let mut command = std::process::Command::new("setsid");
        command
            .arg("--ctty")
            .arg(controller.get_program())
            .args(controller.get_args());
        for (key, value) in controller.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(dir) = controller.get_current_dir() {
            command.current_dir(dir);
        }
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("pseudo-terminal");
        unlockpt(&master).expect("unlocked");
        let slave = ioctl_tiocgptpeer(&master, flags).expect("its other end");
        let end = || Stdio::from(slave.try_clone().expect("cloned"));
        command
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end());
        let child = command.spawn().expect("runs");
        drop(command);
        drop(slave);
        let keyboard = std::fs::File::from(master);
        let mut reader = keyboard.try_clone().expect("cloned");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal {
            child,
            keyboard,
            screen,
            seen: String::new(),
        }
    }

    fn attach(lab: &Lab, pid: u32) -> Terminal {
        let mut command = lab.msprof();
        command.args(["--dynamic=on", &format!("--pid={pid}")]);
        Terminal::start(command)
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits for a text behind what was waited for before.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        assert!(self.shows(text, DEADLINE), "no {text:?} in {:?}", self.seen);
    }

    fn shows(&mut self, text: &str, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => return false,
            }
        }
    }

    #[track_caller]
    fn exits(&mut self, code: i32) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("waited") {
                return assert_eq!(status.code(), Some(code), "{}", self.seen);
            }
            assert!(Instant::now() < deadline, "does not end: {:?}", self.seen);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn wait_until_cooked(&self) {
        self.wait_for_mode(true);
    }

    fn wait_until_raw(&self) {
        self.wait_for_mode(false);
    }

    fn wait_for_mode(&self, cooked: bool) {
        let deadline = Instant::now() + DEADLINE;
        while self.is_cooked() != cooked {
            assert!(Instant::now() < deadline, "cooked is not {cooked}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the terminal shows what is typed, as it did before.
    fn is_cooked(&self) -> bool {
        let settings = tcgetattr(&self.keyboard).expect("settings");
        settings
            .local_modes
            .contains(LocalModes::ECHO | LocalModes::ICANON)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
        terminal.type_in("\u{3}");
        terminal.wait_for("killing the program");
        terminal.exits(137);
    }
}
