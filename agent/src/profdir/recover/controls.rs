//! The control files of one place completed: those that are missing or damaged are made anew from what the
//! ledger and the host's files say, and end_info from the last that is known of the capture.

use super::super::control;
use super::super::facts::HostFacts;
use super::super::families::Place;
use super::super::listing::Control;
use super::super::reader::CONTROL_MAX;
use super::super::setup::{DeviceClock, Setup};
use super::report::{RecoverError, Recovery, failed_in};
use super::slices::confirm;
use super::tree::Tree;
use crate::ledger::Anchor;
use serde_json::{Map, Value};
use std::io;

/// What control files are made from.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) pid: u32,
    pub(super) start: Anchor,
    pub(super) stop: Anchor,
    /// The host's info.json and sample.json, for the devices.
    pub(super) host_info: Map<String, Value>,
    pub(super) host_sample: Map<String, Value>,
}

/// Completes a place. The host goes first: the devices' files are made from its own. What is no plain file and has a
/// control file's name is replaced by one.
pub(super) fn complete(
    dir: &Tree,
    place: Place,
    source: &mut Source,
    recovery: &mut Recovery,
) -> Result<(), RecoverError> {
    for control in Control::ALL {
        if place == Place::Host && control == Control::DevStart {
            continue;
        }
        let name = control.name(place);
        let length = complete_one(dir, control, place, &name, source, recovery)
            .map_err(failed_in(dir, &name))?;
        let done = control::done(length);
        confirm(dir, &name, length, &done, recovery)?;
    }
    match dir.make_dir("data") {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed_in(dir, "data")(error))
        }
        _ => Ok(()),
    }
}

/// Gives the length of the file that is there then.
fn complete_one(
    dir: &Tree,
    control: Control,
    place: Place,
    name: &str,
    source: &mut Source,
    recovery: &mut Recovery,
) -> io::Result<u64> {
    let there = dir.read(name, CONTROL_MAX).ok();
    let length = match there.filter(|bytes| is_usable(control, bytes)) {
        Some(bytes) => {
            remember(control, place, &bytes, source);
            bytes.len()
        }
        None => {
            let text = text(control, place, source);
            dir.put(name, text.as_bytes())?;
            remember(control, place, text.as_bytes(), source);
            recovery.made.push(dir.path().join(name));
            text.len()
        }
    };
    Ok(length as u64)
}

fn remember(control: Control, place: Place, bytes: &[u8], source: &mut Source) {
    if place != Place::Host {
        return;
    }
    match control {
        Control::Info => source.host_info = object(bytes).unwrap_or_default(),
        Control::Sample => source.host_sample = object(bytes).unwrap_or_default(),
        _ => {}
    }
}

/// The object on the first line, which is all that the parser reads.
pub(super) fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    serde_json::from_slice(line).ok()
}

/// Whether the parser can do with a file.
fn is_usable(control: Control, bytes: &[u8]) -> bool {
    match control {
        Control::Info | Control::Sample => object(bytes).is_some_and(|map| !map.is_empty()),
        Control::StartInfo => times(bytes, "collectionTimeBegin").is_some(),
        Control::EndInfo => times(bytes, "collectionTimeEnd").is_some(),
        Control::HostStart | Control::DevStart => {
            let text = String::from_utf8_lossy(bytes);
            let has = |key: &str| {
                let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
                pairs.any(|(name, value)| name.trim() == key && value.trim().parse::<u64>().is_ok())
            };
            has("clock_monotonic_raw") && has("cntvct")
        }
    }
}

/// The clocks in start_info or end_info.
pub(super) fn times(bytes: &[u8], wall: &str) -> Option<Anchor> {
    let map = object(bytes)?;
    let number = |key: &str| map.get(key)?.as_str()?.parse::<u64>().ok();
    let raw = number("clockMonotonicRaw")?;
    Some(Anchor {
        ticks: raw,
        monotonic_raw_ns: raw,
        realtime_ns: number(wall)?.saturating_mul(1_000),
        cpu_counter: 0,
    })
}

fn text(control: Control, place: Place, source: &Source) -> String {
    let device = match place {
        Place::Host => None,
        Place::Device(device) => Some(device),
    };
    match control {
        Control::Info => info(device, source),
        Control::Sample => {
            let wished = Value::Object(source.host_sample.clone()).to_string();
            // An object always makes a sample.
            control::sample(&wished, device).unwrap_or(wished)
        }
        Control::StartInfo => control::start_info(source.start),
        Control::EndInfo => control::end_info(source.stop),
        Control::HostStart => control::host_start_log(device, source.start.monotonic_raw_ns),
        Control::DevStart => control::dev_start_log(&DeviceClock::of_host(source.start)),
    }
}

/// The facts are this host's and of now, but for a device those of the directory's own host.
fn info(device: Option<u32>, source: &Source) -> String {
    let setup = Setup {
        pid: source.pid,
        ..Setup::default()
    };
    let clock = DeviceClock::of_host(source.start);
    let mut facts = HostFacts::gather();
    facts.process_name = "NA".to_owned();
    let fresh = control::info(&setup, &facts, device.map(|id| (id, &clock)));
    if device.is_none() || source.host_info.is_empty() {
        return fresh;
    }
    let mut map = source.host_info.clone();
    let own = object(fresh.as_bytes()).unwrap_or_default();
    for key in ["devices", "DeviceInfo"] {
        if let Some(value) = own.get(key) {
            map.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(map).to_string()
}
