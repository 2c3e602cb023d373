//! The conversation with one process, in either dialect (spec 1 sections 1.2 and 1.5).
//!
//! A stock server answers 8-byte messages in order; our agent answers frames with request ids. Both
//! give a [`Reply`]. Invariant: a reply that came too late is never taken for the next one's.

mod ask;
mod dismiss;
mod error;

pub use ask::ask;
pub use dismiss::dismiss;
pub use error::SessionError;

use crate::conn::{Arrived, Connection};
use crate::locate::{self, Attached};
use crate::process::Process;
use msprof_agent_core::VERSION;
use msprof_agent_core::control::extension::{self, Hello, Op, Outcome, Reply, Request};
use msprof_agent_core::control::wire::{self, Message, kind, status};
use msprof_agent_core::process::effective_uid;
use msprof_agent_core::rescue::Lifeline;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often a wait looks whether the process still lives: a forked child can keep a connection
/// open, so that its end alone does not tell.
const LIFE_CHECK: Duration = Duration::from_millis(250);
/// After the connection has ended, how long the process is given to end as well before it counts as
/// alive.
const END_GRACE: Duration = Duration::from_millis(300);

/// How long a process that is ending is given to end with all its threads; one that dumps its core first takes
/// its time, but closes its connection only then.
const WHOLE_END: Duration = Duration::from_secs(10);
/// After a quit a stock server sends three replies in all; closing before it has sent them could
/// kill it with SIGPIPE.
const QUIT_REPLIES: usize = 3;
/// Why a stock server ends a session, as far as is known.
const STOCK_LIMITS: &str =
    "a stock process takes 100 commands and waits 30 minutes in all; begin a new session";
/// How long the rest of those replies is waited for.
const QUIT_LINGER: Duration = Duration::from_millis(500);

/// How long is waited for what.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The answer to the params.
    pub hello: Duration,
    /// A reply, counted from the request or from the last sign of progress.
    pub reply: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            hello: Duration::from_secs(5),
            // An agent answers a stop within 55 s, whatever happens.
            reply: Duration::from_secs(60),
        }
    }
}

/// Which dialect is spoken.
#[derive(Debug)]
enum Dialect {
    /// 8-byte messages; the reply types that were given up waiting for, in the order asked.
    Stock { owed: VecDeque<u32> },
    /// Frames; the next request id.
    Extended { next_id: u32 },
}

/// An open session with one process.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    process: Process,
    /// Where the process listens, as seen from here.
    socket: PathBuf,
    dialect: Dialect,
    timeouts: Timeouts,
    capturing: bool,
    hello: Option<Hello>,
    /// Came with the reply to the last start.
    lifeline: Option<Lifeline>,
}

impl Session {
    /// Sends the params and waits for the answer.
    pub fn begin(
        attached: Attached,
        params: &str,
        timeouts: Timeouts,
    ) -> Result<Session, SessionError> {
        let Attached {
            mut connection,
            process,
            socket,
        } = attached;
        let bytes = wire::encode_params(params)
            .map_err(|error| SessionError::Refused(error.to_string()))?;
        let deadline = Instant::now() + timeouts.hello;
        let no_hello = |error| match error {
            SessionError::Ended if process.lives() => SessionError::ClosedAtOnce,
            SessionError::Disconnected(None) => SessionError::ClosedAtOnce,
            SessionError::NoReply(_) => SessionError::NoHello(timeouts.hello),
            error => error,
        };
        match connection.send(bytes.as_slice(), deadline) {
            // What was said before the close may explain it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
        let mut session = Session {
            connection,
            process: process.clone(),
            socket,
            dialect: Dialect::Stock {
                owed: VecDeque::new(),
            },
            timeouts,
            capturing: false,
            hello: None,
            lifeline: None,
        };
        let answer = session.next_message(deadline).map_err(no_hello)?;
        match (answer.kind, answer.status) {
            (kind::PARAMS_REPLY, status::SUCCESS) => {}
            (kind::PARAMS_REPLY, status::FAILED) => return Err(SessionError::Failed),
            (kind::PARAMS_REPLY, status::EXTENDED) => {
                session.dialect = Dialect::Extended { next_id: 1 };
                let (_, body) = session.next_frame(deadline).map_err(no_hello)?;
                let hello: Hello = extension::parse_body(&body)?;
                if let Some(holder) = hello.busy {
                    return Err(SessionError::Busy(holder));
                }
                if let Some(error) = hello.error {
                    return Err(SessionError::Refused(error));
                }
                session.hello = Some(hello);
            }
            (kind::DISCONNECT, _) => return Err(SessionError::Disconnected(None)),
            _ => return Err(SessionError::Unexpected(answer)),
        }
        Ok(session)
    }

    /// Begins a session with the same process anew.
    pub fn renewed(&self, params: &str) -> Result<Session, String> {
        let attached = locate::again(&self.socket, &self.process).map_err(|e| e.to_string())?;
        Session::begin(attached, params, self.timeouts).map_err(|error| error.to_string())
    }

    /// What our agent said of itself; `None` for a stock server.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// The version of an agent of another release than ours.
    pub fn other_version(&self) -> Option<&str> {
        let version = self
            .hello
            .as_ref()
            .map(|hello| hello.agent_version.as_str());
        version.filter(|version| *version != VERSION)
    }

    /// Whether the process lives.
    pub fn lives(&self) -> bool {
        self.process.lives()
    }

    /// What can be done for the capture that was started last, if its process is killed.
    pub fn take_lifeline(&mut self) -> Option<Lifeline> {
        self.lifeline.take()
    }

    /// Waits until the process has ended with all its threads; false if it has not in time.
    pub fn wait_ended(&self) -> bool {
        let deadline = Instant::now() + WHOLE_END;
        while !self.process.has_ended_wholly() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// The user whose files the process makes; `None` where it need not be looked at: whoever is not root can
    /// change no more than the process could, which one of root could as well.
    pub fn foreign_owner(&self) -> Option<u32> {
        let uid = self.process.euid;
        (effective_uid() == 0 && uid != 0).then_some(uid)
    }

    /// Asks for something and waits for the final reply; `progress` gets the bytes still to be
    /// written. Of a stock server a capture cannot be detached: it is not told.
    pub fn request(
        &mut self,
        request: impl Into<Request>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Reply, SessionError> {
        let request = request.into();
        let op = request.op;
        let reply = match self.dialect {
            Dialect::Stock { .. } => self.request_stock(op),
            Dialect::Extended { .. } => self.request_extended(request, progress),
        }?;
        match (op, reply.outcome) {
            (Op::Start, Some(Outcome::Success | Outcome::AlreadyStarted)) => self.capturing = true,
            (Op::Stop, Some(Outcome::Success | Outcome::NotStarted)) => self.capturing = false,
            (Op::Status, Some(Outcome::Success)) => self.capturing = reply.capturing,
            _ => {}
        }
        if reply.outcome == Some(Outcome::Disconnected) {
            return Err(over(reply));
        }
        Ok(reply)
    }

    fn request_stock(&mut self, op: Op) -> Result<Reply, SessionError> {
        let request = match op {
            Op::Start => kind::START,
            Op::Stop => kind::STOP,
            Op::Quit => kind::QUIT,
            // A stock server cannot be asked: what this session did is all there is to tell.
            Op::Status | Op::Unknown => {
                return Ok(Reply {
                    outcome: Some(Outcome::Success),
                    capturing: self.capturing,
                    ..Reply::default()
                });
            }
        };
        let expected = request + 1;
        let deadline = Instant::now() + self.timeouts.reply;
        let message = Message {
            kind: request,
            status: status::SUCCESS,
        };
        self.send(&message.encode(), deadline)?;
        loop {
            let message = match self.next_message(deadline) {
                Err(SessionError::NoReply(after)) => {
                    if let Dialect::Stock { owed } = &mut self.dialect {
                        owed.push_back(expected);
                    }
                    return Err(SessionError::NoReply(after));
                }
                other => other?,
            };
            if let Dialect::Stock { owed } = &mut self.dialect {
                if owed.front() == Some(&message.kind) {
                    owed.pop_front();
                    continue;
                }
                owed.clear();
            }
            // Replies to a quit are not of interest in detail: the session is over either way.
            if message.kind == kind::DISCONNECT && op != Op::Quit {
                return Err(SessionError::Disconnected(Some(STOCK_LIMITS.to_owned())));
            }
            if message.kind != expected && op != Op::Quit {
                return Err(SessionError::Unexpected(message));
            }
            if op == Op::Quit {
                self.hear_out();
            }
            let outcome = match message.status {
                status::SUCCESS => Outcome::Success,
                status::ALREADY_STARTED => Outcome::AlreadyStarted,
                status::NO_DEVICE => Outcome::NoDevice,
                status::NOT_STARTED => Outcome::NotStarted,
                _ => Outcome::Failed,
            };
            return Ok(Reply {
                outcome: Some(outcome),
                ..Reply::default()
            });
        }
    }

    /// Reads what a stock server still says after the first reply to a quit.
    fn hear_out(&mut self) {
        let deadline = Instant::now() + QUIT_LINGER;
        for _ in 1..QUIT_REPLIES {
            if self.next_message(deadline).is_err() {
                return;
            }
        }
    }

    fn request_extended(
        &mut self,
        request: Request,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Reply, SessionError> {
        let Dialect::Extended { next_id } = &mut self.dialect else {
            return Err(SessionError::Failed);
        };
        let id = *next_id;
        // Id 0 is the hello's.
        *next_id = next_id.checked_add(1).unwrap_or(1);
        let mut deadline = Instant::now() + self.timeouts.reply;
        self.send(&extension::encode_frame(id, &request)?, deadline)?;
        loop {
            let (reply_id, body) = self.next_frame(deadline)?;
            let reply: Reply = extension::parse_body(&body)?;
            let lifeline = self.take_lifeline_of(&reply);
            if reply_id != id {
                if reply.outcome == Some(Outcome::Disconnected) {
                    return Err(over(reply));
                }
                // The reply to a request that was given up.
                continue;
            }
            if reply.outcome != Some(Outcome::Progress) {
                self.lifeline = lifeline;
                return Ok(reply);
            }
            deadline = Instant::now() + self.timeouts.reply;
            progress(reply.progress.unwrap_or(0));
        }
    }

    /// Takes the descriptors that came along with a reply: while it is not taken, no later ones come.
    fn take_lifeline_of(&mut self, reply: &Reply) -> Option<Lifeline> {
        let capture = reply.rescue?;
        let descriptors = self.connection.take_descriptors();
        // The memory of another release may be laid out in another way, and what is read from it goes to files.
        if self.other_version().is_some() {
            return None;
        }
        Lifeline::new(descriptors, capture)
    }

    /// To be called while nothing is asked: learns of the end of the process or the session.
    pub fn check(&mut self) -> Result<(), SessionError> {
        let arrived = self.connection.receive(Instant::now())?;
        // Also what came along with an earlier reply.
        self.take_unasked()?;
        match arrived {
            Arrived::Bytes => Ok(()),
            Arrived::Nothing if self.process.lives() => Ok(()),
            Arrived::Nothing | Arrived::End => Err(self.ended()),
        }
    }

    /// Looks through what was sent without having been asked for.
    fn take_unasked(&mut self) -> Result<(), SessionError> {
        match &mut self.dialect {
            Dialect::Stock { owed } => {
                while let Some(message) = self.connection.take_message() {
                    if owed.front() == Some(&message.kind) {
                        owed.pop_front();
                    } else if message.kind == kind::DISCONNECT {
                        let reason = STOCK_LIMITS.to_owned();
                        return Err(SessionError::Disconnected(Some(reason)));
                    } else {
                        return Err(SessionError::Unexpected(message));
                    }
                }
            }
            Dialect::Extended { .. } => {
                while let Some((_, body)) = self.connection.take_frame()? {
                    let reply: Reply = extension::parse_body(&body)?;
                    // Of a start that was given up: its descriptors are not the next one's.
                    if reply.rescue.is_some() {
                        self.connection.take_descriptors();
                    }
                    if reply.outcome == Some(Outcome::Disconnected) {
                        return Err(over(reply));
                    }
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), SessionError> {
        match self.connection.send(bytes, deadline) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(SessionError::NoReply(self.timeouts.reply))
            }
            // What the other side said before it closed tells more than the broken pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => match self.check() {
                Ok(()) => Err(self.ended()),
                Err(said) => Err(said),
            },
            Err(error) => Err(error.into()),
        }
    }

    fn next_message(&mut self, deadline: Instant) -> Result<Message, SessionError> {
        loop {
            if let Some(message) = self.connection.take_message() {
                return Ok(message);
            }
            self.wait_for_bytes(deadline)?;
        }
    }

    fn next_frame(&mut self, deadline: Instant) -> Result<(u32, Vec<u8>), SessionError> {
        loop {
            if let Some(frame) = self.connection.take_frame()? {
                return Ok(frame);
            }
            self.wait_for_bytes(deadline)?;
        }
    }

    /// Waits until more has arrived; an error at the deadline and at the end of the process.
    fn wait_for_bytes(&mut self, deadline: Instant) -> Result<(), SessionError> {
        loop {
            let slice = (Instant::now() + LIFE_CHECK).min(deadline);
            match self.connection.receive(slice)? {
                Arrived::Bytes => return Ok(()),
                Arrived::End => return Err(self.ended()),
                Arrived::Nothing if !self.process.lives() => return Err(SessionError::Ended),
                Arrived::Nothing if Instant::now() >= deadline => {
                    return Err(SessionError::NoReply(self.timeouts.reply));
                }
                Arrived::Nothing => {}
            }
        }
    }

    /// Tells the end of the process from the end of the session alone.
    fn ended(&self) -> SessionError {
        let deadline = Instant::now() + END_GRACE;
        while Instant::now() < deadline {
            if !self.process.lives() {
                return SessionError::Ended;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        SessionError::Disconnected(None)
    }
}

/// An agent's word that the session is over.
fn over(reply: Reply) -> SessionError {
    match (reply.idle_seconds, reply.error) {
        (Some(seconds), why) => {
            SessionError::Idle(why.unwrap_or_else(|| format!("it was idle for {seconds} s")))
        }
        (None, why) => SessionError::Disconnected(why),
    }
}

#[cfg(test)]
mod tests;
