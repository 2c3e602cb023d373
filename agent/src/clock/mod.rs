//! The clock of all records.
//!
//! Records carry CLOCK_MONOTONIC_RAW nanoseconds, which is what a stock host without an oscillator
//! report from the driver writes and what every parser version reads right (spec 3 section 7). While a
//! capture runs they are computed from the CPU's counter ([`line`]), which costs less than asking the
//! kernel; otherwise, and where the counter cannot be trusted, the kernel is asked. It is asked past the C
//! library: what another library shows the program instead (libfaketime) is no time of this machine.
//!
//! [`now`] never goes backwards, on one thread or across threads, unless that was given up for speed
//! ([`set_unordered`]). All functions may be called from any
//! thread and never block.

mod counter;
mod line;
mod moment;

pub use counter::read as cpu_counter;
pub use moment::Moment;

use line::{Line, Sample};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often the drain thread is to call [`reanchor`].
pub const REANCHOR_INTERVAL: Duration = Duration::from_millis(500);

/// The conversion from counter to nanoseconds that is in force.
static LINE: Line = Line::new();
/// The first sample of the process: the longest baseline for the counter's rate.
static FIRST: Mutex<Option<Sample>> = Mutex::new(None);

/// Three clocks read at one instant, so that captures of different hosts can be aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Ticks of `MsprofSysCycleTime`.
    pub ticks: u64,
    /// CLOCK_MONOTONIC_RAW, ns.
    pub monotonic_raw_ns: u64,
    /// CLOCK_REALTIME, ns since the epoch.
    pub realtime_ns: u64,
    /// The CPU's own counter (rdtsc, cntvct_el0).
    pub cpu_counter: u64,
}

/// Ticks of `MsprofSysCycleTime`: CLOCK_MONOTONIC_RAW, ns, within 1 us of the kernel's.
#[inline]
pub fn now() -> u64 {
    match LINE.now() {
        Some(ns) => ns,
        None => monotonic_raw_ns(),
    }
}

/// With `true`, a time stamp does not wait for the loads before it, which saves about 10 ns of 20: a thread
/// that has just read another one's time may then find its own up to some 100 ns earlier.
pub fn set_unordered(unordered: bool) {
    LINE.set_unordered(unordered);
}

/// Where [`now`] takes the time from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel's clock: the counter cannot be trusted, its rate is not known yet, or nothing is captured.
    Kernel,
    /// The CPU's counter, read behind earlier loads.
    Counter,
    /// The CPU's counter, read as soon as may be ([`set_unordered`]).
    UnorderedCounter,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::Kernel => "kernel",
            Source::Counter => "cpu-counter",
            Source::UnorderedCounter => "cpu-counter-unordered",
        })
    }
}

/// Where the time comes from at the moment.
pub fn source() -> Source {
    match LINE.now() {
        None => Source::Kernel,
        Some(_) if LINE.is_unordered() => Source::UnorderedCounter,
        Some(_) => Source::Counter,
    }
}

/// The kernel's CLOCK_MONOTONIC_RAW, ns.
#[inline]
pub fn monotonic_raw_ns() -> u64 {
    read_ns(ClockId::MonotonicRaw)
}

/// Wall clock, ns since the epoch.
pub fn realtime_ns() -> u64 {
    read_ns(ClockId::Realtime)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Takes the first sample of the counter, if it can be trusted; at load, so that the first capture finds
/// a long baseline.
pub fn prepare() {
    // Held by nobody who is there: at load, or in a child of a fork that came at a bad moment.
    let Some(mut first) = FIRST.try_lock() else {
        return;
    };
    if first.is_none() && counter::is_trusted() {
        *first = Some(Sample::take());
    }
}

/// Brings the line up to date: at the start of a capture and every [`REANCHOR_INTERVAL`] while it runs.
/// Without another call the line expires after a few seconds and the kernel is asked again.
pub fn reanchor() {
    // One writer at a time; nobody waits for it.
    let Some(first) = FIRST.try_lock() else {
        return;
    };
    if let Some(first) = *first {
        LINE.update(first);
    }
}

/// All clocks at one instant (the reads lie within a microsecond unless the thread is preempted).
pub fn anchor() -> Anchor {
    let sample = Sample::take();
    let ticks = now();
    Anchor {
        ticks,
        monotonic_raw_ns: sample.ns,
        realtime_ns: realtime_ns(),
        cpu_counter: sample.counter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// Threads hand the last time around; re-anchoring goes on beside.
    #[test]
    fn time_never_goes_backwards_across_threads() {
        prepare();
        let last = Arc::new(AtomicU64::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (last, done) = (last.clone(), done.clone());
                std::thread::spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let before = last.load(Ordering::Acquire);
                        let now = now();
                        assert!(now >= before, "{now} after {before}");
                        last.fetch_max(now, Ordering::AcqRel);
                    }
                })
            })
            .collect();
        let deadline = Moment::now() + Duration::from_millis(600);
        while !deadline.has_come() {
            reanchor();
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().expect("never backwards");
        }
    }

    #[test]
    fn the_source_is_the_kernel_until_there_is_a_line() {
        let line = Line::new();
        assert!(line.now().is_none() && !line.is_unordered());
        line.set_unordered(true);
        assert!(line.is_unordered());
        let names = [
            (Source::Kernel, "kernel"),
            (Source::Counter, "cpu-counter"),
            (Source::UnorderedCounter, "cpu-counter-unordered"),
        ];
        for (source, name) in names {
            assert_eq!(source.to_string(), name);
        }
    }

    #[test]
    fn an_anchor_holds_all_clocks_of_one_instant() {
        let first = anchor();
        let second = anchor();
        assert!(second.ticks >= first.ticks);
        assert!(second.monotonic_raw_ns >= first.monotonic_raw_ns);
        assert!(first.realtime_ns > 0);
    }
}
