//! Record families: their names, and what is known of each while it grows.

#![forbid(unsafe_code)]

use super::names;
use crate::process::guarded::Guarded;
use crate::records::TraceCounts;
use std::collections::HashMap;
use std::ops::{Index, IndexMut};

/// Families made by distinct names. Beyond, records share the `invalid` family of their kind.
pub(super) const MAX_FAMILIES: usize = 4096;
/// Bytes of a family's name; with `.slice_<N>.done` it fits a directory entry.
const FAMILY_NAME_MAX: usize = 200;
const _: () = assert!(cfg!(loom) || FAMILY_NAME_MAX < crate::board::NAME_MAX);

/// Families that hold the names of everything else.
const DICTIONARIES: [&str; 2] = [
    "unaging.additional.hash_dic",
    "unaging.additional.type_info_dic",
];

/// Whose data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// `host/data`.
    Host,
    /// `device_<id>/data`.
    Device(u32),
}

/// A family of one [`ProfDir`](super::ProfDir); ids of another one mean nothing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FamilyId(u32);

/// A family and its growing slice.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) record_size: Option<usize>,
    /// May be deleted for the storage limit.
    pub(super) aging: bool,
    pub(super) dictionary: bool,
    /// Number of the slice that grows.
    pub(super) slice: u32,
    /// Whole bytes in it; 0 before its file is made.
    pub(super) bytes: u64,
    pub(super) counts: TraceCounts,
    /// When its first byte was written, in appends.
    pub(super) since: u64,
    pub(super) file: Option<Guarded>,
    /// Last append, for choosing which file to close.
    pub(super) used: u64,
    /// The file may be longer than `bytes`.
    pub(super) torn: bool,
    /// How much the kernel has been asked to write out.
    pub(super) written_back: u64,
}

impl FamilyId {
    /// Its place in [`Families`].
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All families of a directory; never fewer than before.
#[derive(Debug, Default)]
pub(super) struct Families {
    list: Vec<Family>,
    by_name: HashMap<Place, HashMap<String, FamilyId>>,
}

impl Families {
    pub(super) fn find_or_add(
        &mut self,
        place: Place,
        name: &str,
        record_size: Option<usize>,
    ) -> FamilyId {
        if let Some(id) = self.by_name.get(&place).and_then(|names| names.get(name)) {
            return *id;
        }
        let safe = safe_family_name(name);
        let shared = shared_family_name(&safe).filter(|shared| shared != name);
        if let (Some(shared), true) = (shared, self.list.len() >= MAX_FAMILIES) {
            return self.find_or_add(place, &shared, record_size);
        }
        if safe != name {
            return self.find_or_add(place, &safe, record_size);
        }
        let id = FamilyId(self.list.len() as u32);
        self.list.push(Family {
            place,
            aging: safe.starts_with("aging."),
            dictionary: DICTIONARIES.contains(&safe.as_str()),
            name: safe.clone(),
            record_size,
            slice: 0,
            bytes: 0,
            counts: TraceCounts::default(),
            since: 0,
            file: None,
            used: 0,
            torn: false,
            written_back: 0,
        });
        self.by_name.entry(place).or_default().insert(safe, id);
        id
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Family> {
        self.list.get(index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Family> {
        self.list.iter()
    }
}

impl Index<usize> for Families {
    type Output = Family;

    fn index(&self, index: usize) -> &Family {
        &self.list[index]
    }
}

impl IndexMut<usize> for Families {
    fn index_mut(&mut self, index: usize) -> &mut Family {
        &mut self.list[index]
    }
}

/// A family name that is a plain file name whatever the caller gave.
fn safe_family_name(name: &str) -> String {
    let safe: String = name
        .bytes()
        .take(FAMILY_NAME_MAX)
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' => byte as char,
            _ => '-',
        })
        .collect();
    match safe.trim_start_matches('.') {
        "" => names::INVALID.to_owned(),
        plain => plain.to_owned(),
    }
}

/// `aging.compact.x` -> `aging.compact.invalid`; `None` for families that are few by their nature.
pub(super) fn shared_family_name(name: &str) -> Option<String> {
    if DICTIONARIES.contains(&name) {
        return None;
    }
    [
        "aging.compact.",
        "unaging.compact.",
        "aging.additional.",
        "unaging.additional.",
    ]
    .iter()
    .find(|prefix| name.starts_with(*prefix))
    .map(|prefix| format!("{prefix}{}", names::INVALID))
}
