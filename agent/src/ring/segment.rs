//! A segment of a ring: its header, what of it is whose, and how it looks from outside.

use crate::arena::{Arena, SEGMENT_BYTES, Segment};
use crate::records::RecordSize;
use crate::sync;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a segment in use. The consumer writes to a cache line of its own, so a push touches none
/// that the other side writes.
#[repr(C, align(128))]
#[derive(Debug)]
pub(super) struct SegmentHeader {
    /// Records published.
    pub(super) head: AtomicU64,
    /// Capture of all records at and after `start`; 0 before the first.
    pub(super) capture: AtomicU64,
    /// Index of the first record of that capture.
    pub(super) start: AtomicU64,
    /// Number of the next segment + 1; 0 while the producer is in this one.
    pub(super) next: AtomicU32,
    /// 1 when the whole segment may be used, 0 while it is a page of it.
    pub(super) whole: AtomicU32,
    /// The consumer's side.
    pub(super) drained: Drained,
}

/// What the consumer writes.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Drained {
    /// Records that are done with. The producer looks at it when it has no more room.
    pub(super) count: AtomicU64,
    /// Number of the ring's key + 1 in the segment with which the ring begins for the consumer, else 0. For
    /// those who read the memory after the process (`rescue`): they find the rings by it.
    pub(super) ring: AtomicU32,
}

/// Offset of the records in a segment.
pub const RECORDS_OFFSET: usize = 128;
const _: () = assert!(std::mem::size_of::<SegmentHeader>() == RECORDS_OFFSET);

/// The first bytes of a segment as they lie in memory. Nothing in it can be trusted.
#[repr(C)]
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[allow(missing_docs)] // as in the header
pub struct SegmentImage {
    pub head: u64,
    pub capture: u64,
    pub start: u64,
    pub next: u32,
    pub whole: u32,
    pub unused: [u64; 4],
    pub drained: u64,
    pub ring: u32,
    pub rest: [u32; 13],
}

// The models' atomics have a layout of their own, and nobody reads them from outside.
#[cfg(not(loom))]
const _: () = {
    use std::mem::offset_of;
    const DRAINED: usize = offset_of!(SegmentHeader, drained);
    assert!(size_of::<SegmentImage>() == RECORDS_OFFSET);
    assert!(offset_of!(SegmentHeader, head) == offset_of!(SegmentImage, head));
    assert!(offset_of!(SegmentHeader, capture) == offset_of!(SegmentImage, capture));
    assert!(offset_of!(SegmentHeader, start) == offset_of!(SegmentImage, start));
    assert!(offset_of!(SegmentHeader, next) == offset_of!(SegmentImage, next));
    assert!(DRAINED + offset_of!(Drained, count) == offset_of!(SegmentImage, drained));
    assert!(DRAINED + offset_of!(Drained, ring) == offset_of!(SegmentImage, ring));
};

/// Records that a whole segment holds.
pub const fn capacity(size: RecordSize) -> u64 {
    room(SEGMENT_BYTES, size)
}

/// Records that fit the first `bytes` of a segment.
pub(super) const fn room(bytes: usize, size: RecordSize) -> u64 {
    ((bytes - RECORDS_OFFSET) / size.bytes()) as u64
}

/// # Safety
/// The segment is one that this ring took and has not given back.
pub(super) unsafe fn header(arena: &Arena, number: u32) -> &SegmentHeader {
    sync::reads(arena.pointer(number), RECORDS_OFFSET);
    // SAFETY: inside the arena, aligned as the header, initialised by `init` before anybody else could know
    // of the segment, and nothing but atomics.
    unsafe { &*arena.pointer(number).cast::<SegmentHeader>() }
}

/// Number of `capture`'s records in a segment.
pub(super) fn published_to(header: &SegmentHeader, capture: u64) -> u64 {
    if header.capture.load(Ordering::Acquire) != capture {
        return 0;
    }
    let start = header.start.load(Ordering::Relaxed);
    header.head.load(Ordering::Acquire) - start
}

/// The segment of a number, with what its ring made of it.
///
/// # Safety
/// The segment is one that this ring took and has not given back.
pub(super) unsafe fn taken(arena: &Arena, number: u32) -> Segment {
    // SAFETY: by this function's contract.
    let whole = unsafe { header(arena, number) }
        .whole
        .load(Ordering::Relaxed)
        != 0;
    Segment::from_number(number, whole)
}

/// Makes a segment empty.
///
/// # Safety
/// The caller owns the segment, and nobody else knows of it.
pub(super) unsafe fn init(arena: &Arena, segment: &Segment) {
    let empty = SegmentHeader {
        head: AtomicU64::new(0),
        capture: AtomicU64::new(0),
        start: AtomicU64::new(0),
        next: AtomicU32::new(0),
        whole: AtomicU32::new(0),
        drained: Drained {
            count: AtomicU64::new(0),
            ring: AtomicU32::new(0),
        },
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

/// Marks segment `number` as the first one of the ring with key number `key`.
///
/// # Safety
/// The segment is the first one of a ring that was just made.
pub unsafe fn mark(arena: &Arena, number: u32, key: usize) {
    // SAFETY: by this function's contract.
    let drained = unsafe { &header(arena, number).drained };
    drained.ring.store(key as u32 + 1, Ordering::Release);
}
