//! The dictionaries read back line by line (spec 3 section 5), and the one of types.

#![forbid(unsafe_code)]

use super::reader::{ReadError, open_file};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of a line that are looked at; names are at most 64 KiB.
const LINE_MAX: u64 = 1024 * 1024;
/// Bytes of one dictionary that are read.
const DICTIONARY_MAX: u64 = 1024 * 1024 * 1024;

/// Names of (level, type) pairs.
#[derive(Clone, Debug, Default)]
pub struct TypeNames {
    names: HashMap<(u16, u32), String>,
    /// Lines that are no `<level>_<type>:<name>`.
    pub malformed: u64,
}

impl TypeNames {
    pub(super) fn read(slices: &[PathBuf]) -> Result<TypeNames, ReadError> {
        let mut found = TypeNames::default();
        each_line(slices, DICTIONARY_MAX, |line| {
            found.add(&String::from_utf8_lossy(line.bytes));
        })?;
        Ok(found)
    }

    /// Adds the names of whole lines.
    pub(super) fn add_lines(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.add(String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']));
        }
    }

    fn add(&mut self, line: &str) {
        let parsed = line.split_once(':').and_then(|(key, name)| {
            let (level, kind) = key.split_once('_')?;
            Some(((level.parse().ok()?, kind.parse().ok()?), name))
        });
        match parsed {
            Some((key, name)) => {
                self.names.insert(key, name.to_owned());
            }
            None => self.malformed += 1,
        }
    }

    /// Name of a type, if it has one.
    pub fn get(&self, level: u16, kind: u32) -> Option<&str> {
        self.names.get(&(level, kind)).map(String::as_str)
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// A line of a dictionary, without its end.
pub(super) struct Line<'a> {
    /// The slice that it is in.
    pub(super) path: &'a Path,
    /// Bytes of the slices before that one.
    pub(super) slice_from: u64,
    /// Bytes of all slices before the line.
    pub(super) from: u64,
    /// What is in it; of one that is longer than a name can be, a piece.
    pub(super) bytes: &'a [u8],
}

/// Reads all lines of at most `max` bytes.
pub(super) fn each_line(
    slices: &[PathBuf],
    max: u64,
    mut take: impl FnMut(Line),
) -> Result<(), ReadError> {
    let mut done = 0;
    for path in slices {
        let slice_from = done;
        let mut reader = BufReader::new(open_file(path)?.take(max - done));
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
            let read = read.map_err(|source| ReadError::Io {
                path: path.clone(),
                source,
            })?;
            if read == 0 {
                break;
            }
            let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
            take(Line {
                path,
                slice_from,
                from: done,
                bytes: &line[..end.map_or(0, |last| last + 1)],
            });
            done += read as u64;
        }
    }
    Ok(())
}
