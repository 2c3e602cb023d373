//! Slices: append, cut, mend (spec 3 section 3).
//!
//! A family of records is a sequence of files `<name>.slice_<N>`. Invariant: between calls every slice is a
//! non-empty whole number of records. Both matter to the parser, which loses a family over an empty
//! slice or a torn record (spec 3 section 9). Data is written at a known offset, so that a torn tail
//! that cannot be cut off now is overwritten or cut off later.

#![forbid(unsafe_code)]

use super::control;
use super::error::{Kept, ProfDirError};
use super::families::{Families, FamilyId, Place};
use super::files::{self, Dir};
use super::names;
use super::write_back::WriteBack;
use crate::board::Target;
use crate::process::guarded::Guarded;
use crate::records::TraceCounts;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

mod limit;
mod patch;

/// A slice that has reached this many bytes is finished. Four times the stock size: fewer files,
/// and still fine enough for a storage limit of 200 MB.
pub const SLICE_BYTES: u64 = 8 * 1024 * 1024;
/// The same for dictionaries, of which the parser reads a bounded beginning at once.
const TEXT_SLICE_BYTES: u64 = 2 * 1024 * 1024;
/// Smallest size to which a storage limit brings slices.
const SLICE_BYTES_MIN: u64 = 4096;
/// A slice is at most this fraction of the storage limit, so that deleting one frees little more
/// than is needed.
const SLICES_PER_LIMIT: u64 = 32;
/// Data files held open at a time; the program's descriptor limit is not ours to use up.
const MAX_OPEN: usize = 64;

/// A finished slice that may be deleted.
#[derive(Debug)]
struct Closed {
    family: u32,
    slice: u32,
    bytes: u64,
    counts: TraceCounts,
}

/// A finished slice whose `.done` could not be written yet.
#[derive(Debug)]
struct Undone {
    family: u32,
    slice: u32,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Slices {
    root: PathBuf,
    places: HashMap<Place, Dir>,
    families: Families,
    /// Oldest first; kept only under a storage limit.
    closed: VecDeque<Closed>,
    undone: Vec<Undone>,
    limit: Option<u64>,
    slice_bytes: u64,
    data_bytes: u64,
    control_bytes: u64,
    open_files: usize,
    write_back: WriteBack,
    /// A write failed for want of space.
    full: bool,
    appends: u64,
    aged_out: TraceCounts,
}

impl Slices {
    pub(super) fn new(root: PathBuf, limit: Option<u64>) -> Slices {
        let slice_bytes = limit.map_or(SLICE_BYTES, |limit| {
            (limit / SLICES_PER_LIMIT).clamp(SLICE_BYTES_MIN, SLICE_BYTES)
        });
        Slices {
            root,
            places: HashMap::new(),
            families: Families::default(),
            closed: VecDeque::new(),
            undone: Vec::new(),
            limit,
            slice_bytes,
            data_bytes: 0,
            control_bytes: 0,
            open_files: 0,
            write_back: WriteBack::default(),
            full: false,
            appends: 0,
            aged_out: TraceCounts::default(),
        }
    }

    pub(super) fn add_place(&mut self, place: Place, data: Dir) {
        self.places.insert(place, data);
    }

    pub(super) fn has_place(&self, place: Place) -> bool {
        self.places.contains_key(&place)
    }

    /// Counts files other than slices against the storage limit.
    pub(super) fn count_control(&mut self, bytes: u64) {
        self.control_bytes += bytes;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.data_bytes
    }

    pub(super) fn aged_out(&self) -> TraceCounts {
        self.aged_out
    }

    pub(super) fn position(&self, id: FamilyId) -> (u32, u64) {
        self.families
            .get(id.index())
            .map_or((0, 0), |family| (family.slice, family.bytes))
    }

    pub(super) fn family(
        &mut self,
        place: Place,
        name: &str,
        record_size: Option<usize>,
    ) -> FamilyId {
        self.families.find_or_add(place, name, record_size)
    }

    pub(super) fn append(
        &mut self,
        id: FamilyId,
        bytes: &[u8],
        counts: &TraceCounts,
        note: impl FnOnce(Target<'_>),
    ) -> Result<(), ProfDirError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let index = id.index();
        self.check_batch(index, bytes)?;
        self.make_room(index, bytes.len() as u64)?;
        self.appends += 1;
        self.open(index)?;
        let family = &mut self.families[index];
        family.used = self.appends;
        if family.bytes == 0 {
            family.since = self.appends;
        }
        // `open` has just looked at it.
        let Some(file) = family.file.as_ref().map(Guarded::seen) else {
            return Err(self.misuse(index, "its file is not open"));
        };
        note(Target {
            place: family.place,
            family: &family.name,
            slice: family.slice,
            length: family.bytes,
        });
        let (written, error) = write_all_at(file, bytes, family.bytes);
        if let Some(source) = error {
            self.full |= is_full(&source);
            let path = self.path(index);
            let kept = self.keep_whole(index, &bytes[..written]);
            return Err(ProfDirError::Write { path, source, kept });
        }
        if files::is_removed(file).unwrap_or(false) {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            let error = self.write_error(index, source);
            self.forget_slice(index);
            return Err(error);
        }
        family.bytes += bytes.len() as u64;
        family.counts.merge(counts);
        self.data_bytes += bytes.len() as u64;
        if self.families[index].bytes >= self.cut_at(index) {
            let size = self.families[index].record_size;
            // Slices that are not full when the capture ends are left to the kernel: the stop waits.
            self.write_back(index);
            self.cut(index).map_err(|error| {
                error.with_kept(Kept {
                    bytes: bytes.len() as u64,
                    records: size.map_or(0, |size| (bytes.len() / size) as u64),
                    counts: *counts,
                })
            })?;
        }
        Ok(())
    }

    /// Finishes every slice. Goes on after an error and returns the first.
    pub(super) fn finish(&mut self) -> Result<(), ProfDirError> {
        let mut result = Ok(());
        for index in 0..self.families.len() {
            if self.families[index].torn {
                result = result.and(self.mend(index).map_err(|e| self.write_error(index, e)));
            }
            if self.families[index].bytes > 0 {
                result = result.and(self.cut(index));
            }
        }
        for undone in std::mem::take(&mut self.undone) {
            let index = undone.family as usize;
            // On a full disk what room there is belongs to the ledger.
            if self.full {
                continue;
            }
            if let Err(source) = self.put_done(index, undone.slice, undone.bytes) {
                self.undone.push(undone);
                result = result.and(Err(self.write_error(index, source)));
            }
        }
        result
    }

    pub(super) fn start_write_back(&mut self) {
        for index in 0..self.families.len() {
            self.write_back(index);
        }
    }

    fn write_back(&mut self, index: usize) {
        let family = &mut self.families[index];
        if let Some(file) = family.file.as_ref().and_then(|file| file.get().ok()) {
            family.written_back = self.write_back.add(file, family.written_back, family.bytes);
        }
    }

    fn check_batch(&self, index: usize, bytes: &[u8]) -> Result<(), ProfDirError> {
        let Some(family) = self.families.get(index) else {
            return Err(ProfDirError::Misuse {
                path: self.root.clone(),
                cause: "its family was never declared",
            });
        };
        if family
            .record_size
            .is_some_and(|size| size == 0 || !bytes.len().is_multiple_of(size))
        {
            return Err(self.misuse(index, "it is not a whole number of records"));
        }
        if !self.places.contains_key(&family.place) {
            return Err(self.misuse(index, "its device was never added"));
        }
        Ok(())
    }

    fn cut_at(&self, index: usize) -> u64 {
        match self.families[index].dictionary {
            true => self.slice_bytes.min(TEXT_SLICE_BYTES),
            false => self.slice_bytes,
        }
    }

    /// Finishes the slice of a family that has bytes in it.
    fn cut(&mut self, index: usize) -> Result<(), ProfDirError> {
        let closed = self.close(index).map_err(|e| self.write_error(index, e));
        let family = &mut self.families[index];
        let slice = Closed {
            family: index as u32,
            slice: family.slice,
            bytes: family.bytes,
            counts: family.counts,
        };
        family.slice += 1;
        family.bytes = 0;
        family.written_back = 0;
        family.counts = TraceCounts::default();
        // The parser does well without this file: no reason to end a capture.
        if self.put_done(index, slice.slice, slice.bytes).is_err() {
            self.undone.push(Undone {
                family: slice.family,
                slice: slice.slice,
                bytes: slice.bytes,
            });
        }
        if self.limit.is_some() && self.families[index].aging {
            self.closed.push_back(slice);
        }
        closed
    }

    fn put_done(&mut self, index: usize, slice: u32, bytes: u64) -> io::Result<()> {
        if self.full {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let family = &self.families[index];
        let text = control::slice_done(bytes);
        let name = format!("{}.done", names::slice_name(&family.name, slice));
        self.place(index)?.put(&name, text.as_bytes())?;
        self.control_bytes += text.len() as u64;
        Ok(())
    }

    /// Makes sure that the family's slice is open for writing.
    fn open(&mut self, index: usize) -> Result<(), ProfDirError> {
        if self.families[index].torn {
            self.mend(index)
                .map_err(|source| self.write_error(index, source))?;
        }
        match &self.families[index].file {
            Some(file) if file.is_ours() => return Ok(()),
            Some(_) => {
                return self
                    .open_again(index)
                    .map_err(|source| self.write_error(index, source));
            }
            None => {}
        }
        if self.open_files >= MAX_OPEN {
            self.close_least_used()?;
        }
        let mut opened = self.open_file(index);
        if opened.as_ref().is_err_and(is_out_of_descriptors) && self.open_files > 0 {
            self.write_back.forget();
            self.close_least_used()?;
            opened = self.open_file(index);
        }
        match opened {
            Ok(file) => {
                self.families[index].file = Some(Guarded::new(file));
                self.open_files += 1;
                Ok(())
            }
            Err(source) => Err(self.write_error(index, source)),
        }
    }

    /// For a slice whose descriptor the program has closed.
    fn open_again(&mut self, index: usize) -> io::Result<()> {
        let family = &self.families[index];
        let name = names::slice_name(&family.name, family.slice);
        let again = Guarded::new(self.place(index)?.reopen(&name)?);
        let lost = self.families[index].file.replace(again);
        let again = self.families[index].file.as_ref();
        match (lost, again) {
            (Some(lost), Some(again)) if lost.is_same(again) => Ok(()),
            // Somebody has put another file in its place.
            _ => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }

    fn open_file(&self, index: usize) -> io::Result<File> {
        let family = &self.families[index];
        let name = names::slice_name(&family.name, family.slice);
        match family.bytes {
            0 => self.place(index)?.create(&name),
            _ => self.place(index)?.reopen(&name),
        }
    }

    fn close_least_used(&mut self) -> Result<(), ProfDirError> {
        let least = self
            .families
            .iter()
            .enumerate()
            .filter(|(_, family)| family.file.is_some())
            .min_by_key(|(_, family)| family.used);
        let Some((index, _)) = least else {
            return Ok(());
        };
        self.close(index)
            .map_err(|source| self.write_error(index, source))
    }

    fn close(&mut self, index: usize) -> io::Result<()> {
        match self.families[index].file.take() {
            Some(file) => {
                self.open_files -= 1;
                files::close(file)
            }
            None => Ok(()),
        }
    }

    /// After a failed write of which `written` got through: keeps the whole records in it.
    fn keep_whole(&mut self, index: usize, written: &[u8]) -> Kept {
        let family = &mut self.families[index];
        let size = family.record_size.unwrap_or(usize::MAX);
        let records = written.len() / size;
        let whole = if records == 0 { 0 } else { records * size };
        let kept = Kept {
            bytes: whole as u64,
            records: records as u64,
            counts: TraceCounts::of_records(&written[..whole], size),
        };
        family.bytes += kept.bytes;
        family.counts.merge(&kept.counts);
        family.torn = true;
        self.data_bytes += kept.bytes;
        // If this fails too, finish() and the next append try again.
        let _ = self.mend(index);
        kept
    }

    /// Cuts off what is beyond the whole records; a slice of none is removed.
    fn mend(&mut self, index: usize) -> io::Result<()> {
        let family = &self.families[index];
        if family.bytes == 0 {
            let name = names::slice_name(&family.name, family.slice);
            match self.place(index)?.unlink(&name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // An empty file has nothing to lose on closing.
            let _ = self.close(index);
        } else if let Some(file) = family.file.as_ref().and_then(|file| file.get().ok()) {
            file.set_len(family.bytes)?;
        } else {
            self.open_file(index)?.set_len(family.bytes)?;
        }
        self.families[index].torn = false;
        Ok(())
    }

    /// The slice's file is no longer in the directory: what was in it is not our data any more.
    fn forget_slice(&mut self, index: usize) {
        let _ = self.close(index);
        let family = &mut self.families[index];
        self.data_bytes = self.data_bytes.saturating_sub(family.bytes);
        family.slice += 1;
        family.bytes = 0;
        family.written_back = 0;
        family.counts = TraceCounts::default();
    }

    fn place(&self, index: usize) -> io::Result<&Dir> {
        self.places
            .get(&self.families[index].place)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn path(&self, index: usize) -> PathBuf {
        let family = &self.families[index];
        let name = names::slice_name(&family.name, family.slice);
        match self.places.get(&family.place) {
            Some(data) => data.path().join(name),
            None => self.root.join(name),
        }
    }

    fn write_error(&self, index: usize, source: io::Error) -> ProfDirError {
        ProfDirError::Write {
            path: self.path(index),
            source,
            kept: Kept::default(),
        }
    }

    fn misuse(&self, index: usize, cause: &'static str) -> ProfDirError {
        ProfDirError::Misuse {
            path: self.path(index),
            cause,
        }
    }
}

/// Writes everything at `offset`; on an error also says how much got through.
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> (usize, Option<io::Error>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(&bytes[written..], offset + written as u64) {
            Ok(0) => return (written, Some(io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}

/// Whether the file system or the user's share of it is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
