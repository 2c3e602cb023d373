//! Records of one family each as plain structs (spec 3 section 6): what they say, in the ticks and ids of the file.
//!
//! Each family is an iterator over bounded reads. What has the place of a record and is none, or does not say what its family
//! is about, is passed over and counted; an error on reading comes once, and reading goes on behind it.

pub mod aicpu;
pub mod device;
pub mod fusion;
pub mod legacy;
pub mod memory;
pub mod nodes;
pub mod operators;
pub mod stars;
pub mod tx;

use msprof_agent_core::profdir::reader::{ReadError, Records};
use msprof_agent_core::records::{AdditionalRecord, CompactRecord, MAGIC, RecordHead};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// A record that begins with the head of all but api records.
pub trait Headed: FromBytes {
    /// Its head.
    fn head(&self) -> &RecordHead;

    /// Its bytes behind the head.
    fn payload(&self) -> &[u8];

    /// The payload's beginning as a layout; `None` where it is longer than a payload.
    fn read<T: FromBytes + KnownLayout + Immutable>(&self) -> Option<T> {
        T::read_from_prefix(self.payload())
            .ok()
            .map(|(read, _)| read)
    }
}

impl Headed for CompactRecord {
    fn head(&self) -> &RecordHead {
        &self.head
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl Headed for AdditionalRecord {
    fn head(&self) -> &RecordHead {
        &self.head
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// Iterator over what the records of a family say.
#[derive(Debug)]
pub struct Decoded<R, T> {
    records: Records<R>,
    decode: fn(&R) -> Option<T>,
    foreign: u64,
}

impl<R, T> Decoded<R, T> {
    pub(crate) fn new(records: Records<R>, decode: fn(&R) -> Option<T>) -> Decoded<R, T> {
        Decoded {
            records,
            decode,
            foreign: 0,
        }
    }

    /// What has the place of a record and no record's magic number: torn, or not written by an agent.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }
}

impl<R: Headed, T> Iterator for Decoded<R, T> {
    type Item = Result<T, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let record = match self.records.next()? {
                Ok(record) => record,
                Err(error) => return Some(Err(error)),
            };
            if record.head().magic != MAGIC {
                self.foreign += 1 + self.records.pass_hole();
            } else if let Some(said) = (self.decode)(&record) {
                return Some(Ok(said));
            }
        }
    }
}

/// Text up to its NUL, or all of it; lossy where it is not UTF-8.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}
