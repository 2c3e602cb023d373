//! How long the drain thread sleeps between two passes.
//!
//! A killed process loses at most the last 20 ms. What is published waits up to [`PARTIAL_INTERVAL`] for
//! the pass that writes it; that pass and a late wake-up have the rest. Within that, few passes: each one
//! costs a sleep, a wake-up and cold caches, whatever it finds.

#![forbid(unsafe_code)]

use std::time::Duration;

/// Before the first pass of a capture, whose start may set loose a flood.
pub const FIRST: Duration = Duration::from_millis(1);
/// While little comes in, and while much does.
const LONGEST: Duration = PARTIAL_INTERVAL;
const SHORTEST: Duration = Duration::from_millis(1);
/// A pause that brings in more than this many pages of full segments (2 MB) is halved, one that brings in
/// fewer than [`FEW`] (0.5 MB) doubled: what goes round between threads and drain is to stay in a core's cache.
const MANY: usize = 512;
const FEW: usize = 128;
/// Segments that are not full are written this often, even when passes follow each other quickly: small
/// writes cost more per byte.
pub const PARTIAL_INTERVAL: Duration = Duration::from_millis(8);

/// The pause after a pass that followed `last`. `taken`: pages of full segments that it wrote, that is what that
/// pause brought in; `waiting`: those that have filled up meanwhile; out of `budget` in all. `cut_short`: it
/// left full segments behind.
pub fn pause(
    last: Duration,
    taken: usize,
    waiting: usize,
    cut_short: bool,
    budget: usize,
) -> Duration {
    let fill = taken.max(waiting);
    if cut_short || waiting * 2 > budget {
        Duration::ZERO
    } else if fill * 4 > budget {
        SHORTEST
    } else if fill > MANY {
        (last / 2).clamp(SHORTEST, LONGEST)
    } else if fill < FEW {
        (last * 2).clamp(SHORTEST, LONGEST)
    } else {
        last.clamp(SHORTEST, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: usize = 16_384;
    /// What a killed process may lose.
    const LOST: Duration = Duration::from_millis(20);

    /// The pause that passes settle at when each millisecond fills `rate` pages.
    fn settled(rate: usize) -> Duration {
        (0..20).fold(FIRST, |last, _| {
            let taken = last.as_micros() as usize * rate / 1000;
            pause(last, taken, 0, false, BUDGET)
        })
    }

    #[test]
    fn the_more_comes_in_the_shorter_the_pause() {
        for rate in (0..1600).step_by(10) {
            assert!(settled(rate) >= settled(rate + 10), "{rate} pages a ms");
        }
        assert_eq!(settled(0), LONGEST);
        assert_eq!(settled(1600), SHORTEST);
    }

    #[test]
    fn a_flood_ends_a_long_pause_at_once() {
        let after = |taken, waiting| pause(LONGEST, taken, waiting, false, BUDGET);
        assert_eq!(after(BUDGET / 4 + 1, 0), SHORTEST);
        assert_eq!(after(0, BUDGET / 4 + 1), SHORTEST);
        assert_eq!(after(0, BUDGET / 2 + 1), Duration::ZERO);
    }

    #[test]
    fn there_is_no_pause_after_a_pass_that_left_something_behind() {
        assert_eq!(pause(LONGEST, 0, 0, true, BUDGET), Duration::ZERO);
    }

    #[test]
    fn no_pause_is_longer_than_records_may_wait() {
        for fill in (0..=BUDGET).step_by(8) {
            for last in (0..=20).map(Duration::from_millis) {
                let pause = pause(last, fill, 0, false, BUDGET);
                assert!(pause <= PARTIAL_INTERVAL, "{pause:?} at {fill} pages");
            }
        }
        assert!(PARTIAL_INTERVAL * 2 < LOST);
    }
}
