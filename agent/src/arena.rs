//! The memory of all rings: one shared mapping, cut into segments of 64 KiB, and a budget in pages. In front of
//! them lies the [`Board`], for those who read this memory after the process.
//!
//! Free segments lie on lock-free stacks, so that a thread takes one without a lock, an allocation or a
//! system call. Last in, first out: what was drained a moment ago is in the cache and in memory.
//!
//! A segment is taken with one page of it charged to the budget, and extended to the whole by its ring
//! when the page is full. There are several times as many segments as the budget pays for in whole: a
//! thread that reports now and then holds a page, not 64 KiB. Segments that have all their pages in memory
//! lie on a stack of their own, for rings that are going to use them all, so that what is in memory stays
//! about what is charged.
//!
//! The address range is mapped once and never unmapped, so that a producer preempted in the middle of a
//! push can never write into somebody else's memory; a segment goes back only when its producer has
//! left it for good. Pages nobody uses are given back between captures. The mapping is not inherited
//! by forked children.

#[cfg_attr(loom, path = "arena/modelled.rs")]
mod mapping;
mod stack;

use crate::board::Board;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use mapping::Mapping;
use stack::{NONE, Stack};
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of a segment: what one write() to a slice should not fall below. In the models, so few that a
/// handful of records goes through several.
pub const SEGMENT_BYTES: usize = if cfg!(loom) { 256 } else { 64 * 1024 };
/// The unit of the budget.
pub const PAGE_BYTES: usize = if cfg!(loom) { 192 } else { 4096 };
/// Pages of a whole segment.
const SEGMENT_PAGES: usize = SEGMENT_BYTES.div_ceil(PAGE_BYTES);
/// Where the segments begin: a multiple of their size, so that each is aligned to it.
pub const SEGMENTS_OFFSET: usize = size_of::<Board>().next_multiple_of(SEGMENT_BYTES);
/// Segments for each that the budget could pay for in whole.
const SEGMENTS_PER_WHOLE: usize = if cfg!(loom) { 2 } else { 4 };
/// Fewest segments' worth of budget.
const WHOLE_MIN: usize = if cfg!(loom) { 1 } else { 8 };
/// Address space that is left where it is limited: for our threads' stacks, and for heaps.
const HEADROOM_BYTES: u64 = 4 << 20;
/// Pages are made ahead of what is taken, this far and in steps of this size.
const PREFAULT_AHEAD_BYTES: usize = 8 << 20;
const PREFAULT_STEP_BYTES: usize = 2 << 20;

/// A segment that was taken. Not `Clone`: whoever holds it owns the bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Segment {
    number: u32,
    whole: bool,
}

impl Segment {
    /// Number of the segment, for words that other threads read.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The segment of a number that its owner passed on, with what [`Arena::extend`] said of it.
    ///
    /// The number must come from [`Segment::number`] of a segment that nobody else takes up.
    pub fn from_number(number: u32, whole: bool) -> Segment {
        Segment { number, whole }
    }
}

/// Who asks for memory. Each leaves something to those after it: a thread that floods must not silence the
/// others, and new threads not those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A ring that fills faster than it is drained. Leaves 1 / 8.
    Fast,
    /// A ring that has no memory yet. Leaves 1 / 16.
    First,
    /// A ring that the drain keeps up with: it is about to give back what it has.
    Steady,
}

impl Claim {
    /// How much of `all` it may take.
    fn share(self, all: usize) -> usize {
        match self {
            Claim::Fast => all - all / 8,
            Claim::First => all - all / 16,
            Claim::Steady => all,
        }
    }
}

/// What is held, in one word so that it is changed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    pages: usize,
    segments: usize,
}

impl Held {
    fn of(word: u64) -> Held {
        Held {
            pages: word as u32 as usize,
            segments: (word >> 32) as usize,
        }
    }

    fn word(self) -> u64 {
        (self.segments as u64) << 32 | self.pages as u64
    }
}

/// One mapping, handed out in segments.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    segments: usize,
    /// Pages that may be charged.
    budget: usize,
    /// Pages that were asked for.
    wanted: usize,
    /// Pages that a segment is charged with when it is taken: what the kernel makes at a time.
    first_pages: usize,
    /// [`Held`].
    held: AtomicU64,
    /// Free segments that are not in memory as a whole.
    cold: Stack,
    /// Free segments that are.
    warm: Stack,
    /// Under each free segment: the next one.
    below: Box<[AtomicU32]>,
    /// Which segments are in memory as a whole; written by whoever holds the segment.
    is_warm: Box<[AtomicBool]>,
    /// How many of them there are, and how many of them are free.
    warm_all: AtomicUsize,
    warm_free: AtomicUsize,
    /// Refused claims of rings that were not too fast.
    starved: AtomicUsize,
}

/// How much memory there may be: segments that are mapped, and how many of them the budget pays for in whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    segments: usize,
    whole: usize,
}

impl Size {
    /// What a budget of `whole` segments may get, the best first: where address space is short, fewer segments
    /// to each that is paid for, then less of all.
    fn choices(whole: usize) -> impl Iterator<Item = Size> {
        let ample = Size {
            segments: whole * SEGMENTS_PER_WHOLE,
            whole,
        };
        let tight = Size {
            segments: whole,
            whole,
        };
        let halves = (1..).map(move |step| whole.checked_shr(step).unwrap_or(0));
        let smaller = halves.map(|segments| Size {
            segments,
            whole: segments / 2,
        });
        let smaller = smaller.take_while(|size| size.whole >= WHOLE_MIN);
        [ample, tight].into_iter().chain(smaller)
    }

    fn bytes(self) -> usize {
        offset_of(self.segments)
    }

    /// Whether it leaves the program as much address space as it takes, and some to the agent's own threads.
    fn fits(self, room: Option<u64>) -> bool {
        let bytes = self.bytes() as u64;
        room.is_none_or(|room| room >= bytes + bytes.max(HEADROOM_BYTES))
    }
}

/// The largest mapping that can be had: address space and the size of files may be limited.
fn map(whole: usize, room: Option<u64>) -> io::Result<(Mapping, Size)> {
    let kinds: [fn(usize) -> io::Result<Mapping>; 2] = [Mapping::shared, Mapping::anonymous];
    let mut refused = no_room(room.unwrap_or(0));
    for kind in kinds {
        for size in Size::choices(whole).filter(|size| size.fits(room)) {
            match kind(size.bytes()) {
                Ok(mapping) => return Ok((mapping, size)),
                Err(error) => refused = error,
            }
            // Memory of the other kind is not limited so: better that than less.
            if refused.kind() == io::ErrorKind::FileTooLarge && size.segments == whole {
                break;
            }
        }
    }
    Err(refused)
}

fn no_room(room: u64) -> io::Error {
    let text = format!("{} MB of address space are left", room >> 20);
    io::Error::new(io::ErrorKind::OutOfMemory, text)
}

/// Where a segment begins in the mapping.
fn offset_of(segment: usize) -> usize {
    SEGMENTS_OFFSET + segment * SEGMENT_BYTES
}

impl Arena {
    /// An arena with a budget of `bytes`, or of eight segments if that is more, or of less if address space
    /// is short ([`Arena::reduced`]). Costs address space only until segments are written.
    pub fn new(bytes: usize) -> io::Result<Arena> {
        const WHOLE_MAX: usize = NONE as usize / SEGMENT_PAGES / SEGMENTS_PER_WHOLE;
        let wanted = (bytes / SEGMENT_BYTES).clamp(WHOLE_MIN, WHOLE_MAX);
        Arena::within(wanted, mapping::room())
    }

    /// An arena with a budget of `wanted` whole segments, or of fewer if there is not `room` for that.
    fn within(wanted: usize, room: Option<u64>) -> io::Result<Arena> {
        let (mapping, Size { segments, whole }) = map(wanted, room)?;
        let board = Board::new(segments, SEGMENT_BYTES, PAGE_BYTES, SEGMENTS_OFFSET);
        // SAFETY: the mapping begins with room for it, is aligned to a page (in the models: to 128 bytes), and
        // nobody else knows of it yet.
        unsafe { mapping.pointer(0).cast::<Board>().write(board) };
        let arena = Arena {
            first_pages: mapping::page_bytes()
                .div_ceil(PAGE_BYTES)
                .min(SEGMENT_PAGES),
            mapping,
            segments,
            budget: whole * SEGMENT_PAGES,
            wanted: wanted * SEGMENT_PAGES,
            held: AtomicU64::new(0),
            cold: Stack::new(),
            warm: Stack::new(),
            below: (0..segments).map(|_| AtomicU32::new(NONE)).collect(),
            is_warm: (0..segments).map(|_| AtomicBool::new(false)).collect(),
            warm_all: AtomicUsize::new(0),
            warm_free: AtomicUsize::new(0),
            starved: AtomicUsize::new(0),
        };
        for number in (0..segments as u32).rev() {
            arena.cold.push(&arena.below, number);
        }
        Ok(arena)
    }

    /// Start of a segment, aligned to 64 KiB within the mapping and valid for [`SEGMENT_BYTES`].
    pub fn pointer(&self, number: u32) -> *mut u8 {
        debug_assert!((number as usize) < self.segments);
        self.mapping.pointer(offset_of(number as usize))
    }

    /// What stands in front of the segments.
    pub fn board(&self) -> &Board {
        // SAFETY: `new` has put it there, it consists of atomics, and nobody else writes to that place.
        unsafe { &*self.mapping.pointer(0).cast::<Board>() }
    }

    /// The memory for somebody else, to be read only; it can neither shrink nor grow. Fails where it is no
    /// memory file (`memfd_create` is missing or forbidden).
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.mapping.share()
    }

    /// Bytes of a segment that may be used before it is extended.
    pub fn first_bytes(&self) -> usize {
        self.first_pages * PAGE_BYTES
    }

    /// A segment with whatever it held before, of which [`Arena::first_bytes`] may be used; `None` when
    /// there is nothing left for this claim.
    pub fn take(&self, claim: Claim) -> Option<Segment> {
        let number = self
            .charge(self.first_pages, 1, claim)
            .then(|| self.pop(claim))
            .flatten();
        if number.is_none() && claim != Claim::Fast {
            self.starved.fetch_add(1, Ordering::Relaxed);
        }
        number.map(|number| Segment {
            number,
            whole: false,
        })
    }

    /// Lets the ring that took segment `number` use the whole of it; false when there is not enough left, or
    /// when as many segments as the budget pays for are in memory already and this is none of them.
    pub fn extend(&self, number: u32) -> bool {
        let is_warm = &self.is_warm[number as usize];
        let warms_up = !is_warm.load(Ordering::Relaxed);
        if warms_up && !self.one_more_warm() {
            return false;
        }
        let extended = self.charge(SEGMENT_PAGES - self.first_pages, 0, Claim::Fast);
        if warms_up {
            // Its pages stay in memory when it comes back.
            if extended {
                is_warm.store(true, Ordering::Relaxed);
            } else {
                self.warm_all.fetch_sub(1, Ordering::Relaxed);
            }
        }
        extended
    }

    fn one_more_warm(&self) -> bool {
        let most = self.budget / SEGMENT_PAGES;
        self.warm_all
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
                (all < most).then_some(all + 1)
            })
            .is_ok()
    }

    fn charge(&self, pages: usize, segments: usize, claim: Claim) -> bool {
        let more = |word| {
            let held = Held::of(word);
            let then = Held {
                pages: held.pages + pages,
                segments: held.segments + segments,
            };
            let fits = then.pages <= claim.share(self.budget)
                && (segments == 0 || then.segments <= claim.share(self.segments));
            fits.then(|| then.word())
        };
        self.held
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, more)
            .is_ok()
    }

    /// A free segment, which is charged already.
    fn pop(&self, claim: Claim) -> Option<u32> {
        let warm = || {
            let number = self.warm.pop(&self.below)?;
            self.warm_free.fetch_sub(1, Ordering::Relaxed);
            Some(number)
        };
        let cold = || self.cold.pop(&self.below);
        let number = match claim {
            Claim::Fast => warm().or_else(cold),
            Claim::First | Claim::Steady => cold().or_else(warm),
        };
        if number.is_none() {
            self.uncharge(self.first_pages);
        }
        number
    }

    fn uncharge(&self, pages: usize) {
        let less = Held { pages, segments: 1 };
        // Release: who is let in by the budget finds the segment.
        self.held.fetch_sub(less.word(), Ordering::Release);
    }

    /// Takes a segment back. The caller guarantees that no thread uses it any more.
    pub fn give_back(&self, segment: Segment) {
        let pages = self.pages(&segment);
        self.push(segment.number);
        self.uncharge(pages);
    }

    fn push(&self, number: u32) {
        if self.is_warm[number as usize].load(Ordering::Relaxed) {
            // Before anybody can take it: else the count would go below zero for a moment.
            self.warm_free.fetch_add(1, Ordering::Relaxed);
            self.warm.push(&self.below, number);
        } else {
            self.cold.push(&self.below, number);
        }
    }

    /// Pages that are charged for a segment.
    pub fn pages(&self, segment: &Segment) -> usize {
        if segment.whole {
            SEGMENT_PAGES
        } else {
            self.first_pages
        }
    }

    /// Pages that may be held at a time.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Bytes of the budget, if it is smaller than what was asked for: address space is limited.
    pub fn reduced(&self) -> Option<usize> {
        (self.budget < self.wanted).then_some(self.budget * PAGE_BYTES)
    }

    /// Pages that are held, as of a moment ago.
    pub fn charged(&self) -> usize {
        Held::of(self.held.load(Ordering::Relaxed)).pages
    }

    /// How often a ring that the drain kept up with, or a new one, found nothing, since
    /// [`Arena::forget_starved`].
    pub fn starved(&self) -> usize {
        self.starved.load(Ordering::Relaxed)
    }

    /// Begins to count anew.
    pub fn forget_starved(&self) {
        self.starved.store(0, Ordering::Relaxed);
    }

    /// Makes more pages when those that there are could be taken soon. For the drain thread.
    pub fn prefault_ahead(&self) {
        let free = self.warm_free.load(Ordering::Relaxed);
        if free < PREFAULT_AHEAD_BYTES / SEGMENT_BYTES {
            self.warm_up(PREFAULT_STEP_BYTES / SEGMENT_BYTES);
        }
    }

    /// Has `bytes` of free segments in memory, so that the threads that take them need not wait for their
    /// pages.
    pub fn prefault(&self, bytes: usize) {
        let free = self.warm_free.load(Ordering::Relaxed);
        self.warm_up((bytes / SEGMENT_BYTES).saturating_sub(free));
    }

    /// Makes the pages of up to `count` free segments. They are charged to nobody.
    fn warm_up(&self, count: usize) {
        let count = (0..count).take_while(|_| self.one_more_warm()).count();
        let cold = || self.cold.pop(&self.below);
        let mut numbers: Vec<u32> = std::iter::from_fn(cold).take(count).collect();
        self.warm_all
            .fetch_sub(count - numbers.len(), Ordering::Relaxed);
        numbers.sort_unstable();
        for (offset, len) in runs(&numbers) {
            self.mapping.populate(offset, len);
        }
        for &number in numbers.iter().rev() {
            self.is_warm[number as usize].store(true, Ordering::Relaxed);
            self.push(number);
        }
    }

    /// Gives the pages of all segments that nobody holds back to the system. Only while nobody takes or
    /// returns any, that is while nothing is captured.
    pub fn discard_free(&self) {
        if !self.mapping.discards() {
            return;
        }
        let free = || self.warm.pop(&self.below);
        let mut numbers: Vec<u32> = std::iter::from_fn(free).collect();
        self.warm_free.fetch_sub(numbers.len(), Ordering::Relaxed);
        self.warm_all.fetch_sub(numbers.len(), Ordering::Relaxed);
        let free = || self.cold.pop(&self.below);
        numbers.extend(std::iter::from_fn(free));
        numbers.sort_unstable();
        for (offset, len) in runs(&numbers) {
            self.mapping.discard(offset, len);
        }
        for &number in numbers.iter().rev() {
            self.is_warm[number as usize].store(false, Ordering::Relaxed);
            self.push(number);
        }
    }
}

/// Offsets and lengths of the stretches that sorted numbers make.
fn runs(numbers: &[u32]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let stretches = numbers.chunk_by(|a, b| a + 1 == *b);
    stretches.map(|run| (offset_of(run[0] as usize), run.len() * SEGMENT_BYTES))
}

#[cfg(test)]
mod tests;
