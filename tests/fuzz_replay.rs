//! The fuzz targets without a fuzzer: their corpora, and a bounded number of inputs made from them, go
//! through the same functions as `cargo fuzz run` puts its own through.

#[path = "fuzz/shared/mod.rs"]
mod shared;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use std::path::Path;

/// Inputs made from a corpus, for targets in memory and for those that make a directory each time.
const CASES: u32 = 2_000;
const CASES_ON_DISK: u32 = 150;
/// Most changes to one seed.
const CHANGES: usize = 6;
/// Most bytes that a change puts in.
const PIECE: usize = 40;

/// The seeds of a target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/corpus")
        .join(target);
    let entries = std::fs::read_dir(&dir).expect("a corpus");
    let mut seeds: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.display().to_string();
            (name, std::fs::read(path).expect("a seed"))
        })
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 5, "{} has no seeds", dir.display());
    seeds
}

/// One change to an input.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Overwrite(Index, Vec<u8>),
    Remove(Index, usize),
    Append(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    let bytes = || {
        prop::collection::vec(
            prop_oneof![any::<u8>(), Just(0), Just(0xFF), Just(0x5A)],
            1..PIECE,
        )
    };
    prop_oneof![
        (at(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (at(), bytes()).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at(), bytes()).prop_map(|(at, bytes)| Change::Overwrite(at, bytes)),
        (at(), 1..PIECE).prop_map(|(at, count)| Change::Remove(at, count)),
        at().prop_map(Change::Append),
    ]
}

fn apply(input: &mut Vec<u8>, change: Change, seeds: &[(String, Vec<u8>)]) {
    let position = |at: Index, input: &[u8]| at.index(input.len() + 1);
    match change {
        Change::Flip(at, bit) if !input.is_empty() => {
            let at = at.index(input.len());
            input[at] ^= 1 << bit;
        }
        Change::Flip(..) => {}
        Change::Insert(at, bytes) => {
            let at = position(at, input);
            input.splice(at..at, bytes);
        }
        Change::Overwrite(at, bytes) => {
            let at = position(at, input);
            let end = (at + bytes.len()).min(input.len());
            input.splice(at..end, bytes);
        }
        Change::Remove(at, count) => {
            let at = position(at, input);
            let end = (at + count).min(input.len());
            input.drain(at..end);
        }
        Change::Append(which) => input.extend_from_slice(&seeds[which.index(seeds.len())].1),
    }
}

/// Seeds, and what becomes of them.
fn replay(target: &str, cases: u32, run: fn(&[u8])) {
    let seeds = corpus(target);
    for (name, seed) in &seeds {
        eprintln!("{name}");
        run(seed);
    }
    let changes = prop::collection::vec(change(), 1..=CHANGES);
    let config = Config {
        cases,
        // A failure is kept as a seed of the corpus, by hand.
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&(any::<Index>(), changes), |(seed, changes)| {
        let mut input = seeds[seed.index(seeds.len())].1.clone();
        for change in changes {
            apply(&mut input, change, &seeds);
        }
        run(&input);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{target}: {error}");
    }
}

#[test]
fn what_clients_send_never_harms() {
    replay("wire", CASES, shared::wire::run);
}

#[test]
fn params_of_any_kind_are_taken_or_refused() {
    replay("params", CASES, shared::params::run);
}

#[test]
fn directories_in_any_state_can_be_read() {
    replay("profile", CASES_ON_DISK, shared::profile::run);
}

#[test]
fn directories_in_any_state_are_recovered_or_refused() {
    replay("recover", CASES_ON_DISK, shared::recover::run);
}

#[test]
fn directories_in_any_state_are_exported_or_refused() {
    // Their seeds are those of reading.
    replay("profile", CASES_ON_DISK, shared::export::run);
}
