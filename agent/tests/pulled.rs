//! Whose the records are that wait in another library's buffers. In a process of its own: the buffers are the process's.

use msprof_agent_core::gate::{self, Word};
use msprof_agent_core::pulled::{self, Fetcher, Pull, Waiting};
use std::sync::atomic::{AtomicUsize, Ordering};

static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Records that the capture has.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

static PULL: Pull = Pull {
    take: |limit, hand_over| {
        let taken = waiting().min(limit);
        WAITING.fetch_sub(taken, Ordering::SeqCst);
        (0..taken).for_each(|_| hand_over(Waiting::Variable(&[])));
        taken == limit
    },
    give: |word, _| {
        assert_eq!(word.number(), 7);
        GIVEN.fetch_add(1, Ordering::SeqCst);
    },
    revive: || {},
};

fn put(records: usize) {
    WAITING.store(records, Ordering::SeqCst);
}

fn waiting() -> usize {
    WAITING.load(Ordering::SeqCst)
}

#[test]
fn what_waits_belongs_to_a_capture_from_its_begin_until_its_last_fetch() {
    gate::own();
    pulled::set(&PULL);
    let word = Word::capturing(7, 0);
    let fetcher = Fetcher::new(word);
    put(5);
    assert!(!fetcher.fetch(), "not begun");
    assert_eq!(waiting(), 5);
    pulled::discard();
    assert_eq!(waiting(), 0, "nobody's");

    // The gate was never open, as after the stop.
    pulled::begin(word);
    put(5);
    pulled::discard();
    assert_eq!(waiting(), 5, "the capture's");
    assert!(
        !Fetcher::new(Word::capturing(8, 0)).fetch(),
        "not another's"
    );
    assert_eq!(waiting(), 5);
    assert!(!fetcher.fetch(), "found empty");
    assert_eq!(waiting(), 0);
    put(pulled::AT_ONCE + 1);
    assert!(fetcher.fetch(), "one is left");
    assert_eq!(waiting(), 1);
    assert!(!fetcher.fetch());
    let all = 5 + pulled::AT_ONCE + 1;
    assert_eq!(GIVEN.load(Ordering::SeqCst), all);
    // By somebody who has begun to throw them away before.
    pulled::hand_over(Waiting::Variable(&[]));
    assert_eq!(GIVEN.load(Ordering::SeqCst), all + 1);

    fetcher.end();
    put(5);
    assert!(!fetcher.fetch());
    pulled::discard();
    assert_eq!(waiting(), 0);

    // Also where its drain ends otherwise.
    pulled::begin(word);
    drop(fetcher);
    put(5);
    pulled::discard();
    assert_eq!(waiting(), 0);

    pulled::begin(word);
    gate::wipe();
    assert!(!pulled::is_owned(), "not in a child");
    gate::own();
    pulled::forget_owner();
    put(5);
    pulled::discard();
    assert_eq!(waiting(), 0, "not in a child");
    assert_eq!(GIVEN.load(Ordering::SeqCst), all + 1);
}
