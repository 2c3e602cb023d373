//! The straight line from the CPU's counter to CLOCK_MONOTONIC_RAW nanoseconds.
//!
//! One writer now and then replaces the line; readers never wait for it. Time never goes backwards:
//! - a new line begins where the old one is at that moment, and a little above where it is less steep, which
//!   covers readers that still go by the old one;
//! - the line is led to run a little behind the kernel's clock, so that the change back to the kernel when
//!   it expires is forward; it begins a little before it, so that the change to it is forward too.

#![forbid(unsafe_code)]

use super::{counter, monotonic_raw_ns};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Pairs of clock reads from which the tightest is taken.
const SAMPLE_TRIES: u32 = 9;
/// Shortest baseline from which a rate is taken, ns: samples are off by some 50 ns, and a line is followed for
/// [`LIFE_NS`], in which it must not leave the bounds between which it is led.
const BASELINE_MIN_NS: u64 = 1_000_000_000;
/// A line is followed for this long without an update, ns.
const LIFE_NS: u64 = 4_000_000_000;
/// How far the line is led to run behind the kernel's clock, ns.
const LAG_NS: i64 = 300;
/// How far before the kernel's clock a line begins, ns: more than the error of one sample.
const LEAD_NS: u64 = 60;
/// An error is made good within this time, ns: not sooner than a line ends, or one that is never replaced
/// would run past where it was led to.
const SLEW_NS: i64 = LIFE_NS as i64;
/// Steepest correction, in millionths.
const SLEW_MAX_PPM: i64 = 50;
/// Readers may go by an old line for this long after a new one was computed, ns; a writer that finds
/// itself later than that starts again.
const PUBLISH_NS: u64 = 20_000;
/// A writer that is preempted this often leaves the old line in force.
const PUBLISH_TRIES: u32 = 10;
/// A counter that lies less than this before the line was read before the line was, or on a CPU whose counter
/// is that little behind: the line's begin is meant. Further back it has been set anew.
const EARLY_TICKS: u64 = 1 << 20;
/// Fixed point of the rate: ns per tick times 2^32.
const SHIFT: u32 = 32;

/// Both clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The CPU's counter.
    pub counter: u64,
    /// CLOCK_MONOTONIC_RAW, ns.
    pub ns: u64,
}

impl Sample {
    /// Reads both clocks, several times, and keeps the pair that lies closest together.
    pub fn take() -> Sample {
        let mut best = Sample { counter: 0, ns: 0 };
        let mut best_width = u64::MAX;
        for _ in 0..SAMPLE_TRIES {
            let before = counter::read();
            let ns = monotonic_raw_ns();
            let after = counter::read();
            let width = after.wrapping_sub(before);
            if width < best_width {
                best_width = width;
                best = Sample {
                    counter: before.wrapping_add(width / 2),
                    ns,
                };
            }
        }
        best
    }
}

/// A line: `ns + (counter - base) * rate / 2^32`, valid for `life` ticks from `base`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Terms {
    base: u64,
    ns: u64,
    rate: u64,
    life: u64,
}

impl Terms {
    #[inline]
    fn at(&self, counter: u64) -> Option<u64> {
        let mut ticks = counter.wrapping_sub(self.base);
        if ticks.wrapping_neg() < EARLY_TICKS {
            ticks = 0;
        }
        (ticks < self.life).then(|| self.ns + scale(ticks, self.rate))
    }
}

#[inline]
fn scale(ticks: u64, rate: u64) -> u64 {
    ((u128::from(ticks) * u128::from(rate)) >> SHIFT) as u64
}

#[derive(Debug)]
struct Slot {
    base: AtomicU64,
    ns: AtomicU64,
    rate: AtomicU64,
    life: AtomicU64,
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            base: AtomicU64::new(0),
            ns: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            life: AtomicU64::new(0),
        }
    }
}

/// The line in force: of two slots the one that the version points at. The writer fills the other one and
/// then moves the version on, so that a writer that is preempted, or lost in a fork, holds up nobody.
#[derive(Debug)]
pub struct Line {
    /// Whether the counter is read without waiting for earlier loads.
    unordered: AtomicBool,
    version: AtomicU64,
    slots: [Slot; 2],
}

impl Line {
    /// No line: every reader asks the kernel.
    pub const fn new() -> Line {
        Line {
            unordered: AtomicBool::new(false),
            version: AtomicU64::new(0),
            slots: [Slot::new(), Slot::new()],
        }
    }

    /// Whether [`Line::now`] may read the counter before the loads that precede it are done.
    pub fn set_unordered(&self, unordered: bool) {
        self.unordered.store(unordered, Ordering::Relaxed);
    }

    /// Whether it may.
    pub fn is_unordered(&self) -> bool {
        self.unordered.load(Ordering::Relaxed)
    }

    /// Nanoseconds now; `None` when no line is in force.
    #[inline]
    pub fn now(&self) -> Option<u64> {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let terms = self.load(version);
            if terms.life == 0 {
                return None;
            }
            let counter = if self.unordered.load(Ordering::Relaxed) {
                counter::read_unordered()
            } else {
                counter::read()
            };
            // The terms and the counter were read before any later version was in force; else once more,
            // which happens at most every few hundred milliseconds.
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == version {
                let now = terms.at(counter);
                if now.is_none() {
                    // Expired: the next reader need not read the counter to find that out. Should a writer
                    // be filling this slot by now, its line is in force one update later.
                    let slot = &self.slots[(version & 1) as usize];
                    slot.life.store(0, Ordering::Relaxed);
                }
                return now;
            }
        }
    }

    #[inline]
    fn load(&self, version: u64) -> Terms {
        let slot = &self.slots[(version & 1) as usize];
        Terms {
            base: slot.base.load(Ordering::Relaxed),
            ns: slot.ns.load(Ordering::Relaxed),
            rate: slot.rate.load(Ordering::Relaxed),
            life: slot.life.load(Ordering::Relaxed),
        }
    }

    fn store(&self, terms: Terms) {
        let next = self.version.load(Ordering::Relaxed) + 1;
        let slot = &self.slots[(next & 1) as usize];
        // A reader that still reads this slot, two versions old, sees a new version once it has seen any
        // of these stores.
        fence(Ordering::Release);
        slot.base.store(terms.base, Ordering::Relaxed);
        slot.ns.store(terms.ns, Ordering::Relaxed);
        slot.rate.store(terms.rate, Ordering::Relaxed);
        slot.life.store(terms.life, Ordering::Relaxed);
        self.version.store(next, Ordering::Release);
    }

    /// Replaces the line by one through the clocks of this moment. `first` is an earlier sample, from
    /// which the rate is taken. One caller at a time.
    pub fn update(&self, first: Sample) {
        // A writer preempted in the middle would publish a line that readers of the old one are ahead of.
        for _ in 0..PUBLISH_TRIES {
            let sample = Sample::take();
            let Some(next) = next_terms(
                &self.load(self.version.load(Ordering::Relaxed)),
                first,
                sample,
            ) else {
                return;
            };
            if scale(counter::read().wrapping_sub(sample.counter), next.rate) < PUBLISH_NS {
                self.store(next);
                return;
            }
        }
    }
}

/// The line to follow from `sample` on, after `old`.
fn next_terms(old: &Terms, first: Sample, sample: Sample) -> Option<Terms> {
    let ticks = sample.counter.checked_sub(first.counter)?;
    let ns = sample.ns.checked_sub(first.ns)?;
    if ns < BASELINE_MIN_NS || ticks == 0 {
        return None;
    }
    let true_rate = u64::try_from((u128::from(ns) << SHIFT) / u128::from(ticks)).ok()?;
    if true_rate == 0 {
        return None;
    }
    let begin = match old.at(sample.counter) {
        Some(ns) => ns,
        None => sample.ns + LEAD_NS,
    };
    // Positive: the line is behind where it is to be.
    let error = (sample.ns as i64 - LAG_NS) - begin as i64;
    let ppm = (error * 1_000_000 / SLEW_NS).clamp(-SLEW_MAX_PPM, SLEW_MAX_PPM);
    // Whole millionths are too coarse for errors below a microsecond.
    let correction = if ppm.abs() < SLEW_MAX_PPM {
        i128::from(true_rate) * i128::from(error) / i128::from(SLEW_NS)
    } else {
        i128::from(true_rate) * i128::from(ppm) / 1_000_000
    };
    let rate = u64::try_from(i128::from(true_rate) + correction).ok()?;
    let life = u64::try_from((u128::from(LIFE_NS) << SHIFT) / u128::from(true_rate)).ok()?;
    // How much a reader that still goes by a steeper old line can be ahead, and the rounding.
    let ahead = scale(PUBLISH_NS, old.rate.saturating_sub(rate)) + 1;
    let ahead = if old.life == 0 { 0 } else { ahead };
    Some(Terms {
        base: sample.counter,
        ns: begin + ahead,
        rate,
        life,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose counter has `mhz` and whose samples are off by up to 30 ns.
    struct Machine {
        mhz: f64,
        noise: u64,
    }

    impl Machine {
        fn sample(&mut self, ns: u64) -> Sample {
            self.noise = self.noise.wrapping_mul(6364136223846793005).wrapping_add(1);
            let off = (self.noise >> 33) % 61;
            Sample {
                counter: 1_000_000 + (ns as f64 * self.mhz / 1000.0) as u64,
                ns: ns + off - 30,
            }
        }
        fn counter(&self, ns: u64) -> u64 {
            1_000_000 + (ns as f64 * self.mhz / 1000.0) as u64
        }
    }

    #[test]
    fn the_line_stays_within_a_microsecond_and_never_goes_back() {
        for mhz in [25.0, 100.0, 1000.0, 2300.123, 3999.7] {
            let mut machine = Machine { mhz, noise: 7 };
            let first = machine.sample(1_000_000);
            let mut terms = Terms::default();
            let mut last = 0;
            // Ten minutes, updated every half second, read every 10 ms.
            for step in 0..1200u64 {
                let at = BASELINE_MIN_NS + 500_000_000 * (step + 1);
                let sample = machine.sample(at);
                let before = terms.at(sample.counter);
                terms = next_terms(&terms, first, sample).expect("a long baseline");
                if let (Some(before), Some(after)) = (before, terms.at(sample.counter)) {
                    assert!(after >= before);
                }
                for read in 0..50u64 {
                    let ns = at + read * 10_000_000;
                    let line = terms.at(machine.counter(ns)).expect("alive");
                    assert!(line >= last, "{mhz} MHz: {line} after {last}");
                    last = line;
                    let error = line as i64 - ns as i64;
                    assert!(error.abs() < 1000, "{mhz} MHz at {ns}: off by {error} ns");
                }
            }
        }
    }

    #[test]
    fn a_short_baseline_makes_no_line_and_a_line_expires() {
        let mut machine = Machine {
            mhz: 2000.0,
            noise: 1,
        };
        let first = machine.sample(1_000);
        let soon = machine.sample(BASELINE_MIN_NS / 2);
        assert_eq!(next_terms(&Terms::default(), first, soon), None);
        let later = machine.sample(2 * BASELINE_MIN_NS);
        let terms = next_terms(&Terms::default(), first, later).expect("a line");
        let at = |ns| terms.at(machine.counter(ns));
        assert!(at(2 * BASELINE_MIN_NS + LIFE_NS / 2).is_some());
        assert!(at(2 * BASELINE_MIN_NS + LIFE_NS + 1000).is_none());
    }

    #[test]
    fn a_line_that_is_never_replaced_ends_behind_the_kernels_clock_and_within_a_microsecond() {
        let mut machine = Machine {
            mhz: 2300.123,
            noise: 1,
        };
        let first = machine.sample(1_000_000);
        // The shortest baseline that there is.
        let begin = 1_000_100 + BASELINE_MIN_NS;
        let terms = next_terms(&Terms::default(), first, machine.sample(begin)).expect("a line");
        let error_at = |ns| {
            terms
                .at(machine.counter(ns))
                .map(|line| line as i64 - ns as i64)
        };
        let errors: Vec<i64> = (0..=40)
            .filter_map(|step| error_at(begin + step * (LIFE_NS - 10_000) / 40))
            .collect();
        assert_eq!(errors.len(), 41);
        assert!(errors.iter().all(|error| error.abs() < 1000), "{errors:?}");
        let last = errors[40];
        assert!((-700..-30).contains(&last), "{last}");
    }

    #[test]
    fn a_counter_just_before_the_line_means_its_begin_and_one_that_was_set_anew_is_no_time() {
        let terms = Terms {
            base: 1 << 40,
            ns: 77,
            rate: 1 << SHIFT,
            life: 1 << 30,
        };
        assert_eq!(terms.at((1 << 40) - 100), Some(77));
        assert_eq!(terms.at((1 << 40) + 100), Some(177));
        assert_eq!(terms.at((1 << 40) - EARLY_TICKS), None);
        assert_eq!(terms.at(5), None);
    }

    #[test]
    fn readers_see_whole_lines_only() {
        use std::sync::Arc;
        use std::sync::atomic::AtomicBool;
        let line = Arc::new(Line::new());
        let done = Arc::new(AtomicBool::new(false));
        let reader = {
            let (line, done) = (line.clone(), done.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let version = line.version.load(Ordering::Acquire);
                    let terms = line.load(version);
                    fence(Ordering::Acquire);
                    if line.version.load(Ordering::Relaxed) == version {
                        assert_eq!(terms.ns, terms.base);
                        assert_eq!(terms.rate, terms.base);
                    }
                }
            })
        };
        for value in 1..100_000 {
            line.store(Terms {
                base: value,
                ns: value,
                rate: value,
                life: value,
            });
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("whole lines");
    }
}
