//! Clocks of the control files that cannot be right: what has times by them is exported, and they are named.

use crate::source::Source;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{Control, Times};

/// Wall clocks from here on, us since the epoch, have no nanoseconds in 63 bits: the year 2262.
const WALL_US_MAX: u64 = i64::MAX as u64 / 1000;
/// A hundred years in ns: no machine runs that long.
const MONOTONIC_NS_MAX: u64 = 100 * 366 * 24 * 3600 * 1_000_000_000;
/// A counter from here on has wrapped below 0.
const COUNTER_MAX: u64 = i64::MAX as u64;

/// A sentence for each file whose clocks cannot be right. Of files that are missing and of damaged ones others tell.
pub(crate) fn odd_clocks(source: &Source) -> Vec<String> {
    let profile = source.profile();
    let mut found = Vec::new();
    for section in profile.sections() {
        let place = section.place;
        let start = profile.start(place);
        let file = |control: Control| file(source, place, control);
        let mut odd = |control: Control, says: Option<String>| {
            let named = file(control).zip(says);
            found.extend(named.map(|(file, says)| {
                format!("{file} says {says}, which cannot be right: times are wrong")
            }));
        };
        odd(Control::StartInfo, start.as_ref().and_then(odd_times));
        odd(
            Control::EndInfo,
            match (start, profile.stop(place)) {
                (_, None) => Some("no end".to_owned()),
                (Some(start), Some(stop)) if stop.monotonic_ns < start.monotonic_ns => {
                    Some("an end before the start".to_owned())
                }
                (_, Some(stop)) => odd_times(&stop),
            },
        );
        let (counter, monotonic_ns) = match place {
            // Of ticks that are ns no counter is needed.
            Place::Host if source.clock().is_ns() => continue,
            // Collectors write zeros of devices that say nothing; no time is computed with them.
            Place::Device(_) if !has_records(source, place) => continue,
            Place::Host => source.clock().anchor,
            Place::Device(device) => {
                let clock = source.device_clock(device);
                (clock.start_ticks, clock.host_ns)
            }
        };
        let host_log = match place {
            Place::Host => odd_counter(counter),
            Place::Device(_) => None,
        };
        odd(
            Control::HostStart,
            host_log.or_else(|| odd_monotonic(monotonic_ns)),
        );
        if place != Place::Host {
            odd(Control::DevStart, odd_counter(counter));
        }
    }
    found
}

/// `host/end_info`, where there is one, and of a device with records also where there is none.
fn file(source: &Source, place: Place, control: Control) -> Option<String> {
    let profile = source.profile();
    let section = profile.section(place)?;
    let directory = section.path.file_name().unwrap_or_default();
    let directory = directory.to_string_lossy();
    let missing = || match place {
        Place::Device(device) if control != Control::EndInfo && has_records(source, place) => {
            Some(format!("{}.{device}", control.prefix()))
        }
        _ => None,
    };
    let entry = section.candidates(control).next();
    let name = entry.map(|entry| entry.name.escape_debug().to_string());
    let name = name.or_else(missing)?;
    Some(format!("{directory}/{name}"))
}

fn has_records(source: &Source, place: Place) -> bool {
    let mut families = source.profile().families().iter();
    families.any(|family| family.place == place)
}

fn odd_times(times: &Times) -> Option<String> {
    match times.wall_us {
        1..WALL_US_MAX => odd_monotonic(times.monotonic_ns),
        wall => Some(format!("{wall} us since 1970")),
    }
}

fn odd_monotonic(ns: u64) -> Option<String> {
    match ns {
        0 => Some("no monotonic clock".to_owned()),
        1..MONOTONIC_NS_MAX => None,
        _ => Some(format!("{ns} ns since the start of the machine")),
    }
}

fn odd_counter(ticks: u64) -> Option<String> {
    match ticks {
        0 => Some("no counter".to_owned()),
        1..COUNTER_MAX => None,
        _ => Some(format!("{ticks} ticks of its counter")),
    }
}
