//! Which bytes of a slice are whole records that the parser reads.
//!
//! One record without its magic number, or of a level that the parser does not know, costs the whole family
//! (spec 3 section 9), and so does a torn end. A kill tears the last record of a slice; after a power cut
//! pages of zeros can be anywhere in it.

use super::super::listing::{Kind, LEGACY_PREFIX, LEGACY_RECORD};
use super::super::sparse::Sparse;
use crate::records::{
    AdditionalRecord, ApiRecord, HEAD_SIZE, MAGIC, RecordHead, Trace, TraceCounts, VARIABLE_MAX,
};
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use zerocopy::FromBytes;

/// Longest line of a dictionary that is kept; names are at most 64 KiB.
const LINE_MAX: usize = 1024 * 1024;
/// The old interface's only records of half the size (spec 3 section 3).
const HALF_TAG: &str = "AICPU_MODEL.";
/// Threads that are counted apart; the records of more count for thread 0.
const THREADS_MAX: usize = 65_536;

/// How the end of a record is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Records of one size, the 40-byte ones without a common head.
    Fixed(usize),
    /// A head that says how long its record is.
    Variable,
    /// Lines of text.
    Lines,
    /// Reports of the old interface: records of this size, or text in which no end can be found.
    Legacy(usize),
    /// Not written by the agent: only the length counts.
    Unknown,
}

impl Framing {
    pub(super) fn of(family: &str, kind: &Kind) -> Framing {
        match kind {
            Kind::Variable(_) => Framing::Variable,
            Kind::Hashes | Kind::Types => Framing::Lines,
            Kind::Other => match family.strip_prefix(LEGACY_PREFIX) {
                Some(tag) if tag.starts_with(HALF_TAG) => Framing::Legacy(LEGACY_RECORD / 2),
                Some(_) => Framing::Legacy(LEGACY_RECORD),
                None => Framing::Unknown,
            },
            kind => kind.record_size().map_or(Framing::Unknown, Framing::Fixed),
        }
    }
}

/// What was found in one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Bytes read.
    pub(super) length: u64,
    /// Bytes of good records from the beginning on.
    pub(super) prefix: u64,
    /// Bytes of all good records.
    pub(super) good: u64,
}

/// What the good records of all slices add up to.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Records by trace.
    pub(super) counts: TraceCounts,
    /// The same by thread, bounded.
    pub(super) threads: HashMap<u32, TraceCounts>,
    /// Latest time in any record up to [`Found::latest`], ns.
    pub(super) last: Option<u64>,
    /// Times beyond this are garbage.
    pub(super) latest: u64,
    /// Reports that cannot be counted are among the data.
    pub(super) uncounted: bool,
}

impl Found {
    fn take(&mut self, trace: Trace, thread: u32, time: u64) {
        self.counts.add(trace, 1);
        let known = self.threads.len() < THREADS_MAX || self.threads.contains_key(&thread);
        let thread = if known { thread } else { 0 };
        self.threads.entry(thread).or_default().add(trace, 1);
        if time <= self.latest {
            self.last = self.last.max(Some(time));
        }
    }

    /// Looks at one record; whether the parser reads it.
    fn look(&mut self, record: &[u8], size: usize) -> bool {
        let is_api = size == size_of::<ApiRecord>();
        if is_api {
            let Ok(api) = ApiRecord::read_from_bytes(record) else {
                return false;
            };
            let time = if api.is_event() { api.begin } else { api.end };
            return self.known(api.magic, api.level, true, api.thread_id, time);
        }
        // Nobody has reported it in this capture.
        if AdditionalRecord::read_from_bytes(record).is_ok_and(|record| record.is_repeated()) {
            return true;
        }
        match RecordHead::read_from_prefix(record) {
            Ok((head, _)) => self.known(head.magic, head.level, false, head.thread_id, head.time),
            Err(_) => false,
        }
    }

    /// A level that is not known here may be a later agent's: the record stays, in no count.
    fn known(&mut self, magic: u16, level: u16, is_api: bool, thread: u32, time: u64) -> bool {
        if let (MAGIC, Some(trace)) = (magic, Trace::of(level, is_api)) {
            self.take(trace, thread, time);
        }
        magic == MAGIC
    }
}

/// Reads a slice to its end; `found` takes up its good records, `keep` gets the bytes of each.
pub(super) fn scan(
    mut reader: impl Sparse,
    framing: Framing,
    found: &mut Found,
    mut keep: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let mut record = Vec::new();
    loop {
        record.clear();
        let next = match framing {
            Framing::Fixed(size) => next_fixed(&mut reader, size, &mut record, found)?,
            Framing::Variable => next_variable(&mut reader, &mut record, found)?,
            Framing::Lines => next_line(&mut reader, &mut record)?,
            Framing::Legacy(size) => return legacy(reader, size, found, keep),
            Framing::Unknown => {
                let length = rest(&mut reader)?;
                return Ok(Scan {
                    length,
                    prefix: length,
                    good: length,
                });
            }
        };
        let bytes = record.len() as u64;
        let was_whole = scan.prefix == scan.length;
        scan.length += bytes;
        match next {
            Next::Good => {
                keep(&record)?;
                scan.good += bytes;
                if was_whole {
                    scan.prefix += bytes;
                }
            }
            // What is passed over would be as bad, piece by piece.
            Next::Bad if matches!(framing, Framing::Fixed(_)) || record.len() == LINE_MAX => {
                scan.length += reader.pass_hole(record.len())?;
            }
            Next::Bad => {}
            Next::Lost => {
                scan.length += rest(&mut reader)?;
                return Ok(scan);
            }
            Next::End => return Ok(scan),
        }
    }
}

/// Reads to the end; how many bytes that were.
fn rest(reader: &mut impl Sparse) -> io::Result<u64> {
    let mut length = 0;
    loop {
        let there = reader.fill_buf()?.len();
        reader.consume(there);
        length += there as u64 + reader.pass_hole(1)?;
        if there == 0 {
            return Ok(length);
        }
    }
}

/// What came next in a slice.
enum Next {
    /// A whole record.
    Good,
    /// A whole record that the parser cannot read.
    Bad,
    /// Nothing behind this can be told apart; also the torn end.
    Lost,
    End,
}

fn next_fixed(
    reader: &mut impl Read,
    size: usize,
    record: &mut Vec<u8>,
    found: &mut Found,
) -> io::Result<Next> {
    match take(reader, size, record)? {
        0 => Ok(Next::End),
        n if n < size => Ok(Next::Lost),
        _ if found.look(record, size) => Ok(Next::Good),
        _ => Ok(Next::Bad),
    }
}

fn next_variable(
    reader: &mut impl Read,
    record: &mut Vec<u8>,
    found: &mut Found,
) -> io::Result<Next> {
    match take(reader, HEAD_SIZE, record)? {
        0 => return Ok(Next::End),
        n if n < HEAD_SIZE => return Ok(Next::Lost),
        _ => {}
    }
    let Ok(head) = RecordHead::read_from_bytes(record) else {
        return Ok(Next::Lost);
    };
    let payload = head.data_len as usize;
    if head.magic != MAGIC || HEAD_SIZE.saturating_add(payload) > VARIABLE_MAX {
        return Ok(Next::Lost);
    }
    if take(reader, payload, record)? < payload {
        return Ok(Next::Lost);
    }
    match found.look(record, 0) {
        true => Ok(Next::Good),
        false => Ok(Next::Bad),
    }
}

fn next_line(reader: &mut impl BufRead, record: &mut Vec<u8>) -> io::Result<Next> {
    let read = reader.take(LINE_MAX as u64).read_until(b'\n', record)?;
    match record.last() {
        None => Ok(Next::End),
        Some(b'\n') if !record.contains(&0) => Ok(Next::Good),
        Some(b'\n') => Ok(Next::Bad),
        // No line of ours; its rest comes as the next one.
        Some(_) if read == LINE_MAX => Ok(Next::Bad),
        Some(_) => Ok(Next::Lost),
    }
}

/// Appends up to `count` bytes; how many there were.
fn take(reader: &mut impl Read, count: usize, into: &mut Vec<u8>) -> io::Result<usize> {
    reader.take(count as u64).read_to_end(into)
}

/// The first two bytes tell records from text, as the parser has it; text is kept as it is.
fn legacy(
    mut reader: impl BufRead,
    size: usize,
    found: &mut Found,
    mut keep: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Scan> {
    let is_binary = reader.fill_buf()?.starts_with(&MAGIC.to_le_bytes());
    let mut scan = Scan::default();
    let mut record = Vec::new();
    loop {
        record.clear();
        let bytes = take(&mut reader, size, &mut record)?;
        scan.length += bytes as u64;
        if bytes == 0 {
            break;
        }
        if bytes == size || !is_binary {
            keep(&record)?;
            scan.good += bytes as u64;
        }
    }
    scan.prefix = scan.good;
    // They hold no thread, and no time of the host's clock in a place common to all.
    match scan.good % LEGACY_RECORD as u64 {
        0 if is_binary => found
            .counts
            .add(Trace::Aicpu, scan.good / LEGACY_RECORD as u64),
        _ => found.uncounted |= scan.good > 0,
    }
    Ok(scan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{GraphIdMap, level};
    use zerocopy::IntoBytes;

    fn found() -> Found {
        Found {
            latest: u64::MAX - 1,
            ..Found::default()
        }
    }

    fn run(bytes: &[u8], framing: Framing) -> (Scan, Found, Vec<u8>) {
        let mut found = found();
        let mut kept = Vec::new();
        let scan = scan(bytes, framing, &mut found, |record| {
            kept.extend_from_slice(record);
            Ok(())
        });
        (scan.expect("memory can be read"), found, kept)
    }

    fn api(end: u64, thread_id: u32) -> ApiRecord {
        ApiRecord {
            magic: MAGIC,
            level: level::ACL,
            kind: 1,
            thread_id,
            request_id: 0,
            begin: 1,
            end,
            item_id: 0,
        }
    }

    fn variable(data_len: u32, payload: usize) -> Vec<u8> {
        let head = RecordHead {
            magic: MAGIC,
            level: level::NODE,
            kind: 9,
            thread_id: 3,
            data_len,
            time: 50,
        };
        [head.as_bytes(), &vec![7; payload]].concat()
    }

    #[test]
    fn a_torn_record_is_cut_off_and_bad_ones_between_good_ones_are_left_out() {
        let (one, two) = (api(10, 1), api(20, 2));
        let torn = [one.as_bytes(), two.as_bytes(), &one.as_bytes()[..39]].concat();
        let (scan, found, kept) = run(&torn, Framing::Fixed(40));
        assert_eq!((scan.length, scan.prefix, scan.good), (119, 80, 80));
        assert_eq!((kept, found.last), (torn[..80].to_vec(), Some(20)));
        assert_eq!((found.counts.get(Trace::Acl), found.threads.len()), (2, 2));

        let holed = [one.as_bytes(), &[0; 40], two.as_bytes()].concat();
        let (scan, found, kept) = run(&holed, Framing::Fixed(40));
        assert_eq!((scan.length, scan.prefix, scan.good), (120, 40, 80));
        assert_eq!(kept, [one.as_bytes(), two.as_bytes()].concat());
        assert_eq!(found.counts.total(), 2);
    }

    #[test]
    fn an_event_counts_by_its_begin_and_garbage_times_count_for_nothing() {
        let mut found = Found {
            latest: 100,
            ..Found::default()
        };
        for record in [api(u64::MAX, 1), api(101, 1)] {
            scan(
                record.as_bytes(),
                Framing::Fixed(40),
                &mut found,
                |_| Ok(()),
            )
            .expect("read");
        }
        assert_eq!((found.last, found.counts.total()), (Some(1), 2));
    }

    #[test]
    fn a_models_name_that_nobody_has_reported_is_kept_and_not_counted() {
        let map = GraphIdMap {
            model_name: 1,
            graph_id: 2,
            model_id: 3,
        };
        let repeated = AdditionalRecord::repeated(map, 9, 50);
        let (scan, found, kept) = run(repeated.as_bytes(), Framing::Fixed(256));
        assert_eq!((scan.good, kept.len()), (256, 256));
        assert_eq!((found.counts.total(), found.threads.len()), (0, 0));
    }

    #[test]
    fn records_with_a_length_are_followed_to_the_last_whole_one() {
        let whole = variable(300, 300);
        let torn = [whole.clone(), variable(300, 299)].concat();
        let (scan, found, _) = run(&torn, Framing::Variable);
        assert_eq!((scan.length, scan.prefix), (324 + 323, 324));
        assert_eq!((found.counts.get(Trace::Task), found.last), (1, Some(50)));
        let absurd = [whole.clone(), variable(u32::MAX, 10), whole.clone()].concat();
        let (scan, ..) = run(&absurd, Framing::Variable);
        assert_eq!((scan.length, scan.good), (324 + 34 + 324, 324));
        let (scan, ..) = run(&[0; 100], Framing::Variable);
        assert_eq!((scan.length, scan.good), (100, 0));
    }

    #[test]
    fn text_is_kept_by_lines() {
        let (scan, _, kept) = run(b"1:a\n2:b\n3:tor", Framing::Lines);
        assert_eq!((scan.length, scan.prefix, scan.good), (13, 8, 8));
        assert_eq!(kept, b"1:a\n2:b\n");
        let (scan, _, kept) = run(b"1:a\n\0\0\0\n2:b\n", Framing::Lines);
        assert_eq!((scan.prefix, scan.good), (4, 8));
        assert_eq!(kept, b"1:a\n2:b\n");
        let endless = vec![b'x'; LINE_MAX + 5];
        let (scan, ..) = run(&endless, Framing::Lines);
        assert_eq!((scan.length, scan.good), (endless.len() as u64, 0));
    }

    #[test]
    fn old_reports_are_records_or_text_by_their_first_bytes() {
        let mut binary = vec![0x5A; 128];
        binary.extend_from_slice(&[0; 130]);
        let (scan, found, _) = run(&binary, Framing::Legacy(128));
        assert_eq!((scan.length, scan.good, found.uncounted), (258, 256, false));
        assert_eq!(found.counts.get(Trace::Aicpu), 2);
        let (scan, found, _) = run(b"[GetNext] some text", Framing::Legacy(128));
        assert_eq!((scan.good, scan.prefix), (19, 19));
        assert!(found.uncounted && found.counts.total() == 0);
        let (scan, found, _) = run(&binary[..200], Framing::Legacy(64));
        assert_eq!((scan.good, found.uncounted), (192, true));
    }

    #[test]
    fn families_are_framed_by_their_kind() {
        let of = |name: &str, kind| Framing::of(name, &kind);
        assert_eq!(of("aging.api_event.data", Kind::Api), Framing::Fixed(40));
        assert_eq!(of("aicpu.data.0", Kind::Aicpu), Framing::Fixed(256));
        assert_eq!(of("stars_soc.data.0", Kind::Other), Framing::Unknown);
        let legacy = |tag: &str| of(&format!("DATA_PREPROCESS.{tag}.64"), Kind::Other);
        assert_eq!(legacy("DP"), Framing::Legacy(128));
        assert_eq!(legacy("AICPU_MODEL"), Framing::Legacy(64));
        assert_eq!(of("x", Kind::Hashes), Framing::Lines);
        let (scan, ..) = run(b"anything", Framing::Unknown);
        assert_eq!((scan.length, scan.good), (8, 8));
    }
}
