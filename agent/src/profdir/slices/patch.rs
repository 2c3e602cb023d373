//! Changes in the midst of slices that were written.

use super::super::families::FamilyId;
use super::super::names;
use super::{Slices, write_all_at};
use std::io;

impl Slices {
    /// Whether slices may be deleted for a storage limit.
    pub(in super::super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether a slice that has been written to is still there, as far as the storage limit is concerned.
    pub(in super::super) fn has_slice(&self, id: FamilyId, slice: u32) -> bool {
        let Some(family) = self.families.get(id.index()) else {
            return false;
        };
        let may_be_gone = self.limit.is_some() && family.aging && slice < family.slice;
        let is_closed =
            |closed: &super::Closed| (closed.family as usize, closed.slice) == (id.index(), slice);
        !may_be_gone || self.closed.iter().any(is_closed)
    }

    /// Writes `bytes` over what lies at each of `offsets` in a slice, which gets no longer.
    pub(in super::super) fn overwrite(
        &self,
        id: FamilyId,
        slice: u32,
        offsets: impl Iterator<Item = u64>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let index = id.index();
        let gone = || io::Error::from_raw_os_error(libc::ENOENT);
        let name = names::slice_name(&self.families.get(index).ok_or_else(gone)?.name, slice);
        let file = self.place(index)?.reopen(&name)?;
        let length = file.metadata()?.len();
        for offset in offsets {
            if offset.saturating_add(bytes.len() as u64) > length {
                return Err(gone());
            }
            if let (_, Some(error)) = write_all_at(&file, bytes, offset) {
                return Err(error);
            }
        }
        Ok(())
    }
}
