//! Rings with both ends in hand.

use super::*;
use crate::arena::SEGMENT_BYTES;
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
    consumer.release(arena, ids.len() as u64);
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
    assert_eq!(arena.charged(), consumer.pages(&arena));
}

#[test]
fn without_a_free_segment_a_push_is_refused_and_nothing_is_overwritten() {
    let (arena, mut producer, mut consumer) = ring();
    producer.stamp(1);
    // One eighth is left to other rings.
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
fn a_ring_that_the_drain_keeps_up_with_holds_a_page_and_one_that_is_too_fast_a_segment() {
    let (arena, mut producer, mut consumer) = ring();
    producer.stamp(1);
    for next in 0..3 * capacity(RecordSize::Api) {
        assert!(push(&mut producer, &arena, next));
        assert_eq!(drain_all(&mut consumer, &arena, 1), [next]);
        assert!(arena.charged() <= 2, "{next}: {}", arena.charged());
    }
    let burst = capacity(RecordSize::Api);
    assert!((0..burst).all(|id| push(&mut producer, &arena, id)));
    assert_eq!(consumer.pages(&arena), 1, "left when the burst came");
    assert_eq!(drain_all(&mut consumer, &arena, 1).len() as u64, burst);
    assert_eq!(consumer.pages(&arena), SEGMENT_BYTES / arena.first_bytes());
    assert_eq!(arena.charged(), SEGMENT_BYTES / arena.first_bytes());
}

#[test]
fn a_ring_that_is_drained_goes_on_when_another_has_taken_all_it_may() {
    let (arena, mut flood, _undrained) = ring();
    flood.stamp(1);
    let (mut producer, number) = Producer::new(&arena, RecordSize::Api).expect("free");
    // SAFETY: the ring's first segment and its only consumer.
    let mut consumer = unsafe { Consumer::new(number, RecordSize::Api) };
    producer.stamp(1);
    let mut next = 0;
    let mut report_and_drain = |arena: &Arena| {
        assert!(push(&mut producer, arena, next), "{next}");
        assert_eq!(drain_all(&mut consumer, arena, 1), [next]);
        next += 1;
    };
    report_and_drain(&arena);
    while push(&mut flood, &arena, 0) {}
    (0..1000).for_each(|_| report_and_drain(&arena));
    assert!(!push(&mut flood, &arena, 0));
}

#[test]
fn what_an_earlier_capture_left_is_never_seen_and_goes_back() {
    let (arena, mut producer, mut consumer) = ring();
    producer.stamp(1);
    let count = 2 * capacity(RecordSize::Api) + 3;
    assert!((0..count).all(|id| push(&mut producer, &arena, id)));
    assert_eq!(drain_all(&mut consumer, &arena, 2), [] as [u64; 0]);
    assert_eq!(arena.charged(), consumer.pages(&arena));
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
    assert_eq!(arena.charged(), 0);
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
