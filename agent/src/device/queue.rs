//! Records on their way from the reader to the drain: bounded by bytes.
//!
//! std's lock and no channel, for the reasons that `capture/orders.rs` gives.

#![forbid(unsafe_code)]

use crate::waiting::Bell;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that wait at most. The driver keeps what comes meanwhile, as long as it has room.
pub const BYTES_MAX: usize = 8 << 20;

/// Whole aicpu records of a device.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    /// Whose.
    pub device: u32,
    /// Records of 256 bytes.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    bytes: usize,
    /// Nobody takes anything any more but what is there.
    closed: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    taken: Bell,
}

impl Queue {
    /// Adds a batch, or gives it back when too much waits.
    pub fn push(&self, batch: Batch) -> Result<(), Batch> {
        let mut waiting = self.lock();
        if waiting.closed || waiting.bytes + batch.bytes.len() > BYTES_MAX {
            return Err(batch);
        }
        waiting.bytes += batch.bytes.len();
        waiting.batches.push_back(batch);
        Ok(())
    }

    /// What comes from here on is given back.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// The oldest batch.
    pub fn pop(&self) -> Option<Batch> {
        let mut waiting = self.lock();
        let batch = waiting.batches.pop_front()?;
        waiting.bytes -= batch.bytes.len();
        drop(waiting);
        self.taken.ring();
        Some(batch)
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// How often something was taken; for [`Queue::wait_for_room`].
    pub fn count(&self) -> u32 {
        self.taken.count()
    }

    /// Waits until something was taken after `count`, or `limit` has passed.
    pub fn wait_for_room(&self, count: u32, limit: Duration) {
        self.taken.wait(count, limit);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Sum and queue change together, between calls that cannot panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_given_back_until_something_was_taken() {
        let batch = |device| Batch {
            device,
            bytes: vec![0; BYTES_MAX / 2],
        };
        let queue = Queue::default();
        assert_eq!(queue.push(batch(0)), Ok(()));
        assert_eq!(queue.push(batch(1)), Ok(()));
        let refused = queue.push(batch(2)).expect_err("full");
        let count = queue.count();
        assert_eq!(queue.pop().map(|batch| batch.device), Some(0));
        queue.wait_for_room(count, Duration::from_secs(60));
        assert_eq!(queue.push(refused), Ok(()));
        let rest: Vec<u32> = std::iter::from_fn(|| queue.pop())
            .map(|b| b.device)
            .collect();
        assert_eq!(rest, [1, 2]);
        assert_eq!(queue.bytes(), 0);
        queue.close();
        assert_eq!(queue.push(batch(3)), Err(batch(3)));
    }
}
