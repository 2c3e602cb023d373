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
struct LaneHold(Cell<Option<Arc<Lane>>>);

impl Drop for LaneHold {
    fn drop(&mut self) {
        if let Some(lane) = self.0.take() {
            let _ = STATE.try_with(|state| state.set(ENDED));
            // Lanes lie on the heap, so this is harmless in a forked child as well.
            lane.end();
        }
    }
}

per_thread!(LANE: LaneHold = LaneHold(Cell::new(None)));

// Where the current thread stands: one of the three values below, or the lane that its `LANE` holds while
// it is in no report. Without a destructor, so that a report reads it with nothing in between.
per_thread!(STATE: Cell<*const Lane> = Cell::new(NEW));

/// The thread has not reported yet.
const NEW: *const Lane = std::ptr::null();
/// The thread is in the middle of a report.
const BUSY: *const Lane = std::ptr::without_provenance(1);
/// The thread is past its end.
const ENDED: *const Lane = std::ptr::without_provenance(2);

fn is_lane(state: *const Lane) -> bool {
    state.addr() > ENDED.addr()
}

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
    /// Those of them that a signal handler reported in the midst of a report.
    nested: AtomicU64,
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
            nested: AtomicU64::new(0),
        }
    }

    /// Maps the ring memory; to be called before the gate opens.
    pub fn prepare(&self) -> io::Result<()> {
        let arena = self.arena.get_or_try_init(|| Arena::new(self.budget))?;
        arena.prefault(PREFAULT_AT_START);
        for count in self.homeless.iter().chain([&self.nested]) {
            count.store(0, Ordering::Relaxed);
        }
        arena.forget_starved();
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
            let producer = &mut unsafe { lane.owned() }.producers[key.index()];
            let number = word.number();
            if producer.capture() != number {
                if producer.is_made() && producer.capture() > number {
                    // The gate was read before a stop and a start, and a signal handler of this thread
                    // has reported since: this record is in no capture.
                    return Ok(());
                }
                if !producer.is_made() {
                    let Some(made) = lane.make_ring(arena, key) else {
                        lane.lose(number, trace);
                        return Err(Dropped::Counted);
                    };
                    *producer = made;
                }
                producer.stamp(number);
            }
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
    fn with_lane<R>(&self, f: impl FnOnce(&Lane) -> Result<R, Dropped>) -> Result<R, Dropped> {
        STATE
            .try_with(|state| {
                let before = enter(state);
                if before == BUSY {
                    return Err(Dropped::Nested);
                }
                let lane = self.own_lane(before);
                // SAFETY: `LANE` holds it until the thread ends or `own_lane` replaces it, which happens in
                // neither case while this thread is in here.
                let result = match unsafe { lane.as_ref() } {
                    Some(lane) => f(lane),
                    None => Err(Dropped::NoLane),
                };
                leave(state, if is_lane(lane) { lane } else { before });
                result
            })
            .unwrap_or(Err(Dropped::NoLane))
    }

    /// The current thread's lane; null when it is past its end.
    fn own_lane(&self, state: *const Lane) -> *const Lane {
        if state == ENDED {
            return std::ptr::null();
        }
        // SAFETY: `LANE` holds it.
        match unsafe { state.as_ref() } {
            // A lane of another generation was made by the process that forked us: its rings are not
            // mapped here.
            Some(lane) if lane.generation == self.generation => state,
            _ => self.adopt(),
        }
    }

    /// Makes a lane for the current thread; null when it is past its end.
    #[cold]
    fn adopt(&self) -> *const Lane {
        // What a lane takes comes back only when its thread ends; and the C library ends the process when it has
        // no memory for a thread's first destructor.
        if process::reserve::is_low() || !process::reserve::system_has_some() {
            return std::ptr::null();
        }
        LANE.try_with(|hold| {
            let lane = Arc::new(Lane::new(process::current_tid(), self.generation));
            self.all.lock().push(lane.clone());
            self.version.fetch_add(1, Ordering::Release);
            let pointer = Arc::as_ptr(&lane);
            // The lane of the process that forked us, or one that a signal handler made a moment ago.
            if let Some(old) = hold.0.replace(Some(lane)) {
                old.end();
            }
            pointer
        })
        .unwrap_or(std::ptr::null())
    }

    /// Kernel thread id of the current thread.
    pub fn thread_id(&self) -> u32 {
        self.with_lane(|lane| Ok(lane.tid))
            .unwrap_or_else(|_| process::current_tid())
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

    /// Counts a record of a signal handler in the midst of a report of its own thread. May be called by such
    /// a handler.
    #[cold]
    pub fn lose_nested(&self, trace: Trace) {
        self.nested.fetch_add(1, Ordering::Relaxed);
        self.lose_homeless(trace, 1);
    }

    /// How many of [`Lanes::homeless`] signal handlers reported in the midst of a report.
    pub fn nested(&self) -> u64 {
        self.nested.load(Ordering::Relaxed)
    }

    /// Whether threads that the drain keeps up with, or new ones, lost records for want of memory.
    pub fn starved(&self) -> bool {
        self.arena.get().is_some_and(|arena| arena.starved() != 0)
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

    /// What is to be said of a memory that is smaller than it was meant to be.
    pub fn memory_note(&self) -> Option<String> {
        let bytes = self.arena.get()?.reduced()?;
        Some(format!(
            "the buffers have {} MB instead of {}, since the program's address space is limited (ulimit -v)",
            megabytes(bytes),
            megabytes(self.budget)
        ))
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

/// Bytes in megabytes, with a decimal where that says more.
fn megabytes(bytes: usize) -> String {
    if bytes.is_multiple_of(1 << 20) {
        return (bytes >> 20).to_string();
    }
    format!("{:.1}", bytes as f64 / (1 << 20) as f64)
}

/// Begins a report of the current thread; tells where the thread stood.
#[inline(always)]
fn enter(state: &Cell<*const Lane>) -> *const Lane {
    let before = state.replace(BUSY);
    // A handler on this thread sees the mark before anything that follows.
    compiler_fence(Ordering::SeqCst);
    before
}

/// Ends it.
#[inline(always)]
fn leave(state: &Cell<*const Lane>, now: *const Lane) {
    compiler_fence(Ordering::SeqCst);
    state.set(now);
}

/// The way of nearly every record: copies it into the current thread's ring if that has taken a record of
/// this capture already and has room. Otherwise nothing is done, and [`Lanes::push`] is to be called.
///
/// # Safety
/// `record` is valid for reads of `N` bytes and `N` is `key.size.bytes()`.
#[inline(always)]
pub unsafe fn push_quick<const N: usize>(word: Word, key: RingKey, record: *const u8) -> bool {
    STATE
        .try_with(|state| {
            let lane = enter(state);
            let done = is_lane(lane) && {
                // SAFETY: `LANE` holds the lane. This is its owner thread, and nothing below calls back.
                let owned = unsafe { (*lane).owned() };
                // A ring that is stamped with this capture was made by this process: numbers are not used
                // twice, not in forked children either.
                let producer = &mut owned.producers[key.index()];
                // SAFETY: by this function's contract.
                unsafe { producer.push_quick::<N>(word.number(), record) }
            };
            leave(state, lane);
            done
        })
        .unwrap_or(false)
}

#[cfg(test)]
mod tests;
