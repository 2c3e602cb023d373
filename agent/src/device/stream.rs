//! Whole records out of the bytes of a channel.
//!
//! The driver hands over a stream of 256-byte records; a read may end in the midst of one. What is no record is
//! skipped up to the next one: the parser would drop a whole family for it.

#![forbid(unsafe_code)]

use crate::readable::is_readable_of_device;
use crate::records::{MAGIC, RecordSize, level};

/// Bytes of a record.
pub const RECORD: usize = RecordSize::Additional.bytes();
/// What every record begins with: magic and level.
const BEGIN: [u8; 4] = {
    let (magic, level) = (MAGIC.to_le_bytes(), level::AICPU.to_le_bytes());
    [magic[0], magic[1], level[0], level[1]]
};

/// The end of what was read, which has no whole record yet, and what was skipped so far.
#[derive(Debug, Default)]
pub struct Stream {
    /// Less than a record.
    torn: Vec<u8>,
    /// Bytes that were no records.
    pub skipped: u64,
}

impl Stream {
    /// Puts the torn record to the front of a buffer of at least two records; returns where the next read goes.
    pub fn begin(&mut self, buffer: &mut [u8]) -> usize {
        let torn = self.torn.len();
        buffer[..torn].copy_from_slice(&self.torn);
        torn
    }

    /// Moves the whole records among the first `filled` bytes to the front and keeps what is torn; returns the bytes of
    /// the whole ones.
    pub fn whole(&mut self, buffer: &mut [u8], filled: usize) -> usize {
        let (mut from, mut to) = (0, 0);
        while filled - from >= RECORD {
            if buffer[from..].starts_with(&BEGIN) {
                let record = buffer[from..].first_chunk();
                if !record.is_some_and(is_readable_of_device) {
                    self.skipped += RECORD as u64;
                    from += RECORD;
                    continue;
                }
                if from != to {
                    buffer.copy_within(from..from + RECORD, to);
                }
                from += RECORD;
                to += RECORD;
            } else {
                let next = from + 1 + distance(&buffer[from + 1..filled]);
                self.skipped += (next - from) as u64;
                from = next;
            }
        }
        // Bytes that cannot become a record are not waited for.
        let skipped = distance(&buffer[from..filled]);
        self.skipped += skipped as u64;
        self.torn.clear();
        self.torn.extend_from_slice(&buffer[from + skipped..filled]);
        to
    }

    /// Nothing more comes; what is torn was no record.
    pub fn end(&mut self) {
        self.skipped += self.torn.len() as u64;
        self.torn.clear();
    }
}

/// How far it is to the next thing that is, or may become, the beginning of a record.
fn distance(bytes: &[u8]) -> usize {
    let may_begin = |at: &usize| {
        let rest = &bytes[*at..];
        let known = rest.len().min(BEGIN.len());
        rest[..known] == BEGIN[..known]
    };
    (0..bytes.len()).find(may_begin).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(number: u64) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&BEGIN);
        record[112..120].copy_from_slice(&number.to_le_bytes());
        record
    }

    /// What comes of `bytes` in reads of these lengths; the rest in one.
    fn read(bytes: &[u8], lengths: &[usize]) -> (Vec<u8>, u64) {
        let (mut stream, mut whole) = (Stream::default(), Vec::new());
        let mut buffer = vec![0xEE; bytes.len() + 2 * RECORD];
        let mut rest = bytes;
        for length in lengths.iter().copied().chain([usize::MAX]) {
            let (part, behind) = rest.split_at(length.min(rest.len()));
            let at = stream.begin(&mut buffer);
            buffer[at..at + part.len()].copy_from_slice(part);
            let bytes = stream.whole(&mut buffer, at + part.len());
            whole.extend_from_slice(&buffer[..bytes]);
            rest = behind;
        }
        stream.end();
        (whole, stream.skipped)
    }

    #[test]
    fn what_is_no_record_is_skipped_and_counted() {
        let mut bytes = record(1).to_vec();
        bytes.extend([7; 300]);
        bytes.extend(record(2));
        let mut broken = record(3);
        broken[2] = 0;
        bytes.extend(broken);
        bytes.extend(record(4));
        bytes.extend(&record(5)[..200]);
        let expected = [record(1), record(2), record(4)].concat();
        for lengths in [&[][..], &[1, 255, 3], &[556, 2, 1000]] {
            assert_eq!(read(&bytes, lengths), (expected.clone(), 300 + 256 + 200));
        }
    }

    #[test]
    fn a_record_that_the_parser_has_no_layout_for_is_skipped() {
        let mut unknown = record(2);
        unknown[4] = 6;
        let bytes = [record(1), unknown, record(3)].concat();
        let expected = [record(1), record(3)].concat();
        assert_eq!(read(&bytes, &[]), (expected, 256));
    }

    proptest! {
        #[test]
        fn records_come_whole_however_reads_are_cut(
            count in 0u64..40,
            lengths in prop::collection::vec(0usize..700, 0..40),
        ) {
            let bytes: Vec<u8> = (0..count).flat_map(record).collect();
            prop_assert_eq!(read(&bytes, &lengths), (bytes, 0));
        }

        #[test]
        fn nothing_is_made_up_of_garbage(
            bytes in prop::collection::vec(prop::sample::select(&[0x5A, 0x70, 0x17, 0][..]), 0..2000),
            lengths in prop::collection::vec(0usize..700, 0..10),
        ) {
            let (whole, skipped) = read(&bytes, &lengths);
            prop_assert_eq!(whole.len() as u64 + skipped, bytes.len() as u64);
            prop_assert!(whole.chunks(RECORD).all(|record| record.starts_with(&BEGIN)));
        }
    }
}
