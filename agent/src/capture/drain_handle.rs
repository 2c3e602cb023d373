//! The controlling end of a drain thread.

use super::Stopped;
use crate::ledger::{Anchor, Ledger};
use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the drain thread is told.
#[derive(Debug)]
pub enum Order {
    /// A device was opened.
    AddDevice(u32),
    /// Nothing more is reported: write the rest and end.
    Finish {
        /// Clocks at the stop.
        stop: Anchor,
        /// A sentence for the ledger.
        note: Option<String>,
    },
}

/// What is shared with whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that wait in the rings.
    pub remaining: AtomicU64,
    /// The account as of the last tenth of a second.
    pub ledger: Mutex<Ledger>,
    /// Everything is written.
    pub ended: AtomicBool,
}

/// The controlling end of a drain thread.
#[derive(Debug)]
pub struct DrainHandle {
    /// Tells the thread what to do.
    pub orders: Sender<Order>,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// The thread.
    pub thread: std::thread::JoinHandle<()>,
    /// Receives the result when everything is written.
    pub outcome: Receiver<Stopped>,
}

impl DrainHandle {
    /// A device was opened.
    pub fn add_device(&self, device: u32) {
        let _ = self.orders.send(Order::AddDevice(device));
    }

    /// Nothing more is reported: write the rest and end. `note` goes into the ledger.
    pub fn finish(&self, stop: Anchor, note: Option<String>) {
        let _ = self.orders.send(Order::Finish { stop, note });
    }

    /// Whether the thread has ended without a result, which only a panic can bring about.
    pub fn is_gone(&self) -> bool {
        self.thread.is_finished() && self.outcome.is_empty()
    }

    /// Bytes that wait in the rings.
    pub fn remaining(&self) -> u64 {
        self.progress.remaining.load(Ordering::Relaxed)
    }

    /// The account as of the last tenth of a second.
    pub fn snapshot(&self) -> Ledger {
        self.progress.ledger.lock().clone()
    }
}
