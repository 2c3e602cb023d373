//! One single-producer single-consumer queue of records of one size: a chain of segments that go round
//! between the arena and the rings.
//!
//! ```text
//!   consumer ->  [segment] -> [segment] -> [segment]  <- producer
//!                 drained: back to the arena    full: another one from the arena
//! ```
//!
//! Why a chain and not one array per thread: a thread that floods takes what memory there is, within a
//! millisecond and without the drain's help, while a thread that reports one record holds a page; and
//! what was just drained is used again while it is in the cache (docs/decisions/1-segments.md).
//!
//! A segment begins with room for a page of records. When that is full, a ring that the drain has kept up
//! with leaves it for another page; one that is too fast for that has the segment extended to the whole.
//!
//! Invariants:
//! - the producer alone writes a segment's `head`, `capture`, `start` and `next`, until it has set `next`;
//!   from then on it never touches the segment again;
//! - records `[max(start, what was drained), head)` of a segment are whole and of capture `capture`; the
//!   consumer reads only these, the producer writes only behind `head`;
//! - `head` is final once `next` is set;
//! - exactly the first segment of a ring's chain bears its mark, but while the consumer goes on to the next one
//!   both do; a segment that is in no chain bears none;
//! - a record published for capture N is never seen by the drain of another capture: the producer stamps
//!   the segment before its first record of a capture, and numbers are never used twice.

use crate::arena::{Arena, Claim, Segment};
use crate::copy;
use crate::records::RecordSize;
use crate::sync;
use crate::sync::atomic::Ordering;

mod segment;

pub use segment::{RECORDS_OFFSET, SegmentImage, capacity, mark};
use segment::{SegmentHeader, header, init, published_to, room, taken};

/// The writing side; used by one thread only.
#[derive(Debug)]
pub struct Producer {
    /// The segment that is written.
    number: u32,
    header: *const SegmentHeader,
    records: *mut u8,
    /// Private copy of `head`: nobody else writes it.
    head: u64,
    /// Records that fit the part of the segment that may be used.
    limit: u64,
    capture: u64,
    size: RecordSize,
}

/// Capture number of a ring that does not exist; no capture has it.
const UNMADE: u64 = u64::MAX;

// SAFETY: the pointers lie in an arena that outlives the agent's lanes (it is never unmapped); a producer
// owns the writing side of its segment wherever it is.
unsafe impl Send for Producer {}

impl Default for Producer {
    /// The place of a ring that is not made yet: nothing can be pushed.
    fn default() -> Self {
        Producer {
            number: 0,
            header: std::ptr::null(),
            records: std::ptr::null_mut(),
            head: 0,
            limit: 0,
            capture: UNMADE,
            size: RecordSize::Api,
        }
    }
}

impl Producer {
    /// A ring with one segment; also tells the number of that segment, where the consumer begins. `None`
    /// when the arena is used up.
    pub fn new(arena: &Arena, size: RecordSize) -> Option<(Producer, u32)> {
        let segment = arena.take(Claim::First)?;
        let mut producer = Producer {
            capture: 0,
            size,
            ..Producer::default()
        };
        producer.enter(arena, &segment);
        Some((producer, segment.number()))
    }

    /// Whether there is a ring.
    pub fn is_made(&self) -> bool {
        self.capture != UNMADE
    }

    /// The capture that the ring is stamped with; 0 for none.
    pub fn capture(&self) -> u64 {
        self.capture
    }

    fn enter(&mut self, arena: &Arena, segment: &Segment) {
        // SAFETY: just taken from the arena.
        unsafe { init(arena, segment) };
        let start = arena.pointer(segment.number());
        self.number = segment.number();
        self.header = start.cast();
        self.records = start.wrapping_add(RECORDS_OFFSET);
        self.head = 0;
        self.limit = room(arena.first_bytes(), self.size);
    }

    fn header(&self) -> &SegmentHeader {
        sync::reads(self.header.cast(), RECORDS_OFFSET);
        // SAFETY: `enter` pointed it at an initialised segment, which is this ring's until `next` is set,
        // and then `enter` points it at another one.
        unsafe { &*self.header }
    }

    /// Stamps the ring: all that is pushed from here on belongs to `capture`.
    #[cold]
    pub fn stamp(&mut self, capture: u64) {
        self.capture = capture;
        let header = self.header();
        header.start.store(self.head, Ordering::Relaxed);
        // Release: a consumer that sees the new number sees its start index too.
        header.capture.store(capture, Ordering::Release);
    }

    /// Copies a record in and publishes it; `false` when the segment is full and the arena has no other.
    ///
    /// # Safety
    /// `record` is valid for reads of `N` bytes, `N` is the size of this ring's records, and `arena` is the
    /// one that the ring was made with.
    #[inline]
    pub unsafe fn push<const N: usize>(&mut self, arena: &Arena, record: *const u8) -> bool {
        if self.head >= self.limit && !self.go_on(arena) {
            return false;
        }
        // SAFETY: by this function's contract; there is room now.
        unsafe { self.write::<N>(record) };
        true
    }

    /// Copies a record in and publishes it, if the ring is made, stamped with `capture` and has room in its
    /// segment; else nothing is done.
    ///
    /// # Safety
    /// `record` is valid for reads of `N` bytes, and `N` is the size of this ring's records.
    #[inline(always)]
    pub unsafe fn push_quick<const N: usize>(&mut self, capture: u64, record: *const u8) -> bool {
        if self.capture != capture || self.head >= self.limit {
            return false;
        }
        // SAFETY: by this function's contract; a ring that is not made has no room.
        unsafe { self.write::<N>(record) };
        true
    }

    /// Copies a record in and publishes it.
    ///
    /// # Safety
    /// As [`Producer::push`]; the ring is made, and its segment has room.
    #[inline(always)]
    unsafe fn write<const N: usize>(&mut self, record: *const u8) {
        // SAFETY: the place is inside the segment and behind `head`, so the consumer does not read it; the
        // source is valid by this function's contract.
        unsafe {
            let place = self.records.add(self.head as usize * N);
            sync::writes(place, N);
            copy::ahead::<N>(place);
            copy::record::<N>(record, place);
        }
        self.head += 1;
        // Release: a consumer that sees the new head sees the record.
        self.header().head.store(self.head, Ordering::Release);
    }

    /// Finds room: in a new segment when the drain keeps up, so that slow rings stay small; else in the
    /// rest of this one.
    #[cold]
    fn go_on(&mut self, arena: &Arena) -> bool {
        // Relaxed: an older value makes the ring a little larger.
        let drained = self.header().drained.count.load(Ordering::Relaxed);
        let keeps_up = drained * 2 >= self.head;
        (keeps_up && self.move_on(arena, Claim::Steady))
            || self.extend(arena)
            || self.move_on(arena, Claim::Fast)
    }

    /// Uses the whole of the segment.
    fn extend(&mut self, arena: &Arena) -> bool {
        let whole = capacity(self.size);
        if self.limit == whole || !arena.extend(self.number) {
            return false;
        }
        self.limit = whole;
        // Seen by whoever sees `next`, or that the thread has ended.
        self.header().whole.store(1, Ordering::Relaxed);
        true
    }

    /// Leaves the segment for a new one.
    fn move_on(&mut self, arena: &Arena, claim: Claim) -> bool {
        let Some(segment) = arena.take(claim) else {
            return false;
        };
        let left = self.header;
        self.enter(arena, &segment);
        self.stamp(self.capture);
        // SAFETY: the segment that was left is this ring's until the store below.
        let left = unsafe { &*left };
        // Release: who follows the link sees the new segment's header, and the last records of this one.
        left.next.store(segment.number() + 1, Ordering::Release);
        true
    }
}

/// The reading side; used by the drain thread only.
#[derive(Debug)]
pub struct Consumer {
    number: u32,
    /// Records of the segment that are done with.
    tail: u64,
    /// Records that the producer published to segments that were given back, by its own indices.
    published_before: u64,
    size: RecordSize,
}

/// Records that can be taken.
#[derive(Clone, Copy, Debug)]
pub struct Readable<'a> {
    /// Whole records, contiguous, oldest first.
    pub bytes: &'a [u8],
    /// The segment is full: what waits now will not become more.
    pub full: bool,
}

impl Consumer {
    /// Begins at segment `number`, where the last consumer left off.
    ///
    /// # Safety
    /// The segment is one of a ring of `size` whose earlier segments were given back, and no other
    /// consumer of that ring is used while this one is.
    pub unsafe fn new(number: u32, size: RecordSize) -> Consumer {
        Consumer {
            number,
            tail: 0,
            published_before: 0,
            size,
        }
    }

    /// The segment that is read: where a later consumer begins.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// `capture`'s records that wait in the first segment; they stay until [`Consumer::release`]. Segments
    /// that hold nothing more go back to the arena on the way.
    pub fn readable<'a>(&mut self, arena: &'a Arena, capture: u64) -> Readable<'a> {
        loop {
            // SAFETY: the segment is this ring's: it is given back below only.
            let header = unsafe { header(arena, self.number) };
            // Acquire, and before `head`: once a next segment is seen, `head` is final.
            let next = header.next.load(Ordering::Acquire);
            let (from, to) = self.pending(header, capture);
            if from == to && next != 0 {
                self.published_before += published_to(header, capture);
                // The mark goes before the segment does: whoever holds that next has no mark in it.
                // SAFETY: the next segment is this ring's as well.
                let follower = unsafe { segment::header(arena, next - 1) };
                let mark = header.drained.ring.load(Ordering::Relaxed);
                follower.drained.ring.store(mark, Ordering::Release);
                header.drained.ring.store(0, Ordering::Release);
                // SAFETY: the segment is this ring's, and its producer has left it.
                arena.give_back(unsafe { taken(arena, self.number) });
                self.number = next - 1;
                self.tail = 0;
                continue;
            }
            self.tail = from;
            let size = self.size.bytes();
            // SAFETY: `[from, to)` are published records: the producer wrote them before it released
            // `head`, which `pending` acquired, and never writes before `head` again. They lie inside the
            // segment, which stays this ring's until a call with `&mut self`.
            let bytes = unsafe {
                let records = arena.pointer(self.number).add(RECORDS_OFFSET);
                std::slice::from_raw_parts(
                    records.add(from as usize * size),
                    (to - from) as usize * size,
                )
            };
            sync::reads(bytes.as_ptr(), bytes.len());
            return Readable {
                bytes,
                full: next != 0,
            };
        }
    }

    /// Index of the next record in it that is to be read.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Pages that the segment that is read is charged with.
    pub fn pages(&self, arena: &Arena) -> usize {
        // SAFETY: the segment is this ring's.
        arena.pages(&unsafe { taken(arena, self.number) })
    }

    /// Number of `capture`'s records that were ever published to this ring since this consumer was made,
    /// by the producer's own indices.
    pub fn published(&self, arena: &Arena, capture: u64) -> u64 {
        // SAFETY: the segment is this ring's.
        self.published_before + published_to(unsafe { header(arena, self.number) }, capture)
    }

    /// Index range of `capture`'s records that wait in a segment.
    fn pending(&self, header: &SegmentHeader, capture: u64) -> (u64, u64) {
        // Acquire pairs with `stamp`. A segment of another capture holds nothing for us.
        if header.capture.load(Ordering::Acquire) != capture {
            return (self.tail, self.tail);
        }
        let start = header.start.load(Ordering::Relaxed);
        let head = header.head.load(Ordering::Acquire);
        (self.tail.max(start), head)
    }

    /// The oldest `count` records of the last [`Consumer::readable`] are done with.
    pub fn release(&mut self, arena: &Arena, count: u64) {
        self.tail += count;
        // SAFETY: the segment is this ring's.
        let drained = unsafe { &header(arena, self.number).drained };
        // Relaxed: the producer never writes over anything by this.
        drained.count.store(self.tail, Ordering::Relaxed);
    }

    /// Gives the whole chain back.
    ///
    /// # Safety
    /// The producer is used no more, and neither is any other consumer.
    pub unsafe fn give_back(self, arena: &Arena) {
        let mut number = self.number;
        // SAFETY: the segment is this ring's.
        let first = unsafe { header(arena, number) };
        first.drained.ring.store(0, Ordering::Release);
        loop {
            // SAFETY: the segment is this ring's, as above.
            let next = unsafe { header(arena, number) }
                .next
                .load(Ordering::Acquire);
            // SAFETY: the segment is this ring's, and by this function's contract its producer is used no
            // more.
            arena.give_back(unsafe { taken(arena, number) });
            if next == 0 {
                return;
            }
            number = next - 1;
        }
    }
}

#[cfg(test)]
mod tests;
