//! A slice read record by record, in which holes cost nothing.
//!
//! A power cut can leave a slice of any length with nothing behind it, and so can somebody who means harm: three
//! gigabytes of zeros that take no block of the disk. What is no record there is counted without being read.

#![forbid(unsafe_code)]

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};

/// Bytes read at a time.
const BUFFER: usize = 256 * 1024;

/// Bytes that are read one after the other and may have holes.
pub(super) trait Sparse: BufRead {
    /// Passes over pieces of `unit` bytes that lie in a hole as a whole; how many bytes that were. To be asked
    /// behind a piece that was no record.
    fn pass_hole(&mut self, unit: usize) -> io::Result<u64>;
}

/// An open slice, or the beginning of one.
#[derive(Debug)]
pub(super) struct SparseFile {
    reader: BufReader<File>,
    /// Bytes that may still be read.
    left: u64,
}

impl SparseFile {
    /// Reads from where `file` stands, at most `max` bytes.
    pub(super) fn new(file: File, max: u64) -> SparseFile {
        SparseFile {
            reader: BufReader::with_capacity(BUFFER, file),
            left: max,
        }
    }
}

impl Read for SparseFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for SparseFile {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let bytes = self.reader.fill_buf()?;
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        Ok(&bytes[..bytes.len().min(most)])
    }

    fn consume(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count as u64);
        self.reader.consume(count);
    }
}

impl Sparse for SparseFile {
    fn pass_hole(&mut self, unit: usize) -> io::Result<u64> {
        // What is in memory already costs less than to ask.
        if unit == 0 || self.reader.buffer().len() >= unit {
            return Ok(0);
        }
        let at = self.reader.stream_position()?;
        let file = self.reader.get_ref();
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole to the end.
            Err(Errno::NXIO) => file.metadata()?.len(),
            // A file system that does not tell.
            Err(_) => at,
        };
        let hole = data.saturating_sub(at).min(self.left);
        let bytes = hole - hole % unit as u64;
        // The question has moved the file's position.
        self.reader.seek(io::SeekFrom::Start(at + bytes))?;
        self.left -= bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
impl Sparse for &[u8] {
    fn pass_hole(&mut self, _: usize) -> io::Result<u64> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_hole_is_passed_over_by_whole_pieces_and_what_is_behind_it_is_read() {
        const HOLE: u64 = 1 << 40;
        let file = tempfile::tempfile().expect("temporary file");
        file.write_all_at(&[1; 40], 0).expect("written");
        file.write_all_at(&[2; 40], HOLE).expect("written");
        file.set_len(HOLE + (1 << 30) + 7).expect("a hole");
        let mut slice = SparseFile::new(file, u64::MAX);
        let (mut piece, mut ones, mut twos, mut zeros) = ([0; 40], 0, 0, 0);
        while slice.read_exact(&mut piece).is_ok() {
            ones += piece.iter().filter(|byte| **byte == 1).count();
            twos += piece.iter().filter(|byte| **byte == 2).count();
            if piece[0] == 0 {
                zeros += 40 + slice.pass_hole(40).expect("asked");
            }
        }
        assert_eq!((ones, twos), (40, 40));
        // The twos lie across two pieces.
        let pieces = (HOLE + (1 << 30) + 7) / 40;
        assert!(zeros / 40 >= pieces - 3 && zeros / 40 < pieces, "{zeros}");
    }

    #[test]
    fn no_more_is_read_or_passed_over_than_was_said() {
        let file = tempfile::tempfile().expect("temporary file");
        file.set_len(1 << 40).expect("a hole");
        let mut slice = SparseFile::new(file, 1 << 30);
        let mut piece = [0; 64];
        let mut count = 0;
        while slice.read_exact(&mut piece).is_ok() {
            count += 64 + slice.pass_hole(64).expect("asked");
        }
        assert_eq!(count, 1 << 30);
    }
}
