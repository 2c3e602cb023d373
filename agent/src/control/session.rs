//! What a client may ask, in both languages: 8-byte commands and frames.
//!
//! A session takes requests off its connection one at a time: while a start or stop is under way only
//! `status` is answered. It knows nothing of other clients.

#![forbid(unsafe_code)]

use super::connection::Connection;
use super::extension::{
    self, Capture, Detach, Frame, Hello, LastFailure, Op, Outcome, Reply, Request,
};
use super::operation::Event;
use super::reply::{answer, failure, greet, start_reply, status_reply, stop_reply};
use super::wire::{self, MESSAGE_SIZE, Message, kind, status};
use crate::capture::{StartError, Status};
use crate::clock::Moment;
use crate::params::Params;
use std::time::Duration;

/// A message that was begun has to be complete within this.
const MESSAGE_LIMIT: Duration = Duration::from_secs(5);

/// What the server is to do next for a session.
#[derive(Debug)]
pub enum Demand {
    /// Nothing: wait for more bytes.
    None,
    /// Start a capture, which may go on without the client.
    Start(Option<Detach>),
    /// Stop the capture.
    Stop,
    /// End the session after the last answer; a capture of this client is finished.
    End,
}

/// What a session needs to know of the process to answer.
pub struct Facts<'a> {
    /// State of the captures, with the whole account: for an answer that tells it.
    pub status: &'a dyn Fn() -> Status,
    /// Whether a capture runs.
    pub capturing: &'a dyn Fn() -> bool,
    /// Whether a client's own capture runs, which ends with its session.
    pub clients_capture: &'a dyn Fn() -> bool,
    /// Open devices.
    pub devices: &'a dyn Fn() -> Vec<u32>,
    /// The capture that runs, for who asks or is in its way.
    pub capture: &'a dyn Fn() -> Option<Capture>,
    /// Why the last capture failed, if it did and none has begun since.
    pub last_failure: &'a dyn Fn() -> Option<LastFailure>,
}

/// Why a session ends although its client did not ask for it.
struct End {
    reason: String,
    /// The limit, where the client was idle for as long as that.
    idle: Option<Duration>,
}

/// A request that waits for its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    id: u32,
    op: Op,
    /// Of a start.
    detach: Option<Detach>,
}

impl Pending {
    fn new(id: u32, Request { op, detach }: Request) -> Pending {
        Pending { id, op, detach }
    }
}

/// The client that may give commands.
#[derive(Debug)]
pub struct Session {
    /// Tells sessions apart.
    pub number: u64,
    /// Options of its captures.
    pub params: Params,
    extended: bool,
    pending: Option<Pending>,
    commands: u32,
    max_commands: u32,
    idle_limit: Duration,
    idle_since: Moment,
    partial_since: Option<Moment>,
}

impl Session {
    /// A session whose params were taken; says so to the client.
    pub fn open(
        number: u64,
        params: Params,
        limits: (u32, Duration),
        connection: &mut Connection,
        hello: &Hello,
    ) -> Session {
        let extended = params.announcement().is_some();
        if extended {
            greet(connection, hello);
        } else {
            answer(connection, kind::PARAMS_REPLY, status::SUCCESS);
        }
        Session {
            number,
            params,
            extended,
            pending: None,
            commands: 0,
            max_commands: limits.0,
            idle_limit: limits.1,
            idle_since: Moment::now(),
            partial_since: None,
        }
    }

    /// Whether a start or stop is under way.
    pub fn is_busy(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether the client has done nothing for so long that another one may have its place.
    pub fn is_expired(&self) -> bool {
        self.expired_since().is_some()
    }

    /// Since when another client may have its place.
    pub fn expired_since(&self) -> Option<Moment> {
        let expired = self.pending.is_none() && self.is_idle();
        expired.then(|| self.idle_since + self.idle_limit)
    }

    /// A limit of 0 is none.
    fn is_idle(&self) -> bool {
        !self.idle_limit.is_zero() && self.idle_since.elapsed() >= self.idle_limit
    }

    /// The client gave a command, or something came of one: idle time counts from here.
    fn touch(&mut self) {
        self.idle_since = Moment::now();
    }

    /// When a half message has waited too long.
    pub fn deadline(&self) -> Option<Moment> {
        self.partial_since.map(|since| since + MESSAGE_LIMIT)
    }

    /// Takes the next request off the input.
    pub fn next(&mut self, connection: &mut Connection, facts: &Facts<'_>) -> Demand {
        let demand = if self.extended {
            self.next_frame(connection, facts)
        } else {
            self.next_message(connection, facts)
        };
        let partial = !connection.input().is_empty() && self.pending.is_none();
        if !partial {
            self.partial_since = None;
        } else if self.partial_since.is_none() {
            self.partial_since = Some(Moment::now());
        }
        demand
    }

    fn next_message(&mut self, connection: &mut Connection, facts: &Facts<'_>) -> Demand {
        if self.pending.is_some() {
            return Demand::None;
        }
        let Some(bytes) = connection.input().first_chunk::<MESSAGE_SIZE>() else {
            return Demand::None;
        };
        let request = Message::decode(bytes);
        connection.take(MESSAGE_SIZE);
        let op = match request.kind {
            kind::START => Op::Start,
            kind::STOP => Op::Stop,
            kind::QUIT => Op::Quit,
            unknown => {
                tracing::warn!("a client sent a message of unknown type {unknown}");
                if let Some(reply) = wire::reply_kind(unknown) {
                    answer(connection, reply, status::FAILED);
                }
                return Demand::End;
            }
        };
        self.request(connection, Pending::new(0, op.into()), facts)
    }

    fn next_frame(&mut self, connection: &mut Connection, facts: &Facts<'_>) -> Demand {
        let (id, size, request) = match extension::decode_frame(connection.input()) {
            Ok(None) => return Demand::None,
            Ok(Some(Frame { id, body, size })) => {
                (id, size, extension::parse_body::<Request>(body))
            }
            Err(error) => {
                self.reply(connection, 0, failure(error.to_string()));
                return Demand::End;
            }
        };
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                connection.take(size);
                self.reply(connection, id, failure(error.to_string()));
                return Demand::End;
            }
        };
        if self.pending.is_some() && request.op != Op::Status {
            return Demand::None;
        }
        connection.take(size);
        self.request(connection, Pending::new(id, request), facts)
    }

    fn request(
        &mut self,
        connection: &mut Connection,
        pending: Pending,
        facts: &Facts<'_>,
    ) -> Demand {
        if pending.op == Op::Status {
            let reply = Reply {
                devices: (facts.devices)(),
                capture: (facts.capture)(),
                last_failure: (facts.last_failure)(),
                ..status_reply((facts.status)())
            };
            self.reply(connection, pending.id, reply);
            return Demand::None;
        }
        if pending.op == Op::Unknown {
            let text = "this agent does not know that operation; it is of another version";
            self.reply(connection, pending.id, failure(text.to_owned()));
            return Demand::None;
        }
        let capturing = (facts.capturing)();
        if let Some(end) = self.over_limit(pending.op, capturing) {
            tracing::info!("session ends: {}", end.reason);
            self.end(connection, pending.id, end);
            return Demand::End;
        }
        self.commands = self.commands.saturating_add(1);
        self.touch();
        match pending.op {
            Op::Start => {
                self.pending = Some(pending);
                Demand::Start(pending.detach)
            }
            Op::Stop => {
                self.pending = Some(pending);
                Demand::Stop
            }
            // A capture that the program itself started goes on, and one that was let go.
            _ if (facts.clients_capture)() => {
                self.pending = Some(pending);
                Demand::Stop
            }
            _ => self.say_goodbye(connection, pending.id, Reply::default()),
        }
    }

    /// Answers the first command of a client that was idle for so long that another one has its place.
    pub fn next_after_expiry(&self, connection: &mut Connection) -> Demand {
        if connection.input().is_empty() {
            return Demand::None;
        }
        let end = End {
            reason: "this session was idle and another client has its place".to_owned(),
            idle: Some(self.idle_limit),
        };
        self.end(connection, 0, end);
        Demand::End
    }

    fn over_limit(&self, op: Op, capturing: bool) -> Option<End> {
        if op == Op::Quit {
            return None;
        }
        if self.max_commands != 0 && self.commands >= self.max_commands {
            let reason = format!(
                "{} commands were given on this connection; attach again \
                 (MSPROF_AGENT_MAX_COMMANDS of the program sets the limit)",
                self.max_commands
            );
            return Some(End { reason, idle: None });
        }
        if !capturing && self.is_idle() {
            let reason = format!(
                "nothing was captured for {} s; attach again \
                 (MSPROF_AGENT_IDLE_TIMEOUT of the program sets the limit)",
                self.idle_limit.as_secs()
            );
            let idle = Some(self.idle_limit);
            return Some(End { reason, idle });
        }
        None
    }

    /// Passes on what came of an operation.
    pub fn event(
        &mut self,
        connection: &mut Connection,
        event: Event,
        facts: &Facts<'_>,
    ) -> Demand {
        self.touch();
        let Some(pending) = self.pending else {
            return Demand::None;
        };
        match event {
            Event::Progress(remaining) => {
                if self.extended {
                    let reply = Reply {
                        outcome: Some(Outcome::Progress),
                        progress: Some(remaining),
                        ..Reply::default()
                    };
                    self.reply(connection, pending.id, reply);
                }
                Demand::None
            }
            Event::Started(result) => {
                self.pending = None;
                if let Ok(started) = &result
                    && let Some(handout) = &started.handout
                {
                    connection.attach(handout.clone());
                }
                let mut reply = start_reply(result);
                reply.devices = (facts.devices)();
                if reply.outcome == Some(Outcome::AlreadyStarted) {
                    reply.capture = (facts.capture)();
                }
                self.reply_to(connection, pending, reply);
                Demand::None
            }
            Event::Stopped(result) => {
                self.pending = None;
                let reply = stop_reply(result);
                if pending.op == Op::Quit {
                    return self.say_goodbye(connection, pending.id, reply);
                }
                self.reply_to(connection, pending, reply);
                Demand::None
            }
        }
    }

    /// No thread could be had for an operation.
    pub fn operation_failed(&mut self, connection: &mut Connection, error: &std::io::Error) {
        if let Some(pending) = self.pending.take() {
            let text = StartError::Thread(std::io::Error::from(error.kind())).to_string();
            self.reply_to(connection, pending, failure(text));
        }
    }

    /// Tells the client, unasked or as an answer, that the session is over.
    pub fn disconnect(&self, connection: &mut Connection, id: u32, reason: &str) {
        let reason = reason.to_owned();
        self.end(connection, id, End { reason, idle: None });
    }

    fn end(&self, connection: &mut Connection, id: u32, end: End) {
        if self.extended {
            let reply = Reply {
                outcome: Some(Outcome::Disconnected),
                error: Some(end.reason),
                idle_seconds: end.idle.map(|idle| idle.as_secs()),
                ..Reply::default()
            };
            self.reply(connection, id, reply);
        } else {
            answer(connection, kind::DISCONNECT, status::SUCCESS);
        }
    }

    fn say_goodbye(&self, connection: &mut Connection, id: u32, mut reply: Reply) -> Demand {
        if self.extended {
            if reply.outcome.is_none_or(|o| o == Outcome::NotStarted) {
                reply.outcome = Some(Outcome::Success);
                reply.error = None;
            }
            self.reply(connection, id, reply);
        } else {
            answer(connection, kind::QUIT_REPLY, status::SUCCESS);
        }
        Demand::End
    }

    fn reply_to(&self, connection: &mut Connection, pending: Pending, reply: Reply) {
        if self.extended {
            self.reply(connection, pending.id, reply);
            return;
        }
        let code = match reply.outcome {
            Some(Outcome::Success) => status::SUCCESS,
            Some(Outcome::AlreadyStarted) => status::ALREADY_STARTED,
            Some(Outcome::NoDevice) => status::NO_DEVICE,
            Some(Outcome::NotStarted) => status::NOT_STARTED,
            _ => status::FAILED,
        };
        let kind = match pending.op {
            Op::Start => kind::START_REPLY,
            Op::Stop => kind::STOP_REPLY,
            _ => kind::QUIT_REPLY,
        };
        if let Some(error) = &reply.error {
            // A stock client has no way to show it.
            tracing::warn!("{error}");
        }
        answer(connection, kind, code);
    }

    fn reply(&self, connection: &mut Connection, id: u32, mut reply: Reply) {
        let bytes = extension::encode_frame(id, &reply).or_else(|_| {
            // Only a ledger can be that large; its sums are what counts.
            if let Some(ledger) = &mut reply.ledger {
                ledger.threads.clear();
                ledger.notes.truncate(1);
            }
            extension::encode_frame(id, &reply)
        });
        match bytes {
            Ok(bytes) => {
                let _ = connection.send(&bytes);
            }
            Err(error) => tracing::error!("a reply could not be sent: {error}"),
        }
    }
}
