//! A drain thread as others see it: on its way, and while it drains.

use super::drain::Drain;
use super::orders::{Order, Orders};
use super::ring_memory::RingMemory;
use super::{Failure, StartError, Stopped};
use crate::ledger::{Anchor, Ledger};
use crate::names;
use crate::process;
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What is shared with whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that wait in the rings.
    pub remaining: AtomicU64,
    /// The account as of the last tenth of a second.
    pub ledger: Mutex<Ledger>,
    /// Why nothing more is taken, once that is so.
    pub failed: OnceLock<Failure>,
    /// Everything is written.
    pub ended: AtomicBool,
}

/// What a drain thread needs besides the memory of the rings.
struct Task {
    drain: Drain,
    orders: Arc<Orders>,
    outcome: Sender<Stopped>,
}

/// A drain thread that makes the memory of the rings, and then waits for what it is to drain. Dropped
/// before, it gives the memory back and ends.
#[derive(Debug)]
pub struct DrainThread {
    task: Sender<Task>,
    made: Receiver<io::Result<()>>,
}

impl DrainThread {
    /// Starts it; comes back at once, so that the directory is made beside.
    pub fn spawn(memory: Arc<RingMemory>) -> Result<DrainThread, StartError> {
        let (task, given) = bounded::<Task>(1);
        let (making, made) = bounded(1);
        let body = move || {
            let hold = memory.hold();
            // Fails when the start has failed meanwhile; then no task comes either.
            let _ = making.send(hold.make());
            let Ok(task) = given.recv() else {
                // SAFETY: no capture came of this, and the next one's drain waits for the hold.
                unsafe { hold.give_back() };
                return;
            };
            drop(hold);
            task.run(&memory);
        };
        process::spawn(names::DRAIN_THREAD, body).map_err(StartError::Thread)?;
        Ok(DrainThread { task, made })
    }

    /// Waits for the memory.
    pub fn wait(&self) -> Result<(), StartError> {
        let made = self.made.recv().map_err(|_| gone())?;
        made.map_err(StartError::Memory)
    }

    /// Lets the thread drain; the memory is there.
    pub fn run(self, drain: Drain) -> Result<DrainHandle, StartError> {
        let (outcome, result) = bounded(1);
        let handle = DrainHandle {
            orders: Arc::default(),
            progress: drain.progress(),
            outcome: result,
        };
        let task = Task {
            drain,
            orders: handle.orders.clone(),
            outcome,
        };
        self.task.send(task).map_err(|_| gone())?;
        Ok(handle)
    }
}

/// Only a panic can bring this about.
fn gone() -> StartError {
    StartError::Thread(io::ErrorKind::BrokenPipe.into())
}

impl Task {
    fn run(self, memory: &RingMemory) {
        let progress = self.drain.progress();
        let stopped = self.drain.run(&self.orders);
        progress.ended.store(true, Ordering::Release);
        // SAFETY: a drain ends after the gate was closed, this one's consumers are gone with it, and the
        // next one waits for the hold.
        unsafe { memory.hold().give_back() };
        // Nobody may be waiting any more: then the directory alone tells. Behind the memory: a start that
        // follows at once would wait for it, and has less time than the stop.
        let _ = self.outcome.send(stopped);
    }
}

/// The controlling end of a drain thread.
#[derive(Debug)]
pub struct DrainHandle {
    /// Tells the thread what to do.
    pub orders: Arc<Orders>,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// Receives the result when everything is written.
    pub outcome: Receiver<Stopped>,
}

impl DrainHandle {
    /// A device was opened.
    pub fn add_device(&self, device: u32) {
        self.orders.give(Order::AddDevice(device));
    }

    /// A device is being closed.
    pub fn close_device(&self, device: u32) {
        self.orders.give(Order::CloseDevice(device));
    }

    /// Nothing more is reported: write the rest and end. `note` goes into the ledger; `calls` says whether other
    /// libraries may be called.
    pub fn finish(&self, stop: Anchor, note: Option<String>, calls: bool) {
        self.orders.give(Order::Finish { stop, note, calls });
    }

    /// Bytes that wait in the rings.
    pub fn remaining(&self) -> u64 {
        self.progress.remaining.load(Ordering::Relaxed)
    }

    /// Why nothing more is taken, if that is so.
    pub fn failure(&self) -> Option<Failure> {
        self.progress.failed.get().cloned()
    }

    /// The account as of the last tenth of a second.
    pub fn snapshot(&self) -> Ledger {
        self.progress.ledger.lock().clone()
    }
}
