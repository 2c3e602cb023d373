//! A running controller, its input and what it says.

use super::DEADLINE;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Which stream a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Out,
    Err,
}

/// A running controller.
pub struct Run {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<(From, String)>,
    /// Every line so far, with its time of arrival.
    pub seen: Vec<(From, String, Instant)>,
}

/// How a controller ended.
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Ended {
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Ended {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}\n--\n{}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    pub fn says(&self, part: &str) -> &Ended {
        assert!(
            self.out.contains(part),
            "no {part:?} in: {}\n--\n{}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    pub fn warns(&self, part: &str) -> &Ended {
        assert!(
            self.err.contains(part),
            "no {part:?} in: {}\n--\n{}",
            self.err,
            self.out
        );
        self
    }
}

impl Run {
    pub fn start(mut command: Command) -> Run {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let streams: [(From, Box<dyn Read + Send>); 2] = [
            (From::Out, Box::new(child.stdout.take().unwrap())),
            (From::Err, Box::new(child.stderr.take().unwrap())),
        ];
        for (from, stream) in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                use std::io::BufRead;
                for line in std::io::BufReader::new(stream).split(b'\n') {
                    let Ok(line) = line else { return };
                    let line = String::from_utf8_lossy(&line).into_owned();
                    if sender.send((from, line)).is_err() {
                        return;
                    }
                }
            });
        }
        Run {
            stdin: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn send(&mut self, lines: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        // The controller may have ended already, as some tests want it.
        let _ = stdin.write_all(lines.as_bytes());
        let _ = stdin.flush();
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for a line that holds `part`, among those that have come already as well.
    #[track_caller]
    pub fn wait_for(&mut self, part: &str) -> Instant {
        let deadline = Instant::now() + DEADLINE;
        let known = self.seen.iter().find(|(_, line, _)| line.contains(part));
        if let Some((_, _, at)) = known {
            return *at;
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok((from, line)) => {
                    let now = Instant::now();
                    let found = line.contains(part);
                    self.seen.push((from, line, now));
                    if found {
                        return now;
                    }
                }
                Err(_) => panic!("no {part:?} in {:#?}", self.seen),
            }
        }
    }

    /// Waits for the end; stdin stays as it is.
    #[track_caller]
    pub fn ended(&mut self) -> Ended {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("does not end: {:#?}", self.seen);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        while let Ok((from, line)) = self.lines.recv_timeout(DEADLINE) {
            self.seen.push((from, line, Instant::now()));
        }
        let text = |which: From| {
            let lines = self.seen.iter().filter(|(from, _, _)| *from == which);
            lines.map(|(_, line, _)| format!("{line}\n")).collect()
        };
        Ended {
            status,
            out: text(From::Out),
            err: text(From::Err),
        }
    }

    /// Sends these lines, closes stdin and waits for the end.
    #[track_caller]
    pub fn script(mut self, lines: &str) -> Ended {
        self.send(lines);
        self.close_stdin();
        self.ended()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
