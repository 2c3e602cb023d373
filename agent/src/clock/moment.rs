//! Moments of the agent's own: deadlines, pauses and ages.
//!
//! What std's `Instant` is, but read past the C library. A library beside ours may stand in the place of its clocks
//! and show the program another time, one that runs faster, or one that does not run at all (libfaketime); none of
//! that may end a wait of ours, or let it never end.

#![forbid(unsafe_code)]

use rustix::time::{ClockId, clock_gettime};
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment by the kernel's CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// This moment.
    pub fn now() -> Moment {
        let now = clock_gettime(ClockId::Monotonic);
        // The clock starts with the machine, and the kernel's nanoseconds are less than a second.
        Moment(Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
    }

    /// How long it is since then; zero for a moment to come.
    pub fn elapsed(self) -> Duration {
        Moment::now() - self
    }

    /// How long it is until then; zero for one that has been.
    pub fn remaining(self) -> Duration {
        self - Moment::now()
    }

    /// Whether it has come.
    pub fn has_come(self) -> bool {
        Moment::now() >= self
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}

impl Sub for Moment {
    type Output = Duration;

    /// From `earlier` to this one; zero when it is not earlier.
    fn sub(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_go_forward_and_differences_are_never_negative() {
        let first = Moment::now();
        let later = first + Duration::from_secs(3600);
        assert_eq!(later - first, Duration::from_secs(3600));
        assert_eq!(first - later, Duration::ZERO);
        assert_eq!(later.elapsed(), Duration::ZERO);
        assert!(first.has_come() && !later.has_come());
        assert!(later.remaining() <= Duration::from_secs(3600));
        assert!(later.remaining() > Duration::from_secs(3000));
        assert_eq!(first.remaining(), Duration::ZERO);
        assert!(Moment::now() >= first);
        let never = first + Duration::MAX;
        assert!(!never.has_come());
    }
}
