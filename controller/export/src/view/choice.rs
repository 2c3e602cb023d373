//! Which intervals of a lane are shown where there are too many: the longest ones of each piece of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pieces of time that a lane is divided into at most.
const PIECES_MAX: u64 = 8192;
/// Intervals of a piece, as long as there are fewer pieces than that.
const OF_A_PIECE: u64 = 8;

/// A call, or what a device did. Times are CLOCK_MONOTONIC_RAW of the host, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval {
    // First, so that it is what the order goes by.
    pub duration: u64,
    pub begin: u64,
    pub name: u32,
    pub item: u32,
}

/// The intervals of a lane that are kept.
#[derive(Debug)]
pub(super) enum Choice {
    /// Every one.
    All(Vec<Interval>),
    /// So many of each piece of time, the longest.
    Longest {
        from: u64,
        to: u64,
        of_a_piece: usize,
        pieces: Vec<BinaryHeap<Reverse<Interval>>>,
    },
}

impl Choice {
    /// At most `quota` of intervals that mostly begin between these times.
    pub(super) fn of(quota: u64, from: u64, to: u64) -> Choice {
        let pieces = (quota / OF_A_PIECE).clamp(1, PIECES_MAX);
        Choice::Longest {
            from,
            to: to.max(from),
            of_a_piece: (quota / pieces) as usize,
            pieces: vec![BinaryHeap::new(); pieces as usize],
        }
    }

    /// Whether one of this time and length would be kept. Asked first: names of others are not looked for.
    pub(super) fn wants(&self, begin: u64, duration: u64) -> bool {
        match self {
            Choice::All(_) => true,
            Choice::Longest {
                of_a_piece, pieces, ..
            } => {
                let piece = &pieces[self.piece(begin)];
                let shortest = piece.peek().map(|Reverse(least)| least.duration);
                *of_a_piece > 0 && (piece.len() < *of_a_piece || shortest < Some(duration))
            }
        }
    }

    pub(super) fn add(&mut self, interval: Interval) {
        let at = self.piece(interval.begin);
        match self {
            Choice::All(kept) => kept.push(interval),
            Choice::Longest {
                of_a_piece, pieces, ..
            } => {
                pieces[at].push(Reverse(interval));
                if pieces[at].len() > *of_a_piece {
                    pieces[at].pop();
                }
            }
        }
    }

    fn piece(&self, begin: u64) -> usize {
        let Choice::Longest {
            from, to, pieces, ..
        } = self
        else {
            return 0;
        };
        let past = u128::from(begin.clamp(*from, *to) - from);
        let all = u128::from(to - from) + 1;
        (past * pieces.len() as u128 / all) as usize
    }

    /// What was kept, as it lies in time: of two that begin together the longer one first.
    pub(super) fn sorted(self) -> Vec<Interval> {
        let mut kept: Vec<Interval> = match self {
            Choice::All(kept) => kept,
            Choice::Longest { pieces, .. } => {
                let pieces = pieces.into_iter().flat_map(BinaryHeap::into_vec);
                pieces.map(|Reverse(interval)| interval).collect()
            }
        };
        // A call is reported at its end: of two of the same times the later one is the outer one.
        kept.reverse();
        kept.sort_by_key(|interval| (interval.begin, Reverse(interval.duration)));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(begin: u64, duration: u64) -> Interval {
        Interval {
            begin,
            duration,
            name: 0,
            item: 0,
        }
    }

    fn kept(mut choice: Choice, all: &[Interval]) -> Vec<(u64, u64)> {
        for interval in all {
            if choice.wants(interval.begin, interval.duration) {
                choice.add(*interval);
            }
        }
        let sorted = choice.sorted();
        sorted
            .iter()
            .map(|interval| (interval.begin, interval.duration))
            .collect()
    }

    #[test]
    fn the_longest_of_each_piece_of_time_are_kept() {
        // Two pieces of eight: 0..500 and 500..1000.
        let mut all: Vec<Interval> = (0..500).map(|n| interval(n, 1 + n % 100)).collect();
        all.extend((500..510).map(|n| interval(n, 3)));
        let kept = kept(Choice::of(16, 0, 999), &all);
        assert_eq!(kept.len(), 16);
        let (first, second): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| kept.0 < 500);
        let mut durations: Vec<u64> = first.into_iter().map(|kept| kept.1).collect();
        durations.sort_unstable();
        assert_eq!(durations, [99, 99, 99, 100, 100, 100, 100, 100]);
        assert_eq!(second.len(), 8);
        assert!(second.iter().all(|kept| kept.1 == 3));
    }

    #[test]
    fn times_outside_and_quotas_of_nothing_do_no_harm() {
        let all = [interval(0, 5), interval(u64::MAX, 5), interval(50, 1)];
        assert_eq!(kept(Choice::of(100, 40, 60), &all).len(), 3);
        assert_eq!(kept(Choice::of(100, 60, 40), &all).len(), 3);
        assert_eq!(kept(Choice::of(1, 40, 60), &all), [(0, 5)]);
        assert_eq!(kept(Choice::of(0, 40, 60), &all), []);
        assert_eq!(kept(Choice::All(Vec::new()), &all).len(), 3);
    }

    #[test]
    fn an_outer_interval_comes_before_what_begins_with_it() {
        let all = [interval(5, 1), interval(5, 9), interval(1, 2)];
        assert_eq!(
            kept(Choice::All(Vec::new()), &all),
            [(1, 2), (5, 9), (5, 1)]
        );
    }
}
