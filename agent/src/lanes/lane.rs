//! One application thread's rings and counters.
//!
//! Invariant: [`Owned`] is touched by the owner thread only; everything else is atomics or behind a lock.

use crate::arena::Arena;
use crate::records::{RecordSize, Trace, TraceCounts};
use crate::ring::{self, Consumer, Producer};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::cell::UnsafeCell;
use std::sync::Arc;

/// Rings per lane: three record sizes, aging or not.
pub const RINGS: usize = 6;
/// Deepest nesting of named ranges on one thread.
const RANGE_DEPTH: usize = 64;

/// Which ring of a lane: record size and aging flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingKey {
    /// Size of the records.
    pub size: RecordSize,
    /// Whether they may be deleted to keep the storage limit.
    pub aging: bool,
}

impl RingKey {
    /// The key for records of `size` that were reported with this aging flag.
    #[inline]
    pub fn new(size: RecordSize, aging: u32) -> RingKey {
        RingKey {
            size,
            aging: aging == 1,
        }
    }

    /// The key of ring number `index`.
    pub fn of(index: usize) -> RingKey {
        let size = match index / 2 {
            0 => RecordSize::Api,
            1 => RecordSize::Compact,
            _ => RecordSize::Additional,
        };
        RingKey {
            size,
            aging: index % 2 == 1,
        }
    }

    /// Number of the ring, below [`RINGS`].
    #[inline]
    pub fn index(self) -> usize {
        self.size as usize * 2 + self.aging as usize
    }
}

/// What a thread lost, counted by the thread itself with plain stores.
#[derive(Debug, Default)]
struct Losses {
    /// Capture that the counts belong to.
    capture: AtomicU64,
    counts: [AtomicU64; Trace::ALL.len()],
}

impl Losses {
    /// Owner thread only.
    fn add(&self, capture: u64, trace: Trace) {
        if self.capture.load(Ordering::Relaxed) != capture {
            for count in &self.counts {
                count.store(0, Ordering::Relaxed);
            }
            // Release: who sees the new number sees the zeros.
            self.capture.store(capture, Ordering::Release);
        }
        let count = &self.counts[trace as usize];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    fn of(&self, capture: u64) -> TraceCounts {
        let mut counts = TraceCounts::default();
        if self.capture.load(Ordering::Acquire) == capture {
            for (sum, count) in counts.0.iter_mut().zip(&self.counts) {
                *sum = count.load(Ordering::Acquire);
            }
        }
        counts
    }
}

/// A named range that was pushed and not yet popped.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenRange {
    /// Type number of its name.
    pub kind: u32,
    /// Ticks at the push.
    pub begin: u64,
}

/// Open named ranges of one thread, innermost last.
#[derive(Debug)]
pub(super) struct RangeStack {
    capture: u64,
    depth: usize,
    open: [OpenRange; RANGE_DEPTH],
}

impl Default for RangeStack {
    fn default() -> Self {
        RangeStack {
            capture: 0,
            depth: 0,
            open: [OpenRange::default(); RANGE_DEPTH],
        }
    }
}

impl RangeStack {
    /// Opens a range of `capture`; false when too many are open.
    pub(super) fn push(&mut self, capture: u64, range: OpenRange) -> bool {
        self.forget_other_than(capture);
        let fits = self.depth < RANGE_DEPTH;
        if fits {
            self.open[self.depth] = range;
            self.depth += 1;
        }
        fits
    }

    /// Closes the innermost range that was opened in `capture`.
    pub(super) fn pop(&mut self, capture: u64) -> Option<OpenRange> {
        self.forget_other_than(capture);
        self.depth = self.depth.checked_sub(1)?;
        Some(self.open[self.depth])
    }

    /// Ranges of an earlier capture can no longer be closed.
    fn forget_other_than(&mut self, capture: u64) {
        if self.capture != capture {
            self.capture = capture;
            self.depth = 0;
        }
    }
}

/// What only the owner thread touches.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) producers: [Producer; RINGS],
    pub(super) ranges: RangeStack,
}

/// A ring as the drain thread learns of it.
#[derive(Debug)]
pub struct MadeRing {
    /// Record size and aging flag.
    pub key: RingKey,
    /// Number of the segment at which the next consumer begins.
    position: AtomicU32,
}

impl MadeRing {
    /// The reading side.
    ///
    /// # Safety
    /// No other consumer of this ring is used until this one has been put back.
    pub unsafe fn consumer(&self) -> Consumer {
        // SAFETY: the position is where the last consumer was put back, or the ring's first segment.
        unsafe { Consumer::new(self.position.load(Ordering::Acquire), self.key.size) }
    }

    /// Ends the use of a consumer: the next one begins where it is.
    pub fn put_back(&self, consumer: &Consumer) {
        self.position.store(consumer.number(), Ordering::Release);
    }
}

/// One thread's rings and counters.
#[derive(Debug)]
pub struct Lane {
    /// Kernel thread id of the owner.
    pub tid: u32,
    /// Generation of the agent that made it.
    pub(super) generation: u32,
    ended: AtomicBool,
    owned: UnsafeCell<Owned>,
    made: Mutex<Vec<Arc<MadeRing>>>,
    made_count: AtomicUsize,
    losses: Losses,
}

// SAFETY: `owned` is reached through `Lane::owned` alone, whose contract lets only the owner thread in;
// everything else is atomics or behind a lock.
unsafe impl Sync for Lane {}

impl Lane {
    /// A lane without rings for the thread `tid`.
    pub(super) fn new(tid: u32, generation: u32) -> Lane {
        Lane {
            tid,
            generation,
            ended: AtomicBool::new(false),
            owned: UnsafeCell::default(),
            made: Mutex::default(),
            made_count: AtomicUsize::new(0),
            losses: Losses::default(),
        }
    }

    /// What only the owner thread touches.
    ///
    /// # Safety
    /// The caller is the owner thread and holds no other reference from this function.
    #[allow(clippy::mut_from_ref)] // that is what the contract is for
    #[inline]
    pub(super) unsafe fn owned(&self) -> &mut Owned {
        // SAFETY: by this function's contract nobody else has a reference.
        unsafe { &mut *self.owned.get() }
    }

    /// The thread is about to end and reports nothing any more.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Gives all segments back.
    ///
    /// # Safety
    /// The thread has ended, and no consumer of its rings is used any more.
    pub(super) unsafe fn surrender(&self, arena: &Arena) {
        for ring in self.made.lock().drain(..) {
            // SAFETY: by this function's contract.
            unsafe { ring.consumer().give_back(arena) };
        }
    }

    /// Whether the thread has ended: it reports nothing any more.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Number of rings; grows while the thread lives.
    pub fn rings(&self) -> usize {
        self.made_count.load(Ordering::Acquire)
    }

    /// Ring number `n` in the order of making.
    pub fn ring(&self, n: usize) -> Option<Arc<MadeRing>> {
        self.made.lock().get(n).cloned()
    }

    /// What this thread lost in `capture`.
    pub fn lost(&self, capture: u64) -> TraceCounts {
        self.losses.of(capture)
    }

    /// Counts a record of this thread as lost. Owner thread only.
    #[cold]
    pub(super) fn lose(&self, capture: u64, trace: Trace) {
        self.losses.add(capture, trace);
    }

    #[cold]
    pub(super) fn make_ring(&self, arena: &Arena, key: RingKey) -> Option<Producer> {
        let (producer, position) = Producer::new(arena, key.size)?;
        // SAFETY: the ring was just made.
        unsafe { ring::mark(arena, position, key.index()) };
        let mut made = self.made.lock();
        made.push(Arc::new(MadeRing {
            key,
            position: AtomicU32::new(position),
        }));
        self.made_count.store(made.len(), Ordering::Release);
        Some(producer)
    }
}
