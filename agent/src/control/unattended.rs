//! Captures that no client attends: each is ended in its time, or once it has failed.
//!
//! A client that attends its capture is told by its own `stop`; nobody would ever stop one that was left behind. Used by
//! the control thread alone.

#![forbid(unsafe_code)]

use crate::capture::{Captures, Current, Origin};
use crate::clock::Moment;
use std::time::Duration;

/// When a capture could not be ended, it is tried again after this.
const AGAIN: Duration = Duration::from_secs(5);
/// What the account says of a capture that has reached its limit of time.
const TIME_LIMIT_NOTE: &str = "nobody stopped it: it ended at its limit of time (--max-duration)";

/// A capture that is to be ended although nobody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Its number.
    pub(super) number: u64,
    /// What its account is to say, beside what it says already.
    pub(super) note: Option<&'static str>,
}

/// The keeper of the captures that nobody attends.
#[derive(Debug, Default)]
pub(super) struct Unattended {
    /// The capture that is being ended, and when that is tried again.
    ending: Option<(u64, Moment)>,
}

impl Unattended {
    /// When [`Unattended::due`] is to be asked next; `None` while no capture ends by itself.
    pub(super) fn deadline(&self, captures: &Captures) -> Option<Moment> {
        self.next(&captures.current()?).map(|(at, _)| at)
    }

    /// The capture that is to be ended now. It is not told again for a while: the end takes its time.
    pub(super) fn due(&mut self, captures: &Captures) -> Option<Due> {
        let current = captures.current()?;
        let (at, note) = self.next(&current)?;
        if !at.has_come() {
            return None;
        }
        let number = current.number;
        self.ending = Some((number, Moment::now() + AGAIN));
        match (note, &current.failed) {
            (Some(note), _) => tracing::warn!("{note}"),
            (None, failed) => {
                let reason = failed.iter().map(|failure| &failure.reason);
                let reason: String = reason.cloned().collect();
                tracing::warn!("a capture that nobody attends ends, since it has failed: {reason}");
            }
        }
        Some(Due { number, note })
    }

    /// When a running capture is to be ended, and what its account is to say.
    fn next(&self, current: &Current) -> Option<(Moment, Option<&'static str>)> {
        let has_failed = current.failed.is_some() && matches!(current.origin, Origin::Detached(_));
        let (at, note) = match has_failed {
            // What it failed of is in its account.
            true => (Moment::now(), None),
            false => (current.ends_at?, Some(TIME_LIMIT_NOTE)),
        };
        match self.ending {
            Some((number, again)) if number == current.number => Some((again, note)),
            _ => Some((at, note)),
        }
    }
}
