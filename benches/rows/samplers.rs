//! Threads that compare the agent's time stamps with the kernel's clock and with each other's.
//!
//! A stamp is taken between two reads of the kernel's clock; how far outside of these it lies is its error:
//! a pair that was torn apart by a preemption proves nothing, but accuses nobody either. The latest stamp is
//! handed around: no stamp may be earlier than one that had been published before it was taken.

use super::stamp::kernel_time;
use crate::support::cores;
use crate::support::doors::Time;
use crate::support::histogram::Histogram;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Between the bursts of a sampler.
const TICK_NS: u64 = 5_000_000;
/// Samples of a burst: about 100 us, long enough that the bursts of all samplers overlap although they
/// wake up some tens of microseconds apart, and 2 % of a core.
const BURST: usize = 700;

/// What the task is doing.
#[derive(Clone, Copy)]
pub enum Phase {
    Before,
    Start,
    Capturing,
    Stop,
    After,
}

impl Phase {
    pub const ALL: [(Phase, &str); 5] = [
        (Phase::Before, "before the first start"),
        (Phase::Start, "across starts"),
        (Phase::Capturing, "capturing"),
        (Phase::Stop, "across stops, and back to the kernel's clock"),
        (Phase::After, "nothing captured any more"),
    ];
}

/// What the samplers share with each other and with who directs them.
pub struct Shared {
    latest: Latest,
    phase: AtomicUsize,
    closely: AtomicBool,
    done: AtomicBool,
    /// By the kernel's clock, ns.
    begun: u64,
}

/// On a cache line of its own.
#[repr(align(128))]
struct Latest(AtomicU64);

impl Shared {
    /// Before anything has been captured.
    pub fn new() -> Shared {
        Shared {
            latest: Latest(AtomicU64::new(0)),
            phase: AtomicUsize::new(Phase::Before as usize),
            closely: AtomicBool::new(false),
            done: AtomicBool::new(false),
            begun: kernel_time(),
        }
    }

    /// Files samples under `phase` from now on; `closely`: samples are taken without a break, by all
    /// samplers when this returns.
    pub fn enter(&self, phase: Phase, closely: bool) {
        self.phase.store(phase as usize, Ordering::Relaxed);
        self.closely.store(closely, Ordering::Relaxed);
        if closely {
            // Whoever sleeps between two bursts comes back within a tick.
            std::thread::sleep(Duration::from_nanos(2 * TICK_NS));
        }
    }

    /// Ends the samplers.
    pub fn end(&self) {
        self.done.store(true, Ordering::Release);
    }
}

/// What one sampler saw in one phase.
pub struct Tally {
    /// Ns outside of the kernel's two times; negative: behind.
    pub outside: Histogram,
    /// Ns between the kernel's two times: below this an error does not show.
    pub width: Histogram,
    /// Stamps that were earlier than one published before.
    pub backwards: u64,
    /// How far back the worst of them was, ns.
    pub furthest: u64,
    /// Stamps that were compared with one of another thread.
    pub handed: u64,
    /// Seconds of the run at which `outside` had its extremes.
    pub least_at: f64,
    pub most_at: f64,
}

impl Tally {
    /// Of nothing.
    pub fn new() -> Tally {
        Tally {
            outside: Histogram::new(),
            width: Histogram::new(),
            backwards: 0,
            furthest: 0,
            handed: 0,
            least_at: 0.0,
            most_at: 0.0,
        }
    }

    /// Adds what another sampler saw.
    pub fn merge(&mut self, other: &Tally) {
        if other.outside.least().unwrap_or(0) < self.outside.least().unwrap_or(0) {
            self.least_at = other.least_at;
        }
        if other.outside.most().unwrap_or(0) > self.outside.most().unwrap_or(0) {
            self.most_at = other.most_at;
        }
        self.outside.merge(&other.outside);
        self.width.merge(&other.width);
        self.backwards += other.backwards;
        self.furthest = self.furthest.max(other.furthest);
        self.handed += other.handed;
    }

    fn add(&mut self, before: u64, stamp: u64, after: u64, begun: u64) {
        let ahead = stamp.saturating_sub(after) as i64;
        let outside = ahead - before.saturating_sub(stamp) as i64;
        let seconds = || (after - begun) as f64 / 1e9;
        if outside < self.outside.least().unwrap_or(0) {
            self.least_at = seconds();
        }
        if outside > self.outside.most().unwrap_or(0) {
            self.most_at = seconds();
        }
        self.outside.add(outside);
        self.width.add((after - before) as i64);
    }
}

/// One for each phase.
pub type Tallies = [Tally; Phase::ALL.len()];

/// With nothing in them.
pub fn tallies() -> Tallies {
    std::array::from_fn(|_| Tally::new())
}

/// Samples until the run is done; also returns the CPU time that this took, ns.
pub fn sample(time: Time, shared: &Shared) -> (Tallies, u64) {
    let mut seen = tallies();
    let mut own = 0;
    let cpu_ns = cores::cpu_of(|| {
        let mut tick = cores::wall_ns() / TICK_NS;
        while !shared.done.load(Ordering::Acquire) {
            let tally = &mut seen[shared.phase.load(Ordering::Relaxed)];
            for _ in 0..BURST {
                let before = kernel_time();
                let stamp = time();
                let after = kernel_time();
                let latest = shared.latest.0.load(Ordering::Acquire);
                let next = time();
                shared.latest.0.fetch_max(next, Ordering::AcqRel);
                tally.add(before, stamp, after, shared.begun);
                // On the thread's own account the first stamp counts as published, too.
                let published = latest.max(stamp);
                if next < published {
                    tally.backwards += 1;
                    tally.furthest = tally.furthest.max(published - next);
                }
                tally.handed += u64::from(latest != own);
                own = next;
            }
            if !shared.closely.load(Ordering::Relaxed) {
                // Ticks are the same for all samplers.
                tick = (tick + 1).max(cores::wall_ns() / TICK_NS);
                cores::sleep_until(tick * TICK_NS);
            }
        }
    });
    (seen, cpu_ns)
}
