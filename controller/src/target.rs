//! One thread for each process: it holds the session, carries out commands and notices the end.

use crate::left::Left;
use crate::locate::{self, Attached, Whom};
use crate::session::{Session, SessionError, Timeouts};
use msprof_agent_core::control::extension::{
    Capture as Running, Detach, Op, Outcome, Reply, Request, feature,
};
use msprof_agent_core::rescue::Lifeline;
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
    Unreachable(Refusal),
    /// A command is still being carried out; bytes to be written.
    Progress(u64),
    /// A command has ended.
    Done(Op, Result<Box<Reply>, SessionError>),
    /// The session is over while a capture of ours ran; how it ended is told next.
    Left(Box<Left>),
    /// The session is over without a command; the thread ends.
    Gone(SessionError),
}

/// Why a process cannot be commanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A short word for it that stays the same.
    pub code: &'static str,
    /// One line.
    pub text: String,
}

/// What is known of a process when its session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Whether it is our agent; else a stock server.
    pub extended: bool,
    /// Why our agent has turned itself off, if it has.
    pub disabled: Option<String>,
    /// The version of our agent, if it is of another release than we are.
    pub other_version: Option<String>,
    /// Whether a capture can go on without the session that starts it.
    pub detaches: bool,
    /// A capture that runs already: the session of whoever started it is over, or it is the program's own.
    pub running: Option<Running>,
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
    commands: Sender<Request>,
}

impl Target {
    /// Starts the thread for a process that is to be found and connected to.
    pub fn attach(
        pid: u32,
        whom: Whom,
        params: Arc<str>,
        report: Report,
    ) -> std::io::Result<Target> {
        Target::spawn(pid, params, report, move || {
            locate::attach(pid, whom).map_err(|error| Refusal {
                code: error.code(),
                text: error.to_string(),
            })
        })
    }

    /// Starts the thread for a process that is connected to already.
    pub fn adopt(attached: Attached, params: Arc<str>, report: Report) -> std::io::Result<Target> {
        let pid = attached.process.pid;
        Target::spawn(pid, params, report, move || Ok(attached))
    }

    fn spawn(
        pid: u32,
        params: Arc<str>,
        report: Report,
        attach: impl FnOnce() -> Result<Attached, Refusal> + Send + 'static,
    ) -> std::io::Result<Target> {
        let (commands, received) = channel();
        let thread = std::thread::Builder::new().name(format!("target-{pid}"));
        thread.spawn(
            move || match attach().and_then(|attached| begin(attached, &params)) {
                Ok(session) => serve(pid, session, &params, &received, &report),
                Err(error) => report(pid, TargetEvent::Unreachable(error)),
            },
        )?;
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
        self.request(op.into());
    }

    /// The same for a start of a capture that is to go on without us.
    pub fn start_detached(&mut self, detach: Detach) {
        self.request(Request {
            op: Op::Start,
            detach: Some(detach),
        });
    }

    fn request(&mut self, request: Request) {
        // A thread that has ended has said why in an event that is on its way.
        if self.commands.send(request).is_ok() {
            self.pending.push(request.op);
        }
    }
}

fn begin(attached: Attached, params: &str) -> Result<Session, Refusal> {
    let begun = Session::begin(attached, params, Timeouts::default());
    begun.map_err(|error| Refusal {
        code: error.code(),
        text: error.to_string(),
    })
}

fn serve(
    pid: u32,
    mut session: Session,
    params: &str,
    commands: &Receiver<Request>,
    report: &Report,
) {
    let hello = session.hello();
    report(
        pid,
        TargetEvent::Ready(Ready {
            extended: hello.is_some(),
            disabled: hello.and_then(|hello| hello.disabled.clone()),
            other_version: session.other_version().map(str::to_owned),
            detaches: hello.is_some_and(|hello| hello.has(feature::DETACH)),
            running: hello.and_then(|hello| hello.capture.clone()),
        }),
    );
    let mut capture: Option<Capture> = None;
    let tell_left = |session: &Session, capture: Option<Capture>| {
        if let Some(Capture { path, lifeline }) = capture {
            let mut left = Left::read(path, || session.lives());
            if let Some(lifeline) = lifeline.filter(|_| !left.has_stopped() && !session.lives()) {
                left.rescue(lifeline, session);
            }
            report(pid, TargetEvent::Left(Box::new(left)));
        }
    };
    loop {
        match commands.recv_timeout(IDLE_CHECK) {
            Ok(request) => {
                let op = request.op;
                let mut progress = |left| report(pid, TargetEvent::Progress(left));
                let mut result = session.request(request, &mut progress);
                if let (None, Err(SessionError::Idle(why))) = (&capture, &result) {
                    result = ask_again(&mut session, params, why, request, &mut progress);
                }
                if let (Op::Stop, Ok(reply), Some(capture)) = (op, &mut result, &capture) {
                    ended_before(reply, &capture.path);
                }
                let over = match &result {
                    Ok(reply) => {
                        match (op, reply.outcome) {
                            // It is nobody's to look after.
                            (Op::Start, _) if request.detach.is_some() => {}
                            (Op::Start, Some(Outcome::Success)) => {
                                let lifeline = session.take_lifeline();
                                let path = reply.path.clone();
                                capture = path.map(|path| Capture { path, lifeline });
                            }
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

/// Begins a new session in the place of one that was ended for having been idle, and gives the command there.
fn ask_again(
    session: &mut Session,
    params: &str,
    why: &str,
    request: Request,
    progress: &mut dyn FnMut(u64),
) -> Result<Reply, SessionError> {
    *session = session
        .renewed(params)
        .map_err(|error| SessionError::NotRenewed {
            why: why.to_owned(),
            error,
        })?;
    let mut reply = session.request(request, progress)?;
    reply.notes.push(format!(
        "the process had ended the session ({}); this is a new one",
        why.split(';').next().unwrap_or(why)
    ));
    Ok(reply)
}

/// A capture that runs.
struct Capture {
    /// Its directory.
    path: String,
    /// For the case that its process is killed.
    lifeline: Option<Lifeline>,
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
