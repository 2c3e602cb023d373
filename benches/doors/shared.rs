//! The shape of the stock buffer, written anew: one ring for all threads, a write index and a read index
//! that everybody shares, and a ready byte per slot.
//!
//! A producer looks at both indices, takes a slot by fetch_add, copies the record and marks the slot as
//! ready; the reader takes slots in order as they become ready, copies them into a buffer of 2 MiB and
//! writes that. The two indices lie on lines of their own here.

use crate::drain::{Sink, Source};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Slots that stay free, so that producers that saw room at the same time all have it.
const SLACK: u64 = 256;
/// Bytes that the reader collects before it writes.
const COLLECT: usize = 2 << 20;

#[repr(align(128))]
struct Index(AtomicU64);

/// The ring; records have `W` words of 8 bytes.
pub struct SharedRing<const W: usize> {
    write: Index,
    read: Index,
    slots: Box<[UnsafeCell<[u64; W]>]>,
    ready: Box<[AtomicU8]>,
}

// SAFETY: a slot is written only by the producer that took its index, before it sets the ready byte, and
// read only by the one reader, after it has seen that byte and before it moves the read index on.
unsafe impl<const W: usize> Sync for SharedRing<W> {}

impl<const W: usize> SharedRing<W> {
    /// A ring of `slots` (a power of two), with its pages there.
    pub fn new(slots: usize) -> SharedRing<W> {
        assert!(slots.is_power_of_two());
        SharedRing {
            write: Index(AtomicU64::new(0)),
            read: Index(AtomicU64::new(0)),
            slots: (0..slots).map(|_| UnsafeCell::new([1; W])).collect(),
            ready: (0..slots).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    /// Copies a record in; false when the ring is full.
    ///
    /// # Safety
    /// `record` is valid for reads of `W` words.
    #[inline]
    pub unsafe fn push(&self, record: *const [u64; W]) -> bool {
        let write = self.write.0.load(Ordering::Relaxed);
        let read = self.read.0.load(Ordering::Acquire);
        if write.saturating_sub(read) >= self.slots.len() as u64 - SLACK {
            return false;
        }
        let index = self.write.0.fetch_add(1, Ordering::AcqRel) as usize & (self.slots.len() - 1);
        // SAFETY: the index was taken by this call alone, and at most SLACK producers saw the same room.
        unsafe { *self.slots[index].get() = *record };
        self.ready[index].store(1, Ordering::Release);
        true
    }

    /// The reading side; to be asked for once.
    pub fn reader(&'static self) -> SharedReader<W> {
        SharedReader {
            ring: self,
            collected: Vec::with_capacity(COLLECT / size_of::<[u64; W]>()),
        }
    }
}

/// The one reader of a shared ring.
pub struct SharedReader<const W: usize> {
    ring: &'static SharedRing<W>,
    collected: Vec<[u64; W]>,
}

impl<const W: usize> Source for SharedReader<W> {
    fn drain(&mut self, sink: &mut Sink) -> u64 {
        let ring = self.ring;
        let mut taken = 0;
        loop {
            let read = ring.read.0.load(Ordering::Relaxed);
            let index = read as usize & (ring.slots.len() - 1);
            if ring.ready[index].load(Ordering::Acquire) == 0 {
                break;
            }
            // SAFETY: ready, and this is the only reader.
            self.collected.push(unsafe { *ring.slots[index].get() });
            ring.ready[index].store(0, Ordering::Relaxed);
            ring.read.0.store(read + 1, Ordering::Release);
            taken += 1;
            if self.collected.len() == self.collected.capacity() {
                sink.write(&self.collected);
                self.collected.clear();
            }
        }
        sink.write(&self.collected);
        self.collected.clear();
        taken
    }
}
