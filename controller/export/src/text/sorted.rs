//! Rows in the order of a key, however many there are: what does not fit into memory waits in a file without a name.

use super::output::OutputDir;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Bytes of rows in memory.
const MEMORY: usize = 32 * 1024 * 1024;
/// What a row costs beside its bytes.
const EACH: usize = size_of::<Row>();
/// Bytes of a sorted run that are read at a time.
const CHUNK: usize = 16 * 1024;
/// Bytes before each row in the file: its key and its length.
const HEAD: usize = 12;

/// Where a row is in [`Sorter::bytes`].
#[derive(Clone, Copy, Debug)]
struct Row {
    key: i64,
    from: usize,
    len: u32,
}

/// Rows that are to be sorted. Rows of one key stay in the order in which they came.
#[derive(Debug)]
pub struct Sorter<'a> {
    dir: &'a OutputDir,
    memory: usize,
    rows: Vec<Row>,
    bytes: Vec<u8>,
    spilled: Option<File>,
    /// Ends of the sorted runs in the file.
    runs: Vec<u64>,
}

impl<'a> Sorter<'a> {
    /// Sorts with a file in a directory, which is made when it is needed.
    pub fn new(dir: &'a OutputDir) -> Sorter<'a> {
        Sorter {
            dir,
            memory: MEMORY,
            rows: Vec::new(),
            bytes: Vec::new(),
            spilled: None,
            runs: Vec::new(),
        }
    }

    /// Adds a row; keys beyond 64 bits are the largest one that there is.
    pub fn add(&mut self, key: i128, row: &[u8]) -> io::Result<()> {
        let key = key.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let len = u32::try_from(row.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.rows.push(Row {
            key,
            from: self.bytes.len(),
            len,
        });
        self.bytes.extend_from_slice(row);
        if self.bytes.len() + self.rows.len() * EACH > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.rows.sort_by_key(|row| row.key);
    }

    /// Moves what is in memory to the file, sorted.
    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let file = match &mut self.spilled {
            Some(file) => file,
            None => self.spilled.insert(self.dir.scratch()?),
        };
        let mut end = self.runs.last().copied().unwrap_or(0);
        let mut writer = io::BufWriter::with_capacity(1 << 20, file);
        for row in &self.rows {
            writer.write_all(&row.key.to_le_bytes())?;
            writer.write_all(&row.len.to_le_bytes())?;
            writer.write_all(&self.bytes[row.from..row.from + row.len as usize])?;
            end += (HEAD + row.len as usize) as u64;
        }
        writer.flush()?;
        self.runs.push(end);
        self.rows.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Gives all rows, sorted, to `take`.
    pub fn finish<E: From<io::Error>>(
        mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.runs.is_empty() {
            self.sort();
            return self
                .rows
                .iter()
                .try_for_each(|row| take(&self.bytes[row.from..row.from + row.len as usize]));
        }
        self.spill()?;
        let Some(file) = &self.spilled else {
            return Ok(());
        };
        let begins = std::iter::once(0).chain(self.runs.iter().copied());
        let mut runs: Vec<Run> = begins
            .zip(&self.runs)
            .map(|(from, to)| Run::new(from, *to))
            .collect();
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next(file)?.map(|key| Reverse((key, number))));
        }
        // Of one key, the earlier run's comes first.
        while let Some(Reverse((_, number))) = heads.pop() {
            take(&runs[number].row)?;
            heads.extend(runs[number].next(file)?.map(|key| Reverse((key, number))));
        }
        Ok(())
    }
}

/// A sorted piece of the file.
struct Run {
    at: u64,
    to: u64,
    /// What has been read ahead, from `used` on.
    chunk: Vec<u8>,
    used: usize,
    /// The row that is first.
    row: Vec<u8>,
}

impl Run {
    fn new(from: u64, to: u64) -> Run {
        Run {
            at: from,
            to,
            chunk: Vec::new(),
            used: 0,
            row: Vec::new(),
        }
    }

    /// Reads the next row; its key.
    fn next(&mut self, file: &File) -> io::Result<Option<i64>> {
        if self.used == self.chunk.len() && self.at == self.to {
            return Ok(None);
        }
        let mut key = [0; 8];
        let mut len = [0; 4];
        self.read(file, &mut key)?;
        self.read(file, &mut len)?;
        let mut row = std::mem::take(&mut self.row);
        row.resize(u32::from_le_bytes(len) as usize, 0);
        self.read(file, &mut row)?;
        self.row = row;
        Ok(Some(i64::from_le_bytes(key)))
    }

    fn read(&mut self, file: &File, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            if self.used == self.chunk.len() {
                let left = usize::try_from(self.to - self.at).unwrap_or(usize::MAX);
                self.chunk.resize(left.min(CHUNK), 0);
                file.read_exact_at(&mut self.chunk, self.at)?;
                self.at += self.chunk.len() as u64;
                self.used = 0;
                if self.chunk.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            let count = into.len().min(self.chunk.len() - self.used);
            let (now, later) = into.split_at_mut(count);
            now.copy_from_slice(&self.chunk[self.used..self.used + count]);
            self.used += count;
            into = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(memory: usize, rows: &[(i128, String)]) -> (usize, Vec<String>) {
        let home = tempfile::tempdir().expect("a directory");
        let dir = OutputDir::open(home.path()).expect("opened");
        let mut sorter = Sorter::new(&dir);
        sorter.memory = memory;
        for (key, row) in rows {
            sorter.add(*key, row.as_bytes()).expect("added");
        }
        let runs = sorter.runs.len();
        let mut found = Vec::new();
        let take = |row: &[u8]| {
            found.push(String::from_utf8_lossy(row).into_owned());
            io::Result::Ok(())
        };
        sorter.finish(take).expect("sorted");
        assert_eq!(std::fs::read_dir(dir.path()).expect("read").count(), 0);
        (runs, found)
    }

    #[test]
    fn rows_come_in_order_whether_they_fit_into_memory_or_not() {
        // Longer than a chunk at times, of few keys.
        let rows: Vec<(i128, String)> = (0..2000u64)
            .map(|n| {
                (
                    i128::from(n * 7919 % 97) - 50,
                    format!("{n}{}", "x".repeat((n as usize % 7) * 3000)),
                )
            })
            .collect();
        let mut expected = rows.clone();
        expected.sort_by_key(|(key, _)| *key);
        let expected: Vec<String> = expected.into_iter().map(|(_, row)| row).collect();
        let (none, in_memory) = sorted(MEMORY, &rows);
        let (runs, on_disk) = sorted(1 << 20, &rows);
        assert_eq!(none, 0);
        assert!(runs > 10, "{runs}");
        assert_eq!(in_memory, expected);
        assert_eq!(on_disk, expected);
        assert_eq!(sorted(MEMORY, &[]).1, [""; 0]);
    }
}
