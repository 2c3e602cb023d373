//! The dictionary of strings read back (spec 3 section 5): few of them in memory, many of them where they are.
//!
//! Of a string 16 bytes are held: its id, and where its text is. The text of up to [`HELD_MAX`] bytes of lines is held too;
//! of more it stays in the files and is read when it is asked for, so that ten million names take 160 MB.

#![forbid(unsafe_code)]

use super::dictionaries::{Line, each_line};
use super::reader::{ReadError, open_file};
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes of lines whose text is held in memory.
const HELD_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of lines that are read at all.
const READ_MAX: u64 = 1024 * 1024 * 1024;
/// Slices that are kept open; others are opened when a text of theirs is asked for.
const OPEN_MAX: usize = 64;
/// Bits of a place that are the text's length: a line has 1 MiB at most.
const LENGTH_BITS: u32 = 21;
/// Entries from which on those of one id are looked for, lest one id again and again fills the memory.
const ENTRIES_MIN: usize = 1 << 20;

/// Strings by their id.
#[derive(Debug, Default)]
pub struct HashNames {
    /// Sorted by id when all are read.
    entries: Vec<Entry>,
    texts: Texts,
    /// Lines that are no `<id>:<string>`.
    pub malformed: u64,
}

/// An id, and where its text is: offset and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    id: u64,
    place: u64,
}

/// Where texts are.
#[derive(Debug)]
enum Texts {
    Held(Vec<u8>),
    InFiles(Vec<Slice>),
}

impl Default for Texts {
    fn default() -> Self {
        Texts::Held(Vec::new())
    }
}

/// A slice whose texts stay in it.
#[derive(Debug)]
struct Slice {
    /// Offset of its beginning among all slices.
    from: u64,
    path: PathBuf,
    file: Option<File>,
}

impl HashNames {
    pub(super) fn read(slices: &[PathBuf]) -> Result<HashNames, ReadError> {
        HashNames::read_holding(slices, HELD_MAX)
    }

    fn read_holding(slices: &[PathBuf], held_max: u64) -> Result<HashNames, ReadError> {
        let size = |path: &PathBuf| std::fs::symlink_metadata(path).map_or(0, |meta| meta.len());
        let held = slices.iter().map(size).sum::<u64>() <= held_max;
        let mut found = HashNames {
            texts: match held {
                true => Texts::Held(Vec::new()),
                false => Texts::InFiles(Vec::new()),
            },
            ..HashNames::default()
        };
        let mut most = ENTRIES_MIN;
        // What is added to files that are held while they are read is not.
        let read_max = if held { held_max } else { READ_MAX };
        each_line(slices, read_max, |line| {
            found.add(line);
            if found.entries.len() >= most {
                found.sort();
                most = ENTRIES_MIN.max(2 * found.entries.len());
            }
        })?;
        found.sort();
        found.entries.shrink_to_fit();
        Ok(found)
    }

    fn add(&mut self, line: Line) {
        let colon = line.bytes.iter().position(|byte| *byte == b':');
        let parsed = colon.and_then(|colon| {
            let id = std::str::from_utf8(&line.bytes[..colon]).ok()?;
            Some((id.parse().ok()?, colon as u64 + 1))
        });
        let Some((id, before)) = parsed else {
            self.malformed += 1;
            return;
        };
        let text = &line.bytes[before as usize..];
        let offset = match &mut self.texts {
            Texts::Held(held) => {
                held.extend_from_slice(text);
                (held.len() - text.len()) as u64
            }
            Texts::InFiles(slices) => {
                if slices.last().is_none_or(|slice| slice.path != line.path) {
                    let is_kept = slices.len() < OPEN_MAX;
                    slices.push(Slice {
                        from: line.slice_from,
                        path: line.path.to_owned(),
                        file: is_kept.then(|| open_file(line.path).ok()).flatten(),
                    });
                }
                line.from + before
            }
        };
        let place = offset << LENGTH_BITS | text.len() as u64;
        self.entries.push(Entry { id, place });
    }

    /// Sorts, and keeps the last one of each id.
    fn sort(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup_by(|later, kept| {
            let is_same = later.id == kept.id;
            if is_same {
                *kept = *later;
            }
            is_same
        });
    }

    /// The string of an id, if it has one that can be read.
    pub fn get(&self, id: u64) -> Option<Cow<'_, str>> {
        let at = self.entries.binary_search_by_key(&id, |entry| entry.id);
        let place = self.entries[at.ok()?].place;
        let (offset, length) = (place >> LENGTH_BITS, place & ((1 << LENGTH_BITS) - 1));
        match &self.texts {
            Texts::Held(held) => {
                let text = held.get(offset as usize..(offset + length) as usize)?;
                Some(String::from_utf8_lossy(text))
            }
            Texts::InFiles(slices) => {
                let after = slices.partition_point(|slice| slice.from <= offset);
                let slice = slices.get(after.checked_sub(1)?)?;
                let mut text = vec![0; length as usize];
                let at = offset - slice.from;
                match &slice.file {
                    Some(file) => file.read_exact_at(&mut text, at).ok()?,
                    None => {
                        let file = open_file(&slice.path).ok()?;
                        file.read_exact_at(&mut text, at).ok()?;
                    }
                }
                let text = String::from_utf8(text);
                Some(Cow::Owned(text.unwrap_or_else(|error| {
                    String::from_utf8_lossy(error.as_bytes()).into_owned()
                })))
            }
        }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_whether_they_are_held_or_stay_in_their_files() {
        let home = tempfile::tempdir().expect("a directory");
        // The last one of an id counts; colons and bytes that are no UTF-8 are text; empty files and lines change nothing.
        let slices: [&[u8]; 4] = [
            b"7:seven\n1:one\r\n9:a:b\n8:\n",
            b"",
            b"no line\n:x\n\n7:again\n18446744073709551615:\xFFmax\n-1:x\n",
            b"2:torn",
        ];
        let paths: Vec<PathBuf> = slices
            .iter()
            .enumerate()
            .map(|(number, bytes)| {
                let path = home.path().join(number.to_string());
                std::fs::write(&path, bytes).expect("written");
                path
            })
            .collect();
        for held_max in [HELD_MAX, 0] {
            let names = HashNames::read_holding(&paths, held_max).expect("read");
            let held = matches!(names.texts, Texts::Held(_));
            assert_eq!(held, held_max > 0);
            let get = |id| names.get(id).map(Cow::into_owned);
            assert_eq!(get(7).as_deref(), Some("again"));
            assert_eq!(get(1).as_deref(), Some("one"));
            assert_eq!(get(9).as_deref(), Some("a:b"));
            assert_eq!(get(8).as_deref(), Some(""));
            assert_eq!(get(u64::MAX).as_deref(), Some("\u{FFFD}max"));
            assert_eq!(get(2).as_deref(), Some("torn"));
            assert_eq!(get(3), None);
            assert_eq!((names.len(), names.malformed), (6, 4));
        }
    }

    #[test]
    fn names_of_more_slices_than_are_kept_open_and_of_files_that_go_away_do_no_harm() {
        let home = tempfile::tempdir().expect("a directory");
        let paths: Vec<PathBuf> = (0..OPEN_MAX + 2)
            .map(|number| {
                let path = home.path().join(number.to_string());
                std::fs::write(&path, format!("{number}:name {number}\n")).expect("written");
                path
            })
            .collect();
        let names = HashNames::read_holding(&paths, 0).expect("read");
        for number in 0..paths.len() as u64 {
            let text = names.get(number);
            assert_eq!(text.as_deref(), Some(format!("name {number}").as_str()));
        }
        std::fs::write(&paths[0], "").expect("emptied");
        std::fs::remove_file(&paths[OPEN_MAX + 1]).expect("removed");
        assert_eq!(names.get(0), None);
        assert_eq!(names.get(OPEN_MAX as u64 + 1), None);
        assert!(names.get(1).is_some());
    }
}
