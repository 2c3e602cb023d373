//! Threads that really run at once: pinned to cores, SCHED_FIFO where permitted, let go together.

use super::cores::{self, Fifo};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How long threads spin for each other; then one of them does not get its core.
const PATIENCE_NS: u64 = 200_000_000;

/// Lets the threads of a run go at the same instant.
pub struct Gate<'a> {
    arrived: &'a AtomicUsize,
    asleep: &'a Barrier,
    count: usize,
    /// Everybody has a core.
    spin: bool,
}

impl Gate<'_> {
    /// Waits until all have come: spinning where everybody has a core. To be called once by each thread,
    /// after its preparations.
    pub fn wait(&self) {
        if !self.spin {
            self.asleep.wait();
            return;
        }
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let deadline = cores::wall_ns() + PATIENCE_NS;
        while self.arrived.load(Ordering::Acquire) < self.count {
            std::hint::spin_loop();
            if cores::wall_ns() > deadline {
                return;
            }
        }
    }
}

/// What became of a run.
pub struct Run<R> {
    /// What the threads returned, in order.
    pub results: Vec<R>,
    /// Whether all were SCHED_FIFO.
    pub fifo: bool,
}

/// Runs `body(number, gate)` on one thread per entry of `on`, pinned to that core. With no more threads
/// than cores they are SCHED_FIFO, so the whole must take well under a second.
pub fn run<R: Send>(on: &[usize], body: impl Fn(usize, &Gate) -> R + Sync) -> Run<R> {
    let arrived = AtomicUsize::new(0);
    let pinned = Barrier::new(on.len());
    let one_each = (1..on.len()).all(|i| !on[..i].contains(&on[i]));
    let results: Vec<(R, bool)> = std::thread::scope(|scope| {
        let start = |(number, &core): (usize, &usize)| {
            let (arrived, pinned, body) = (&arrived, &pinned, &body);
            let count = on.len();
            scope.spawn(move || {
                cores::pin(core);
                // Asleep, so that nobody spins as SCHED_FIFO on a core that another one still needs.
                pinned.wait();
                let fifo = one_each.then(Fifo::begin);
                let gate = Gate {
                    arrived,
                    asleep: pinned,
                    count,
                    spin: one_each,
                };
                (body(number, &gate), fifo.is_some_and(|fifo| fifo.granted()))
            })
        };
        let threads: Vec<_> = on.iter().enumerate().map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread of a run"))
            .collect()
    });
    Run {
        fifo: results.iter().all(|(_, fifo)| *fifo),
        results: results.into_iter().map(|(result, _)| result).collect(),
    }
}

/// How much of the time from the first begin to the last end all intervals have in common.
pub fn overlap(intervals: &[(u64, u64)]) -> f64 {
    let latest_begin = intervals.iter().map(|i| i.0).max().unwrap_or(0);
    let first_end = intervals.iter().map(|i| i.1).min().unwrap_or(0);
    let begin = intervals.iter().map(|i| i.0).min().unwrap_or(0);
    let end = intervals.iter().map(|i| i.1).max().unwrap_or(0);
    first_end.saturating_sub(latest_begin) as f64 / (end - begin).max(1) as f64
}
