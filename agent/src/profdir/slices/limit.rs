//! The storage limit (spec 3 section 3, spec 4.1): aging slices go, oldest first, and are counted.
//!
//! Everything else stays. When that fills the limit, new data is refused; names and control files may
//! exceed it by a few per cent, since they make the rest readable.

use super::super::control;
use super::super::error::{Kept, ProfDirError};
use super::super::families::Family;
use super::super::names;
use super::{Closed, Slices};
use std::io;

/// Dictionaries may exceed the limit by this fraction: names make the rest of the data readable.
const DICTIONARY_ALLOWANCE: u64 = 25;

impl Slices {
    /// Deletes aging slices, oldest first, until `add` bytes fit under the storage limit.
    pub(super) fn make_room(&mut self, index: usize, add: u64) -> Result<(), ProfDirError> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let total = |slices: &Slices| slices.data_bytes + slices.control_bytes + add;
        if total(self) <= limit {
            return Ok(());
        }
        let open: u64 = self.open_aging().map(|(_, family)| family.bytes).sum();
        let deletable: u64 = self.closed.iter().map(|slice| slice.bytes).sum::<u64>() + open;
        let allowed = match self.families[index].dictionary {
            true => limit.saturating_add(limit / DICTIONARY_ALLOWANCE),
            false => limit,
        };
        if total(self).saturating_sub(deletable) > allowed {
            return Err(ProfDirError::LimitReached {
                path: self.root.clone(),
                limit,
            });
        }
        while total(self) > limit {
            if let Some(oldest) = self.closed.pop_front() {
                self.delete(oldest)?;
                continue;
            }
            let oldest = self.open_aging().min_by_key(|(_, family)| family.since);
            let Some((oldest, _)) = oldest else { break };
            self.cut(oldest)?;
        }
        Ok(())
    }

    fn open_aging(&self) -> impl Iterator<Item = (usize, &Family)> {
        self.families
            .iter()
            .enumerate()
            .filter(|(_, family)| family.aging && family.bytes > 0)
    }

    fn delete(&mut self, slice: Closed) -> Result<(), ProfDirError> {
        let family = &self.families[slice.family as usize];
        let name = names::slice_name(&family.name, slice.slice);
        let done = format!("{name}.done");
        if let Some(data) = self.places.get(&family.place) {
            match data.unlink(&name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let path = data.path().join(name);
                    // Back in its place: it still takes up room.
                    self.closed.push_front(slice);
                    return Err(ProfDirError::Write {
                        path,
                        source: error,
                        kept: Kept::default(),
                    });
                }
                _ => {}
            }
            // A descriptor on it would keep its space.
            self.write_back.forget();
            if data.unlink(&done).is_ok() {
                let bytes = control::slice_done(slice.bytes).len() as u64;
                self.control_bytes = self.control_bytes.saturating_sub(bytes);
            }
        }
        self.undone
            .retain(|undone| (undone.family, undone.slice) != (slice.family, slice.slice));
        self.data_bytes = self.data_bytes.saturating_sub(slice.bytes);
        self.aged_out.merge(&slice.counts);
        Ok(())
    }
}
