//! Rules for control files (spec 3 sections 4, 7 and 9).

use super::super::families::Place;
use super::super::reader::{Control, EntryKind, Profile, Section};
use super::Report;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Chip generations that the parser knows.
const PLATFORMS: [&str; 12] = [
    "0", "1", "2", "3", "4", "5", "7", "8", "9", "11", "15", "16",
];
/// Driver version from which the parser offers all exports.
const ALL_EXPORT_DRIVER: i64 = 0x07_2211;
/// Text keys of a device's sample.json that C++ device parsing needs.
const DEVICE_TEXTS: [&str; 8] = [
    "ai_core_profiling",
    "ai_core_metrics",
    "ai_core_profiling_events",
    "ai_core_profiling_mode",
    "aiv_profiling",
    "aiv_metrics",
    "aiv_profiling_events",
    "aiv_profiling_mode",
];
/// Number keys of the same.
const DEVICE_NUMBERS: [&str; 2] = ["aicore_sampling_interval", "aiv_sampling_interval"];

pub(super) fn check(profile: &Profile, section: &Section, report: &mut Report) {
    for control in Control::ALL {
        check_presence(section, control, report);
    }
    let mut object = |control: Control| -> Option<(PathBuf, Map<String, Value>)> {
        let entry = section.candidates(control).next()?;
        let path = section.path.join(&entry.name);
        match profile.control_json(section.place, control) {
            Ok(map) => Some((path, map?)),
            Err(error) => {
                report.fatal("control-json", &path, error.to_string());
                None
            }
        }
    };
    let info = object(Control::Info);
    let sample = object(Control::Sample);
    let start = object(Control::StartInfo);
    let end = object(Control::EndInfo);
    check_one_line(profile, section, report);
    if let Some((path, map)) = &info {
        check_info(path, map, section.place, report);
    }
    if let Some((path, map)) = &sample {
        check_sample(path, map, section.place, report);
    }
    let begin_us = start.and_then(|(path, map)| check_start(&path, &map, report));
    if let Some((path, map)) = &end {
        check_end(path, map, begin_us, report);
    }
    check_clock_logs(profile, section, info.map(|(_, map)| map), report);
}

fn check_presence(section: &Section, control: Control, report: &mut Report) {
    let path = section.path.join(control.prefix());
    let is_device = section.place != Place::Host;
    if control == Control::DevStart && !is_device {
        return;
    }
    let found: Vec<_> = section.candidates(control).collect();
    if found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        let message = format!(
            "the C++ exporters want exactly one, there are {}",
            names.join(", ")
        );
        report.fatal("one-per-prefix", &path, message);
    }
    if let Some(odd) = found.iter().find(|entry| entry.kind != EntryKind::File) {
        report.fatal(
            "control-kind",
            &section.path.join(&odd.name),
            "it is not a plain file",
        );
    }
    if !found.is_empty() {
        return;
    }
    match control {
        Control::EndInfo => {
            report.warning("no-end-info", &path, "the capture was never ended");
        }
        _ => report.fatal("control-missing", &path, "it is missing"),
    }
}

/// The parser reads a single line; more lines are a different text for its two variants.
fn check_one_line(profile: &Profile, section: &Section, report: &mut Report) {
    for control in [
        Control::Info,
        Control::Sample,
        Control::StartInfo,
        Control::EndInfo,
    ] {
        let Some(entry) = section.candidates(control).next() else {
            continue;
        };
        let path = section.path.join(&entry.name);
        match profile.control(section.place, control) {
            Ok(Some(text)) if text.trim_end().contains('\n') => {
                report.fatal("one-line", &path, "it has more than one line");
            }
            _ => {}
        }
    }
}

fn check_info(path: &Path, info: &Map<String, Value>, place: Place, report: &mut Report) {
    let mut fatal = |rule, message: String| report.fatal(rule, path, message);
    for key in ["platform_version", "pid", "hostname"] {
        if !info.get(key).is_some_and(Value::is_string) {
            fatal("info-key", format!("{key} must be a string"));
        }
    }
    for key in ["CPU", "DeviceInfo", "netCard"] {
        if !info.get(key).is_some_and(Value::is_array) {
            fatal("info-key", format!("{key} must be an array"));
        }
    }
    if !info
        .get("memoryTotal")
        .is_some_and(|v| v.is_u64() || v.is_i64())
    {
        fatal("info-key", "memoryTotal must be an integer (kB)".to_owned());
    }
    let platform = info.get("platform_version").and_then(Value::as_str);
    if platform.is_some_and(|version| !PLATFORMS.contains(&version)) {
        fatal(
            "platform",
            format!("platform_version {platform:?} is unknown to the parser"),
        );
    }
    let pid = info.get("pid").and_then(Value::as_str).unwrap_or("NA");
    if pid != "NA" && pid.parse::<u64>().is_err() {
        fatal("info-pid", format!("pid {pid:?} is neither digits nor NA"));
    }
    let cpus = info.get("CPU").and_then(Value::as_array);
    if cpus.is_some_and(Vec::is_empty) {
        fatal("info-cpu", "CPU must have an entry".to_owned());
    }
    for cpu in cpus.into_iter().flatten() {
        match cpu.get("Frequency").and_then(Value::as_str) {
            Some("0") => fatal(
                "info-frequency",
                "a CPU frequency of 0 ends the C++ exporters".to_owned(),
            ),
            Some(_) => {}
            None => fatal(
                "info-frequency",
                "CPU Frequency must be a string (MHz)".to_owned(),
            ),
        }
    }
    let devices = info.get("DeviceInfo").and_then(Value::as_array);
    match (place, devices.map(Vec::as_slice)) {
        (Place::Host, Some([_, ..])) => {
            fatal(
                "info-device",
                "DeviceInfo of the host must be empty".to_owned(),
            );
        }
        (Place::Device(_), Some([])) => {
            fatal(
                "info-device",
                "DeviceInfo of a device must have an entry".to_owned(),
            );
        }
        (Place::Device(_), Some([device, ..])) => {
            for key in ["hwts_frequency", "aic_frequency", "aiv_frequency"] {
                let mhz = device.get(key).and_then(Value::as_str);
                let positive = mhz
                    .and_then(|text| text.parse::<f64>().ok())
                    .is_some_and(|f| f > 0.0);
                if !positive {
                    fatal(
                        "info-device",
                        format!("{key} must be a string above 0 (MHz)"),
                    );
                }
            }
        }
        _ => {}
    }
    if info.get("version").and_then(Value::as_str) != Some("1.0") {
        report.note(
            "info-version",
            path,
            "version is not 1.0, the parser will remark on it",
        );
    }
    let driver = info.get("drvVersion").and_then(Value::as_i64).unwrap_or(0);
    if driver < ALL_EXPORT_DRIVER {
        let message = format!(
            "drvVersion {driver} is before {ALL_EXPORT_DRIVER}: not every export is offered"
        );
        report.note("info-driver", path, message);
    }
}

fn check_sample(path: &Path, sample: &Map<String, Value>, place: Place, report: &mut Report) {
    let text = |key: &str| sample.get(key).and_then(Value::as_str);
    let expected = match place {
        Place::Host => "64".to_owned(),
        Place::Device(device) => device.to_string(),
    };
    if text("devices") != Some(expected.as_str()) {
        report.fatal(
            "sample-devices",
            path,
            format!("devices must be the string \"{expected}\""),
        );
    }
    for key in ["ai_core_profiling_mode", "llc_profiling"] {
        if text(key).is_none() {
            report.fatal("sample-key", path, format!("{key} must be a string"));
        }
    }
    if text("ai_core_profiling_mode") == Some("sample-based") {
        let message = "ai_core_profiling_mode sample-based turns the C++ timeline off";
        report.warning("sample-mode", path, message);
    }
    if place == Place::Host {
        return;
    }
    let missing: Vec<&str> = DEVICE_TEXTS
        .into_iter()
        .filter(|key| text(key).is_none())
        .chain(
            DEVICE_NUMBERS
                .into_iter()
                .filter(|key| !sample.get(*key).is_some_and(Value::is_i64)),
        )
        .collect();
    if !missing.is_empty() {
        let message = format!("task_time and op_summary need {}", missing.join(", "));
        report.warning("sample-device-key", path, message);
    }
}

/// Returns the wall clock at the start, us.
fn check_start(path: &Path, start: &Map<String, Value>, report: &mut Report) -> Option<u64> {
    let begin = number(start, "collectionTimeBegin");
    let monotonic = number(start, "clockMonotonicRaw");
    let (Some(begin), Some(monotonic)) = (begin, monotonic) else {
        let message = "collectionTimeBegin and clockMonotonicRaw must be strings of digits";
        report.fatal("start-info", path, message);
        return None;
    };
    if begin.saturating_mul(1_000) < monotonic {
        let message = "the wall clock is behind the monotonic clock, the C++ exporters refuse that";
        report.fatal("start-clock", path, message);
    }
    Some(begin)
}

fn check_end(path: &Path, end: &Map<String, Value>, begin_us: Option<u64>, report: &mut Report) {
    let (Some(stop), Some(_)) = (
        number(end, "collectionTimeEnd"),
        number(end, "clockMonotonicRaw"),
    ) else {
        let message = "collectionTimeEnd and clockMonotonicRaw must be strings of digits";
        report.warning("end-info", path, message);
        return;
    };
    if begin_us.is_some_and(|begin| stop < begin) {
        report.warning("end-before-start", path, "the end lies before the start");
    }
}

fn check_clock_logs(
    profile: &Profile,
    section: &Section,
    info: Option<Map<String, Value>>,
    report: &mut Report,
) {
    for control in [Control::HostStart, Control::DevStart] {
        let Some(entry) = section.candidates(control).next() else {
            continue;
        };
        let path = section.path.join(&entry.name);
        let text = match profile.control(section.place, control) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                report.unreadable(&path, &error);
                continue;
            }
        };
        if control == Control::HostStart && !text.starts_with('[') {
            report.warning(
                "clock-section",
                &path,
                "it must begin with a [section] line",
            );
        }
        let value = |key: &str| {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.trim() == key)
                .and_then(|(_, value)| value.trim().parse::<u64>().ok())
        };
        let (Some(clock), Some(counter)) = (value("clock_monotonic_raw"), value("cntvct")) else {
            let message = "clock_monotonic_raw and cntvct must be there, in digits";
            report.fatal("clock-log", &path, message);
            continue;
        };
        if control == Control::HostStart
            && section.place == Place::Host
            && clock != counter
            && info.as_ref().is_some_and(is_nanoseconds)
        {
            let message = "times are nanoseconds but cntvct is not the clock: the C++ exporter shifts some of them";
            report.note("clock-counter", &path, message);
        }
    }
}

/// Whether no CPU names a frequency.
fn is_nanoseconds(info: &Map<String, Value>) -> bool {
    let cpus = info.get("CPU").and_then(Value::as_array);
    cpus.is_some_and(|cpus| {
        cpus.iter()
            .all(|cpu| cpu.get("Frequency").and_then(Value::as_str) == Some(""))
    })
}

fn number(map: &Map<String, Value>, key: &str) -> Option<u64> {
    map.get(key)?.as_str()?.parse().ok()
}
