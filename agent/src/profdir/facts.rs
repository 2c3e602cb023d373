//! What info.json says about the host, from /proc and the kernel (spec 3 section 4.1).
//!
//! Every fact has a value even where /proc is absent or odd: a capture never fails for one.

use std::ffi::CStr;
use std::io::Read;

/// Bytes read of any one file: /proc/cpuinfo has an entry per CPU, and the kernel spends time on
/// each, but the first is enough.
const READ_MAX: u64 = 8 * 1024;
/// Kernel clock ticks per second where sysconf does not say.
const TICKS_DEFAULT: i64 = 100;

/// Facts about host and process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostFacts {
    pub(super) hostname: String,
    /// `Linux-<release>-<version>`.
    pub(super) os: String,
    /// Machine, as `uname -m`.
    pub(super) hardware: String,
    pub(super) process_name: String,
    /// Seconds up and idle, the text of /proc/uptime.
    pub(super) up_time: String,
    pub(super) memory_kb: u64,
    pub(super) cpus: u64,
    pub(super) cores: u64,
    pub(super) cpu_vendor: String,
    pub(super) cpu_model: String,
    pub(super) clock_ticks: i64,
}

impl HostFacts {
    /// Looks at this host and process.
    pub(super) fn gather() -> HostFacts {
        let cpuinfo = read_start("/proc/cpuinfo");
        let uname = Uname::read();
        let cpus = count_range_list(&read_start("/sys/devices/system/cpu/online"))
            .or_else(|| count_processors(&cpuinfo))
            .unwrap_or(1);
        // SAFETY: sysconf has no precondition; this name reads no file.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as i64;
        HostFacts {
            hostname: uname.node,
            os: format!("{}-{}-{}", uname.system, uname.release, uname.version),
            hardware: uname.machine,
            process_name: or_default(read_start("/proc/self/comm").trim(), "NA"),
            up_time: or_default(read_start("/proc/uptime").trim(), "0.00 0.00"),
            memory_kb: field(&read_start("/proc/meminfo"), &["MemTotal"])
                .and_then(|value| value.split_whitespace().next()?.parse().ok())
                .unwrap_or(0),
            cpus,
            cores: field(&cpuinfo, &["cpu cores"])
                .and_then(|value| value.parse().ok())
                .unwrap_or(cpus),
            cpu_vendor: field(&cpuinfo, &["vendor_id", "CPU implementer"])
                .unwrap_or_default()
                .to_owned(),
            cpu_model: field(&cpuinfo, &["model name", "Hardware", "CPU part"])
                .unwrap_or_default()
                .to_owned(),
            clock_ticks: if ticks > 0 { ticks } else { TICKS_DEFAULT },
        }
    }
}

/// Value of the first line `<key> : <value>` with one of `keys`, tried in their order.
fn field<'a>(text: &'a str, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.trim() == *key)
            .map(|(_, value)| value.trim())
    })
}

/// How many numbers a list such as `0-3,8` holds.
fn count_range_list(text: &str) -> Option<u64> {
    let mut count = 0u64;
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

fn count_processors(cpuinfo: &str) -> Option<u64> {
    let count = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count() as u64;
    (count > 0).then_some(count)
}

fn or_default(text: &str, default: &str) -> String {
    if text.is_empty() { default } else { text }.to_owned()
}

/// The beginning of a small file of the system, empty if it cannot be read.
fn read_start(path: &str) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = super::files::open_system_file(path) {
        // What was read before an error is still the beginning.
        let _ = file.take(READ_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Uname {
    system: String,
    node: String,
    release: String,
    version: String,
    machine: String,
}

impl Uname {
    fn read() -> Uname {
        // SAFETY: utsname is arrays of char, all zeros are a valid value.
        let mut raw: libc::utsname = unsafe { std::mem::zeroed() };
        // SAFETY: the buffer has the type that the call fills; on failure it stays empty strings.
        unsafe { libc::uname(&mut raw) };
        Uname {
            system: or_default(&text(&raw.sysname), "Linux"),
            node: or_default(&text(&raw.nodename), "localhost"),
            release: text(&raw.release),
            version: text(&raw.version),
            machine: or_default(&text(&raw.machine), std::env::consts::ARCH),
        }
    }
}

fn text(raw: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = raw.iter().map(|&c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_x86_and_arm_cpuinfo_and_absent_in_odd_ones() {
        let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon: fast\ncpu cores\t: 16\n";
        assert_eq!(field(x86, &["vendor_id"]), Some("GenuineIntel"));
        assert_eq!(field(x86, &["model name"]), Some("Xeon: fast"));
        let arm =
            "processor\t: 0\nBogoMIPS\t: 200.00\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n";
        assert_eq!(field(arm, &["vendor_id", "CPU implementer"]), Some("0x48"));
        assert_eq!(field("::\n\0\n: x\n", &["vendor_id"]), None);
        assert_eq!(count_processors(arm), Some(1));
        assert_eq!(count_processors(""), None);
    }

    #[test]
    fn cpu_lists_are_counted_or_refused() {
        assert_eq!(count_range_list("0-191\n"), Some(192));
        assert_eq!(count_range_list("0,2-3"), Some(3));
        for odd in ["", "a", "3-1", "0-18446744073709551615"] {
            assert_eq!(count_range_list(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_host_has_facts() {
        let facts = HostFacts::gather();
        assert!(facts.cpus >= 1);
        assert!(facts.os.starts_with("Linux"));
        assert!(!facts.process_name.is_empty() && !facts.process_name.contains('\n'));
    }
}
