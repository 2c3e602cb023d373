//! Names of PROF_XXX directories and of the files in them (spec 3 section 3), and local time.

use super::dictionary::written_type_name;
use crate::names::PROF_PREFIX;
use std::io::Read;

/// Bytes of a registered type name that go into a file name; with prefix, slice number and `.done`
/// it stays under the 255 bytes of a directory entry.
const TYPE_NAME_MAX: usize = 160;
/// Type names whose files the parser reads as text.
const DICTIONARIES: [&str; 2] = ["hash_dic", "type_info_dic"];
/// The family of records without a registered name.
pub const INVALID: &str = "invalid";
/// Directory names count captures up to this and begin again.
const INDEX_WRAP: u64 = 999_999;

/// The `<type name>` part of a family's name for a type's name, the registered one or the one in the dictionary
/// of types: both have the same.
///
/// Letters, digits and `_` stay. Anything else becomes `-`, a dot too: the parser matches names from
/// their beginning, so that a type called `task_track.slice_0` would pass for `task_track`. No name
/// known to the parser holds a `-`, so that a changed name never turns into one it reads.
pub fn family_file_name(type_name: &[u8]) -> String {
    let written = written_type_name(type_name);
    // That is no name to the dictionary.
    if written.trim_ascii().is_empty() {
        return INVALID.to_owned();
    }
    let mut name: String = written
        .bytes()
        .take(TYPE_NAME_MAX)
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => byte as char,
            _ => '-',
        })
        .collect();
    if DICTIONARIES.contains(&name.as_str()) {
        // Binary records in a dictionary would spoil every name in it.
        name.push('-');
    }
    name
}

/// `<family>.slice_<N>`.
pub fn slice_name(family: &str, slice: u32) -> String {
    format!("{family}.slice_{slice}")
}

/// Takes a slice's file name apart: family and number. `.done` and the parser's `.complete` files
/// are none; what follows the digits is free, as it is for the parser.
pub fn parse_slice_name(file: &str) -> Option<(&str, u32)> {
    let (family, digits) = slice_parts(file)?;
    Some((family, digits.parse().ok()?))
}

/// Whether a file is a slice by its name, but for its number, which has more than 32 bits.
pub(super) fn is_overlong_slice(file: &str) -> bool {
    slice_parts(file).is_some_and(|(_, digits)| digits.parse::<u32>().is_err())
}

/// Family and digits of a slice; there is at least one.
fn slice_parts(file: &str) -> Option<(&str, &str)> {
    if [".done", ".complete", ".zip"]
        .iter()
        .any(|end| file.ends_with(end))
    {
        return None;
    }
    let (family, rest) = file.split_once(".slice_")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let digits = rest.get(..digits).filter(|digits| !digits.is_empty())?;
    (!family.is_empty()).then_some((family, digits))
}

/// Name of a new PROF directory; `letters` are random bytes.
pub(super) fn directory_name(index: u64, start_ns: u64, pid: u32, letters: [u8; 8]) -> String {
    let number = index.saturating_sub(1) % INDEX_WRAP + 1;
    let time = LocalTime::of(start_ns);
    let tail: String = letters
        .iter()
        .map(|byte| (b'A' + byte % 18) as char)
        .collect();
    format!("{PROF_PREFIX}{number:06}_{}_{pid:08}{tail}", time.compact())
}

/// Eight bytes that differ between processes and calls.
pub(super) fn random_letters() -> [u8; 8] {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is valid for the length passed. By number, since glibc 2.17 has no
    // wrapper; GRND_NONBLOCK so that an early boot cannot make a capture wait.
    let got = unsafe {
        libc::syscall(
            libc::SYS_getrandom,
            bytes.as_mut_ptr(),
            bytes.len(),
            libc::GRND_NONBLOCK,
        )
    };
    if got == bytes.len() as libc::c_long {
        return bytes;
    }
    // Kernels before 3.17.
    let from_device = super::files::open_system_file("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes));
    if from_device.is_err() {
        let seed = crate::clock::realtime_ns() ^ u64::from(std::process::id()) << 32;
        // An odd multiplier spreads the low, fast-moving bits over all bytes.
        bytes = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_ne_bytes();
    }
    bytes
}

/// Reads the time zone once, at a moment when no other thread can be changing the environment.
///
/// The first conversion in a process makes the C library call `getenv("TZ")`, which races with a
/// program that calls `setenv`. Called from the constructor, this does it in time; later
/// conversions do not look at the environment again.
pub fn prime_time_zone() {
    LocalTime::of(0);
}

/// `YYYYMMDDhhmmss` in local time, from nanoseconds since the epoch.
pub fn local_stamp(realtime_ns: u64) -> String {
    let mut stamp = LocalTime::of(realtime_ns).compact();
    // Without the milliseconds.
    stamp.truncate(stamp.len() - 3);
    stamp
}

/// A wall-clock time taken apart in the local time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalTime {
    year: i64,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
    second: i32,
    micros: u32,
}

impl LocalTime {
    /// From nanoseconds since the epoch.
    pub(super) fn of(realtime_ns: u64) -> LocalTime {
        let seconds = (realtime_ns / 1_000_000_000) as libc::time_t;
        // SAFETY: tm is plain data (integers and one pointer), all zeros are a valid value.
        let mut tm: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid; localtime_r writes to the given buffer only.
        if unsafe { libc::localtime_r(&seconds, &mut tm) }.is_null() {
            // SAFETY: as above.
            unsafe { libc::gmtime_r(&seconds, &mut tm) };
        }
        LocalTime {
            year: i64::from(tm.tm_year) + 1900,
            month: tm.tm_mon + 1,
            day: tm.tm_mday,
            hour: tm.tm_hour,
            minute: tm.tm_min,
            second: tm.tm_sec,
            micros: (realtime_ns % 1_000_000_000 / 1_000) as u32,
        }
    }

    /// `YYYYMMDDhhmmssmmm`, with milliseconds.
    fn compact(self) -> String {
        format!(
            "{:04}{:02}{:02}{:02}{:02}{:02}{:03}",
            self.year,
            self.month,
            self.day,
            self.hour,
            self.minute,
            self.second,
            self.micros / 1_000
        )
    }

    /// `YYYY-MM-DD hh:mm:ss.uuuuuu`.
    pub(super) fn readable(self) -> String {
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}",
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.micros
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_as_the_stock_collector_names_it() {
        let name = directory_name(
            1,
            1_780_645_871_872_000_000,
            4321,
            [0, 1, 17, 18, 255, 4, 5, 6],
        );
        assert_eq!(
            name.len(),
            "PROF_000001_20260605155111872_00004321JDEKRCNE".len()
        );
        assert!(name.starts_with("PROF_000001_2026060"), "{name}");
        assert!(name.contains("872_00004321"), "{name}");
        let tail = &name[name.len() - 8..];
        assert_eq!(tail, "ABRADEFG");
        assert!(directory_name(999_999, 0, 1, [0; 8]).starts_with("PROF_999999_"));
        assert!(directory_name(1_000_000, 0, 1, [0; 8]).starts_with("PROF_000001_"));
    }

    #[test]
    fn type_names_become_file_names_that_cannot_pass_for_others() {
        assert_eq!(family_file_name(b"task_track"), "task_track");
        assert_eq!(family_file_name(b""), "invalid");
        assert_eq!(family_file_name(b" \n"), "invalid");
        assert_eq!(family_file_name(b"task,track"), "task-track");
        assert_eq!(family_file_name(b"../../etc/passwd"), "------etc-passwd");
        assert_eq!(
            family_file_name(b"task_track.slice_0"),
            "task_track-slice_0"
        );
        assert_eq!(family_file_name(b"task track"), "task-track");
        assert_eq!(family_file_name("名".as_bytes()), "---");
        assert_eq!(family_file_name(b"hash_dic"), "hash_dic-");
        assert_eq!(family_file_name(&[b'x'; 65_536]).len(), TYPE_NAME_MAX);
    }

    #[test]
    fn slice_names_are_taken_apart_as_the_parser_does() {
        let name = slice_name("aging.api_event.data", 12);
        assert_eq!(parse_slice_name(&name), Some(("aging.api_event.data", 12)));
        assert_eq!(
            parse_slice_name("aicpu.data.0.slice_3"),
            Some(("aicpu.data.0", 3))
        );
        assert_eq!(parse_slice_name("x.slice_3.suffix"), Some(("x", 3)));
        for other in [
            "x.slice_3.done",
            "x.slice_",
            "x",
            ".slice_1",
            "x.slice_99999999999",
        ] {
            assert_eq!(parse_slice_name(other), None, "{other}");
            assert_eq!(is_overlong_slice(other), other.ends_with('9'), "{other}");
        }
    }

    #[test]
    fn random_letters_differ() {
        assert_ne!(random_letters(), random_letters());
    }
}
