//! Records from the rings of a process that has ended, filed as its drain would have filed them.

#![forbid(unsafe_code)]

use super::Rescued;
use crate::board::NoteImage;
use crate::capture::router::{RouteKey, family_of};
use crate::lanes::RingKey;
use crate::profdir::Place;
use crate::profdir::dictionaries::TypeNames;
use crate::profdir::recover::Refill;
use crate::records::{RecordSize, TraceCounts};
use std::io;

/// A directory that takes the records.
#[derive(Debug)]
pub(super) struct Replay<'a, 'b> {
    refill: &'a mut Refill<'b>,
    types: TypeNames,
    only_device: Option<u32>,
    rescued: Rescued,
}

impl<'a, 'b> Replay<'a, 'b> {
    pub(super) fn new(refill: &'a mut Refill<'b>) -> Replay<'a, 'b> {
        let devices = refill.devices();
        Replay {
            types: refill.types(),
            only_device: match devices[..] {
                [only] => Some(only),
                _ => None,
            },
            refill,
            rescued: Rescued::default(),
        }
    }

    /// Takes back what was written of records that will come again.
    pub(super) fn undo(&mut self, notes: &[NoteImage]) -> io::Result<()> {
        for note in notes {
            let Some(family) = note.family() else {
                return Err(io::Error::other(
                    "a family without a name was being written",
                ));
            };
            let cut = self
                .refill
                .undo(note.place(), family, note.slice, note.length)?;
            self.rescued.undone_bytes += cut;
        }
        Ok(())
    }

    /// Files records of a ring: a whole number of them, whatever is in them.
    pub(super) fn take(&mut self, ring: RingKey, records: &[u8]) {
        let size = ring.size.bytes();
        if ring.size == RecordSize::Api {
            let key = RouteKey::of(ring, records, None);
            return self.put(key, size, records);
        }
        // By family, in the order of their first record: types alternate, and an append each would take long.
        let mut heaps: Vec<(RouteKey, Vec<u8>)> = Vec::new();
        let mut rest = records;
        while rest.len() >= size {
            let (key, run) = RouteKey::of_run(ring, rest, self.only_device);
            let (part, behind) = rest.split_at(run * size);
            rest = behind;
            match heaps.iter_mut().find(|(known, _)| *known == key) {
                Some((_, heap)) => heap.extend_from_slice(part),
                None => heaps.push((key, part.to_vec())),
            }
        }
        for (key, heap) in heaps {
            self.put(key, size, &heap);
        }
    }

    fn put(&mut self, key: RouteKey, size: usize, records: &[u8]) {
        let count = (records.len() / size) as u64;
        let name = self.types.get(key.level, key.kind).unwrap_or_default();
        let (place, family) = family_of(key, name.as_bytes());
        match self.append(place, &family, size, records) {
            Ok(()) => {
                self.rescued.records += count;
                let counts = TraceCounts::of_records(records, size);
                self.rescued.by_trace.merge(&counts);
            }
            Err(error) => {
                self.rescued.unwritten += count;
                self.rescued.error.get_or_insert_with(|| error.to_string());
            }
        }
    }

    fn append(
        &mut self,
        place: Place,
        family: &str,
        size: usize,
        records: &[u8],
    ) -> io::Result<()> {
        // After an error the order of a ring's records would have a gap.
        if self.rescued.error.is_some() {
            return Err(io::ErrorKind::Other.into());
        }
        self.refill.append(place, family, size, records)
    }

    pub(super) fn finish(self) -> Rescued {
        self.rescued
    }
}
