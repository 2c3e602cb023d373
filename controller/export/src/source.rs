//! A PROF_XXX directory with its names and its clock.

use crate::calls::{Calls, NameKey};
use crate::clock::HostClock;
use msprof_agent_core::ledger::Ledger;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{
    Control, HashNames, Kind, Profile, ReadError, Times, TypeNames,
};
use std::borrow::Cow;
use std::path::Path;

/// An opened directory. Read-only; several threads may read it at the same time.
#[derive(Debug)]
pub struct Source {
    profile: Profile,
    types: TypeNames,
    hashes: HashNames,
    clock: HostClock,
    start: Option<Times>,
    process: ProcessLabel,
    ledger: Option<Ledger>,
    damaged_ledger: bool,
    /// What could not be read of what belongs to all records, in sentences.
    unread: Vec<String>,
}

/// Whose capture it is, by info.json.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessLabel {
    /// 0 where it is not known.
    pub pid: u32,
    /// Its command, empty where it is not known. Text of a file: may hold anything.
    pub name: String,
    /// The host that it ran on, the same.
    pub host: String,
}

impl Source {
    /// Opens a directory and reads its names. Fails where there is no host and no device in it. Names and a ledger that cannot be
    /// read count as none, and are in [`unread`](Source::unread).
    pub fn open(path: &Path) -> Result<Source, ReadError> {
        let profile = Profile::open(path)?;
        let start = start_of(&profile);
        let offset_ns = start.map_or(0, |start| {
            HostClock::offset_of(start.wall_us, start.monotonic_ns)
        });
        let mut unread = Vec::new();
        let ledger = profile.ledger();
        Ok(Source {
            damaged_ledger: ledger.is_err(),
            types: or_none(profile.type_names(), &mut unread),
            hashes: or_none(profile.hash_names(), &mut unread),
            clock: HostClock {
                ticks_per_us: profile.ticks_per_us(),
                anchor: anchor(&profile),
                offset_ns,
            },
            start,
            process: process_label(&profile),
            ledger: or_none(ledger, &mut unread),
            profile,
            unread,
        })
    }

    /// The directory itself.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The host's clock.
    pub(crate) fn clock(&self) -> &HostClock {
        &self.clock
    }

    /// Clocks at the start. Of a host that does not say it, and where there is none, those of the device that began first.
    pub(crate) fn start(&self) -> Option<Times> {
        self.start
    }

    /// Names and ledger that could not be read, in sentences; empty where all could.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Whose capture it is.
    pub fn process(&self) -> &ProcessLabel {
        &self.process
    }

    /// Whether there is an account that cannot be read.
    pub fn has_damaged_ledger(&self) -> bool {
        self.damaged_ledger
    }

    /// The agent's account; `None` in a directory of the stock collector, and where it cannot be read.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Lines of the dictionaries that are none.
    pub(crate) fn malformed_names(&self) -> u64 {
        self.types.malformed + self.hashes.malformed
    }

    /// Name of a type, its number where it has none.
    pub(crate) fn type_name(&self, lvl: u16, kind: u32) -> Cow<'_, str> {
        match self.types.get(lvl, kind) {
            Some(name) if !name.is_empty() => Cow::Borrowed(name),
            _ => Cow::Owned(kind.to_string()),
        }
    }

    /// The string of an id, if it has one.
    pub(crate) fn known_string(&self, id: u64) -> Option<Cow<'_, str>> {
        self.hashes.get(id)
    }

    /// The string of an id, the number where it has none.
    pub(crate) fn string(&self, id: u64) -> Cow<'_, str> {
        self.hashes
            .get(id)
            .unwrap_or_else(|| Cow::Owned(id.to_string()))
    }

    /// What calls with this key are called.
    pub(crate) fn name(&self, key: NameKey) -> Cow<'_, str> {
        match key {
            NameKey::Type(lvl, kind) => self.type_name(lvl, kind),
            NameKey::Item(id) => self.string(id),
        }
    }

    /// Bytes of the records of all calls.
    pub(crate) fn call_bytes(&self) -> u64 {
        let families = self.profile.families().iter();
        let calls = families.filter(|family| family.kind == Kind::Api);
        calls.map(|family| family.bytes()).sum()
    }

    /// All calls in the order of the files.
    pub(crate) fn calls(&self) -> Calls {
        Calls::new(self.profile.api())
    }
}

/// What was read, or nothing and a sentence about it.
fn or_none<T: Default>(read: Result<T, ReadError>, unread: &mut Vec<String>) -> T {
    read.unwrap_or_else(|error| {
        unread.push(error.to_string());
        T::default()
    })
}

fn start_of(profile: &Profile) -> Option<Times> {
    profile.start(Place::Host).or_else(|| {
        let devices = profile.devices().map(Place::Device);
        let starts = devices.filter_map(|device| profile.start(device));
        starts.min_by_key(|start| start.wall_us)
    })
}

/// `[Host] clock_monotonic_raw: N, cntvct: N` of host_start.log.
fn anchor(profile: &Profile) -> (u64, u64) {
    let text = profile.control(Place::Host, Control::HostStart);
    let text = text.ok().flatten().unwrap_or_default();
    let number = |key: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(name, _)| name.trim() == key);
        values
            .next()
            .and_then(|(_, value)| value.trim().parse().ok())
            .unwrap_or(0)
    };
    (number("cntvct"), number("clock_monotonic_raw"))
}

fn process_label(profile: &Profile) -> ProcessLabel {
    let info = profile.control_json(Place::Host, Control::Info);
    let info = info.ok().flatten().unwrap_or_default();
    let text = |key: &str| info.get(key).and_then(|value| value.as_str());
    ProcessLabel {
        pid: text("pid").and_then(|pid| pid.parse().ok()).unwrap_or(0),
        name: text("pid_name").unwrap_or_default().to_owned(),
        host: text("hostname").unwrap_or_default().to_owned(),
    }
}
