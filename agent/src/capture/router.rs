//! Which file family a run of records belongs to.
//!
//! Compact and additional records are filed by the name registered for their (level, type); records of
//! level aicpu go to the device that they name. Consecutive records mostly share level and type, so
//! the look-up is made once per run.

#![forbid(unsafe_code)]

use crate::dictionary::Dictionary;
use crate::lanes::RingKey;
use crate::profdir::{FamilyId, Place, ProfDir, family_file_name};
use crate::records::{RecordSize, level};
use std::collections::HashMap;

/// Offset of `deviceId` in an aicpu node record (spec 3 section 6.3, type 0).
const AICPU_DEVICE_OFFSET: usize = 92;
/// Type of an aicpu node record, the only one that names its device.
const AICPU_NODE: u32 = 0;

/// Level and type lie within this many first bytes of a record.
const DECIDING: usize = 8;

/// Keys that are remembered; a program that invents types must not make this grow.
const KNOWN_MAX: usize = 4096;

/// What decides about the family of a compact or additional record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteKey {
    ring: usize,
    /// Level of the record.
    pub level: u16,
    /// Type of the record.
    pub kind: u32,
    /// Device of an aicpu record; 0 for others.
    device: u32,
}

impl RouteKey {
    /// The key of one record, whose bytes are a whole record of that ring.
    #[inline]
    pub fn of(ring: RingKey, record: &[u8], only_device: Option<u32>) -> RouteKey {
        let level = u16::from_le_bytes([record[2], record[3]]);
        let kind = u32_at(record, 4);
        let device = if level == level::AICPU && ring.size == RecordSize::Additional {
            aicpu_device(record, kind, only_device)
        } else {
            0
        };
        RouteKey {
            ring: ring.index(),
            level,
            kind,
            device,
        }
    }

    /// The key of the first of some records of that ring, and how many in a row from there have it.
    pub fn of_run(ring: RingKey, records: &[u8], only_device: Option<u32>) -> (RouteKey, usize) {
        let key = RouteKey::of(ring, records, only_device);
        let records = records.chunks_exact(ring.size.bytes());
        let run = match key.device() {
            // Each aicpu record may name another device.
            Some(_) => records
                .take_while(|record| RouteKey::of(ring, record, only_device) == key)
                .count(),
            None => {
                let word = |record: &[u8]| record.first_chunk::<DECIDING>().copied();
                let mut records = records.map(word).peekable();
                let first = records.peek().copied();
                records.take_while(|word| Some(*word) == first).count()
            }
        };
        (key, run)
    }

    fn slot(&self) -> usize {
        // Types are small numbers, levels multiples of a large one.
        (self.kind as usize ^ self.level as usize >> 4 ^ self.ring) % RECENT
    }

    /// The device directory that the record goes to, if it goes to one.
    pub fn device(&self) -> Option<u32> {
        let additional = RingKey::of(self.ring).size == RecordSize::Additional;
        (self.level == level::AICPU && additional).then_some(self.device)
    }
}

fn u32_at(record: &[u8], offset: usize) -> u32 {
    let bytes = record.get(offset..offset + 4);
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default())
}

/// The device that an aicpu record names when that makes sense, else the only open one, else 0
/// (spec 5 section 5.2).
fn aicpu_device(record: &[u8], kind: u32, only_device: Option<u32>) -> u32 {
    let named = u32_at(record, AICPU_DEVICE_OFFSET);
    let valid = kind == AICPU_NODE && named < crate::components::DEVICES_MAX as u32;
    if valid {
        named
    } else {
        only_device.unwrap_or(0)
    }
}

/// Keys of the last look-ups: a few types alternate for long, and hashing costs more than a record may.
const RECENT: usize = 16;

/// The families that were looked up.
#[derive(Debug, Default)]
pub struct Router {
    known: HashMap<RouteKey, FamilyId>,
    /// Some of `known`, each where [`RouteKey::slot`] says.
    recent: [Option<(RouteKey, FamilyId)>; RECENT],
}

impl Router {
    /// The family of a record; its device directory exists already.
    pub fn family(
        &mut self,
        key: RouteKey,
        dictionary: &Dictionary,
        dir: &mut ProfDir,
    ) -> FamilyId {
        let slot = key.slot();
        if let Some((recent, family)) = self.recent[slot]
            && recent == key
        {
            return family;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let family = *self
            .known
            .entry(key)
            .or_insert_with(|| declare(key, dictionary, dir));
        self.recent[slot] = Some((key, family));
        family
    }

    /// Forgets what was looked up: new type names may give records another family.
    pub fn forget(&mut self) {
        self.known.clear();
        self.recent = [None; RECENT];
    }
}

fn declare(key: RouteKey, dictionary: &Dictionary, dir: &mut ProfDir) -> FamilyId {
    let size = Some(RingKey::of(key.ring).size.bytes());
    let name = dictionary.type_name(key.level, key.kind);
    let (place, family) = family_of(key, name.as_deref().unwrap_or_default());
    dir.family(place, &family, size)
}

/// Where aicpu records of a device go, and the name of their family.
pub fn aicpu_family(device: u32) -> (Place, String) {
    (Place::Device(device), format!("aicpu.data.{device}"))
}

/// Where records with this key go, and the name of their family; `type_name` is that of their level and type,
/// empty for none.
pub fn family_of(key: RouteKey, type_name: &[u8]) -> (Place, String) {
    if let Some(device) = key.device() {
        return aicpu_family(device);
    }
    let ring = RingKey::of(key.ring);
    let aging = if ring.aging { "aging" } else { "unaging" };
    let class = match ring.size {
        RecordSize::Api => return (Place::Host, format!("{aging}.api_event.data")),
        RecordSize::Compact => "compact",
        RecordSize::Additional => "additional",
    };
    let name = family_file_name(type_name);
    (Place::Host, format!("{aging}.{class}.{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: RingKey = RingKey {
        size: RecordSize::Additional,
        aging: false,
    };

    fn aicpu(kind: u32, device: u32) -> [u8; 256] {
        let mut record = [0; 256];
        record[2..4].copy_from_slice(&level::AICPU.to_le_bytes());
        record[4..8].copy_from_slice(&kind.to_le_bytes());
        record[92..96].copy_from_slice(&device.to_le_bytes());
        record
    }

    #[test]
    fn an_aicpu_record_goes_to_the_device_that_it_names_or_to_the_only_one() {
        let device = |kind, named, only| RouteKey::of(RING, &aicpu(kind, named), only).device();
        assert_eq!(device(0, 3, Some(1)), Some(3));
        assert_eq!(device(0, 64, Some(1)), Some(1));
        assert_eq!(device(1, 3, Some(1)), Some(1));
        assert_eq!(device(1, 3, None), Some(0));
    }

    #[test]
    fn a_run_ends_where_level_type_or_the_device_of_an_aicpu_record_changes() {
        let node = |kind| {
            let mut record = aicpu(kind, 7);
            record[2..4].copy_from_slice(&level::NODE.to_le_bytes());
            record
        };
        let mut renumbered = node(1);
        renumbered[92] = 8;
        let run = |records: &[[u8; 256]]| RouteKey::of_run(RING, records.as_flattened(), None).1;
        assert_eq!(run(&[node(1), renumbered, node(1)]), 3);
        assert_eq!(run(&[node(1), node(1), node(2), node(1)]), 2);
        assert_eq!(run(&[node(0), aicpu(0, 1)]), 1);
        assert_eq!(run(&[aicpu(0, 1), aicpu(0, 1), aicpu(0, 2)]), 2);
        assert_eq!(run(&[aicpu(1, 1), aicpu(1, 2)]), 2);
    }

    #[test]
    fn records_of_other_levels_go_to_the_host() {
        let mut record = aicpu(1, 3);
        record[2..4].copy_from_slice(&level::NODE.to_le_bytes());
        assert_eq!(RouteKey::of(RING, &record, None).device(), None);
    }
}
