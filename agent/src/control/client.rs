//! A connected client as the server sees it: its connection and what it is there for.

#![forbid(unsafe_code)]

use super::connection::Connection;
use super::session::Session;
use crate::clock::Moment;
use rustix::event::PollFlags;
use std::time::Duration;

/// A client that says nothing is dropped after this.
pub const PARAMS_LIMIT: Duration = Duration::from_secs(5);
/// A stock client that is turned away is left without an answer for this long, then closed: it waits
/// 1 s and then tells its user that the process belongs to another client.
pub const SILENCE: Duration = Duration::from_millis(1200);

/// What a connection is there for.
#[derive(Debug)]
pub enum Phase {
    /// Its params are awaited.
    Params {
        /// When it came.
        since: Moment,
    },
    /// A stock client that is turned away: closed after a while, without an answer.
    Silence {
        /// When its params were read.
        since: Moment,
    },
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
    pub fn deadline(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Params { since } => Some(*since + PARAMS_LIMIT),
            Phase::Silence { since } => Some(*since + SILENCE),
            Phase::Session(session) => session.deadline(),
            Phase::Closing => self.connection.closing_until(),
        }
    }

    /// Since when another client may have its place, if there is no other place.
    pub fn replaceable_since(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Params { since } | Phase::Silence { since } => Some(*since),
            Phase::Closing => self.connection.closing_since(),
            Phase::Session(session) => session.expired_since(),
        }
    }

    /// The last word was said.
    pub fn close(&mut self, now: Moment) {
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
