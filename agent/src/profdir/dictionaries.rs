//! The two dictionaries read back (spec 3 section 5).

#![forbid(unsafe_code)]

use super::reader::{ReadError, open_file};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

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
        each_line(slices, |line| found.add(line))?;
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

/// Strings by their id.
#[derive(Clone, Debug, Default)]
pub struct HashNames {
    names: HashMap<u64, String>,
    /// Lines that are no `<id>:<string>`.
    pub malformed: u64,
}

impl HashNames {
    pub(super) fn read(slices: &[PathBuf]) -> Result<HashNames, ReadError> {
        let mut found = HashNames::default();
        each_line(slices, |line| {
            let parsed = line
                .split_once(':')
                .and_then(|(id, text)| Some((id.parse().ok()?, text)));
            match parsed {
                Some((id, text)) => {
                    found.names.insert(id, text.to_owned());
                }
                None => found.malformed += 1,
            }
        })?;
        Ok(found)
    }

    /// The string of an id, if it has one.
    pub fn get(&self, id: u64) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

fn each_line(slices: &[PathBuf], mut take: impl FnMut(&str)) -> Result<(), ReadError> {
    let mut left = DICTIONARY_MAX;
    for path in slices {
        let mut reader = BufReader::new(open_file(path)?.take(left));
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
            left = left.saturating_sub(read as u64);
            while line
                .last()
                .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
            {
                line.pop();
            }
            take(&String::from_utf8_lossy(&line));
        }
    }
    Ok(())
}
