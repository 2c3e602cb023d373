//! What the drain thread is told, and how it sleeps until then.
//!
//! A lock and a bell, not a channel: receivers of channels spin before they sleep, which would
//! cost more CPU time than most passes do. The lock is std's, which keeps its sleepers in the kernel alone, as the
//! bell does: this thread sleeps and wakes up so often that a fork would one day come in the middle of it and
//! leave a child a process-wide table of sleepers that is locked for ever.

#![forbid(unsafe_code)]

use crate::clock::Moment;
use crate::ledger::Anchor;
use crate::waiting::Bell;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the drain thread is told.
#[derive(Debug)]
pub enum Order {
    /// A device was opened.
    AddDevice(u32),
    /// A device is being closed.
    CloseDevice(u32),
    /// Nothing more is reported: write the rest and end.
    Finish {
        /// Clocks at the stop.
        stop: Anchor,
        /// A sentence for the ledger.
        note: Option<String>,
        /// Whether other libraries may be called: not while the process exits.
        calls: bool,
    },
}

/// Orders that were given and not yet taken.
#[derive(Debug, Default)]
pub struct Orders {
    waiting: Mutex<VecDeque<Order>>,
    given: Bell,
}

impl Orders {
    /// Gives an order; it comes to nothing when the thread has ended.
    pub fn give(&self, order: Order) {
        self.lock().push_back(order);
        self.given.ring();
    }

    /// The oldest order, waiting up to `pause` for one. For the drain thread alone.
    pub fn take(&self, pause: Duration) -> Option<Order> {
        let deadline = Moment::now() + pause;
        loop {
            let count = self.given.count();
            let order = self.lock().pop_front();
            let left = deadline.remaining();
            if order.is_some() || left.is_zero() {
                return order;
            }
            self.given.wait(count, left);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Order>> {
        // A queue is whole between any two of its calls.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const LONG: Duration = Duration::from_secs(60);

    fn device(order: Option<Order>) -> Option<u32> {
        match order {
            Some(Order::AddDevice(device)) => Some(device),
            _ => None,
        }
    }

    #[test]
    fn orders_come_in_the_order_in_which_they_were_given() {
        let orders = Orders::default();
        assert!(orders.take(Duration::ZERO).is_none());
        orders.give(Order::AddDevice(1));
        orders.give(Order::AddDevice(2));
        assert_eq!(device(orders.take(LONG)), Some(1));
        assert_eq!(device(orders.take(Duration::ZERO)), Some(2));
        assert!(orders.take(Duration::from_micros(1)).is_none());
    }

    #[test]
    fn an_order_ends_the_sleep_of_the_one_who_waits_for_it() {
        let orders = Arc::new(Orders::default());
        let theirs = orders.clone();
        let begin = Moment::now();
        let waiter = std::thread::spawn(move || device(theirs.take(LONG)));
        orders.give(Order::AddDevice(3));
        assert_eq!(waiter.join().expect("no panic"), Some(3));
        assert!(begin.elapsed() < LONG);
    }
}
