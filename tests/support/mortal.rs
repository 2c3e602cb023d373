//! The program that reports until it dies (tests/c/mortal.c), and its own account against a directory.

use super::builder::{Linkage, build};
use super::home::Home;
use super::process::{Program, Running, words};
use super::prof::{Prof, u32_at, u64_at};
use std::collections::BTreeMap;

/// Sizes of records: api, compact, additional, aicpu.
const SIZES: usize = 4;
/// Words of a slot of tests/c/mortal.c: a thread and what it has reported of each size.
const SLOT: usize = 1 + SIZES;
/// What a thread says that it has reported, by size.
pub type Account = BTreeMap<u32, [u64; SIZES]>;

/// The account so far.
pub fn account(home: &Home) -> Account {
    let bytes = std::fs::read(home.path().join("account")).unwrap_or_default();
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight")));
    let words: Vec<u64> = words.collect();
    // A thread that has not said yet who it is may have its slot before one that has.
    let slots = words.chunks_exact(SLOT).filter(|slot| slot[0] != 0);
    slots
        .map(|slot| (slot[0] as u32, slot[1..].try_into().expect("sizes")))
        .collect()
}

/// Records of all threads.
pub fn reported(account: &Account) -> u64 {
    account.values().flatten().sum()
}

/// The program, armed, with the words behind its ACCOUNT.
pub fn mortal(home: &Home, words: &str) -> Program {
    home.armed(build("tests/c/mortal.c", Linkage::Shared))
        // The machine may be too busy for the drain to keep up: then memory has to do.
        .env("MSPROF_AGENT_BUFFER_MB", "512")
        .arg(home.path().join("account"))
        .args(self::words(words))
}

/// Waits until it can be attached to.
pub fn ready(home: &Home, program: &mut Running) {
    program.line("the program", |line| (line == "ready").then_some(()));
    home.wait_socket(program.pid());
}

fn thread_of(record: &[u8]) -> u32 {
    u32_at(record, 8)
}

/// Takes up the numbers of records of one size: within a family each thread's come in order.
fn take(
    found: &mut BTreeMap<(u32, usize), Vec<u64>>,
    size: usize,
    bytes: Vec<u8>,
    length: usize,
    at: usize,
) {
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for record in bytes.chunks(length) {
        let (thread, number) = (thread_of(record), u64_at(record, at));
        let before = last.insert(thread, number);
        assert!(
            before < Some(number),
            "thread {thread}: {before:?}, then {number}"
        );
        found.entry((thread, size)).or_default().push(number);
    }
}

/// Checks the directory against what the program itself has counted; gives the number of records.
pub fn check_reported(prof: &Prof, account: &Account) -> u64 {
    let mut found = BTreeMap::new();
    for (family, slices) in &prof.host {
        let bytes: Vec<u8> = slices.values().flatten().copied().collect();
        match family.split('.').nth(1) {
            Some("api_event") => take(&mut found, 0, bytes, 40, 32),
            Some("compact") => take(&mut found, 1, bytes, 64, 24),
            Some("additional") if !family.ends_with("_dic") => take(&mut found, 2, bytes, 256, 24),
            _ => {}
        }
    }
    for (device, families) in &prof.devices {
        let slices = &families[&format!("aicpu.data.{device}")];
        take(
            &mut found,
            3,
            slices.values().flatten().copied().collect(),
            256,
            24,
        );
    }
    let mut count = 0;
    for (thread, returned) in account {
        for (size, returned) in returned.iter().enumerate() {
            let mut numbers = found.remove(&(*thread, size)).unwrap_or_default();
            numbers.sort_unstable();
            let most = numbers.len() as u64;
            let expected: Vec<u64> = (1..=most).collect();
            assert!(
                numbers == expected,
                "thread {thread}, size {size}: a gap or a double"
            );
            // The last one may have been published without having returned.
            let all = *returned..=*returned + 1;
            assert!(
                all.contains(&most),
                "thread {thread}, size {size}: {most} of {returned}"
            );
            count += most;
        }
    }
    // A thread that had not yet said who it is has reported nothing.
    assert!(
        found.is_empty(),
        "threads that never were: {:?}",
        found.keys()
    );
    count
}
