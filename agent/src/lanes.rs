//! A thread's rings and the registry of all threads.
//!
//! A lane belongs to one application thread: at most six rings (record size x aging flag), made when
//! first used, and the count of what was dropped. Only the owner pushes; the drain thread reads.
//! After the first record of a thread, a report takes no lock, allocates nothing and makes no system
//! call.

mod lane;

pub use lane::{Lane, MadeRing, OpenRange, RINGS, RingKey};

use crate::arena::Arena;
use crate::gate::Word;
use crate::process;
use crate::records::{Trace, TraceCounts};
use crate::ring::Producer;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, per_thread};
use once_cell::sync::OnceCell;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::compiler_fence;

/// Memory that has its pages before a start is answered: 5 ms of work, room for 300,000 api records.
const PREFAULT_AT_START: usize = 12 << 20;

/// The current thread's hold on its lane; marks the lane as ended when the thread ends.
struct LaneHold {
    lane: Cell<Option<Arc<Lane>>>,
    /// The thread is in the middle of a report.
    busy: Cell<bool>,
}

impl LaneHold {
    const fn new() -> LaneHold {
        LaneHold {
            lane: Cell::new(None),
            busy: Cell::new(false),
        }
    }
}

impl Drop for LaneHold {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take() {
            // Lanes lie on the heap, so this is harmless in a forked child as well.
            lane.end();
        }
    }
}

per_thread!(LANE: LaneHold = LaneHold::new());

/// Why a record was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Counted in the thread's own counter.
    Counted,
    /// The thread is past its end: the caller files or counts it another way.
    NoLane,
    /// A signal handler reported in the middle of a report of its own thread: the caller counts it, with
    /// nothing that a signal handler may not do.
    Nested,
}

/// All lanes of the process and the memory of their rings.
#[derive(Debug)]
pub struct Lanes {
    budget: usize,
    generation: u32,
    arena: OnceCell<Arena>,
    all: Mutex<Vec<Arc<Lane>>>,
    /// Changes whenever `all` does.
    version: AtomicU64,
    /// Losses of threads that have no lane (past their end); any thread.
    homeless: [AtomicU64; Trace::ALL.len()],
    /// Rings that found no segment at all since [`Lanes::prepare`].
    starved: AtomicU64,
}

impl Lanes {
    /// No lanes yet; `budget` bounds the bytes of all rings, `generation` tells processes apart that
    /// were forked from each other.
    pub fn new(budget: usize, generation: u32) -> Lanes {
        Lanes {
            budget,
            generation,
            arena: OnceCell::new(),
            all: Mutex::default(),
            version: AtomicU64::new(0),
            homeless: Default::default(),
            starved: AtomicU64::new(0),
        }
    }

    /// Maps the ring memory; to be called before the gate opens.
    pub fn prepare(&self) -> io::Result<()> {
        let arena = self.arena.get_or_try_init(|| Arena::new(self.budget))?;
        arena.prefault(PREFAULT_AT_START);
        for count in &self.homeless {
            count.store(0, Ordering::Relaxed);
        }
        self.starved.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Copies a record of `N` bytes into the current thread's ring.
    ///
    /// # Safety
    /// `record` is valid for reads of `N` bytes and `N` is `key.size.bytes()`.
    #[inline]
    pub unsafe fn push<const N: usize>(
        &self,
        word: Word,
        key: RingKey,
        trace: Trace,
        record: *const u8,
    ) -> Result<(), Dropped> {
        let Some(arena) = self.arena.get() else {
            return Err(Dropped::NoLane);
        };
        self.with_lane(|lane| {
            // SAFETY: this is the owner thread, and nothing below calls back into this function.
            let owned = unsafe { lane.owned() };
            let slot = &mut owned.producers[key.index()];
            let number = word.number();
            let producer = match slot {
                Some(producer) if producer.capture() == number => producer,
                _ => match first_of_capture(arena, lane, slot, key, number) {
                    Some(producer) => producer,
                    None => {
                        self.starved.fetch_add(1, Ordering::Relaxed);
                        lane.lose(number, trace);
                        return Err(Dropped::Counted);
                    }
                },
            };
            // SAFETY: by this function's contract; the ring was made for `key.size` in this arena.
            if unsafe { producer.push::<N>(arena, record) } {
                Ok(())
            } else {
                lane.lose(number, trace);
                Err(Dropped::Counted)
            }
        })
    }

    /// Runs `f` with the current thread's lane, which is made if need be. A signal handler that reports
    /// while its thread is in here is turned away.
    #[inline]
    fn with_lane<R>(&self, f: impl FnOnce(&Lane) -> Result<R, Dropped>) -> Result<R, Dropped> {
        LANE.try_with(|hold| {
            if hold.busy.replace(true) {
                return Err(Dropped::Nested);
            }
            // A handler on this thread sees the flag before anything below, and its end after it.
            compiler_fence(Ordering::SeqCst);
            // SAFETY: only this thread has access to its own cell, the flag keeps its signal handlers out,
            // and the reference that is made here ends before anything can replace the content (`adopt`
            // runs before `f`).
            let current = unsafe { &*hold.lane.as_ptr() };
            let result = match current {
                // A lane of another generation was made by the process that forked us: its rings
                // are not mapped here.
                Some(lane) if lane.generation == self.generation => f(lane),
                _ => {
                    let lane = self.adopt(hold);
                    f(&lane)
                }
            };
            compiler_fence(Ordering::SeqCst);
            hold.busy.set(false);
            result
        })
        .unwrap_or(Err(Dropped::NoLane))
    }

    #[cold]
    fn adopt(&self, hold: &LaneHold) -> Arc<Lane> {
        let lane = Arc::new(Lane::new(process::current_tid(), self.generation));
        self.all.lock().push(lane.clone());
        self.version.fetch_add(1, Ordering::Release);
        hold.lane.set(Some(lane.clone()));
        lane
    }

    /// Opens a named range on the current thread; false when too many are open.
    pub fn push_range(&self, number: u64, range: OpenRange) -> bool {
        // SAFETY: owner thread; the stack calls nothing back.
        self.with_lane(|lane| Ok(unsafe { lane.owned() }.ranges.push(number, range)))
            .unwrap_or(false)
    }

    /// Closes the innermost named range of the current thread that was opened in this capture; also
    /// tells the thread's id.
    pub fn pop_range(&self, number: u64) -> Option<(OpenRange, u32)> {
        self.with_lane(|lane| {
            // SAFETY: owner thread; the stack calls nothing back.
            let range = unsafe { lane.owned() }.ranges.pop(number);
            Ok(range.map(|range| (range, lane.tid)))
        })
        .ok()
        .flatten()
    }

    /// Counts records that no lane could count.
    #[cold]
    pub fn lose_homeless(&self, trace: Trace, records: u64) {
        self.homeless[trace as usize].fetch_add(records, Ordering::Relaxed);
    }

    /// Whether threads lost records because not even a first segment was free.
    pub fn starved(&self) -> bool {
        self.starved.load(Ordering::Relaxed) != 0
    }

    /// What threads without a lane lost since [`Lanes::prepare`].
    pub fn homeless(&self) -> TraceCounts {
        let mut counts = TraceCounts::default();
        for (sum, count) in counts.0.iter_mut().zip(&self.homeless) {
            *sum = count.load(Ordering::Relaxed);
        }
        counts
    }

    /// Changes whenever a lane is added or retired.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// All lanes, oldest first.
    pub fn snapshot(&self) -> Vec<Arc<Lane>> {
        self.all.lock().clone()
    }

    /// The memory of the rings, once a capture was prepared.
    pub fn arena(&self) -> Option<&Arena> {
        self.arena.get()
    }

    /// Removes a lane; its memory serves others.
    ///
    /// # Safety
    /// The lane's thread has ended, and no consumer of its rings is used any more.
    pub unsafe fn retire(&self, lane: &Arc<Lane>) {
        debug_assert!(lane.ended());
        self.all.lock().retain(|other| !Arc::ptr_eq(other, lane));
        self.version.fetch_add(1, Ordering::Release);
        if let Some(arena) = self.arena.get() {
            // SAFETY: by this function's contract.
            unsafe { lane.surrender(arena) };
        }
    }

    /// Gives the memory of lanes that nobody uses back to the system.
    ///
    /// # Safety
    /// Nothing is captured, and no consumer of any ring is used.
    pub unsafe fn discard(&self) {
        for lane in self.snapshot() {
            if lane.ended() {
                // SAFETY: by this function's contract; the thread has ended.
                unsafe { self.retire(&lane) };
            }
        }
        if let Some(arena) = self.arena.get() {
            arena.discard_free();
        }
    }
}

#[cold]
fn first_of_capture<'a>(
    arena: &Arena,
    lane: &Lane,
    slot: &'a mut Option<Producer>,
    key: RingKey,
    number: u64,
) -> Option<&'a mut Producer> {
    if slot.is_none() {
        *slot = lane.make_ring(arena, key);
    }
    let producer = slot.as_mut()?;
    producer.stamp(number);
    Some(producer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::SEGMENT_BYTES;
    use crate::records::{ApiRecord, RecordSize};
    use crate::ring::capacity;
    use zerocopy::{FromZeros, IntoBytes};

    const KEY: RingKey = RingKey {
        size: RecordSize::Api,
        aging: true,
    };

    fn push(lanes: &Lanes, number: u64) -> Result<(), Dropped> {
        let record = ApiRecord::new_zeroed();
        let word = Word::capturing(number, 0xFF);
        // SAFETY: an api record has 40 bytes.
        unsafe { lanes.push::<40>(word, KEY, Trace::RuntimeApi, record.as_bytes().as_ptr()) }
    }

    #[test]
    fn ring_keys_and_numbers_correspond() {
        for index in 0..RINGS {
            assert_eq!(RingKey::of(index).index(), index);
        }
    }

    #[test]
    fn threads_that_end_hand_their_memory_to_the_next() {
        let lanes = Arc::new(Lanes::new(8 * SEGMENT_BYTES, 1));
        lanes.prepare().expect("map");
        for round in 0..100 {
            let theirs = lanes.clone();
            std::thread::spawn(move || assert_eq!(push(&theirs, 1), Ok(())))
                .join()
                .expect("thread");
            let lane = lanes.snapshot().pop().expect("one lane");
            assert!(lane.ended(), "round {round}");
            let ring = lane.ring(0).expect("one ring");
            let arena = lanes.arena().expect("prepared");
            // SAFETY: the only consumer; the thread has ended, and the consumer is used no more when the
            // lane is retired.
            unsafe {
                let mut consumer = ring.consumer();
                assert_eq!(consumer.readable(arena, 1).bytes.len(), 40);
                lanes.retire(&lane);
            }
        }
        assert_eq!(lanes.arena().expect("prepared").free(), 8);
    }

    #[test]
    fn beyond_the_budget_records_are_counted_as_lost() {
        let lanes = Lanes::new(8 * SEGMENT_BYTES, 1);
        lanes.prepare().expect("map");
        // One eighth is left to other threads.
        let room = 7 * capacity(RecordSize::Api);
        let taken = (0..room + 10).filter(|_| push(&lanes, 3).is_ok()).count();
        assert_eq!(taken as u64, room);
        let lane = lanes.snapshot().pop().expect("one lane");
        assert_eq!(lane.lost(3).get(Trace::RuntimeApi), 10);
        assert_eq!(lane.lost(2).total(), 0);
    }

    #[test]
    fn a_range_of_an_earlier_capture_is_not_closed_in_a_later_one() {
        let lanes = Lanes::new(1 << 20, 1);
        assert!(lanes.push_range(1, OpenRange { kind: 5, begin: 9 }));
        assert!(lanes.pop_range(2).is_none());
        assert!(lanes.push_range(2, OpenRange { kind: 6, begin: 10 }));
        assert_eq!(lanes.pop_range(2).map(|(range, _)| range.kind), Some(6));
        assert!(lanes.pop_range(2).is_none());
    }
}
