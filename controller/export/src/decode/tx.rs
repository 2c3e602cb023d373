//! Marks and ranges that a program sets itself: msproftx stamps, and those of mstx with a number (spec 3 section 6.3).

use super::{Decoded, Headed, text};
use crate::source::Source;
use msprof_agent_core::profdir::reader::ReadError;
use msprof_agent_core::records::AdditionalRecord;
use std::collections::{BTreeMap, HashMap};
use std::mem::offset_of;
use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Name of the family.
const FAMILY: &str = "msproftx";
/// Bytes of a message in one record, with its NUL.
const MESSAGE_ROOM: usize = 156;
/// A piece of a message that is shorter than this is its last one: a character has 4 bytes at most, and the NUL one.
const PIECE_MIN: usize = MESSAGE_ROOM - 4;
/// Pieces of marks of which more may come. Beyond this number, the mark that has waited for longest is taken as it is.
const HELD_MAX: usize = 1 << 16;

/// A mark or a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whether it has a number: mstx, and marks on a stream. Stamps have a category, payload and kind of message instead.
    pub numbered: bool,
    /// The process that says so.
    pub process: u32,
    /// Kernel thread id.
    pub thread: u32,
    /// The program's own.
    pub category: u32,
    /// 0 marker, 1 push/pop, 2 start/end, 3 marker on a stream.
    pub event: u32,
    /// Kind of the payload.
    pub payload_kind: i32,
    /// Payload.
    pub payload: u64,
    /// Ticks of the host.
    pub begin: u64,
    /// Ticks; the begin of a point in time.
    pub end: u64,
    /// Number among all numbered ones.
    pub id: u64,
    /// Id of its domain's name.
    pub domain: u64,
    /// Kind of the message.
    pub message_kind: i32,
    /// What it says, whole. Text of a program: may hold anything.
    pub message: String,
}

impl Mark {
    /// What the stock parser calls the event; empty for an unknown one.
    pub fn event_name(&self) -> &'static str {
        match self.event {
            0 => "marker",
            1 => "push/pop",
            2 => "start/end",
            3 => "marker_ex",
            _ => "",
        }
    }
}

/// Payload of the record.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct MarkLayout {
    numbered: U16,
    segment: U16,
    reserved: U32,
    magic: U16,
    tag: U16,
    process: U32,
    thread: U32,
    category: U32,
    event: U32,
    payload_kind: I32,
    payload: U64,
    begin: U64,
    end: U64,
    id: U64,
    domain: U64,
    message_kind: I32,
    message: [u8; MESSAGE_ROOM],
}

const _: () = {
    // Offsets from the record's beginning are those of spec 3.
    assert!(offset_of!(MarkLayout, event) == 48 - 24);
    assert!(offset_of!(MarkLayout, begin) == 64 - 24);
    assert!(offset_of!(MarkLayout, domain) == 88 - 24);
    assert!(offset_of!(MarkLayout, message) == 100 - 24);
};

/// A record: a mark, or a piece of one.
#[derive(Debug)]
struct Piece {
    mark: Mark,
    segment: u16,
    /// Bytes of its text.
    bytes: usize,
}

impl Piece {
    fn of(record: &AdditionalRecord) -> Option<Piece> {
        let said: MarkLayout = record.read()?;
        let bytes = said.message.iter().position(|byte| *byte == 0);
        // The stock parser writes neither of other sources.
        let numbered = match said.numbered.get() {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Piece {
            segment: said.segment.get(),
            // The stock parser takes the last byte for the NUL, whatever it is.
            bytes: bytes.unwrap_or(MESSAGE_ROOM - 1),
            mark: Mark {
                numbered,
                process: said.process.get(),
                thread: said.thread.get(),
                category: said.category.get(),
                event: said.event.get(),
                payload_kind: said.payload_kind.get(),
                payload: said.payload.get(),
                begin: said.begin.get(),
                end: said.end.get(),
                id: said.id.get(),
                domain: said.domain.get(),
                message_kind: said.message_kind.get(),
                message: text(&said.message[..MESSAGE_ROOM - 1]),
            },
        })
    }

    fn may_go_on(&self) -> bool {
        self.bytes >= PIECE_MIN
    }
}

/// A numbered mark of which more pieces may come.
#[derive(Debug)]
struct Open {
    /// When its first piece came, in pieces.
    since: u64,
    pieces: BTreeMap<u16, Piece>,
}

impl Open {
    /// Whether nothing is missing: all from the first one to one that ends the message.
    fn is_whole(&self) -> bool {
        let last = self.pieces.iter().next_back();
        last.is_some_and(|(segment, piece)| {
            !piece.may_go_on() && usize::from(*segment) + 1 == self.pieces.len()
        })
    }

    fn join(self) -> Option<Mark> {
        let mut pieces = self.pieces.into_values();
        let mut mark = pieces.next()?.mark;
        for piece in pieces {
            mark.message.push_str(&piece.mark.message);
        }
        Some(mark)
    }
}

/// Iterator over marks in the order of the files. One that was cut into pieces comes when its last piece does, or at the end
/// where a piece is missing.
#[derive(Debug)]
pub struct Marks {
    pieces: Decoded<AdditionalRecord, Piece>,
    open: HashMap<u64, Open>,
    /// Ids of the open ones by when they came.
    waiting: BTreeMap<u64, u64>,
    /// Pieces of all of them.
    held: usize,
    number: u64,
    ended: bool,
}

impl Marks {
    /// What has the place of a record and no record's magic number.
    pub fn foreign(&self) -> u64 {
        self.pieces.foreign()
    }

    /// The mark that a piece completes.
    fn add(&mut self, piece: Piece) -> Option<Mark> {
        if !piece.mark.numbered {
            return Some(piece.mark);
        }
        let id = piece.mark.id;
        if piece.segment == 0 && !piece.may_go_on() && !self.open.contains_key(&id) {
            return Some(piece.mark);
        }
        self.number += 1;
        let since = self.number;
        let open = self.open.entry(id).or_insert_with(|| Open {
            since,
            pieces: BTreeMap::new(),
        });
        if open.since == since {
            self.waiting.insert(since, id);
        }
        if open.pieces.insert(piece.segment, piece).is_none() {
            self.held += 1;
        }
        if open.is_whole() {
            return self.take(id);
        }
        if self.held > HELD_MAX {
            return self.first();
        }
        None
    }

    fn take(&mut self, id: u64) -> Option<Mark> {
        let open = self.open.remove(&id)?;
        self.waiting.remove(&open.since);
        self.held -= open.pieces.len();
        open.join()
    }

    /// The mark that has waited for longest.
    fn first(&mut self) -> Option<Mark> {
        let id = *self.waiting.first_key_value()?.1;
        self.take(id)
    }
}

impl Iterator for Marks {
    type Item = Result<Mark, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.pieces.next() {
                Some(Ok(piece)) => {
                    if let Some(mark) = self.add(piece) {
                        return Some(Ok(mark));
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => self.ended = true,
            }
        }
        self.first().map(Ok)
    }
}

impl Source {
    /// Of each mark its first piece, in the order of the files: all but the rest of a long message. Nothing is held back.
    pub(crate) fn first_pieces(&self) -> Decoded<AdditionalRecord, Mark> {
        let first = |record: &AdditionalRecord| {
            let piece = Piece::of(record)?;
            (piece.segment == 0).then_some(piece.mark)
        };
        Decoded::new(self.profile().additional(FAMILY), first)
    }

    /// Marks and ranges that the program sets itself.
    pub(crate) fn marks(&self) -> Marks {
        let records = self.profile().additional(FAMILY);
        Marks {
            pieces: Decoded::new(records, Piece::of),
            open: HashMap::new(),
            waiting: BTreeMap::new(),
            held: 0,
            number: 0,
            ended: false,
        }
    }
}
