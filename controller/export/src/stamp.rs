//! The time that is part of the names of exported files.

use msprof_agent_core::profdir::local_stamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds that are tried where there are files of the same second already.
const TRIED: u64 = 100;
/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// The local time, then that of the seconds that come, for those who find files of the first ones. There is always one.
pub fn stamps() -> impl Iterator<Item = String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    (now..now + TRIED).map(|second| local_stamp(second * NANOS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_stamps_for_a_hundred_exports_in_a_second() {
        let all: Vec<String> = stamps().collect();
        assert_eq!(all.len(), 100);
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
        let is_digits = |stamp: &String| stamp.bytes().all(|byte| byte.is_ascii_digit());
        assert!(
            all.iter()
                .all(|stamp| stamp.len() == 14 && is_digits(stamp))
        );
    }
}
