//! Ticks as the numbers of the database: ns since the epoch.

use crate::clock::counted_ns;
use crate::source::Source;
use msprof_agent_core::profdir::Place;
use std::cell::Cell;

/// The host's clock, or a device's. Exact, as that of the stock parser's database is; its other files, and ours, are off by a rounding.
#[derive(Debug)]
pub(super) struct Wall {
    ticks_per_us: f64,
    /// Whether ticks are CLOCK_MONOTONIC_RAW, ns.
    is_ns: bool,
    /// A tick, and CLOCK_MONOTONIC_RAW in ns at that instant.
    anchor: (u64, u64),
    /// Wall clock less CLOCK_MONOTONIC_RAW, ns.
    offset: i128,
    start: Option<i64>,
    outside: Cell<u64>,
}

impl Wall {
    pub(super) fn new(source: &Source) -> Wall {
        let start = source.start();
        let (offset, start_ns) = start.map_or((0, None), |start| {
            let wall = i128::from(start.wall_us) * 1000;
            (wall - i128::from(start.monotonic_ns), Some(wall))
        });
        Wall {
            ticks_per_us: source.clock().ticks_per_us,
            is_ns: source.clock().is_ns(),
            anchor: source.clock().anchor,
            offset,
            start: start_ns.map(clamp),
            outside: Cell::new(0),
        }
    }

    /// The clock of a device; `None` where its files do not say what it is.
    pub(super) fn of_device(source: &Source, device: u32) -> Option<Wall> {
        let clock = source.device_clock(device);
        let start = source.profile().start(Place::Device(device))?;
        let wall = i128::from(start.wall_us) * 1000;
        clock.known.then(|| Wall {
            ticks_per_us: clock.ticks_per_us,
            is_ns: false,
            anchor: (clock.start_ticks, clock.host_ns),
            offset: wall - i128::from(start.monotonic_ns),
            start: Some(clamp(wall)),
            outside: Cell::new(0),
        })
    }

    /// When the capture began; `None` without start_info.
    pub(super) fn start(&self) -> Option<i64> {
        self.start
    }

    /// The wall clock at a tick. What is beyond the numbers of a database becomes the first or the last of them, and is
    /// counted.
    pub(super) fn at(&self, ticks: u64) -> i64 {
        let exact = self.monotonic(ticks) + self.offset;
        let fits = clamp(exact);
        if i128::from(fits) != exact {
            self.outside.set(self.outside.get() + 1);
        }
        fits
    }

    /// How many times were beyond.
    pub(super) fn outside(&self) -> u64 {
        self.outside.get()
    }

    fn monotonic(&self, ticks: u64) -> i128 {
        if self.is_ns {
            return i128::from(ticks);
        }
        counted_ns(ticks, self.ticks_per_us, self.anchor)
    }
}

fn clamp(ns: i128) -> i64 {
    ns.clamp(0, i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(ticks_per_us: f64, offset: i128) -> Wall {
        Wall {
            ticks_per_us,
            is_ns: ticks_per_us == 1000.0,
            anchor: (1_000, 5_000_000),
            offset,
            start: None,
            outside: Cell::new(0),
        }
    }

    #[test]
    fn nanoseconds_are_exact() {
        // The parser's timeline has .877 rounded to a quarter of a us.
        let wall = wall(1000.0, 1_780_645_871_872_000_000 - 876_117_208_663_877);
        assert_eq!(wall.at(876_117_208_663_877), 1_780_645_871_872_000_000);
        assert_eq!(wall.at(876_117_208_663_878), 1_780_645_871_872_000_001);
    }

    #[test]
    fn ticks_of_a_counter_are_counted_from_the_anchor() {
        let wall = wall(3.0, 7);
        assert_eq!(wall.at(1_000), 5_000_007);
        assert_eq!(wall.at(1_001), 5_000_340);
    }

    #[test]
    fn what_no_database_holds_becomes_its_last_number_and_is_counted() {
        let wall = wall(1000.0, 1_700_000_000_000_000_000);
        assert_eq!(wall.at(u64::MAX - 1), i64::MAX);
        assert_eq!(wall.at(0), 1_700_000_000_000_000_000);
        assert_eq!(wall.outside(), 1);
    }
}
