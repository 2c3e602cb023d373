//! What is in a PROF_XXX directory, by name: sections, control files, families and their slices.

#![forbid(unsafe_code)]

use super::families::Place;
use super::names::{is_overlong_slice, parse_slice_name, slice_name};
use super::reader::ReadError;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Entries of one directory that are looked at; the C++ exporter stops at half as many.
pub(super) const ENTRIES_MAX: usize = 200_000;

/// Names of families of the old reporter interface begin with this; their binary records have 128 bytes.
pub(super) const LEGACY_PREFIX: &str = "DATA_PREPROCESS.";
/// Bytes of such a record.
pub(super) const LEGACY_RECORD: usize = 128;

/// What an entry of a directory is; links are never followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, whatever it points to.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name, lossy where it is not UTF-8.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Length of a file in bytes, else 0.
    pub bytes: u64,
}

/// Control files by the prefix of their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `info.json`.
    Info,
    /// `sample.json`.
    Sample,
    /// `start_info`.
    StartInfo,
    /// `end_info`.
    EndInfo,
    /// `host_start.log`.
    HostStart,
    /// `dev_start.log`.
    DevStart,
}

impl Control {
    /// All of them.
    pub const ALL: [Control; 6] = [
        Control::Info,
        Control::Sample,
        Control::StartInfo,
        Control::EndInfo,
        Control::HostStart,
        Control::DevStart,
    ];

    /// Beginning of the file's name; a device's has its number behind it.
    pub fn prefix(self) -> &'static str {
        match self {
            Control::Info => "info.json",
            Control::Sample => "sample.json",
            Control::StartInfo => "start_info",
            Control::EndInfo => "end_info",
            Control::HostStart => "host_start.log",
            Control::DevStart => "dev_start.log",
        }
    }

    /// Name of the file in a place.
    pub(super) fn name(self, place: Place) -> String {
        match (place, self) {
            (Place::Host, _) | (_, Control::Sample) => self.prefix().to_owned(),
            (Place::Device(device), _) => format!("{}.{device}", self.prefix()),
        }
    }
}

/// The host's or a device's part of the directory.
#[derive(Clone, Debug)]
pub struct Section {
    /// Whose.
    pub place: Place,
    /// Its directory.
    pub path: PathBuf,
    /// What is directly in it.
    pub entries: Vec<Entry>,
    /// What is in its `data`.
    pub data: Vec<Entry>,
}

impl Section {
    /// Files that pass for a control file: the name begins with its prefix and does not end in "done".
    pub fn candidates(&self, control: Control) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| {
            entry.name.starts_with(control.prefix()) && !entry.name.ends_with("done")
        })
    }
}

/// What a family's records are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Api and event records, 40 bytes.
    Api,
    /// Compact records of a type name, 64 bytes.
    Compact(String),
    /// Additional records of a type name, 256 bytes.
    Additional(String),
    /// Records with a length of their own.
    Variable(String),
    /// `<id>:<string>` lines.
    Hashes,
    /// `<level>_<type>:<name>` lines.
    Types,
    /// A device's aicpu records, 256 bytes.
    Aicpu,
    /// Data that this module does not know, such as a device's task log.
    Other,
}

impl Kind {
    /// By a family's name.
    pub(super) fn of(family: &str) -> Kind {
        if family.starts_with("aicpu.data.") {
            return Kind::Aicpu;
        }
        let plain = family.strip_prefix("un").unwrap_or(family);
        let Some(rest) = plain.strip_prefix("aging.") else {
            return Kind::Other;
        };
        match rest.split_once('.') {
            Some(("api_event", "data")) => Kind::Api,
            Some(("additional", "hash_dic")) => Kind::Hashes,
            Some(("additional", "type_info_dic")) => Kind::Types,
            Some(("compact", name)) => Kind::Compact(name.to_owned()),
            Some(("additional", name)) => Kind::Additional(name.to_owned()),
            Some(("variable", name)) => Kind::Variable(name.to_owned()),
            _ => Kind::Other,
        }
    }

    /// Bytes of a record where all have the same.
    pub fn record_size(&self) -> Option<usize> {
        match self {
            Kind::Api => Some(40),
            Kind::Compact(_) => Some(64),
            Kind::Additional(_) | Kind::Aicpu => Some(256),
            Kind::Variable(_) | Kind::Hashes | Kind::Types | Kind::Other => None,
        }
    }
}

/// One slice of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The file.
    pub path: PathBuf,
    /// `N` of `.slice_N`.
    pub number: u32,
    /// Length when the directory was opened.
    pub bytes: u64,
}

/// A family with its slices in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Whose data.
    pub place: Place,
    /// Name up to `.slice_`.
    pub name: String,
    /// What its records are.
    pub kind: Kind,
    /// Its slices.
    pub slices: Vec<Slice>,
}

impl Family {
    /// Bytes of all slices.
    pub fn bytes(&self) -> u64 {
        self.slices.iter().map(|slice| slice.bytes).sum()
    }

    /// Whether the storage limit may have deleted slices.
    pub fn is_aging(&self) -> bool {
        self.name.starts_with("aging.")
    }
}

/// Whose records a directory in PROF_XXX holds by its name, `host` or `device_<number>`; `None` for every other name.
pub fn place_of(name: &str) -> Option<Place> {
    if name == "host" {
        return Some(Place::Host);
    }
    device_digits(name)?.parse().ok().map(Place::Device)
}

fn device_digits(name: &str) -> Option<&str> {
    let digits = name.strip_prefix("device_")?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(digits)
}

/// What is left out for its number, by its path in the PROF_XXX directory.
#[derive(Clone, Debug, Default)]
pub(super) struct OddNumbers {
    /// Slices and devices of whose number there is another one.
    pub(super) doubled: Vec<String>,
    /// Those of a number beyond 32 bits.
    pub(super) overlong: Vec<String>,
}

/// The directories of the host and of devices. Of two with one number, `device_1` and `device_01`, the one that is written
/// plainly counts, or the first.
pub(super) fn places<'a>(entries: &'a [Entry], odd: &mut OddNumbers) -> Vec<(Place, &'a Entry)> {
    let mut found: Vec<(Place, &Entry)> = Vec::new();
    let mut by_place = HashMap::new();
    let directories = entries.iter();
    for entry in directories.filter(|entry| entry.kind == EntryKind::Directory) {
        let Some(place) = place_of(&entry.name) else {
            if device_digits(&entry.name).is_some() {
                odd.overlong.push(entry.name.clone());
            }
            continue;
        };
        let index = *by_place.entry(place).or_insert(found.len());
        let Some((_, other)) = found.get_mut(index) else {
            found.push((place, entry));
            continue;
        };
        let plain = match place {
            Place::Host => "host".to_owned(),
            Place::Device(device) => format!("device_{device}"),
        };
        let left = match entry.name == plain {
            true => std::mem::replace(other, entry),
            false => entry,
        };
        odd.doubled.push(left.name.clone());
    }
    found
}

/// The families of a section. Of two slices with one number the same counts as of [`places`].
pub(super) fn families_of(section: &Section, odd: &mut OddNumbers) -> Vec<Family> {
    let directory = section.path.file_name().unwrap_or_default();
    let directory = directory.to_string_lossy();
    let path_of = |name: &str| format!("{directory}/data/{name}");
    let mut found: Vec<Family> = Vec::new();
    let mut by_name = HashMap::new();
    for entry in &section.data {
        let Some((name, number)) = parse_slice_name(&entry.name) else {
            if is_overlong_slice(&entry.name) {
                odd.overlong.push(path_of(&entry.name));
            }
            continue;
        };
        if entry.kind != EntryKind::File {
            continue;
        }
        let index = *by_name.entry(name.to_owned()).or_insert_with(|| {
            found.push(Family {
                place: section.place,
                name: name.to_owned(),
                kind: Kind::of(name),
                slices: Vec::new(),
            });
            found.len() - 1
        });
        found[index].slices.push(Slice {
            path: section.path.join("data").join(&entry.name),
            number,
            bytes: entry.bytes,
        });
    }
    for family in &mut found {
        let plain = |slice: &Slice| {
            slice.path.file_name() == Some(slice_name(&family.name, slice.number).as_ref())
        };
        family
            .slices
            .sort_by_cached_key(|slice| (slice.number, !plain(slice)));
        family.slices.dedup_by(|slice, before| {
            let is_double = slice.number == before.number;
            if is_double {
                let name = slice.path.file_name().unwrap_or_default();
                odd.doubled.push(path_of(&name.to_string_lossy()));
            }
            is_double
        });
    }
    found.sort_by(|a, b| (a.is_aging(), &a.name).cmp(&(b.is_aging(), &b.name)));
    found
}

pub(super) fn list(dir: &Path) -> Result<Vec<Entry>, ReadError> {
    let error = |source| ReadError::Io {
        path: dir.to_owned(),
        source,
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(error)?.take(ENTRIES_MAX) {
        let entry = entry.map_err(error)?;
        // Gone between the listing and now: a capture that is still running.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let kind = match metadata.file_type() {
            t if t.is_file() => EntryKind::File,
            t if t.is_dir() => EntryKind::Directory,
            t if t.is_symlink() => EntryKind::Link,
            _ => EntryKind::Special,
        };
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: if kind == EntryKind::File {
                metadata.len()
            } else {
                0
            },
            kind,
        });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
