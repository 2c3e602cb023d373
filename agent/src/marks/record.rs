//! The record of a mark or a range: an additional record of level tx, type 0 (spec 3 section 6.3).

#![forbid(unsafe_code)]

use crate::records::{AdditionalRecord, MAGIC, RecordHead, level};
use std::borrow::Cow;
use std::mem::{offset_of, size_of};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Type of these records within their level.
const KIND: u32 = 0;
/// What the old reporter interface called a record of a mark.
const DATA_TAG: u16 = 120;
/// Room for a message with its NUL.
const MESSAGE_ROOM: usize = 156;
/// Longest message of one record, bytes.
pub const MESSAGE_MAX: usize = MESSAGE_ROOM - 1;

/// How the parser tells the two kinds of marks apart: each has its own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Source {
    /// A msproftx stamp.
    Stamp = 0,
    /// One with an id of its own: mstx, and marks on a stream.
    Numbered = 1,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    /// One point in time.
    Marker = 0,
    /// A range of a thread's stack.
    PushPop = 1,
    /// A range that ends by its id, on any thread.
    StartEnd = 2,
    /// One point in time, marked on a stream as well.
    MarkerEx = 3,
}

/// A mark or range as it is written, 256 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct MarkRecord {
    head: RecordHead,
    source: u16,
    /// Place of this record's piece of the message among the records of one `mark_id`.
    segment: u16,
    reserved: u32,
    magic: u16,
    data_tag: u16,
    process_id: u32,
    thread_id: u32,
    category: u32,
    event: u32,
    payload_kind: i32,
    payload: u64,
    /// Ticks of `MsprofSysCycleTime` (ns).
    begin: u64,
    /// Ticks; `begin` for a point in time.
    end: u64,
    mark_id: u64,
    /// Dictionary id of the domain's name.
    domain: u64,
    message_kind: i32,
    message: [u8; MESSAGE_ROOM],
}

const _: () = {
    assert!(size_of::<MarkRecord>() == size_of::<AdditionalRecord>());
    assert!(offset_of!(MarkRecord, source) == 24);
    assert!(offset_of!(MarkRecord, magic) == 32);
    assert!(offset_of!(MarkRecord, event) == 48);
    assert!(offset_of!(MarkRecord, payload) == 56);
    assert!(offset_of!(MarkRecord, begin) == 64);
    assert!(offset_of!(MarkRecord, mark_id) == 80);
    assert!(offset_of!(MarkRecord, message) == 100);
};

/// What a stamp says beside its message; zero for mstx.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// A number of the program's.
    pub category: u32,
    /// Kind of a payload whose value is not recorded.
    pub payload_kind: i32,
}

/// Everything that a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which table it belongs to.
    pub source: Source,
    /// What happened.
    pub event: Event,
    /// Process and thread that it happened in.
    pub process_id: u32,
    /// Kernel thread id.
    pub thread_id: u32,
    /// What its stamp says.
    pub attributes: Attributes,
    /// Ticks.
    pub begin: u64,
    /// Ticks.
    pub end: u64,
    /// Number among all numbered marks; 0 for stamps.
    pub id: u64,
    /// Dictionary id of its domain's name; 0 for stamps.
    pub domain: u64,
    /// As [`clean`] makes it.
    pub message: Box<str>,
}

impl Mark {
    /// Its records: one, or more for a numbered one whose message is longer than a record has room for.
    pub fn records(&self) -> impl Iterator<Item = MarkRecord> + '_ {
        let mut pieces = pieces(&self.message);
        if self.source == Source::Stamp {
            // The parser puts those of numbered ones together only.
            pieces.truncate(1);
        }
        let numbered = pieces.into_iter().zip(0..);
        numbered.map(|(piece, segment)| self.record(piece, segment))
    }

    fn record(&self, piece: &str, segment: u16) -> MarkRecord {
        let mut message = [0; MESSAGE_ROOM];
        message[..piece.len()].copy_from_slice(piece.as_bytes());
        MarkRecord {
            head: RecordHead {
                magic: MAGIC,
                level: level::TX,
                kind: KIND,
                thread_id: self.thread_id,
                data_len: (size_of::<MarkRecord>() - size_of::<RecordHead>()) as u32,
                time: self.end,
            },
            source: self.source as u16,
            segment,
            reserved: 0,
            magic: MAGIC,
            data_tag: DATA_TAG,
            process_id: self.process_id,
            thread_id: self.thread_id,
            category: self.attributes.category,
            event: self.event as u32,
            payload_kind: self.attributes.payload_kind,
            payload: 0,
            begin: self.begin,
            end: self.end,
            mark_id: self.id,
            domain: self.domain,
            message_kind: 0,
            message,
        }
    }
}

/// Cuts a text into pieces that fit a record each, between characters. An empty text is one piece.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::with_capacity(1);
    let mut rest = text;
    while rest.len() > MESSAGE_MAX {
        let (piece, after) = rest.split_at(floor(rest, MESSAGE_MAX));
        pieces.push(piece);
        rest = after;
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// The last place between characters up to `most`.
fn floor(text: &str, most: usize) -> usize {
    let mut at = most.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The first `most` bytes, less what there is of a character that goes on behind them.
fn head(message: &[u8], most: usize) -> &[u8] {
    let Some(next) = message.get(most) else {
        return message;
    };
    let head = &message[..most];
    let continues = |byte: u8| byte & 0xC0 == 0x80;
    if !continues(*next) {
        return head;
    }
    // A character has 4 bytes at most; what has more is none, and becomes readable as it is.
    let tail = head.iter().rev().take(3);
    match tail.copied().position(|byte| !continues(byte)) {
        Some(back) => &head[..most - back - 1],
        None => head,
    }
}

/// A message as the parser and those who read its tables can bear it: UTF-8, else the parser drops the whole
/// file; of at most `most` bytes; and not beginning like a formula, which a spreadsheet would carry out. Costs
/// no more for a message that is longer than 8 times `most`: nothing behind that is looked at.
pub fn clean(message: &[u8], most: usize) -> Box<str> {
    let text = String::from_utf8_lossy(head(message, 8 * most));
    // In JSON within a string of JSON, which frameworks send, the backslashes are most of the length.
    let text = if text.starts_with('{') && text.contains('\\') {
        Cow::Owned(text.replace('\\', ""))
    } else {
        text
    };
    let text = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{text}"))
    } else {
        text
    };
    text[..floor(&text, most)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(source: Source, message: &str) -> Mark {
        Mark {
            source,
            event: Event::StartEnd,
            process_id: 7,
            thread_id: 8,
            attributes: Attributes {
                category: 3,
                payload_kind: 4,
            },
            begin: 100,
            end: 200,
            id: 9,
            domain: 10,
            message: message.into(),
        }
    }

    /// The text of a record's message, up to its NUL.
    fn text(record: &MarkRecord) -> &str {
        let end = record.message.iter().position(|&byte| byte == 0);
        std::str::from_utf8(&record.message[..end.expect("a NUL")]).expect("UTF-8")
    }

    #[test]
    fn a_record_has_its_fields_where_the_parser_looks_for_them() {
        let records: Vec<MarkRecord> = mark(Source::Numbered, "step").records().collect();
        let [record] = records.as_slice() else {
            panic!("{} records", records.len());
        };
        let bytes = record.as_bytes();
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        assert_eq!((u16_at(0), u16_at(2), u32_at(4)), (0x5A5A, 20500, 0));
        assert_eq!((u32_at(8), u32_at(12), u64_at(16)), (8, 232, 200));
        assert_eq!((u16_at(24), u16_at(26)), (1, 0));
        assert_eq!((u16_at(32), u16_at(34)), (0x5A5A, 120));
        assert_eq!((u32_at(36), u32_at(40), u32_at(44)), (7, 8, 3));
        assert_eq!((u32_at(48), u32_at(52)), (2, 4));
        assert_eq!((u64_at(64), u64_at(72)), (100, 200));
        assert_eq!((u64_at(80), u64_at(88)), (9, 10));
        assert_eq!(&bytes[100..106], b"step\0\0");
    }

    #[test]
    fn a_long_message_is_cut_between_characters_and_comes_together_again() {
        let message = "ä".repeat(400);
        let records: Vec<MarkRecord> = mark(Source::Numbered, &message).records().collect();
        assert_eq!(records.len(), 800_usize.div_ceil(MESSAGE_MAX - 1));
        let segments: Vec<u16> = records.iter().map(|record| record.segment).collect();
        assert_eq!(segments, (0..records.len() as u16).collect::<Vec<_>>());
        let together: String = records.iter().map(text).collect();
        assert_eq!(together, message);
    }

    #[test]
    fn a_stamp_has_one_record_and_an_empty_message_too() {
        assert_eq!(mark(Source::Stamp, &"x".repeat(300)).records().count(), 1);
        assert_eq!(mark(Source::Numbered, "").records().count(), 1);
    }

    #[test]
    fn a_message_is_readable_short_and_no_formula() {
        assert_eq!(&*clean(b"a\xFFb", 155), "a\u{FFFD}b");
        assert_eq!(&*clean("ää".as_bytes(), 3), "ä");
        assert_eq!(
            &*clean(br#"{\"count\": \"16\"}"#, 155),
            r#"{"count": "16"}"#
        );
        assert_eq!(&*clean(br"C:\dir", 155), r"C:\dir");
        for first in ["=", "+", "-", "@", "\t", "\r"] {
            assert_eq!(
                *clean(format!("{first}1").as_bytes(), 155),
                format!("'{first}1")
            );
        }
    }

    #[test]
    fn what_is_far_behind_the_end_of_a_long_message_is_not_looked_at() {
        let plain = "ä".repeat(32 << 20);
        assert_eq!(&*clean(plain.as_bytes(), 155), "ä".repeat(77));
        let broken = vec![0xFF; 64 << 20];
        assert_eq!(&*clean(&broken, 155), "\u{FFFD}".repeat(51));
        // Of the 1240 bytes that count the last begins a character.
        let json = format!("{{{}{}", "\\".repeat(1238), "ä".repeat(32 << 20));
        assert_eq!(&*clean(json.as_bytes(), 155), "{");
        let json = format!("{{{}{}", "\\".repeat(1237), "ä".repeat(32 << 20));
        assert_eq!(&*clean(json.as_bytes(), 155), "{ä");
        let time_of = |text: &str| {
            let begin = crate::clock::Moment::now();
            for _ in 0..1000 {
                clean(text.as_bytes(), 155);
            }
            begin.elapsed()
        };
        // It is 50,000 times as long.
        assert!(time_of(&json) < time_of(&json[..1240]) * 1000);
    }
}
