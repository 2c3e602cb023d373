//! Times as people write and read them.

use std::time::Duration;

/// Units that a length of time may have behind its number, and their ms.
const UNITS: [(&str, f64); 4] = [("ms", 1.0), ("s", 1e3), ("m", 60e3), ("h", 3600e3)];

/// Reads `5s`, `200ms`, `2m`, `1.5h`; `None` of anything else, and of less than 1 ms that is not 0.
pub fn parse(text: &str) -> Option<Duration> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let is_plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let ms = number.parse::<f64>().ok().filter(|_| is_plain)? * ms;
    let time = Duration::try_from_secs_f64(ms / 1e3).ok()?;
    (time.is_zero() || time >= Duration::from_millis(1)).then_some(time)
}

/// About how long, in words: `200 ms`, `5 s`, `12 min`, `3 h 5 min`, `2 d 4 h`.
pub fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    let two = |first: u64, unit: &str, second: u64, smaller: &str| match second {
        0 => format!("{first} {unit}"),
        _ => format!("{first} {unit} {second} {smaller}"),
    };
    match seconds {
        _ if time < Duration::from_secs(1) && !time.is_zero() => {
            format!("{} ms", time.as_millis())
        }
        0..60 => format!("{seconds} s"),
        60..600 => two(seconds / 60, "min", seconds % 60, "s"),
        600..3600 => format!("{} min", seconds / 60),
        3600..172_800 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// A length of time in seconds to the nearest ms: `2.017 s`.
pub fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// A time as RFC 3339 has it, in UTC and with ms, of ns since 1970.
pub fn rfc3339(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        rest / 3600,
        rest % 3600 / 60,
        rest % 60,
        unix_ns / 1_000_000 % 1000
    )
}

/// Year, month and day of a number of days since 1970.
fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    loop {
        let length = 365 + u64::from(is_leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_with_their_unit() {
        for (text, ms) in [
            ("5s", 5000),
            ("200ms", 200),
            ("2m", 120_000),
            ("1.5h", 5_400_000),
            ("0s", 0),
            ("0.25s", 250),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "", "5", "s", "-1s", "1e3s", "infs", "nans", "5 s", "5S", "0.1ms", "+1s", "5s5s", "5µs",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_of_time_are_told_in_one_or_two_units() {
        for (ms, text) in [
            (200, "200 ms"),
            (0, "0 s"),
            (5_000, "5 s"),
            (1_500, "1 s"),
            (125_000, "2 min 5 s"),
            (1_800_000, "30 min"),
            (7_200_000, "2 h"),
            (11_100_000, "3 h 5 min"),
            (187_200_000, "2 d 4 h"),
        ] {
            assert_eq!(words(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn seconds_are_rounded_to_ms() {
        for (ns, text) in [
            (0, "0.000 s"),
            (2_016_499_999, "2.016 s"),
            (2_016_500_001, "2.017 s"),
            (59_999_999_999, "60.000 s"),
        ] {
            assert_eq!(seconds(ns), text);
        }
    }

    #[test]
    fn moments_are_told_in_utc() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789_000_000, "2000-02-29T12:34:56.789Z"),
            (1_796_083_199_999_999_999, "2026-11-30T23:59:59.999Z"),
            (1_830_297_600_000_000_000, "2028-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ns), text);
        }
    }
}
