//! A device's clock (spec 3 section 7).

use crate::clock::{HostClock, counted_ns};
use crate::source::Source;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::Control;

/// Ticks per us of a device whose info.json does not say.
const NANOSECONDS: f64 = 1000.0;

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// What a tick of a device's records is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceClock {
    /// Ticks per us.
    pub ticks_per_us: f64,
    /// Whether info.json says so; without, the stock parser exports nothing of the device.
    pub known: bool,
    /// The device's ticks at the start.
    pub start_ticks: u64,
    /// The host's CLOCK_MONOTONIC_RAW at that instant, ns.
    pub host_ns: u64,
    /// What CLOCK_MONOTONIC_RAW lacks of the wall clock, us.
    pub offset_us: f64,
    /// Wall clock at the start, us since the epoch; `None` without start_info.
    pub start_us: Option<u64>,
}

impl DeviceClock {
    /// CLOCK_MONOTONIC_RAW at a tick, in units of which a second has so many. In the steps in which the stock parser
    /// computes it: at this size the last digits depend on them.
    pub fn monotonic(&self, ticks: u64, per_second: f64) -> f64 {
        let past = ticks as f64 - self.start_ticks as f64 / NANOS * NANOS;
        past / (self.ticks_per_us * 1e6) * per_second + self.host_ns as f64 / NANOS * per_second
    }

    /// CLOCK_MONOTONIC_RAW at a tick, ns, exact; 0 for what lies before its beginning.
    pub fn monotonic_ns(&self, ticks: u64) -> u64 {
        let anchor = (self.start_ticks, self.host_ns);
        counted_ns(ticks, self.ticks_per_us, anchor).clamp(0, u64::MAX.into()) as u64
    }

    /// How long so many ticks are, in units of which a second has so many.
    pub fn duration(&self, ticks: i128, per_second: f64) -> f64 {
        ticks as f64 / (self.ticks_per_us * 1e6) * per_second
    }
}

impl Source {
    /// A device's clock by its control files; what they do not say is taken as 0.
    pub(crate) fn device_clock(&self, device: u32) -> DeviceClock {
        let place = Place::Device(device);
        let profile = self.profile();
        let start = profile.start(place);
        let number = |control, key| whole(&self.control_text(place, control), key);
        let host_ns = number(Control::HostStart, "clock_monotonic_raw");
        let frequency = self.hwts_frequency(place);
        DeviceClock {
            ticks_per_us: frequency.unwrap_or(NANOSECONDS),
            known: frequency.is_some(),
            start_ticks: number(Control::DevStart, "cntvct"),
            host_ns: host_ns.saturating_add_signed(self.late_ns(place)),
            offset_us: start.map_or(0.0, |start| {
                HostClock::offset_us(start.wall_us, start.monotonic_ns)
            }),
            start_us: start.map(|start| start.wall_us),
        }
    }

    fn control_text(&self, place: Place, control: Control) -> String {
        let text = self.profile().control(place, control);
        text.ok().flatten().unwrap_or_default()
    }

    /// `hwts_frequency` of the device in MHz.
    fn hwts_frequency(&self, place: Place) -> Option<f64> {
        let info = self.profile().control_json(place, Control::Info).ok()??;
        let device = info.get("DeviceInfo")?.as_array()?.first()?;
        let frequency = device.get("hwts_frequency")?;
        let mhz = match frequency.as_str() {
            Some(text) => text.trim().parse().ok()?,
            None => frequency.as_f64()?,
        };
        (f64::is_finite(mhz) && mhz > 0.0).then_some(mhz)
    }

    /// How much later than its line says the host's clock was read, ns: `cntvct_diff` ticks of the host.
    fn late_ns(&self, place: Place) -> i64 {
        let text = self.control_text(place, Control::HostStart);
        let diff = number(&text, "cntvct_diff").unwrap_or(0.0);
        // The host's clock as the device's directory has it.
        let info = self.profile().control_json(place, Control::Info);
        let info = info.ok().flatten().unwrap_or_default();
        let frequency = || {
            let cpu = info.get("CPU")?.as_array()?.first()?;
            cpu.get("Frequency")?.as_str()?.trim().parse::<f64>().ok()
        };
        match frequency() {
            Some(mhz) if mhz.is_finite() && mhz > 0.0 => (diff * 1000.0 / mhz).round() as i64,
            _ => diff as i64,
        }
    }
}

/// The text behind `key:`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = lines.filter(|(name, _)| name.trim() == key);
    values.next().map(|(_, value)| value.trim())
}

/// The number behind `key:`, where it is one.
fn number(text: &str, key: &str) -> Option<f64> {
    let number = value(text, key)?.parse().ok();
    number.filter(|number: &f64| number.is_finite())
}

/// The whole number behind `key:`, 0 where there is none. Not by way of a float, which has no room for all of them.
fn whole(text: &str, key: &str) -> u64 {
    let exact = value(text, key).and_then(|value| value.parse().ok());
    exact.unwrap_or_else(|| number(text, key).unwrap_or(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_log_are_exact_and_what_is_none_counts_as_0() {
        let text = "[Device0]\nclock_monotonic_raw: 1152921504606846977\ncntvct: 12.5\nlate: -3\n";
        assert_eq!(whole(text, "clock_monotonic_raw"), (1 << 60) + 1);
        assert_eq!(whole(text, "cntvct"), 12);
        assert_eq!(whole(text, "late"), 0);
        assert_eq!(whole(text, "other"), 0);
        assert_eq!(number(text, "late"), Some(-3.0));
        assert_eq!(number("late: inf", "late"), None);
    }
}
