//! The memory of the rings from before a capture until after it: made by the drain thread while the directory is
//! made, given back by the same thread once everything is written.
//!
//! Invariant: whoever makes or gives back memory holds it, so that a capture never begins in the middle of that.

use crate::lanes::Lanes;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::Arc;

/// The rings' memory while nothing is captured.
#[derive(Debug)]
pub struct RingMemory {
    lanes: Arc<Lanes>,
    held: Mutex<()>,
}

/// The right to make it or to give it back.
#[derive(Debug)]
pub struct Hold<'a> {
    lanes: &'a Lanes,
    _held: MutexGuard<'a, ()>,
}

impl RingMemory {
    /// The memory of these rings.
    pub fn new(lanes: Arc<Lanes>) -> RingMemory {
        RingMemory {
            lanes,
            held: Mutex::default(),
        }
    }

    /// Waits until nobody else holds it.
    pub fn hold(&self) -> Hold<'_> {
        Hold {
            _held: self.held.lock(),
            lanes: &self.lanes,
        }
    }
}

impl Hold<'_> {
    /// Makes what a capture needs from its first moment on.
    pub fn make(&self) -> io::Result<()> {
        self.lanes.prepare()
    }

    /// Gives the pages that nobody uses back to the system.
    ///
    /// # Safety
    /// Nothing is captured, and no consumer of any ring is used until this hold has ended.
    pub unsafe fn give_back(self) {
        // SAFETY: by this function's contract.
        unsafe { self.lanes.discard() };
    }
}
