//! A lock-free stack of segment numbers.

#![forbid(unsafe_code)]

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Marks the end of the stack; no number is as large.
pub(super) const NONE: u32 = u32::MAX;

/// A stack whose links lie in a table that it shares with others: a number is in one stack at a time.
#[derive(Debug)]
pub(super) struct Stack {
    /// The number on top, low half; the high half changes with every operation, so that a thread that was
    /// preempted between reading and exchanging cannot be fooled.
    top: AtomicU64,
}

fn pack(tag: u64, number: u32) -> u64 {
    tag << 32 | u64::from(number)
}

fn number_of(word: u64) -> u32 {
    word as u32
}

fn next_tag(word: u64) -> u64 {
    (word >> 32).wrapping_add(1)
}

impl Stack {
    /// A stack of nothing.
    pub(super) fn new() -> Stack {
        Stack {
            top: AtomicU64::new(pack(0, NONE)),
        }
    }

    /// Takes the number on top; `below` holds under each number the next one.
    pub(super) fn pop(&self, below: &[AtomicU32]) -> Option<u32> {
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let number = number_of(top);
            if number == NONE {
                return None;
            }
            // May be stale when another thread was faster; then the exchange fails.
            let under = below[number as usize].load(Ordering::Relaxed);
            let next = pack(next_tag(top), under);
            match self
                .top
                .compare_exchange_weak(top, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(number),
                Err(now) => top = now,
            }
        }
    }

    /// Puts a number on top that is in no stack.
    pub(super) fn push(&self, below: &[AtomicU32], number: u32) {
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            below[number as usize].store(number_of(top), Ordering::Relaxed);
            let next = pack(next_tag(top), number);
            // Release: who takes the segment sees it as its last owner left it.
            match self
                .top
                .compare_exchange_weak(top, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }
}
