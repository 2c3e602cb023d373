//! What is to be told of captures: which one runs, what the last one came to. Never waits for the disk.

#![forbid(unsafe_code)]

use super::state::State;
use super::{Captures, Current, Failure, Origin, Status};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

impl Captures {
    /// Who started the running capture, if one runs, and its number.
    pub fn running(&self) -> Option<(Origin, u64)> {
        self.machine.with(|state| match state {
            State::Running(running) => Some((running.origin, running.number)),
            _ => None,
        })
    }

    /// What is to be told of the running capture.
    pub fn current(&self) -> Option<Current> {
        self.machine.with(|state| match state {
            State::Running(running) => Some(Current {
                number: running.number,
                path: running.path.clone(),
                origin: running.origin,
                start: running.start,
                ends_at: running.ends_at,
                failed: running.drain.failure(),
            }),
            _ => None,
        })
    }

    /// Directory of the last capture and why it failed, if it did and none has begun since.
    pub fn last_failure(&self) -> Option<(PathBuf, Failure)> {
        self.settle();
        let last = self.last.lock();
        let begun = self.count.load(Ordering::Relaxed);
        let last = last.as_ref().filter(|last| last.ledger.capture == begun)?;
        Some((last.path.clone(), last.error.clone()?))
    }

    /// Directory of the running capture.
    pub fn path(&self) -> Option<PathBuf> {
        self.machine.with(|state| match state {
            State::Running(running) => Some(running.path.clone()),
            _ => None,
        })
    }

    /// Whether a capture runs.
    pub fn is_capturing(&self) -> bool {
        self.running().is_some()
    }

    /// Why the agent has turned itself off, if it has.
    pub fn disabled(&self) -> Option<String> {
        self.parts.disabled.lock().clone()
    }

    /// What is going on; never waits for the disk.
    pub fn status(&self) -> Status {
        self.settle();
        let mut status = Status {
            captures: self.count.load(Ordering::Relaxed),
            disabled: self.disabled(),
            ..Status::default()
        };
        self.machine.with(|state| match state {
            State::Running(running) => {
                status.capturing = true;
                status.path = Some(running.path.clone());
                status.ledger = Some(running.drain.snapshot());
            }
            State::Writing { path, .. } => {
                status.writing = true;
                status.path = Some(path.clone());
            }
            State::Stopping => status.writing = true,
            _ => {}
        });
        if status.path.is_none()
            && let Some(last) = &*self.last.lock()
        {
            status.path = Some(last.path.clone());
            status.ledger = Some(last.ledger.clone());
        }
        status
    }
}
