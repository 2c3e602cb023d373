//! The memory of all rings: one shared mapping of a bounded size, cut into segments of 64 KiB.
//!
//! Free segments lie on a lock-free stack, so that a thread takes one without a lock, an allocation or a
//! system call. Last in, first out: what was drained a moment ago is in the cache and in memory.
//!
//! The address range is mapped once and never unmapped, so that a producer preempted in the middle of a
//! push can never write into somebody else's memory; a segment goes back only when its producer has
//! left it for good. Pages nobody uses are given back between captures. The mapping is not inherited
//! by forked children.

#[cfg_attr(loom, path = "arena/modelled.rs")]
mod mapping;

use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use mapping::Mapping;
use std::io;

/// Bytes of a segment: what one write() to a slice should not fall below. In the models, so few that a
/// handful of records goes through several.
pub const SEGMENT_BYTES: usize = if cfg!(loom) { 256 } else { 64 * 1024 };
/// Fewest segments of an arena.
const SEGMENTS_MIN: usize = if cfg!(loom) { 1 } else { RESERVE_DIVISOR };
/// A thread that holds a segment of a ring already leaves this part of all segments (1 / 8) to those
/// that have none: a thread that floods must not silence the others.
const RESERVE_DIVISOR: usize = 8;
/// Pages are made ahead of what is taken, this far and in steps of this size.
const PREFAULT_AHEAD_BYTES: usize = 8 << 20;
const PREFAULT_STEP_BYTES: usize = 2 << 20;
/// Marks the end of the stack.
const NONE: u32 = u32::MAX;

/// A segment that was taken. Not `Clone`: whoever holds it owns the bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Segment(u32);

impl Segment {
    /// Number of the segment, for words that other threads read.
    pub fn number(&self) -> u32 {
        self.0
    }

    /// The segment of a number that its owner passed on.
    ///
    /// The number must come from [`Segment::number`] of a segment that nobody else takes up.
    pub fn from_number(number: u32) -> Segment {
        Segment(number)
    }
}

/// One mapping, handed out in segments.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    segments: usize,
    /// Top of the stack of free segments, low half; the high half changes with every operation, so that
    /// a thread that was preempted between reading and exchanging cannot be fooled.
    top: AtomicU64,
    /// Under each free segment: the next one.
    below: Box<[AtomicU32]>,
    free: AtomicUsize,
    /// Segments from here on were never touched: they have no pages yet.
    fresh: AtomicUsize,
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

impl Arena {
    /// Maps `bytes` (at least eight segments). Costs address space only until segments are written.
    pub fn new(bytes: usize) -> io::Result<Arena> {
        let segments = (bytes / SEGMENT_BYTES).clamp(SEGMENTS_MIN, NONE as usize - 1);
        let mapping = Mapping::new(segments * SEGMENT_BYTES)?;
        let below = (1..=segments as u32)
            .map(|next| {
                AtomicU32::new(if next as usize == segments {
                    NONE
                } else {
                    next
                })
            })
            .collect();
        Ok(Arena {
            mapping,
            segments,
            top: AtomicU64::new(pack(0, 0)),
            below,
            free: AtomicUsize::new(segments),
            fresh: AtomicUsize::new(0),
        })
    }

    /// Start of a segment, aligned to 64 KiB within the mapping and valid for [`SEGMENT_BYTES`].
    pub fn pointer(&self, number: u32) -> *mut u8 {
        debug_assert!((number as usize) < self.segments);
        self.mapping.pointer(number as usize * SEGMENT_BYTES)
    }

    /// A segment with whatever it held before; `None` when the budget is used up. `first`: for a ring
    /// that has none yet, which may take from the reserve.
    pub fn take(&self, first: bool) -> Option<Segment> {
        if !first && self.free.load(Ordering::Relaxed) <= self.segments / RESERVE_DIVISOR {
            return None;
        }
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let number = number_of(top);
            if number == NONE {
                return None;
            }
            // May be stale when another thread was faster; then the exchange fails.
            let below = self.below[number as usize].load(Ordering::Relaxed);
            let next = pack(next_tag(top), below);
            match self
                .top
                .compare_exchange_weak(top, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    self.free.fetch_sub(1, Ordering::Relaxed);
                    return Some(Segment(number));
                }
                Err(now) => top = now,
            }
        }
    }

    /// Takes a segment back. The caller guarantees that no thread uses it any more.
    pub fn give_back(&self, segment: Segment) {
        let number = segment.0;
        // Before anybody can take it: else the count would go below zero for a moment.
        self.free.fetch_add(1, Ordering::Relaxed);
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            self.below[number as usize].store(number_of(top), Ordering::Relaxed);
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

    /// Number of all segments.
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// Number of segments that nobody holds, as of a moment ago.
    pub fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    /// Makes more pages when those that there are could be taken soon. For the drain thread.
    pub fn prefault_ahead(&self) {
        let fresh = self.fresh.load(Ordering::Relaxed);
        let taken = self.segments.saturating_sub(self.free());
        if fresh < self.segments && taken + PREFAULT_AHEAD_BYTES / SEGMENT_BYTES > fresh {
            self.prefault(PREFAULT_STEP_BYTES);
        }
    }

    /// Makes pages for up to `bytes` of segments that have none yet, so that the threads that take them
    /// do not have to. Segments are first taken in the order of their numbers.
    pub fn prefault(&self, bytes: usize) {
        let from = self.fresh.load(Ordering::Relaxed);
        let count = (bytes / SEGMENT_BYTES).min(self.segments - from);
        if count == 0 {
            return;
        }
        self.fresh.store(from + count, Ordering::Relaxed);
        self.mapping
            .populate(from * SEGMENT_BYTES, count * SEGMENT_BYTES);
    }

    /// Gives the pages of all segments that nobody holds back to the system. Only while nobody takes or
    /// returns any, that is while nothing is captured.
    pub fn discard_free(&self) {
        if !self.mapping.discards() {
            return;
        }
        let mut free = Vec::with_capacity(self.free());
        while let Some(segment) = self.take(true) {
            free.push(segment);
        }
        free.sort_by_key(Segment::number);
        let runs = free.chunk_by(|a, b| a.number() + 1 == b.number());
        for run in runs {
            let offset = run[0].number() as usize * SEGMENT_BYTES;
            self.mapping.discard(offset, run.len() * SEGMENT_BYTES);
        }
        self.fresh.store(0, Ordering::Relaxed);
        // Lowest number on top again: prefaulting goes by it.
        for segment in free.into_iter().rev() {
            self.give_back(segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Arc;

    #[test]
    fn each_segment_is_handed_out_once_and_the_budget_ends() {
        let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
        let taken: HashSet<u32> = std::iter::from_fn(|| arena.take(true))
            .map(|segment| segment.number())
            .collect();
        assert_eq!(taken.len(), 16);
        assert_eq!(arena.free(), 0);
    }

    #[test]
    fn a_ring_that_has_a_segment_leaves_the_reserve_to_others() {
        let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
        let held: Vec<Segment> = std::iter::from_fn(|| arena.take(false)).collect();
        assert_eq!(held.len(), 14);
        assert!(arena.take(true).is_some());
    }

    #[test]
    fn threads_that_take_and_return_never_hold_the_same_segment() {
        let arena = Arc::new(Arena::new(8 * SEGMENT_BYTES).expect("map"));
        let owners: Arc<Vec<AtomicU32>> = Arc::new((0..8).map(|_| AtomicU32::new(0)).collect());
        let threads: Vec<_> = (1..=4u32)
            .map(|me| {
                let (arena, owners) = (arena.clone(), owners.clone());
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        let Some(segment) = arena.take(true) else {
                            continue;
                        };
                        let owner = &owners[segment.number() as usize];
                        assert_eq!(owner.swap(me, Ordering::Relaxed), 0);
                        assert_eq!(owner.swap(0, Ordering::Relaxed), me);
                        arena.give_back(segment);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("thread");
        }
        assert_eq!(arena.free(), 8);
    }

    #[test]
    fn memory_is_given_back_and_comes_again() {
        let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
        arena.prefault(4 * SEGMENT_BYTES);
        let segment = arena.take(true).expect("free");
        let pointer = arena.pointer(segment.number());
        // SAFETY: the test owns the segment.
        unsafe { pointer.write_bytes(0xAB, SEGMENT_BYTES) };
        arena.give_back(segment);
        arena.discard_free();
        let again = arena.take(true).expect("free");
        assert_eq!(arena.pointer(again.number()), pointer);
        // SAFETY: as above.
        assert_eq!(unsafe { pointer.read() }, 0);
    }
}
