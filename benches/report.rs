//! CPU cost of the calls that run on the task's threads, beside an empty call.
//!
//! `cargo bench --bench report`. The rings are drained by a consumer between batches, so that "taken" is
//! the cost of a record that finds room.

#![allow(missing_docs)] // criterion_group! makes a public function

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use msprof_agent_core::gate::{self, Word};
use msprof_agent_core::lanes::{Lanes, RingKey};
use msprof_agent_core::records::{RecordSize, Trace};
use msprof_agent_core::{clock, report};
use std::hint::black_box;

/// Records per batch.
const BATCH: usize = 1000;

#[inline(never)]
fn empty_call(aging: u32, record: *const u8) -> i32 {
    black_box((aging, record));
    0
}

fn off(c: &mut Criterion) {
    gate::close_for_good();
    let record = [0u8; 40];
    c.bench_function("empty call", |b| {
        b.iter(|| empty_call(black_box(1), black_box(record.as_ptr())));
    });
    c.bench_function("report api, capture off", |b| {
        // SAFETY: the record has 40 bytes.
        b.iter(|| unsafe { report::api(black_box(1), black_box(record.as_ptr())) });
    });
    c.bench_function("time stamp", |b| b.iter(clock::now));
}

/// Pushes of one record size into a thread's own ring; the time of the drain is not counted.
fn push<const N: usize>(c: &mut Criterion, name: &str, size: RecordSize) {
    // The thread keeps a lane per generation: each size gets one of its own.
    let lanes = Lanes::new(64 << 20, N as u32);
    lanes.prepare().expect("memory for the rings");
    let key = RingKey { size, aging: true };
    let record = [0x5Au8; N];
    let word = Word::capturing(1, 0xFF);
    let push = || {
        // SAFETY: the record has N bytes, the size of this ring's records.
        unsafe { lanes.push::<N>(word, key, Trace::RuntimeApi, black_box(record.as_ptr())) }
    };
    assert!(push().is_ok());
    let ring = lanes.snapshot()[0].ring(0).expect("made by the first push");
    let arena = lanes.arena().expect("prepared");
    // SAFETY: the only consumer of that ring.
    let mut consumer = unsafe { ring.consumer() };
    c.bench_function(name, |b| {
        b.iter_batched(
            || {
                loop {
                    let waiting = consumer.readable(arena, 1).bytes.len() / N;
                    if waiting == 0 {
                        break;
                    }
                    consumer.release(arena, waiting as u64);
                }
            },
            |()| {
                for _ in 0..BATCH {
                    assert!(push().is_ok());
                }
            },
            BatchSize::PerIteration,
        );
    });
}

fn taken(c: &mut Criterion) {
    push::<40>(c, "1000 api records", RecordSize::Api);
    push::<64>(c, "1000 compact records", RecordSize::Compact);
    push::<256>(c, "1000 additional records", RecordSize::Additional);
}

criterion_group!(benches, off, taken);
criterion_main!(benches);
