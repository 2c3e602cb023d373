//! One single-producer single-consumer ring of records of one size.
//!
//! The header and the slots lie in one block of the arena. The producer is one application thread,
//! the consumer is the drain thread. Indices are u64 counts of records since the ring was made and
//! never wrap; a slot is `index & mask`.
//!
//! Invariants:
//! - only the producer writes `head`, `capture` and `start`; only the consumer writes `tail`;
//! - slots `[max(tail, start), head)` hold whole records of capture `capture`; the consumer reads
//!   only these, the producer writes only outside of them;
//! - a record published for capture N is never seen by the drain of another capture: the producer
//!   stamps the ring before its first record of a capture, and numbers are never used twice.

use crate::records::RecordSize;
use std::sync::atomic::{AtomicU64, Ordering};

/// Two cache lines: 128 bytes is the line of some aarch64 servers and the prefetch pair of x86-64.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Line<T>(T);

/// What the producer says of the records that it puts in.
#[repr(C)]
#[derive(Debug, Default)]
struct Stamp {
    /// Capture of all records at and after `start`; 0 before the first.
    capture: AtomicU64,
    /// Index of the first record of that capture.
    start: AtomicU64,
}

/// First bytes of a ring's block; all zero is an empty ring.
#[repr(C)]
#[derive(Debug, Default)]
pub struct RingHeader {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
    stamp: Line<Stamp>,
}

/// Offset of the slots: a page of its own for the header, so that the pages of the slots can be
/// given back to the system while a producer still has the ring.
pub const SLOTS_OFFSET: usize = 4096;
const _: () = assert!(std::mem::size_of::<RingHeader>() <= SLOTS_OFFSET);

/// Where a ring lies and how large it is. Copied to both sides.
#[derive(Clone, Copy, Debug)]
pub struct RingPlace {
    header: *const RingHeader,
    slots: *mut u8,
    /// Number of slots - 1; the number is a power of two.
    mask: u64,
    size: RecordSize,
}

impl RingPlace {
    /// Bytes of a block that holds a ring of `slots` records.
    pub fn block_bytes(size: RecordSize, slots: usize) -> usize {
        SLOTS_OFFSET + slots * size.bytes()
    }

    /// Lays a ring into a block.
    ///
    /// # Safety
    /// `block` is aligned to 128 bytes, its first `SLOTS_OFFSET` bytes are zero, it is valid for `block_bytes(size, slots)` bytes as long
    /// as the place or a copy of it is used, and used by nothing else. `slots` is a power of two.
    pub unsafe fn new(block: *mut u8, size: RecordSize, slots: usize) -> RingPlace {
        debug_assert!(slots.is_power_of_two() && (block as usize).is_multiple_of(128));
        RingPlace {
            header: block.cast(),
            slots: block.wrapping_add(SLOTS_OFFSET),
            mask: slots as u64 - 1,
            size,
        }
    }

    fn header(&self) -> &RingHeader {
        // SAFETY: `new`'s contract: the block outlives the place, is aligned, and holds only atomics.
        unsafe { &*self.header }
    }

    /// Number of slots.
    pub fn slots(&self) -> u64 {
        self.mask + 1
    }

    /// Size of its records.
    pub fn size(&self) -> RecordSize {
        self.size
    }
}

/// The writing side; used by one thread only.
#[derive(Debug)]
pub struct Producer {
    place: RingPlace,
    /// Private copy of `head`: nobody else writes it.
    head: u64,
    /// Last seen end of the free room; refreshed only when the ring looks full, so that a push
    /// touches the consumer's cache line once per lap at most.
    free_until: u64,
    capture: u64,
}

impl Producer {
    /// Takes up a ring where its last producer, if any, left it.
    ///
    /// # Safety
    /// No other producer of this place exists, now or later, while this one is used.
    pub unsafe fn new(place: RingPlace) -> Producer {
        let head = place.header().head.0.load(Ordering::Relaxed);
        Producer {
            place,
            head,
            free_until: head,
            capture: 0,
        }
    }

    /// The capture that the ring is stamped with; 0 for none.
    #[inline]
    pub fn capture(&self) -> u64 {
        self.capture
    }

    /// Stamps the ring: all that is pushed from here on belongs to `capture`.
    #[cold]
    pub fn stamp(&mut self, capture: u64) {
        let stamp = &self.place.header().stamp.0;
        stamp.start.store(self.head, Ordering::Relaxed);
        // Release: a consumer that sees the new number sees its start index too.
        stamp.capture.store(capture, Ordering::Release);
        self.capture = capture;
        // What an earlier capture left behind is dead: the consumer reads nothing before `start`.
        self.free_until = self.head + self.place.slots();
    }

    /// Copies a record in and publishes it; `false` when the ring is full.
    ///
    /// # Safety
    /// `record` is valid for reads of `N` bytes, and `N` is the size of this ring's records.
    #[inline]
    pub unsafe fn push<const N: usize>(&mut self, record: *const u8) -> bool {
        debug_assert_eq!(N, self.place.size.bytes());
        if self.head == self.free_until && !self.find_room() {
            return false;
        }
        let slot = (self.head & self.place.mask) as usize;
        // SAFETY: the slot lies inside the block and outside of `[max(tail, start), head)`, so the
        // consumer does not read it; the source is valid by this function's contract.
        unsafe {
            std::ptr::copy_nonoverlapping(record, self.place.slots.add(slot * N), N);
        }
        self.head += 1;
        // Release: a consumer that sees the new head sees the record.
        self.place
            .header()
            .head
            .0
            .store(self.head, Ordering::Release);
        true
    }

    #[cold]
    fn find_room(&mut self) -> bool {
        let header = self.place.header();
        // Acquire: the consumer has finished reading the slots that it gave back.
        let tail = header.tail.0.load(Ordering::Acquire);
        let start = header.stamp.0.start.load(Ordering::Relaxed);
        self.free_until = tail.max(start) + self.place.slots();
        self.head < self.free_until
    }
}

/// The reading side; used by the drain thread only.
#[derive(Debug)]
pub struct Consumer {
    place: RingPlace,
    tail: u64,
}

/// Records that can be taken, oldest first; the second part begins where the ring wraps.
#[derive(Clone, Copy, Debug)]
pub struct Readable<'a> {
    /// Older records, contiguous.
    pub first: &'a [u8],
    /// Newer records, contiguous.
    pub second: &'a [u8],
}

impl Consumer {
    /// Takes up a ring where its last consumer left it.
    ///
    /// # Safety
    /// No other consumer of this place exists, now or later, while this one is used.
    pub unsafe fn new(place: RingPlace) -> Consumer {
        let tail = place.header().tail.0.load(Ordering::Relaxed);
        Consumer { place, tail }
    }

    /// Size of its records.
    pub fn size(&self) -> RecordSize {
        self.place.size
    }

    /// Number of slots.
    pub fn slots(&self) -> u64 {
        self.place.slots()
    }

    /// Index range of `capture`'s records that are in the ring.
    fn pending(&self, capture: u64) -> (u64, u64) {
        let header = self.place.header();
        // Acquire pairs with `stamp`. A ring of another capture holds nothing for us.
        if header.stamp.0.capture.load(Ordering::Acquire) != capture {
            return (self.tail, self.tail);
        }
        let start = header.stamp.0.start.load(Ordering::Relaxed);
        let head = header.head.0.load(Ordering::Acquire);
        (self.tail.max(start), head)
    }

    /// Number of `capture`'s records that wait.
    pub fn waiting(&self, capture: u64) -> u64 {
        let (from, to) = self.pending(capture);
        to - from
    }

    /// Number of `capture`'s records that were ever published to this ring, by its producer's own
    /// indices; 0 when the ring is of another capture.
    pub fn published(&self, capture: u64) -> u64 {
        let header = self.place.header();
        if header.stamp.0.capture.load(Ordering::Acquire) != capture {
            return 0;
        }
        let start = header.stamp.0.start.load(Ordering::Relaxed);
        header.head.0.load(Ordering::Acquire) - start
    }

    /// `capture`'s records that wait; they stay until [`Consumer::release`].
    pub fn readable(&mut self, capture: u64) -> Readable<'_> {
        let (from, to) = self.pending(capture);
        self.tail = from;
        let size = self.place.size.bytes();
        let first_slot = from & self.place.mask;
        let count = to - from;
        let until_wrap = count.min(self.place.slots() - first_slot);
        // SAFETY: `[from, to)` are published records: the producer wrote them before it released
        // `head`, which `pending` acquired, and does not touch them until `tail` moves past them,
        // which needs `&mut self` again. Both parts lie inside the block.
        unsafe {
            let begin = self.place.slots.add(first_slot as usize * size);
            Readable {
                first: std::slice::from_raw_parts(begin, until_wrap as usize * size),
                second: std::slice::from_raw_parts(
                    self.place.slots,
                    (count - until_wrap) as usize * size,
                ),
            }
        }
    }

    /// Gives the oldest `count` records of the last [`Consumer::readable`] back to the producer.
    pub fn release(&mut self, count: u64) {
        self.tail += count;
        // Release: our reads of the slots happen before the producer writes them again.
        self.place
            .header()
            .tail
            .0
            .store(self.tail, Ordering::Release);
    }
}

// SAFETY: a place is two pointers into an arena block that outlives it; the header is atomics only.
// `Producer` and `Consumer` own their side of it (contracts of their `new`), so moving either to
// another thread is sound.
unsafe impl Send for RingPlace {}
// SAFETY: see above; a shared `RingPlace` gives out nothing but the atomics.
unsafe impl Sync for RingPlace {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::records::ApiRecord;
    use zerocopy::{FromBytes, FromZeros, IntoBytes};

    fn ring(slots: usize) -> (Arena, Producer, Consumer) {
        let bytes = RingPlace::block_bytes(RecordSize::Api, slots);
        let arena = Arena::new(bytes).expect("map");
        let block = arena.take(bytes).expect("fits");
        // SAFETY: the block is fresh, page aligned, large enough, and lives as long as the arena,
        // which the caller holds; one producer and one consumer are made.
        unsafe {
            let place = RingPlace::new(arena.pointer(&block), RecordSize::Api, slots);
            (arena, Producer::new(place), Consumer::new(place))
        }
    }

    fn record(item_id: u64) -> ApiRecord {
        let mut record = ApiRecord::new_zeroed();
        record.item_id = item_id;
        record
    }

    fn push(producer: &mut Producer, item_id: u64) -> bool {
        let record = record(item_id);
        // SAFETY: the record has 40 bytes and the ring is for api records.
        unsafe { producer.push::<40>(record.as_bytes().as_ptr()) }
    }

    fn drain(consumer: &mut Consumer, capture: u64) -> Vec<u64> {
        let readable = consumer.readable(capture);
        let ids: Vec<u64> = readable
            .first
            .chunks(40)
            .chain(readable.second.chunks(40))
            .map(|bytes| ApiRecord::read_from_bytes(bytes).expect("40 bytes").item_id)
            .collect();
        consumer.release(ids.len() as u64);
        ids
    }

    #[test]
    fn records_come_out_in_order_across_the_wrap() {
        let (_arena, mut producer, mut consumer) = ring(8);
        producer.stamp(1);
        let mut next = 0;
        for lap in 0..5 {
            for _ in 0..6 {
                assert!(push(&mut producer, next));
                next += 1;
            }
            let expected: Vec<u64> = (lap * 6..next).collect();
            assert_eq!(drain(&mut consumer, 1), expected);
        }
    }

    #[test]
    fn a_full_ring_refuses_and_keeps_what_it_has() {
        let (_arena, mut producer, mut consumer) = ring(4);
        producer.stamp(1);
        assert!((0..4).all(|id| push(&mut producer, id)));
        assert!(!push(&mut producer, 4));
        assert_eq!(drain(&mut consumer, 1), [0, 1, 2, 3]);
        assert!(push(&mut producer, 5));
        assert_eq!(consumer.published(1), 5);
    }

    #[test]
    fn what_an_earlier_capture_left_is_never_seen_and_takes_no_room() {
        let (_arena, mut producer, mut consumer) = ring(4);
        producer.stamp(1);
        assert!((0..3).all(|id| push(&mut producer, id)));
        assert_eq!(drain(&mut consumer, 2), [] as [u64; 0]);
        producer.stamp(2);
        assert!((10..14).all(|id| push(&mut producer, id)));
        assert!(!push(&mut producer, 14));
        assert_eq!(drain(&mut consumer, 2), [10, 11, 12, 13]);
    }

    #[test]
    fn two_threads_pass_every_record_once_and_in_order() {
        const COUNT: u64 = 200_000;
        let (_arena, mut producer, mut consumer) = ring(64);
        producer.stamp(7);
        let sender = std::thread::spawn(move || {
            for id in 0..COUNT {
                while !push(&mut producer, id) {
                    std::thread::yield_now();
                }
            }
        });
        let mut next = 0;
        while next < COUNT {
            let ids = drain(&mut consumer, 7);
            if ids.is_empty() {
                std::thread::yield_now();
            }
            for id in ids {
                assert_eq!(id, next);
                next += 1;
            }
        }
        sender.join().expect("producer thread");
    }
}
