//! Records of a family one after the other, slice by slice, in bounded memory.

#![forbid(unsafe_code)]

use super::reader::{ReadError, open_file};
use super::sparse::{Sparse, SparseFile};
use crate::records::{HEAD_SIZE, MAGIC, RecordHead, VARIABLE_MAX};
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::PathBuf;
use zerocopy::FromBytes;

/// Iterator over records of one size. A torn end of a slice is passed over; an error on reading is
/// returned once, and reading goes on with the next slice.
#[derive(Debug)]
pub struct Records<T> {
    slices: Slices,
    record: PhantomData<fn() -> T>,
}

impl<T> Records<T> {
    pub(super) fn new(slices: Vec<PathBuf>) -> Records<T> {
        Records {
            slices: Slices::new(slices),
            record: PhantomData,
        }
    }

    /// To be asked after what was no record: passes over more of its kind that lie in a hole of the slice, where
    /// there is nothing to be read; how many. An error on reading comes with the next record.
    pub fn pass_hole(&mut self) -> u64 {
        let size = size_of::<T>();
        let open = self.slices.open.as_mut();
        let passed = open.and_then(|(_, slice)| slice.pass_hole(size).ok());
        passed.unwrap_or(0) / size.max(1) as u64
    }
}

impl<T: FromBytes> Iterator for Records<T> {
    type Item = Result<T, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let reader = match self.slices.current()? {
                Ok(reader) => reader,
                Err(error) => return Some(Err(error)),
            };
            let mut bytes = [0u8; 256];
            let size = size_of::<T>().min(bytes.len());
            match fill(reader, &mut bytes[..size]) {
                Ok(true) => {}
                Ok(false) => {
                    self.slices.leave();
                    continue;
                }
                Err(source) => return Some(Err(self.slices.fail(source))),
            }
            match T::read_from_bytes(&bytes[..size]) {
                Ok(record) => return Some(Ok(record)),
                // No record is larger than the buffer.
                Err(_) => self.slices.leave(),
            }
        }
    }
}

/// Iterator over records whose head says how long they are: 24 bytes and `data_len` more. A torn end
/// is passed over, and so is the rest of a slice behind what is no record or has a length that cannot be.
#[derive(Debug)]
pub struct VariableRecords {
    slices: Slices,
}

impl VariableRecords {
    pub(super) fn new(slices: Vec<PathBuf>) -> VariableRecords {
        VariableRecords {
            slices: Slices::new(slices),
        }
    }
}

impl Iterator for VariableRecords {
    /// Head and bytes of the whole record, head included.
    type Item = Result<(RecordHead, Vec<u8>), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let reader = match self.slices.current()? {
                Ok(reader) => reader,
                Err(error) => return Some(Err(error)),
            };
            match read_variable(reader) {
                Ok(Some(record)) => return Some(Ok(record)),
                Ok(None) => self.slices.leave(),
                Err(source) => return Some(Err(self.slices.fail(source))),
            }
        }
    }
}

fn read_variable(reader: &mut impl Read) -> io::Result<Option<(RecordHead, Vec<u8>)>> {
    let mut bytes = vec![0u8; HEAD_SIZE];
    if !fill(reader, &mut bytes)? {
        return Ok(None);
    }
    let Ok(head) = RecordHead::read_from_bytes(&bytes) else {
        return Ok(None);
    };
    let length = HEAD_SIZE.saturating_add(head.data_len as usize);
    if head.magic != MAGIC || length > VARIABLE_MAX {
        return Ok(None);
    }
    bytes.resize(length, 0);
    let whole = fill(reader, &mut bytes[HEAD_SIZE..])?;
    Ok(whole.then_some((head, bytes)))
}

/// Fills the buffer; false if the file ends before.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Slices still to be read and the one that is open.
#[derive(Debug)]
struct Slices {
    waiting: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, SparseFile)>,
}

impl Slices {
    fn new(paths: Vec<PathBuf>) -> Slices {
        Slices {
            waiting: paths.into_iter(),
            open: None,
        }
    }

    /// The open slice, or the next one opened; `None` after the last.
    fn current(&mut self) -> Option<Result<&mut SparseFile, ReadError>> {
        if self.open.is_none() {
            let path = self.waiting.next()?;
            match open_file(&path) {
                Ok(file) => self.open = Some((path, SparseFile::new(file, u64::MAX))),
                Err(error) => return Some(Err(error)),
            }
        }
        self.open.as_mut().map(|(_, reader)| Ok(reader))
    }

    fn leave(&mut self) {
        self.open = None;
    }

    fn fail(&mut self, source: io::Error) -> ReadError {
        let path = self.open.take().map(|(path, _)| path).unwrap_or_default();
        ReadError::Io { path, source }
    }
}
