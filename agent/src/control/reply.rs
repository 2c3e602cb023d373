//! The answers: what came of a request, in the words of the protocol.

#![forbid(unsafe_code)]

use super::connection::Connection;
use super::extension::{self, Capture, Hello, Holder, LastFailure, Origin, Outcome, Reply};
use super::wire::{Message, kind, status};
use crate::capture::{self, Failure, StartError, Started, Status, StopError, Stopped};
use crate::process::peer::Peer;
use std::path::PathBuf;

/// An 8-byte reply, in one send.
pub fn answer(connection: &mut Connection, kind: u32, status: u32) {
    let _ = connection.send(&Message { kind, status }.encode());
}

/// The params reply of an agent that speaks frames, and its hello, in one send.
pub fn greet(connection: &mut Connection, hello: &Hello) {
    let reply = Message {
        kind: kind::PARAMS_REPLY,
        status: status::EXTENDED,
    };
    let mut bytes = reply.encode().to_vec();
    let frame = extension::encode_frame(0, hello).or_else(|_| {
        // Only an account can be that large.
        let mut hello = hello.clone();
        hello.status = None;
        extension::encode_frame(0, &hello)
    });
    bytes.extend(frame.into_iter().flatten());
    let _ = connection.send(&bytes);
}

/// The capture that runs, in the words of the protocol.
pub fn capture(current: capture::Current) -> Capture {
    let holder = |Peer { uid, pid }| Holder { uid, pid };
    let (origin, by) = match current.origin {
        capture::Origin::Client(peer) => (Origin::Client, Some(holder(peer))),
        capture::Origin::Detached(peer) => (Origin::Detached, Some(holder(peer))),
        capture::Origin::Program => (Origin::Program, None),
    };
    let ends_in = current.ends_at.map(|at| at.remaining().as_millis());
    Capture {
        path: current.path.to_string_lossy().into_owned(),
        origin,
        by,
        since_unix_ns: current.start.realtime_ns,
        ends_in_ms: ends_in.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
        failed: current.failed.map(|failure| failure.reason),
    }
}

/// Directory of the last capture and why it failed, in the words of the protocol.
pub fn last_failure((path, failure): (PathBuf, Failure)) -> LastFailure {
    LastFailure {
        path: path.to_string_lossy().into_owned(),
        error: failure.reason,
        since_unix_ns: failure.since_unix_ns,
    }
}

/// A request that failed.
pub fn failure(error: String) -> Reply {
    Reply {
        outcome: Some(Outcome::Failed),
        error: Some(error),
        ..Reply::default()
    }
}

/// What came of a start.
pub fn start_reply(result: Result<Started, StartError>) -> Reply {
    match result {
        Ok(started) => Reply {
            outcome: Some(Outcome::Success),
            notes: started.notes,
            path: Some(started.path.to_string_lossy().into_owned()),
            started_ns: Some(started.started_ns),
            rescue: started.handout.map(|handout| handout.capture),
            capturing: true,
            ..Reply::default()
        },
        Err(error) => Reply {
            outcome: Some(match error {
                StartError::AlreadyStarted => Outcome::AlreadyStarted,
                StartError::NoDevice => Outcome::NoDevice,
                _ => Outcome::Failed,
            }),
            error: Some(error.to_string()),
            ..Reply::default()
        },
    }
}

/// What came of a stop.
pub fn stop_reply(result: Result<Box<Stopped>, StopError>) -> Reply {
    match result {
        Ok(stopped) => Reply {
            outcome: Some(match stopped.error {
                None => Outcome::Success,
                Some(_) => Outcome::Failed,
            }),
            error: stopped.error.map(|failure| failure.reason),
            path: Some(stopped.path.to_string_lossy().into_owned()),
            ledger: Some(stopped.ledger),
            ..Reply::default()
        },
        // The capture has ended, which is what was asked for; a stock client that is told of a failure
        // gives up its session.
        Err(error @ StopError::StillWriting { .. }) => Reply {
            outcome: Some(Outcome::Success),
            path: error.path(),
            notes: vec![error.to_string()],
            ..Reply::default()
        },
        Err(error) => Reply {
            outcome: Some(match error {
                StopError::NotStarted => Outcome::NotStarted,
                _ => Outcome::Failed,
            }),
            error: Some(error.to_string()),
            ..Reply::default()
        },
    }
}

/// The state of the captures and their account.
pub fn status_reply(status: Status) -> Reply {
    let mut notes = Vec::new();
    if status.writing {
        notes.push("the last capture is still being written".to_owned());
    }
    Reply {
        outcome: Some(Outcome::Success),
        notes,
        path: status.path.map(|path| path.to_string_lossy().into_owned()),
        capturing: status.capturing,
        disabled: status.disabled,
        ledger: status.ledger,
        ..Reply::default()
    }
}
