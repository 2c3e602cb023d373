//! One thread for each process: it holds the session, carries out commands and notices the end.

use crate::left::Left;
use crate::locate::{self, Attached};
use crate::session::{Session, SessionError, Timeouts};
use msprof_agent_core::control::extension::{Op, Outcome, Reply};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often an idle session is looked at; the end of a process is known within this time.
const IDLE_CHECK: Duration = Duration::from_millis(250);

/// What a target's thread tells.
#[derive(Debug)]
pub enum TargetEvent {
    /// The session has begun.
    Ready(Ready),
    /// The session could not begin; the thread ends.
    Unreachable(String),
    /// A command is still being carried out; bytes to be written.
    Progress(u64),
    /// A command has ended.
    Done(Op, Result<Box<Reply>, SessionError>),
    /// The session is over while a capture of ours ran; how it ended is told next.
    Left(Box<Left>),
    /// The session is over without a command; the thread ends.
    Gone(SessionError),
}

/// What is known of a process when its session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Whether it is our agent; else a stock server.
    pub extended: bool,
}

/// How events reach the main thread.
pub type Report = Arc<dyn Fn(u32, TargetEvent) + Send + Sync>;

/// What the main thread keeps of a target.
#[derive(Debug)]
pub struct Target {
    /// Process id, as the user knows it.
    pub pid: u32,
    /// Known once the session has begun.
    pub ready: Option<Ready>,
    /// Commands sent and not ended, oldest first.
    pub pending: Vec<Op>,
    /// Whether a capture runs, by what this controller has seen.
    pub capturing: bool,
    /// Bytes that the running command has still to write, where it says so.
    pub progress: Option<u64>,
    /// Notes that the last start gave.
    pub noted: Vec<String>,
    /// What a capture left that ended with the session.
    pub left: Option<Box<Left>>,
    commands: Sender<Op>,
}

impl Target {
    /// Starts the thread for a process that is to be found and connected to.
    pub fn attach(pid: u32, params: Arc<str>, report: Report) -> std::io::Result<Target> {
        Target::spawn(pid, report, move || {
            let attached = locate::attach(pid).map_err(|error| error.to_string())?;
            begin(attached, &params)
        })
    }

    /// Starts the thread for a process that is connected to already.
    pub fn adopt(attached: Attached, params: Arc<str>, report: Report) -> std::io::Result<Target> {
        let pid = attached.process.pid;
        Target::spawn(pid, report, move || begin(attached, &params))
    }

    fn spawn(
        pid: u32,
        report: Report,
        begin: impl FnOnce() -> Result<Session, String> + Send + 'static,
    ) -> std::io::Result<Target> {
        let (commands, received) = channel();
        let thread = std::thread::Builder::new().name(format!("target-{pid}"));
        thread.spawn(move || match begin() {
            Ok(session) => serve(pid, session, &received, &report),
            Err(error) => report(pid, TargetEvent::Unreachable(error)),
        })?;
        Ok(Target {
            pid,
            ready: None,
            pending: Vec::new(),
            capturing: false,
            progress: None,
            noted: Vec::new(),
            left: None,
            commands,
        })
    }

    /// Drops from a reply the notes that the reply to the start gave already.
    pub fn leave_out_known_notes(&mut self, op: Op, reply: &mut Reply) {
        if op == Op::Start {
            if reply.outcome == Some(Outcome::Success) {
                self.noted = reply.notes.clone();
            }
            return;
        }
        reply.notes.retain(|note| !self.noted.contains(note));
        if let Some(ledger) = &mut reply.ledger {
            ledger.notes.retain(|note| !self.noted.contains(note));
        }
    }

    /// Hands a command to the thread.
    pub fn send(&mut self, op: Op) {
        // A thread that has ended has said why in an event that is on its way.
        if self.commands.send(op).is_ok() {
            self.pending.push(op);
        }
    }
}

fn begin(attached: Attached, params: &str) -> Result<Session, String> {
    Session::begin(attached, params, Timeouts::default()).map_err(|error| error.to_string())
}

fn serve(pid: u32, mut session: Session, commands: &Receiver<Op>, report: &Report) {
    report(
        pid,
        TargetEvent::Ready(Ready {
            extended: session.hello().is_some(),
        }),
    );
    // The directory of the capture that runs.
    let mut capture: Option<String> = None;
    let tell_left = |session: &Session, capture: Option<String>| {
        if let Some(path) = capture {
            let left = Left::read(path, || session.lives());
            report(pid, TargetEvent::Left(Box::new(left)));
        }
    };
    loop {
        match commands.recv_timeout(IDLE_CHECK) {
            Ok(op) => {
                let mut progress = |left| report(pid, TargetEvent::Progress(left));
                let mut result = session.request(op, &mut progress);
                if let (Op::Stop, Ok(reply), Some(path)) = (op, &mut result, &capture) {
                    ended_before(reply, path);
                }
                let over = match &result {
                    Ok(reply) => {
                        match (op, reply.outcome) {
                            (Op::Start, Some(Outcome::Success)) => capture = reply.path.clone(),
                            (Op::Stop, Some(Outcome::Success)) => capture = None,
                            // A failure that tells of the capture is its end as well.
                            (Op::Stop, Some(Outcome::Failed)) if reply.ledger.is_some() => {
                                capture = None;
                            }
                            _ => {}
                        }
                        op == Op::Quit
                    }
                    Err(error) => {
                        if error.is_final() {
                            tell_left(&session, capture.take());
                        }
                        error.is_final()
                    }
                };
                report(pid, TargetEvent::Done(op, result.map(Box::new)));
                if over {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = session.check() {
                    tell_left(&session, capture.take());
                    return report(pid, TargetEvent::Gone(error));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// A capture that the process has ended before our stop came: its account is on disk.
fn ended_before(reply: &mut Reply, path: &str) {
    if reply.outcome != Some(Outcome::NotStarted) {
        return;
    }
    let left = Left::read(path.to_owned(), || true);
    if left.is_complete() {
        reply.outcome = Some(Outcome::Success);
        reply.path = Some(path.to_owned());
        reply.ledger = left.into_ledger();
    }
}
