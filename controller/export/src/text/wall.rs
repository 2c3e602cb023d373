//! Times on the wall as the stock parser computes them, to its last digit.

use crate::clock::HostClock;
use crate::decode::device::DeviceClock;
use crate::number::thousandths;
use crate::source::Source;

/// Microseconds of a second.
const MICROS: f64 = 1e6;
/// Nanoseconds of a second.
const NANOS: f64 = 1e9;
/// Half of the step of the stock parser's floats at the size of a time on the wall, ns: by so much a call may begin before
/// the start and counts as begun with it.
const HALF_STEP_NS: i128 = 125;

/// The host's clock.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    clock: HostClock,
    offset_us: f64,
    start_ns: Option<i128>,
}

impl Wall {
    /// The clock of a directory's host records.
    pub fn of(source: &Source) -> Wall {
        let start = source.start();
        Wall {
            clock: *source.clock(),
            offset_us: start.map_or(0.0, |start| {
                HostClock::offset_us(start.wall_us, start.monotonic_ns)
            }),
            start_ns: start.map(|start| i128::from(start.wall_us) * 1000),
        }
    }

    /// The wall clock at a tick, ns since the epoch.
    ///
    /// Of ticks that are ns this is exact. The stock parser's floats are so up to 2^53 ns, 104 days after the machine's
    /// start, and off by some ns behind that.
    pub fn ns(&self, ticks: u64) -> i128 {
        if self.clock.is_ns() {
            return i128::from(ticks) + self.clock.offset_ns;
        }
        let (tick, monotonic) = self.clock.anchor;
        let past = ticks as f64 - tick as f64 / NANOS * NANOS;
        let us = past / (self.clock.ticks_per_us * MICROS) * MICROS;
        let us = us + monotonic as f64 / NANOS * MICROS;
        thousandths(us.max(0.0), self.offset_us)
    }

    /// What CLOCK_MONOTONIC_RAW lacks of the wall clock, ns.
    pub fn offset_ns(&self) -> i128 {
        self.clock.offset_ns
    }

    /// How long so many ticks are, us; below 0 of a call that ends before it begins.
    pub fn duration_us(&self, ticks: i128) -> f64 {
        if self.clock.is_ns() {
            return ticks as f64 * MICROS / NANOS;
        }
        ticks as f64 / (self.clock.ticks_per_us * MICROS) * MICROS
    }

    /// Whether a time is in the capture: not before its start.
    ///
    /// The stock parser takes the first device's start where there is one, and leaves out what the host did in the
    /// milliseconds, or seconds, before.
    pub fn is_inside(&self, wall_ns: i128) -> bool {
        self.start_ns
            .is_none_or(|start| wall_ns + HALF_STEP_NS >= start)
    }
}

impl DeviceClock {
    /// The wall clock at us of CLOCK_MONOTONIC_RAW, ns since the epoch.
    pub(super) fn wall_of_us(&self, monotonic_us: f64) -> i128 {
        thousandths(monotonic_us, self.offset_us)
    }

    /// Whether a time is not before the device's start.
    pub(super) fn is_inside(&self, wall_ns: i128) -> bool {
        let start = self.start_us.map(|us| i128::from(us) * 1000);
        start.is_none_or(|start| wall_ns + HALF_STEP_NS >= start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those that Python prints of the stock parser's sums.
    #[test]
    fn ticks_of_a_counter_come_to_the_last_digit_of_the_stock_parser() {
        let (us, ns) = (1_780_645_871_872_000, 876_117_208_663_777);
        let wall = Wall {
            clock: HostClock {
                ticks_per_us: 2400.0,
                anchor: (21_902_930_216_594, ns),
                offset_ns: HostClock::offset_of(us, ns),
            },
            offset_us: HostClock::offset_us(us, ns),
            start_ns: None,
        };
        let text = |ticks| crate::number::us(wall.ns(ticks));
        assert_eq!(text(21_902_930_216_595), "1780645871871999.977");
        assert_eq!(text(21_902_930_340_051), "1780645871872051.417");
        assert_eq!(text(7_676_224_917_870_915), "1783835172700189.277");
        assert_eq!(text(5), "1780636745651076.398");
        assert_eq!(wall.duration_us(12_345), 5.143_75);
    }
}
