//! A controller on a pseudo-terminal.

use super::{DEADLINE, Lab};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A controller whose stdin, stdout and stderr are its controlling terminal.
pub struct Terminal {
    pub child: Child,
    pub keyboard: std::fs::File,
    screen: Receiver<Vec<u8>>,
    /// What has been shown and was not waited for.
    pub seen: String,
}

impl Terminal {
    pub fn start(controller: std::process::Command) -> Terminal {
        Terminal::of_width(controller, 0)
    }

    /// One of so many columns.
    pub fn of_width(controller: std::process::Command, columns: u16) -> Terminal {
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
        let size = Winsize {
            ws_row: 50,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).expect("sized");
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

    pub fn attach(lab: &Lab, pid: u32) -> Terminal {
        let mut command = lab.msprof();
        command.args(["--dynamic=on", &format!("--pid={pid}")]);
        Terminal::start(command)
    }

    pub fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits for a text behind what was waited for before.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        assert!(self.shows(text, DEADLINE), "no {text:?} in {:?}", self.seen);
    }

    pub fn shows(&mut self, text: &str, within: Duration) -> bool {
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
    pub fn exits(&mut self, code: i32) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("waited") {
                return assert_eq!(status.code(), Some(code), "{}", self.seen);
            }
            assert!(Instant::now() < deadline, "does not end: {:?}", self.seen);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// All that is shown until the controller ends with a status.
    #[track_caller]
    pub fn shows_until_exit(mut self, code: i32) -> String {
        self.exits(code);
        // The reader ends with the last end of the terminal that the controller had.
        while let Ok(bytes) = self.screen.recv_timeout(DEADLINE) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        std::mem::take(&mut self.seen)
    }

    pub fn wait_until_cooked(&self) {
        self.wait_for_mode(true);
    }

    pub fn wait_until_raw(&self) {
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
    pub fn is_cooked(&self) -> bool {
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
