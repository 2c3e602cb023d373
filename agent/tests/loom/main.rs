//! Models of the code between a report and the drain: loom runs the real arena, rings, lanes and gate
//! through every order of their atomic accesses (within a bound of preemptions) and every value that a
//! weakly ordered load may see. `make loom` runs them.
//!
//! A segment holds two records here, its first page one. Each word of a record is its number, so that a torn
//! one shows; that the bytes of a record and a segment's header are never accessed by two threads without an
//! order between them is checked by loom itself (`sync::reads`, `sync::writes`).
#![cfg(loom)]

mod reader;

use loom::sync::atomic::{AtomicBool as Flag, Ordering};
use loom::thread;
use msprof_agent_core::arena::{Arena, Claim, SEGMENT_BYTES, Segment};
use msprof_agent_core::gate::{self, Word};
use msprof_agent_core::lanes::{Dropped, Lanes, RingKey, push_quick};
use msprof_agent_core::records::{RecordSize, Trace};
use msprof_agent_core::ring::{Consumer, Producer, capacity};
use msprof_agent_core::sync;
use reader::{Closed, Reader, sum, take};
use std::sync::Arc;

const SIZE: RecordSize = RecordSize::Compact;
const BYTES: usize = SIZE.bytes();
const KEY: RingKey = RingKey {
    size: SIZE,
    aging: true,
};
const TRACE: Trace = Trace::Task;
const _: () = assert!(capacity(SIZE) == 2);

/// Runs a model with at most `preemptions` switches away from a thread that could go on
/// (`LOOM_MAX_PREEMPTIONS` overrides).
fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

fn record(number: u64) -> [u64; BYTES / 8] {
    [number; BYTES / 8]
}

/// One ring without a lane.
fn ring(segments: usize) -> (Arc<Arena>, Producer, Consumer) {
    let arena = Arc::new(Arena::new(segments * SEGMENT_BYTES).expect("memory"));
    let (producer, first) = Producer::new(&arena, SIZE).expect("a free segment");
    // SAFETY: the ring's first segment and its only consumer.
    let consumer = unsafe { Consumer::new(first, SIZE) };
    (arena, producer, consumer)
}

fn push(producer: &mut Producer, arena: &Arena, number: u64) -> bool {
    // SAFETY: a record of this ring's size; the ring was made in this arena.
    unsafe { producer.push::<BYTES>(arena, record(number).as_ptr().cast()) }
}

fn lanes(segments: usize) -> Arc<Lanes> {
    let lanes = Lanes::new(segments * SEGMENT_BYTES, 1);
    lanes.prepare().expect("memory");
    Arc::new(lanes)
}

fn report(lanes: &Lanes, word: Word, number: u64) -> Result<(), Dropped> {
    let record = record(number);
    let record = record.as_ptr().cast();
    // SAFETY: a compact record.
    unsafe {
        if push_quick::<BYTES>(word, KEY, record) {
            return Ok(());
        }
        lanes.push::<BYTES>(word, KEY, TRACE, record)
    }
}

fn word(capture: u64) -> Word {
    Word::capturing(capture, 0xFF)
}

#[test]
fn records_come_out_whole_once_and_in_order_across_segments() {
    model(3, || {
        let (arena, mut producer, mut consumer) = ring(4);
        producer.stamp(1);
        let theirs = arena.clone();
        let sender = thread::spawn(move || {
            assert!((1..=5).all(|number| push(&mut producer, &theirs, number)));
        });
        let mut taken = take(&mut consumer, &arena, 1);
        taken.extend(take(&mut consumer, &arena, 1));
        sender.join().expect("sender");
        taken.extend(take(&mut consumer, &arena, 1));
        assert_eq!(taken, [1, 2, 3, 4, 5]);
        assert_eq!(consumer.published(&arena, 1), 5);
        assert_eq!(arena.charged(), consumer.pages(&arena));
    });
}

#[test]
fn a_full_arena_refuses_records_and_memory_that_was_drained_is_used_again() {
    model(3, || {
        let (arena, mut producer, mut consumer) = ring(2);
        producer.stamp(1);
        let theirs = arena.clone();
        let sender = thread::spawn(move || -> Vec<u64> {
            (1..=7)
                .filter(|&number| push(&mut producer, &theirs, number))
                .collect()
        });
        let mut taken = take(&mut consumer, &arena, 1);
        taken.extend(take(&mut consumer, &arena, 1));
        let accepted = sender.join().expect("sender");
        assert!(accepted.len() >= 4, "there is room for four");
        taken.extend(take(&mut consumer, &arena, 1));
        assert_eq!(taken, accepted);
        assert_eq!(consumer.published(&arena, 1), accepted.len() as u64);
    });
}

/// Capture 1 left `before` records behind, `late` ones come while capture 2 is drained.
fn begin_capture_while_it_is_drained(before: u64, late: u64) {
    let (arena, mut producer, mut consumer) = ring(5);
    producer.stamp(1);
    assert!((0..before).all(|number| push(&mut producer, &arena, 10 + number)));
    let theirs = arena.clone();
    let sender = thread::spawn(move || {
        assert!((0..late).all(|number| push(&mut producer, &theirs, 14 + number)));
        producer.stamp(2);
        assert!((21..=23).all(|number| push(&mut producer, &theirs, number)));
    });
    let least = consumer.published(&arena, 2);
    let mut taken = take(&mut consumer, &arena, 2);
    let most = consumer.published(&arena, 2);
    assert!((least..=most).contains(&(taken.len() as u64)));
    sender.join().expect("sender");
    taken.extend(take(&mut consumer, &arena, 2));
    assert_eq!(taken, [21, 22, 23]);
    assert_eq!(consumer.published(&arena, 2), 3);
}

#[test]
fn a_capture_that_begins_while_its_drain_reads_shows_nothing_of_the_one_before() {
    model(3, || begin_capture_while_it_is_drained(1, 0));
    model(3, || begin_capture_while_it_is_drained(3, 2));
}

/// Reports 1 to 3 of a thread that looks at the gate before each, as `report` does.
fn report_while_open(mut push: impl FnMut(u64, u64)) {
    for turn in 1..=3 {
        let word = gate::load();
        if word.is_capture() {
            push(word.number(), word.number() * 10 + turn);
        }
    }
}

#[test]
fn a_report_that_a_stop_overtakes_is_in_its_own_capture_or_in_none() {
    model(3, || {
        let (arena, mut producer, mut consumer) = ring(4);
        gate::open(word(1));
        let theirs = arena.clone();
        // What the program itself may know: its first report has returned.
        let returned = Arc::new(Flag::new(false));
        let tells = returned.clone();
        let sender = thread::spawn(move || {
            let mut accepted = Vec::new();
            report_while_open(|capture, number| {
                if producer.capture() != capture {
                    producer.stamp(capture);
                }
                assert!(push(&mut producer, &theirs, number));
                accepted.push(number);
                if number == 11 {
                    tells.store(true, Ordering::Release);
                }
            });
            accepted
        });
        let had_returned = returned.load(Ordering::Acquire);
        gate::close(1);
        let least = consumer.published(&arena, 1);
        let first = take(&mut consumer, &arena, 1);
        let most = consumer.published(&arena, 1);
        assert!((least..=most).contains(&(first.len() as u64)));
        // SAFETY: the former consumer is used no more.
        let mut consumer = unsafe { Consumer::new(consumer.number(), SIZE) };
        gate::open(word(2));
        let mut second = take(&mut consumer, &arena, 2);
        let mut accepted = sender.join().expect("sender");
        second.extend(take(&mut consumer, &arena, 2));
        let after = accepted.split_off(accepted.partition_point(|number| number / 10 == 1));
        assert!(accepted.starts_with(&first), "{first:?} of {accepted:?}");
        assert!(!had_returned || !first.is_empty());
        assert_eq!(second, after);
        assert_eq!(consumer.published(&arena, 2), after.len() as u64);
    });
}

#[test]
fn memory_that_is_given_back_between_captures_is_not_that_of_a_late_report() {
    model(3, || {
        let lanes = lanes(2);
        let theirs = lanes.clone();
        let sender = thread::spawn(move || {
            // The gate was closed when two of these were under way.
            let reported = [11, 12, 13].map(|number| report(&theirs, word(1), number));
            reported.iter().filter(|result| result.is_ok()).count()
        });
        // SAFETY: nothing is captured, and there is no consumer.
        unsafe { lanes.discard() };
        let accepted = sender.join().expect("sender");
        while lanes.snapshot().iter().any(|lane| !lane.ended()) {
            thread::yield_now();
        }
        let (taken, lost) = sum(Reader::new(&lanes, 1).finish());
        assert!(taken.len() == accepted || taken.is_empty(), "{taken:?}");
        assert!(lost <= 3);
        assert_eq!(lanes.arena().expect("prepared").charged(), 0);
    });
}

#[test]
fn memory_of_a_thread_that_ended_serves_another_one() {
    model(2, || {
        let lanes = lanes(1);
        let senders: Vec<_> = [10, 20]
            .map(|base| {
                let theirs = lanes.clone();
                thread::spawn(move || {
                    let mut result = Closed::default();
                    for number in base + 1..=base + 2 {
                        match report(&theirs, word(1), number) {
                            Ok(()) => result.taken.push(number),
                            Err(_) => result.lost += 1,
                        }
                    }
                    result
                })
            })
            .into_iter()
            .collect();
        let mut reader = Reader::new(&lanes, 1);
        reader.pass();
        let reported = senders.into_iter().map(|sender| sender.join());
        let mut reported: Vec<Closed> = reported.collect::<Result<_, _>>().expect("senders");
        // loom lets a thread be joined before its thread-locals are dropped.
        while lanes.snapshot().iter().any(|lane| !lane.ended()) {
            thread::yield_now();
        }
        let mut found = reader.finish();
        found.sort();
        reported.sort();
        assert_eq!(found, reported);
        assert!(lanes.snapshot().is_empty());
        assert_eq!(lanes.arena().expect("prepared").charged(), 0);
    });
}

/// Who holds which segment, beside loom: the order in which the steps of a model are run is total.
#[derive(Default)]
struct Held([std::sync::atomic::AtomicBool; 4]);

impl Held {
    fn change(&self, segment: Option<&Segment>, begins: bool) {
        if let Some(segment) = segment {
            let held = &self.0[segment.number() as usize];
            let before = held.swap(begins, std::sync::atomic::Ordering::SeqCst);
            assert_ne!(before, begins, "segment {} is held twice", segment.number());
        }
    }
}

#[test]
fn threads_that_take_and_return_never_hold_the_same_segment() {
    fn take_two_and_return_one(arena: &Arena, held: &Held) -> bool {
        let first = arena.take(Claim::First);
        held.change(first.as_ref(), true);
        let second = arena.take(Claim::First);
        held.change(second.as_ref(), true);
        assert!(arena.charged() <= arena.budget());
        for segment in [&first, &second].into_iter().flatten() {
            sync::writes(arena.pointer(segment.number()), SEGMENT_BYTES);
        }
        held.change(first.as_ref(), false);
        if let Some(first) = first {
            let whole = arena.extend(first.number());
            arena.give_back(Segment::from_number(first.number(), whole));
        }
        second.is_some()
    }
    model(3, || {
        // Four segments, of which four pages may be used.
        let arena = Arc::new(Arena::new(2 * SEGMENT_BYTES).expect("memory"));
        let held = Arc::new(Held::default());
        let (their_arena, their_held) = (arena.clone(), held.clone());
        let other = thread::spawn(move || take_two_and_return_one(&their_arena, &their_held));
        let mut kept = usize::from(take_two_and_return_one(&arena, &held));
        kept += usize::from(other.join().expect("taker"));
        assert_eq!(arena.charged(), kept);
        let rest = std::iter::from_fn(|| arena.take(Claim::First));
        let rest = rest.inspect(|segment| held.change(Some(segment), true));
        assert_eq!(rest.count(), 4 - kept);
    });
}

#[test]
fn losses_are_seen_as_far_as_they_went_and_never_those_of_another_capture() {
    model(3, || {
        let lanes = lanes(1);
        let theirs = lanes.clone();
        let sender = thread::spawn(move || {
            let lost = |capture| u64::from(report(&theirs, word(capture), 1).is_err());
            let first: u64 = [1; 5].into_iter().map(lost).sum();
            let second: u64 = [2; 2].into_iter().map(lost).sum();
            (first, second)
        });
        let seen = |capture| {
            let lanes = lanes.snapshot();
            lanes.first().map_or(0, |lane| lane.lost(capture).total())
        };
        let (early, late) = (seen(2), seen(2));
        assert!(early <= late && late <= 2, "{early} {late}");
        assert_eq!(sender.join().expect("sender"), (3, 2));
        assert_eq!((seen(1), seen(2)), (0, 2));
    });
}

#[test]
fn an_older_capture_that_fails_late_does_not_close_a_newer_one() {
    model(3, || {
        gate::open(word(1));
        let drain = thread::spawn(|| gate::close(1));
        gate::close(1);
        gate::open(word(2));
        drain.join().expect("drain");
        assert_eq!(gate::load(), word(2));
        gate::close(2);
        assert!(gate::is_off());
    });
}

#[test]
fn the_gate_knows_of_a_tool_that_came_while_it_was_opened_or_closed() {
    model(3, || {
        let tool = thread::spawn(|| gate::share(true));
        gate::open(word(1));
        tool.join().expect("no panic");
        let open = gate::load();
        assert!(open.is_capture() && open.number() == 1 && open.is_shared());
        assert!(!open.takes_quickly(TRACE) && open.takes(TRACE));

        let tool = thread::spawn(|| gate::share(false));
        gate::close(1);
        tool.join().expect("no panic");
        assert_eq!(gate::load(), Word::OFF);
    });
}

#[test]
fn a_gate_that_its_drain_has_closed_is_not_opened_again() {
    model(3, || {
        gate::open(word(1));
        let tool = thread::spawn(|| gate::share(true));
        let drain = thread::spawn(|| gate::close(1));
        tool.join().expect("no panic");
        drain.join().expect("no panic");
        assert_eq!(gate::load(), Word::ELSEWHERE);
    });
}
