//! One single-producer single-consumer queue of records of one size: a chain of segments that go round
//! between the arena and the rings.
//!
//! ```text
//!   consumer ->  [segment] -> [segment] -> [segment]  <- producer
//!                 drained: back to the arena    full: another one from the arena
//! ```
//!
//! Why a chain and not one array per thread: a thread that floods takes what memory there is, within a
//! millisecond and without the drain's help, while a thread that reports one record holds 64 KiB; and
//! what was just drained is used again while it is in the cache (docs/decisions/1-segments.md).
//!
//! Invariants:
//! - the producer alone writes a segment's `head`, `capture`, `start` and `next`, until it has set `next`;
//!   from then on it never touches the segment again;
//! - records `[max(start, what was drained), head)` of a segment are whole and of capture `capture`; the
//!   consumer reads only these, the producer writes only behind `head`;
//! - `head` is final once `next` is set;
//! - a record published for capture N is never seen by the drain of another capture: the producer stamps
//!   the segment before its first record of a capture, and numbers are never used twice.

use crate::arena::{Arena, SEGMENT_BYTES, Segment};
use crate::records::RecordSize;
use crate::sync;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// First bytes of a segment in use. The consumer writes none of it, so a push touches no cache line that
/// the other side writes.
#[repr(C, align(128))]
#[derive(Debug)]
struct SegmentHeader {
    /// Records published.
    head: AtomicU64,
    /// Capture of all records at and after `start`; 0 before the first.
    capture: AtomicU64,
    /// Index of the first record of that capture.
    start: AtomicU64,
    /// Number of the next segment + 1; 0 while the producer is in this one.
    next: AtomicU32,
}

/// Offset of the records in a segment.
const RECORDS_OFFSET: usize = 128;
const _: () = assert!(std::mem::size_of::<SegmentHeader>() == RECORDS_OFFSET);

/// Records that a segment holds.
pub const fn capacity(size: RecordSize) -> u64 {
    ((SEGMENT_BYTES - RECORDS_OFFSET) / size.bytes()) as u64
}

/// # Safety
/// The segment is one that this ring took and has not given back.
unsafe fn header(arena: &Arena, number: u32) -> &SegmentHeader {
    sync::reads(arena.pointer(number), RECORDS_OFFSET);
    // SAFETY: inside the arena, aligned to 64 KiB, initialised by `init` before anybody else could know
    // of the segment, and nothing but atomics.
    unsafe { &*arena.pointer(number).cast::<SegmentHeader>() }
}

/// Number of `capture`'s records in a segment.
fn published_to(header: &SegmentHeader, capture: u64) -> u64 {
    if header.capture.load(Ordering::Acquire) != capture {
        return 0;
    }
    let start = header.start.load(Ordering::Relaxed);
    header.head.load(Ordering::Acquire) - start
}

/// Makes a segment empty.
///
/// # Safety
/// The caller owns the segment, and nobody else knows of it.
unsafe fn init(arena: &Arena, segment: &Segment) {
    let empty = SegmentHeader {
        head: AtomicU64::new(0),
        capture: AtomicU64::new(0),
        start: AtomicU64::new(0),
        next: AtomicU32::new(0),
    };
    sync::writes(arena.pointer(segment.number()), RECORDS_OFFSET);
    // SAFETY: by the contract; inside the arena and aligned.
    unsafe {
        arena
            .pointer(segment.number())
            .cast::<SegmentHeader>()
            .write(empty);
    }
}

/// The writing side; used by one thread only.
#[derive(Debug)]
pub struct Producer {
    /// The segment that is written.
    header: *const SegmentHeader,
    records: *mut u8,
    /// Private copy of `head`: nobody else writes it.
    head: u64,
    capacity: u64,
    capture: u64,
}

// SAFETY: the pointers lie in an arena that outlives the agent's lanes (it is never unmapped); a producer
// owns the writing side of its segment wherever it is.
unsafe impl Send for Producer {}

impl Producer {
    /// A ring with one segment; also tells the number of that segment, where the consumer begins. `None`
    /// when the arena is used up.
    pub fn new(arena: &Arena, size: RecordSize) -> Option<(Producer, u32)> {
        let segment = arena.take(true)?;
        let mut producer = Producer {
            header: std::ptr::null(),
            records: std::ptr::null_mut(),
            head: 0,
            capacity: capacity(size),
            capture: 0,
        };
        producer.enter(arena, &segment);
        Some((producer, segment.number()))
    }

    /// The capture that the ring is stamped with; 0 for none.
    #[inline]
    pub fn capture(&self) -> u64 {
        self.capture
    }

    fn enter(&mut self, arena: &Arena, segment: &Segment) {
        // SAFETY: just taken from the arena.
        unsafe { init(arena, segment) };
        let start = arena.pointer(segment.number());
        self.header = start.cast();
        self.records = start.wrapping_add(RECORDS_OFFSET);
        self.head = 0;
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
        if self.head >= self.capacity && !self.go_on(arena) {
            return false;
        }
        // SAFETY: the place is inside the segment and behind `head`, so the consumer does not read it; the
        // source is valid by this function's contract.
        unsafe {
            let place = self.records.add(self.head as usize * N);
            sync::writes(place, N);
            std::ptr::copy_nonoverlapping(record, place, N);
        }
        self.head += 1;
        // Release: a consumer that sees the new head sees the record.
        self.header().head.store(self.head, Ordering::Release);
        true
    }

    /// Leaves a full segment for a new one.
    #[cold]
    fn go_on(&mut self, arena: &Arena) -> bool {
        let Some(segment) = arena.take(false) else {
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
                arena.give_back(Segment::from_number(self.number));
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
    pub fn release(&mut self, count: u64) {
        self.tail += count;
    }

    /// Gives the whole chain back.
    ///
    /// # Safety
    /// The producer is used no more, and neither is any other consumer.
    pub unsafe fn give_back(self, arena: &Arena) {
        let mut number = self.number;
        loop {
            // SAFETY: the segment is this ring's, as above.
            let next = unsafe { header(arena, number) }
                .next
                .load(Ordering::Acquire);
            arena.give_back(Segment::from_number(number));
            if next == 0 {
                return;
            }
            number = next - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ApiRecord;
    use std::sync::Arc;
    use zerocopy::{FromBytes, FromZeros, IntoBytes};

    const SEGMENTS: usize = 8;

    fn ring() -> (Arc<Arena>, Producer, Consumer) {
        let arena = Arena::new(SEGMENTS * SEGMENT_BYTES).expect("map");
        let (producer, number) = Producer::new(&arena, RecordSize::Api).expect("free");
        // SAFETY: the ring's first segment and its only consumer.
        let consumer = unsafe { Consumer::new(number, RecordSize::Api) };
        (Arc::new(arena), producer, consumer)
    }

    fn push(producer: &mut Producer, arena: &Arena, item_id: u64) -> bool {
        let mut record = ApiRecord::new_zeroed();
        record.item_id = item_id;
        // SAFETY: the record has 40 bytes, the ring is for api records and was made in this arena.
        unsafe { producer.push::<40>(arena, record.as_bytes().as_ptr()) }
    }

    /// Takes all that waits in the first segment with something in it.
    fn drain(consumer: &mut Consumer, arena: &Arena, capture: u64) -> Vec<u64> {
        let readable = consumer.readable(arena, capture);
        let ids: Vec<u64> = readable
            .bytes
            .chunks(40)
            .map(|bytes| ApiRecord::read_from_bytes(bytes).expect("40 bytes").item_id)
            .collect();
        consumer.release(ids.len() as u64);
        ids
    }

    fn drain_all(consumer: &mut Consumer, arena: &Arena, capture: u64) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            let ids = drain(consumer, arena, capture);
            if ids.is_empty() {
                return all;
            }
            all.extend(ids);
        }
    }

    #[test]
    fn records_come_out_in_order_across_segments() {
        let (arena, mut producer, mut consumer) = ring();
        producer.stamp(1);
        let count = 3 * capacity(RecordSize::Api) + 5;
        assert!((0..count).all(|id| push(&mut producer, &arena, id)));
        let expected: Vec<u64> = (0..count).collect();
        assert_eq!(drain_all(&mut consumer, &arena, 1), expected);
        assert_eq!(consumer.published(&arena, 1), count);
        assert_eq!(arena.free(), SEGMENTS - 1);
    }

    #[test]
    fn without_a_free_segment_a_push_is_refused_and_nothing_is_overwritten() {
        let (arena, mut producer, mut consumer) = ring();
        producer.stamp(1);
        let room = (SEGMENTS as u64 - 1) * capacity(RecordSize::Api);
        assert!((0..room).all(|id| push(&mut producer, &arena, id)));
        assert!(!push(&mut producer, &arena, room));
        assert_eq!(drain(&mut consumer, &arena, 1)[0], 0);
        // The drained segment goes back when the next one is asked for.
        assert!(!drain(&mut consumer, &arena, 1).is_empty());
        assert!(push(&mut producer, &arena, room + 1));
        let rest = drain_all(&mut consumer, &arena, 1);
        assert_eq!(rest.last(), Some(&(room + 1)));
        assert_eq!(consumer.published(&arena, 1), room + 1);
    }

    #[test]
    fn what_an_earlier_capture_left_is_never_seen_and_goes_back() {
        let (arena, mut producer, mut consumer) = ring();
        producer.stamp(1);
        let count = 2 * capacity(RecordSize::Api) + 3;
        assert!((0..count).all(|id| push(&mut producer, &arena, id)));
        assert_eq!(drain_all(&mut consumer, &arena, 2), [] as [u64; 0]);
        assert_eq!(arena.free(), SEGMENTS - 1);
        producer.stamp(2);
        assert!((10..14).all(|id| push(&mut producer, &arena, id)));
        assert_eq!(drain_all(&mut consumer, &arena, 2), [10, 11, 12, 13]);
        assert_eq!(consumer.published(&arena, 2), 4);
    }

    #[test]
    fn a_later_consumer_goes_on_where_the_last_one_was() {
        let (arena, mut producer, mut consumer) = ring();
        producer.stamp(1);
        let count = capacity(RecordSize::Api) + 3;
        assert!((0..count).all(|id| push(&mut producer, &arena, id)));
        assert_eq!(drain_all(&mut consumer, &arena, 1).len() as u64, count);
        // SAFETY: the former consumer is used no more.
        let mut later = unsafe { Consumer::new(consumer.number(), RecordSize::Api) };
        producer.stamp(2);
        assert!(push(&mut producer, &arena, 77));
        assert_eq!(drain_all(&mut later, &arena, 2), [77]);
        // SAFETY: neither side is used any more.
        unsafe { later.give_back(&arena) };
        assert_eq!(arena.free(), SEGMENTS);
    }

    #[test]
    fn two_threads_pass_every_record_once_and_in_order() {
        const COUNT: u64 = 300_000;
        let (arena, mut producer, mut consumer) = ring();
        producer.stamp(7);
        let theirs = arena.clone();
        let sender = std::thread::spawn(move || {
            for id in 0..COUNT {
                while !push(&mut producer, &theirs, id) {
                    std::thread::yield_now();
                }
            }
        });
        let mut next = 0;
        while next < COUNT {
            let ids = drain(&mut consumer, &arena, 7);
            if ids.is_empty() {
                std::thread::yield_now();
            }
            for id in ids {
                assert_eq!(id, next);
                next += 1;
            }
        }
        sender.join().expect("producer thread");
        assert_eq!(consumer.published(&arena, 7), COUNT);
    }
}
