//! The conversation with one process, in either dialect (spec 1 sections 1.2 and 1.5).
//!
//! A stock server answers 8-byte messages in order; our agent answers frames with request ids. Both
//! give a [`Reply`]. Invariant: a reply that came too late is never taken for the next one's.

mod dismiss;
mod error;

pub use dismiss::dismiss;
pub use error::SessionError;

use crate::conn::{Arrived, Connection};
use crate::locate::Attached;
use crate::process::Process;
use msprof_agent_core::control::extension::{self, Hello, Op, Outcome, Reply, Request};
use msprof_agent_core::control::wire::{self, Message, kind, status};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// How often a wait looks whether the process still lives: a forked child can keep a connection
/// open, so that its end alone does not tell.
const LIFE_CHECK: Duration = Duration::from_millis(250);
/// After the connection has ended, how long the process is given to end as well before it counts as
/// alive.
const END_GRACE: Duration = Duration::from_millis(300);

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
    dialect: Dialect,
    timeouts: Timeouts,
    capturing: bool,
    hello: Option<Hello>,
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
            dialect: Dialect::Stock {
                owed: VecDeque::new(),
            },
            timeouts,
            capturing: false,
            hello: None,
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

    /// What our agent said of itself; `None` for a stock server.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Whether the process lives.
    pub fn lives(&self) -> bool {
        self.process.lives()
    }

    /// Asks for something and waits for the final reply; `progress` gets the bytes still to be
    /// written.
    pub fn request(
        &mut self,
        op: Op,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Reply, SessionError> {
        let reply = match self.dialect {
            Dialect::Stock { .. } => self.request_stock(op),
            Dialect::Extended { .. } => self.request_extended(op, progress),
        }?;
        match (op, reply.outcome) {
            (Op::Start, Some(Outcome::Success | Outcome::AlreadyStarted)) => self.capturing = true,
            (Op::Stop, Some(Outcome::Success | Outcome::NotStarted)) => self.capturing = false,
            (Op::Status, Some(Outcome::Success)) => self.capturing = reply.capturing,
            _ => {}
        }
        if reply.outcome == Some(Outcome::Disconnected) {
            return Err(SessionError::Disconnected(reply.error));
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
        op: Op,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Reply, SessionError> {
        let Dialect::Extended { next_id } = &mut self.dialect else {
            return Err(SessionError::Failed);
        };
        let id = *next_id;
        // Id 0 is the hello's.
        *next_id = next_id.checked_add(1).unwrap_or(1);
        let mut deadline = Instant::now() + self.timeouts.reply;
        self.send(&extension::encode_frame(id, &Request { op })?, deadline)?;
        loop {
            let (reply_id, body) = self.next_frame(deadline)?;
            let reply: Reply = extension::parse_body(&body)?;
            if reply_id != id {
                if reply.outcome == Some(Outcome::Disconnected) {
                    return Err(SessionError::Disconnected(reply.error));
                }
                // The reply to a request that was given up.
                continue;
            }
            if reply.outcome != Some(Outcome::Progress) {
                return Ok(reply);
            }
            deadline = Instant::now() + self.timeouts.reply;
            progress(reply.progress.unwrap_or(0));
        }
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
                    if reply.outcome == Some(Outcome::Disconnected) {
                        return Err(SessionError::Disconnected(reply.error));
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

#[cfg(test)]
mod tests;
