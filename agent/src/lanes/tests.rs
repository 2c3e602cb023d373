//! Threads that come, report and go, and what they may hold.

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
    assert_eq!(lanes.arena().expect("prepared").charged(), 0);
}

#[test]
fn beyond_the_budget_records_are_counted_as_lost() {
    let lanes = Lanes::new(8 * SEGMENT_BYTES, 1);
    lanes.prepare().expect("map");
    // One eighth is left to other threads, and a first page stands alone where all memory is warm.
    let [least, most] = [6, 7].map(|segments| segments * capacity(RecordSize::Api));
    let reported = most + 10;
    let taken = (0..reported).filter(|_| push(&lanes, 3).is_ok()).count() as u64;
    assert!((least..=most).contains(&taken), "{taken}");
    let lane = lanes.snapshot().pop().expect("one lane");
    assert_eq!(lane.lost(3).get(Trace::RuntimeApi), reported - taken);
    assert_eq!(lane.lost(2).total(), 0);
}

#[test]
fn more_threads_than_whole_segments_report_a_little_each_without_loss() {
    const THREADS: usize = 30;
    let lanes = Arc::new(Lanes::new(8 * SEGMENT_BYTES, 1));
    lanes.prepare().expect("map");
    let all_have = Arc::new(std::sync::Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (lanes, all_have) = (lanes.clone(), all_have.clone());
            std::thread::spawn(move || {
                let taken = (0..50).all(|_| push(&lanes, 1).is_ok());
                all_have.wait();
                taken
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().expect("thread"));
    }
    assert_eq!(lanes.arena().expect("prepared").charged(), THREADS);
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
