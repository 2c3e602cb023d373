//! What an arena hands out, and to whom.

use super::*;
use std::collections::HashSet;
use std::sync::Arc;

#[test]
fn each_segment_is_handed_out_once_and_there_is_an_end() {
    let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
    let taken: HashSet<u32> = std::iter::from_fn(|| arena.take(Claim::Steady))
        .map(|segment| segment.number())
        .collect();
    assert_eq!(taken.len(), 16 * SEGMENTS_PER_WHOLE);
    assert_eq!(arena.charged(), taken.len() * arena.first_pages);
    assert_eq!(arena.starved(), 1);
}

fn take_whole(arena: &Arena, claim: Claim) -> Option<Segment> {
    let segment = arena.take(claim)?;
    if arena.extend(segment.number()) {
        return Some(Segment::from_number(segment.number(), true));
    }
    arena.give_back(segment);
    None
}

#[test]
fn a_flood_leaves_room_to_new_rings_and_they_to_those_that_the_drain_keeps_up_with() {
    let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
    let flood: Vec<Segment> = std::iter::from_fn(|| take_whole(&arena, Claim::Fast)).collect();
    assert_eq!(flood.len(), 14);
    assert_eq!(arena.charged(), 14 * SEGMENT_PAGES);
    assert_eq!(arena.starved(), 0);
    let new = std::iter::from_fn(|| arena.take(Claim::First)).count();
    assert_eq!(new, SEGMENT_PAGES / arena.first_pages);
    let steady = std::iter::from_fn(|| arena.take(Claim::Steady)).count();
    assert_eq!(steady, SEGMENT_PAGES / arena.first_pages);
    assert_eq!(arena.starved(), 2);
    for segment in flood {
        arena.give_back(segment);
    }
    assert_eq!(arena.charged(), 2 * SEGMENT_PAGES);
}

#[test]
fn new_rings_do_not_take_the_last_segments() {
    let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
    let new = std::iter::from_fn(|| arena.take(Claim::First)).count();
    assert_eq!(new, 60);
    assert!(arena.take(Claim::Fast).is_none());
    assert!(arena.take(Claim::Steady).is_some());
}

#[test]
fn no_more_segments_are_in_memory_as_a_whole_than_the_budget_pays_for() {
    let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
    // Slow rings that become fast one after the other, and give everything back.
    let taken: Vec<Segment> = (0..40)
        .map(|_| arena.take(Claim::First).expect("free"))
        .collect();
    for segment in taken {
        let whole = arena.extend(segment.number());
        arena.give_back(Segment::from_number(segment.number(), whole));
    }
    assert_eq!(arena.warm_all.load(Ordering::Relaxed), 16);
    arena.prefault(40 * SEGMENT_BYTES);
    assert_eq!(arena.warm_all.load(Ordering::Relaxed), 16);
    // A fast ring finds them.
    let flood = std::iter::from_fn(|| take_whole(&arena, Claim::Fast)).count();
    assert_eq!(flood, 14);
}

#[test]
fn slow_rings_leave_the_segments_that_are_in_memory_to_fast_ones() {
    let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
    arena.prefault(4 * SEGMENT_BYTES);
    let warm: Vec<u32> = (0..4).collect();
    let slow = arena.take(Claim::First).expect("free");
    assert!(!warm.contains(&slow.number()));
    let fast: Vec<Segment> = (0..4)
        .map(|_| take_whole(&arena, Claim::Fast).expect("free"))
        .collect();
    assert!(fast.iter().all(|segment| warm.contains(&segment.number())));
    // What was extended is in memory when it comes back, and serves fast rings again.
    let fifth = take_whole(&arena, Claim::Fast).expect("free");
    let number = fifth.number();
    arena.give_back(fifth);
    assert_ne!(arena.take(Claim::Steady).expect("free").number(), number);
    assert_eq!(arena.take(Claim::Fast).expect("free").number(), number);
}

#[test]
fn threads_that_take_and_return_never_hold_the_same_segment() {
    let arena = Arc::new(Arena::new(8 * SEGMENT_BYTES).expect("map"));
    let owners: Vec<AtomicU32> = (0..arena.segments).map(|_| AtomicU32::new(0)).collect();
    let owners = Arc::new(owners);
    let threads: Vec<_> = (1..=4u32)
        .map(|me| {
            let (arena, owners) = (arena.clone(), owners.clone());
            std::thread::spawn(move || {
                for _ in 0..20_000 {
                    let Some(segment) = arena.take(Claim::First) else {
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
    assert_eq!(arena.charged(), 0);
}

#[test]
fn memory_is_given_back_and_comes_again() {
    let arena = Arena::new(16 * SEGMENT_BYTES).expect("map");
    arena.prefault(4 * SEGMENT_BYTES);
    let segment = arena.take(Claim::Fast).expect("free");
    let pointer = arena.pointer(segment.number());
    // SAFETY: the test owns the segment.
    unsafe { pointer.write_bytes(0xAB, SEGMENT_BYTES) };
    arena.give_back(segment);
    arena.discard_free();
    let again = arena.take(Claim::First).expect("free");
    assert_eq!(arena.pointer(again.number()), pointer);
    // SAFETY: as above.
    assert_eq!(unsafe { pointer.read() }, 0);
}

// ---- where address space is limited ---------------------------------------------

#[test]
fn the_less_room_there_is_the_smaller_is_the_memory_and_half_of_the_room_is_left() {
    const WANTED: usize = 1024;
    let mut last = usize::MAX;
    for room in (0..=600u64).rev().map(|megabytes| megabytes << 20) {
        let Some(size) = Size::choices(WANTED).find(|size| size.fits(Some(room))) else {
            last = 0;
            continue;
        };
        assert!(size.bytes() as u64 <= room / 2);
        assert!(room - size.bytes() as u64 >= HEADROOM_BYTES);
        assert!(size.whole <= last, "{size:?} in {room}");
        assert!((WHOLE_MIN..=WANTED).contains(&size.whole) && size.segments >= size.whole);
        last = size.whole;
    }
    assert_eq!(last, 0, "nothing fits into nothing");
    let whole = |megabytes: u64| {
        let mut choices = Size::choices(WANTED);
        let found = choices.find(|size| size.fits(Some(megabytes << 20)));
        found.map(|size| (size.segments, size.whole))
    };
    assert_eq!(whole(600), Some((4096, 1024)));
    assert_eq!(whole(200), Some((1024, 1024)));
    assert_eq!(whole(100), Some((512, 256)));
    assert_eq!(whole(30), Some((128, 64)));
    assert_eq!(whole(16), Some((64, 32)));
    assert_eq!(whole(6), Some((16, 8)));
    assert_eq!(whole(5), None);
}

#[test]
fn an_arena_says_that_it_is_smaller_than_it_was_meant_to_be() {
    let ample = Arena::within(64, None).expect("map");
    assert_eq!((ample.reduced(), ample.segments), (None, 256));
    let tight = Arena::within(64, Some(21 << 20)).expect("map");
    assert_eq!((tight.reduced(), tight.segments), (None, 64));
    let small = Arena::within(64, Some(7 << 20)).expect("map");
    assert_eq!(small.reduced(), Some(16 * SEGMENT_BYTES));
    assert_eq!(small.segments, 32);
    let error = Arena::within(64, Some(4 << 20)).expect_err("no room");
    assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("4 MB"), "{error}");
}
