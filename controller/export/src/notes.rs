//! What a user has to know of a directory beside what is in its exports.

use crate::calls::Skipped;
use crate::odd_clocks::odd_clocks;
use crate::source::Source;
use msprof_agent_core::ledger::CaptureState;
use msprof_agent_core::profdir::reader::{Control, Entry, EntryKind, Family, Section};
use msprof_agent_core::profdir::{Place, parse_slice_name, place_of};

/// What info.json has for its version, in everything that is known.
const VERSION: &str = "1.0";
/// Entries of a kind that are named; the rest is counted.
const NAMED: usize = 3;

/// What is wrong with a directory. What can be read of it is exported even so.
pub(crate) fn problems(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let profile = source.profile();
    match profile.section(Place::Host) {
        None => found.push(
            "there is no host directory in it: what devices reported is exported, calls and marks are missing".to_owned(),
        ),
        Some(_) => {
            found.extend(host_info(source));
            if profile.start(Place::Host).is_none() {
                found.push(match source.start() {
                    Some(_) => "host/start_info is missing or damaged: the start is that of the first device".to_owned(),
                    None => "host/start_info is missing or damaged: times count from the start of the machine, not from 1970".to_owned(),
                });
            }
        }
    }
    found.extend(unfinished(source));
    for device in profile.devices() {
        let clock = source.device_clock(device);
        if !clock.known || clock.start_us.is_none() {
            found.push(format!("device_{device} has no clock in its info.json.{device}, start_info.{device} or both: times of its own records are wrong"));
        }
    }
    found.extend(odd_clocks(source));
    found.extend(not_read(source));
    let torn: Vec<String> = profile.families().iter().flat_map(torn_slices).collect();
    if !torn.is_empty() {
        found.push(format!("the last record is torn in {}", listed(&torn)));
    }
    match source.malformed_names() {
        0 => {}
        lines => found.push(format!(
            "{lines} lines of the dictionaries of names are damaged"
        )),
    }
    found
}

fn host_info(source: &Source) -> Option<String> {
    let info = match source.profile().control_json(Place::Host, Control::Info) {
        Ok(Some(info)) => info,
        Ok(None) => {
            return Some("host/info.json is missing: what process it was is not known".to_owned());
        }
        Err(error) => return Some(format!("{error}: what process it was is not known")),
    };
    let version = info.get("version").and_then(|version| version.as_str())?;
    (version != VERSION).then(|| {
        let version: String = version.chars().take(40).collect();
        format!(
            "host/info.json says version \"{}\", and this msprof knows \"{VERSION}\": what is new in it is not exported",
            version.escape_debug()
        )
    })
}

/// A capture that has not been finished.
fn unfinished(source: &Source) -> Option<String> {
    let path = source.profile().path().display();
    let running = source
        .ledger()
        .is_some_and(|ledger| ledger.state == CaptureState::Capturing);
    let ended = source.profile().stop(Place::Host).is_some();
    let host = source.profile().section(Place::Host).is_some();
    (running || host && !ended).then(|| {
        format!("the capture is under way, or its process was killed: exported is what is in it now; stop the capture, or run msprof recover {path}, and export again")
    })
}

/// What is there and has not been read, whatever is made of the rest.
pub fn not_read(source: &Source) -> Vec<String> {
    let mut found = source.unread().to_vec();
    let profile = source.profile();
    let is_odd =
        |entry: &&Entry| entry.kind != EntryKind::Directory && place_of(&entry.name).is_some();
    let places = profile.entries().iter().filter(is_odd);
    let places = places.map(|entry| entry.name.escape_debug().to_string());
    let inside = profile.sections().iter().flat_map(odd_entries);
    let odd: Vec<String> = places.chain(inside).collect();
    if !odd.is_empty() {
        found.push(format!(
            "links and other things that have the place of a file or directory are not read: {}",
            listed(&odd)
        ));
    }
    for (why, entries) in [
        ("since another one has the same number", profile.doubled()),
        ("since their numbers are beyond 32 bits", profile.overlong()),
    ] {
        if !entries.is_empty() {
            let entries: Vec<String> = entries
                .iter()
                .map(|entry| entry.escape_debug().to_string())
                .collect();
            found.push(format!(
                "left out, {why}: {}; remove or rename them, and export again",
                listed(&entries)
            ));
        }
    }
    found
}

/// What is no file where there should be files.
fn odd_entries(section: &Section) -> impl Iterator<Item = String> {
    let name = section.path.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let is_odd = |entry: &&Entry| matches!(entry.kind, EntryKind::Link | EntryKind::Special);
    let is_no_data = |entry: &&Entry| entry.name == "data" && entry.kind == EntryKind::File;
    let above = section.entries.iter();
    let above = above.filter(|entry| is_odd(entry) || is_no_data(entry));
    let above = above.map(|entry| entry.name.clone());
    let is_no_slice = |entry: &&Entry| {
        entry.kind == EntryKind::Directory && parse_slice_name(&entry.name).is_some()
    };
    let below = section.data.iter();
    let below = below.filter(|entry| is_odd(entry) || is_no_slice(entry));
    let below = below.map(|entry| format!("data/{}", entry.name));
    let both: Vec<String> = above.chain(below).collect();
    both.into_iter()
        .map(move |entry| format!("{name}/{}", entry.escape_debug()))
}

fn torn_slices(family: &Family) -> impl Iterator<Item = String> {
    let size = family.kind.record_size().unwrap_or(1) as u64;
    let torn = family
        .slices
        .iter()
        .filter(move |slice| slice.bytes % size != 0);
    torn.map(|slice| {
        let name = slice.path.file_name().unwrap_or_default();
        name.to_string_lossy().escape_debug().to_string()
    })
}

fn listed(names: &[String]) -> String {
    let named = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What else is to be known.
pub(crate) fn notes(source: &Source) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(ledger) = source.ledger() {
        match ledger.lost.total() {
            0 => {}
            lost => notes.push(format!(
                "{lost} records were lost in the capture; msprof summary tells where"
            )),
        }
        if ledger.state == CaptureState::Failed {
            notes.push("the capture was ended by an error on writing".to_owned());
        }
    }
    let families = source.profile().families().iter();
    let others = families.filter(|family| family.place != Place::Host && is_left(&family.name));
    let others: Vec<String> = others
        .map(|family| family.name.escape_debug().to_string())
        .collect();
    if !others.is_empty() {
        notes.push(format!(
            "of devices the parser of CANN shows more: {} is not exported",
            listed(&others)
        ));
    }
    notes
}

/// Whether nothing of a device's family is in any export.
fn is_left(family: &str) -> bool {
    let known = ["aicpu.data.", "DATA_PREPROCESS."];
    !known.iter().any(|known| family.starts_with(known))
}

/// What was met among calls that is none.
pub(crate) fn of_calls(skipped: &Skipped) -> Option<String> {
    (skipped.foreign > 0).then(|| {
        format!(
            "{} records of calls are torn or none; the others are exported",
            skipped.foreign
        )
    })
}

/// What is missing where there were more loads of models than are remembered.
pub(crate) fn of_loads(overflow: bool) -> Option<String> {
    overflow.then(|| {
        "there are too many loads of models to remember: calls in some of them before the start are left out".to_owned()
    })
}

/// What is in no file, or not in all of them, as it has to be.
pub(crate) fn left_out(early: u64, skipped: &Skipped) -> Vec<String> {
    let mut notes = Vec::new();
    if early > 0 {
        notes.push(format!(
            "{early} calls began before the capture: they are in api_statistic and not in the timeline"
        ));
    }
    let alone = skipped.unpaired + skipped.partial;
    if alone > 0 {
        notes.push(format!(
            "{alone} events have no partner in the capture, such as those of runs that were under way at its begin or end: they are in no file"
        ));
    }
    if skipped.dropped > 0 {
        notes.push(format!(
            "{} calls have no begin and are in no file",
            skipped.dropped
        ));
    }
    notes
}
