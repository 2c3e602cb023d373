//! Ticks of the host's records as time on the wall (spec 3 section 7).

use crate::number::thousandths;

/// Ticks per us of records that carry nanoseconds.
const NANOSECONDS: f64 = 1000.0;
/// Picoseconds of a nanosecond.
const PICOS_PER_NS: i128 = 1000;
/// Picoseconds of a microsecond.
const PICOS_PER_US: i128 = 1_000_000;
/// Beyond all times that can be told, and far from the end of the numbers: a counter may be said to stand still.
const US_MAX: f64 = 1e30;

/// What a tick of the host's records is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostClock {
    /// 1000 where ticks are ns of CLOCK_MONOTONIC_RAW.
    pub ticks_per_us: f64,
    /// A tick and CLOCK_MONOTONIC_RAW, ns, of one instant; for ticks that are no ns.
    pub anchor: (u64, u64),
    /// What CLOCK_MONOTONIC_RAW lacks of the wall clock, ns.
    pub offset_ns: i128,
}

impl HostClock {
    /// The clock of a start_info: `wall_us` since the epoch when CLOCK_MONOTONIC_RAW was `monotonic_ns`.
    ///
    /// The stock parser takes the difference in floating point, which rounds it to a quarter of a us in this century, and
    /// goes on with the decimal number that Python prints of that: .2 for a quarter, .8 for three. So do we: all times are
    /// off by the same, and the same numbers stand in its files and in ours.
    pub fn offset_of(wall_us: u64, monotonic_ns: u64) -> i128 {
        thousandths(HostClock::offset_us(wall_us, monotonic_ns), 0.0)
    }

    /// The same in us.
    pub fn offset_us(wall_us: u64, monotonic_ns: u64) -> f64 {
        wall_us as f64 - monotonic_ns as f64 / 1000.0
    }

    /// Whether ticks are nanoseconds.
    pub fn is_ns(&self) -> bool {
        self.ticks_per_us == NANOSECONDS
    }

    /// CLOCK_MONOTONIC_RAW at a tick, ns; 0 for what lies before its beginning.
    pub fn monotonic_ns(&self, ticks: u64) -> u64 {
        if self.is_ns() {
            return ticks;
        }
        counted_ns(ticks, self.ticks_per_us, self.anchor).clamp(0, u64::MAX.into()) as u64
    }
}

/// CLOCK_MONOTONIC_RAW, ns, at a tick of a counter that was read together with that clock: `anchor` is what both said.
/// Below 0 for what lies before its beginning.
///
/// As the stock parser's database has it: the difference in us with six decimals, the sum in whole ns.
pub fn counted_ns(ticks: u64, ticks_per_us: f64, anchor: (u64, u64)) -> i128 {
    let (tick, monotonic) = anchor;
    let us = (ticks.abs_diff(tick) as f64 / ticks_per_us).min(US_MAX);
    let picos =
        us.trunc() as i128 * PICOS_PER_US + (us.fract() * PICOS_PER_US as f64).round() as i128;
    let past = if ticks < tick { -picos } else { picos };
    (i128::from(monotonic) * PICOS_PER_NS + past).div_euclid(PICOS_PER_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_what_they_are_and_a_whole_offset_is_exact() {
        let clock = HostClock {
            ticks_per_us: 1000.0,
            anchor: (5, 7),
            offset_ns: HostClock::offset_of(1_700_000_000_000_000, 1_000_000_000),
        };
        assert_eq!(clock.monotonic_ns(1_000_010_000), 1_000_010_000);
        assert_eq!(clock.offset_ns, 1_699_999_999_000_000_000);
    }

    #[test]
    fn the_offset_is_rounded_as_the_stock_parser_rounds_it() {
        // The exact difference ends in .223 us; doubles of this size are a quarter apart, and a quarter is printed as .2.
        let offset = HostClock::offset_of(1_780_645_871_872_000, 876_117_208_663_777);
        assert_eq!(offset % 1000, 200);
        assert!((offset - (1_780_645_871_872_000_000 - 876_117_208_663_777)).abs() <= 175);
    }

    #[test]
    fn ticks_of_a_counter_are_counted_from_the_anchor() {
        let clock = HostClock {
            ticks_per_us: 100.0,
            anchor: (1_000, 5_000_000),
            offset_ns: 0,
        };
        assert_eq!(clock.monotonic_ns(1_100), 5_001_000);
        assert_eq!(clock.monotonic_ns(0), 4_990_000);
        let early = HostClock {
            anchor: (1_000_000_000, 5),
            ..clock
        };
        assert_eq!(early.monotonic_ns(0), 0);
    }

    #[test]
    fn ticks_of_a_counter_are_cut_to_whole_ns() {
        // 1/3 us is 333.333 ns.
        let anchor = (1_000, 5_000_000);
        assert_eq!(counted_ns(1_000, 3.0, anchor), 5_000_000);
        assert_eq!(counted_ns(1_001, 3.0, anchor), 5_000_333);
        assert_eq!(counted_ns(999, 3.0, anchor), 4_999_666);
    }

    #[test]
    fn counters_of_long_and_of_absurd_rates_are_told_without_harm() {
        // No double tells these ticks from each other.
        let anchor = ((1 << 60) + 1, (1 << 60) + 7);
        assert_eq!(counted_ns((1 << 60) + 2, 1000.0, anchor), (1 << 60) + 8);
        for rate in [f64::MIN_POSITIVE, 1e-30] {
            let clock = |tick| HostClock {
                ticks_per_us: rate,
                anchor: (tick, 5),
                offset_ns: 0,
            };
            assert_eq!(clock(0).monotonic_ns(u64::MAX), u64::MAX);
            assert_eq!(clock(u64::MAX).monotonic_ns(0), 0);
        }
    }
}
