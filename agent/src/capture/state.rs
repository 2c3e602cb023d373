//! Which capture is where, and whose turn it is to change that.
//!
//! ```text
//! Idle -> Starting -> Running -> Stopping -> Idle
//!                                   \-> Writing -> Idle     (the disk is slow; goes on behind the stop)
//! any -> Broken                                             (a panic; nothing is captured any more)
//! ```
//!
//! The lock is held for the change of state alone. Whoever starts or stops holds a [`Turn`] meanwhile, and
//! others wait for its end with a limit.

#![forbid(unsafe_code)]

use super::drain_handle::{DrainHandle, Progress};
use super::orders::{Order, Orders};
use super::{Origin, StartError, StopError, Stopped};
use crate::clock::Moment;
use crate::gate;
use crate::ledger::Anchor;
use crate::waiting::{self, Bell};
use crossbeam_channel::{Receiver, TryRecvError};
use parking_lot::{Mutex, MutexGuard};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a start waits for another start or stop: less than clients wait for the answer.
const TURN_LIMIT: Duration = Duration::from_secs(45);

/// A capture that runs.
#[derive(Debug)]
pub struct Running {
    /// Its number.
    pub number: u64,
    /// The PROF_XXX directory.
    pub path: PathBuf,
    /// Who started it.
    pub origin: Origin,
    /// When.
    pub start: Anchor,
    /// When it is to be ended, if nobody does so before.
    pub ends_at: Option<Moment>,
    /// Its drain thread.
    pub drain: DrainHandle,
}

/// Where captures stand.
#[derive(Debug, Default)]
pub enum State {
    /// None runs.
    #[default]
    Idle,
    /// One is being started.
    Starting,
    /// One runs.
    Running(Box<Running>),
    /// One is being stopped.
    Stopping,
    /// One has been stopped, but the disk is slow.
    Writing {
        /// The PROF_XXX directory.
        path: PathBuf,
        /// Receives the result.
        outcome: Receiver<Stopped>,
    },
    /// A start, a stop or a drain ended in a panic; rings may still have a consumer that nobody knows.
    Broken,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// The application finalizes: no new capture.
    refusing: bool,
    /// The drain that was started last, whoever holds its handle.
    drain: Option<(u64, Arc<Orders>, Weak<Progress>)>,
}

/// The state and those who wait for its change.
#[derive(Debug, Default)]
pub struct Machine {
    inner: Mutex<Inner>,
    changed: Bell,
}

/// The right to say what follows `Starting` or `Stopping`. Dropped without that, as by a panic, it leaves
/// the state broken, so that nobody waits for ever.
#[derive(Debug)]
#[must_use]
pub struct Turn<'a> {
    machine: &'a Machine,
    next: State,
}

impl Turn<'_> {
    /// Ends the turn.
    pub fn end(mut self, next: State) {
        self.next = next;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.machine.inner.lock().state = std::mem::replace(&mut self.next, State::Broken);
        self.machine.changed.ring();
    }
}

impl Machine {
    fn turn(&self) -> Turn<'_> {
        Turn {
            machine: self,
            next: State::Broken,
        }
    }

    /// From idle to starting.
    pub fn begin(&self) -> Result<Turn<'_>, StartError> {
        let deadline = Moment::now() + TURN_LIMIT;
        let mut inner = self.inner.lock();
        loop {
            if inner.refusing {
                return Err(StartError::Finalizing);
            }
            match &inner.state {
                State::Idle => break,
                State::Running(_) => return Err(StartError::AlreadyStarted),
                State::Writing { path, .. } => {
                    return Err(StartError::StillWriting(path.clone()));
                }
                State::Broken => return Err(StartError::Broken),
                State::Starting | State::Stopping => {
                    self.wait(&mut inner, deadline, || StartError::Turn)?
                }
            }
        }
        inner.state = State::Starting;
        Ok(self.turn())
    }

    /// From running to stopping. With `only`, another capture than that one is left alone.
    pub fn take(
        &self,
        only: Option<u64>,
        deadline: Moment,
    ) -> Result<(Turn<'_>, Box<Running>), StopError> {
        let mut inner = self.inner.lock();
        loop {
            match &inner.state {
                State::Idle | State::Writing { .. } => return Err(StopError::NotStarted),
                State::Running(running) if only.is_some_and(|only| only != running.number) => {
                    return Err(StopError::NotStarted);
                }
                State::Running(_) => break,
                State::Broken => return Err(StopError::Broken),
                State::Starting | State::Stopping => {
                    self.wait(&mut inner, deadline, || StopError::Turn)?;
                }
            }
        }
        match std::mem::replace(&mut inner.state, State::Stopping) {
            State::Running(running) => Ok((self.turn(), running)),
            other => {
                inner.state = other;
                Err(StopError::NotStarted)
            }
        }
    }

    /// From writing to stopping, if everything has been written by now.
    pub fn settle(&self) -> Option<(Turn<'_>, Stopped)> {
        let mut inner = self.inner.lock();
        let State::Writing { outcome, .. } = &inner.state else {
            return None;
        };
        match outcome.try_recv() {
            Ok(stopped) => {
                inner.state = State::Stopping;
                Some((self.turn(), stopped))
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                inner.state = State::Broken;
                None
            }
        }
    }

    /// A drain was started: [`Machine::finish_now`] can end it, whoever is about to use its handle.
    pub fn watch(&self, number: u64, drain: &DrainHandle) {
        let progress = Arc::downgrade(&drain.progress);
        self.inner.lock().drain = Some((number, drain.orders.clone(), progress));
    }

    /// For exit, while another thread is in the middle of a start or stop: ends the capture without it and
    /// waits for the drain thread at most until `deadline`.
    pub fn finish_now(&self, stop: Anchor, deadline: Moment) {
        let Some((number, orders, progress)) = self.inner.lock().drain.take() else {
            return;
        };
        gate::close(number);
        orders.give(Order::Finish {
            stop,
            note: None,
            calls: false,
        });
        waiting::until(deadline, || {
            let progress = progress.upgrade();
            progress
                .is_none_or(|progress| progress.ended.load(Ordering::Acquire))
                .then_some(())
        });
    }

    /// From here on no capture begins, or begins again.
    pub fn refuse_starts(&self, refusing: bool) {
        self.inner.lock().refusing = refusing;
        self.changed.ring();
    }

    /// Looks at the state.
    pub fn with<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.inner.lock().state)
    }

    fn wait<E>(
        &self,
        inner: &mut MutexGuard<'_, Inner>,
        deadline: Moment,
        late: impl FnOnce() -> E,
    ) -> Result<(), E> {
        let count = self.changed.count();
        let left = deadline.remaining();
        if left.is_zero() {
            return Err(late());
        }
        // Whoever changes the state has the lock first and rings then.
        MutexGuard::unlocked(inner, || self.changed.wait(count, left));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_ends_in_a_panic_lets_nobody_wait() {
        let machine = Machine::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _turn = machine.begin().expect("idle");
            panic!("in the middle of a start");
        }));
        assert!(panicked.is_err());
        assert!(matches!(machine.begin(), Err(StartError::Broken)));
        let deadline = Moment::now() + Duration::from_secs(5);
        let taken = machine.take(None, deadline).map(|_| ());
        assert!(matches!(taken, Err(StopError::Broken)));
    }

    #[test]
    fn a_start_that_waits_is_refused_when_the_application_finalizes() {
        let machine = std::sync::Arc::new(Machine::default());
        let turn = machine.begin().expect("idle");
        let waiting = machine.clone();
        let waiter = std::thread::spawn(move || waiting.begin().map(|_| ()));
        machine.refuse_starts(true);
        turn.end(State::Idle);
        assert!(matches!(
            waiter.join().expect("no panic"),
            Err(StartError::Finalizing)
        ));
        machine.refuse_starts(false);
        machine.begin().expect("idle again").end(State::Idle);
    }
}
