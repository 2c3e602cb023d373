//! Producers that keep to a rate.

use crate::support::contestants::{API, Burst, Contest, Who};
use crate::support::cores;
use std::sync::atomic::{AtomicBool, Ordering};

/// Between two bursts of a producer.
const TICK_NS: u64 = 1_000_000;

/// A rate of api records from some threads for some time.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Producers.
    pub threads: usize,
    /// Records per second of each.
    pub each: u64,
    /// Milliseconds.
    pub ms: u64,
}

impl Pace {
    fn per_tick(self) -> u64 {
        self.each * TICK_NS / 1_000_000_000
    }

    /// Reports at that rate. A thread that was held up catches up at once.
    pub fn run(self, contest: &Contest, who: Who) -> Burst {
        let threads = std::thread::scope(|scope| {
            let start = |thread| scope.spawn(move || self.produce(contest, who, thread));
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|burst| burst.expect("a producer"))
                .collect::<Vec<_>>()
        });
        let begin = threads.iter().map(|burst| burst.interval.0).min();
        let end = threads.iter().map(|burst| burst.interval.1).max();
        Burst {
            interval: (begin.unwrap_or(0), end.unwrap_or(0)),
            ..Burst::sum(&threads)
        }
    }

    fn produce(self, contest: &Contest, who: Who, thread: usize) -> Burst {
        let begin = cores::wall_ns();
        // Summed up at once: over a minute a list of them would show in the memory that is measured.
        let mut sum = Burst::default();
        for tick in 0..self.ms {
            cores::sleep_until(begin + tick * TICK_NS);
            sum = Burst::sum(&[sum, contest.burst::<API>(who, thread, self.per_tick())]);
        }
        Burst {
            interval: (begin, cores::wall_ns()),
            ..sum
        }
    }
}

/// `each` records from each of `threads` threads as fast as they can, from the moment at which `begin`
/// has returned.
pub fn burst_after(
    contest: &Contest,
    who: Who,
    threads: usize,
    each: u64,
    begin: &dyn Fn(),
) -> Burst {
    let begun = AtomicBool::new(false);
    let bursts: Vec<Burst> = std::thread::scope(|scope| {
        let produce = |thread| {
            let begun = &begun;
            scope.spawn(move || {
                while !begun.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                contest.burst::<API>(who, thread, each)
            })
        };
        let producers: Vec<_> = (0..threads).map(produce).collect();
        begin();
        begun.store(true, Ordering::Release);
        let ended = producers.into_iter().map(|thread| thread.join());
        ended.map(|burst| burst.expect("a producer")).collect()
    });
    Burst::sum(&bursts)
}
