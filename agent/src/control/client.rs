//! A connected client as the server sees it: its connection and what it is there for.

#![forbid(unsafe_code)]

use super::connection::Connection;
use super::session::Session;
use rustix::event::PollFlags;
use std::time::Instant;

/// What a connection is there for.
#[derive(Debug)]
pub enum Phase {
    /// Its params are awaited until then.
    Params(Instant),
    /// A stock client that is turned away: closed then, without an answer.
    Silence(Instant),
    /// Holds the session, or held it before it expired.
    Session(Box<Session>),
    /// The last word was said.
    Closing,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    /// Its bytes.
    pub connection: Connection,
    /// What it is there for.
    pub phase: Phase,
}

impl Client {
    /// What poll is to watch for.
    pub fn wanted(&self) -> PollFlags {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, self.connection.wants_to_write());
        flags
    }

    /// When something has to be done about it although nothing came.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Params(until) | Phase::Silence(until) => Some(*until),
            Phase::Session(session) => session.deadline(),
            Phase::Closing => self.connection.closing_until(),
        }
    }

    /// The last word was said.
    pub fn close(&mut self, now: Instant) {
        self.connection.begin_closing(now);
        self.phase = Phase::Closing;
    }

    /// Its session, if it has one.
    pub fn session(&self) -> Option<&Session> {
        match &self.phase {
            Phase::Session(session) => Some(session),
            _ => None,
        }
    }
}
