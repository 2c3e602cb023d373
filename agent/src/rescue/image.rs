//! The rings' memory of a process that has ended, read through its descriptor.
//!
//! It is never mapped: a hostile file could make an access of a mapping fatal. No number in it is trusted:
//! segments, indices and lengths are checked against the size of the file, each segment is visited at most once,
//! and what makes no sense is passed over.

#![forbid(unsafe_code)]

use crate::arena::{SEGMENT_BYTES, SEGMENTS_OFFSET};
use crate::board::{BoardImage, FILES_MAX, LAYOUT, MAGIC, NoteImage};
use crate::lanes::{RINGS, RingKey};
use crate::process::fd;
use crate::ring::{RECORDS_OFFSET, SegmentImage, capacity};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// More segments are no agent's: 64 GiB of buffers.
const SEGMENTS_MAX: u32 = 1 << 20;

/// Why a memory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The system refused.
    #[error("its memory cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is no agent's, or of another version.
    #[error(
        "its memory is not that of an agent of this version: use the msprof of the same release"
    )]
    Foreign,
    /// Another capture runs in it, or none.
    #[error("its memory holds nothing of this capture any more")]
    Other,
}

/// The memory of one process.
#[derive(Debug)]
pub struct Image<'a> {
    file: &'a File,
    board: BoardImage,
    capture: u64,
}

/// Records that wait in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    from: u64,
    to: u64,
}

impl<'a> Image<'a> {
    /// Reads the front of a memory in which `capture` runs.
    pub fn open(file: &'a File, capture: u64) -> Result<Image<'a>, ImageError> {
        // Its length is for ever, then, and reading it never waits for anybody.
        if !fd::is_fixed_memory(file.as_fd()) {
            return Err(ImageError::Foreign);
        }
        let mut board = BoardImage::new_zeroed();
        file.read_exact_at(board.as_mut_bytes(), 0)?;
        let length = file.metadata()?.len();
        let room = length.saturating_sub(SEGMENTS_OFFSET as u64) / SEGMENT_BYTES as u64;
        let is_ours = board.magic == MAGIC
            && board.layout == LAYOUT
            && board.segment_bytes as usize == SEGMENT_BYTES
            && board.offset == SEGMENTS_OFFSET as u64
            && board.segments <= SEGMENTS_MAX
            && u64::from(board.segments) <= room;
        if !is_ours {
            return Err(ImageError::Foreign);
        }
        if capture == 0 || board.capture != capture {
            return Err(ImageError::Other);
        }
        Ok(Image {
            file,
            board,
            capture,
        })
    }

    /// Slices that a write was under way to, of whose records none counts as written.
    pub fn unfinished(&self) -> io::Result<&[NoteImage]> {
        let intent = &self.board.intent;
        if intent.present != 1 || intent.segment >= self.board.segments || intent.from >= intent.to
        {
            return Ok(&[]);
        }
        // The ring's own word is what counts: it is said before the intent ends.
        if self.segment(intent.segment)?.drained >= intent.to {
            return Ok(&[]);
        }
        Ok(&intent.notes[..(intent.files as usize).min(FILES_MAX)])
    }

    /// Hands out what waits in the rings, ring by ring and oldest first: at most a segment's records at a time.
    pub fn each_waiting(&self, mut take: impl FnMut(RingKey, &[u8])) -> io::Result<()> {
        let mut visited = vec![false; self.board.segments as usize];
        let mut records = Vec::new();
        for first in 0..self.board.segments {
            let Some(key) = key_of(&self.segment(first)?) else {
                continue;
            };
            let mut number = first;
            while let Some(visited) = visited.get_mut(number as usize)
                && !std::mem::replace(visited, true)
            {
                let segment = self.segment(number)?;
                if let Some(Waiting { from, to }) = self.waiting(&segment, key) {
                    let size = key.size.bytes();
                    records.resize((to - from) as usize * size, 0);
                    let begin = place_of(number) + (RECORDS_OFFSET + from as usize * size) as u64;
                    self.file.read_exact_at(&mut records, begin)?;
                    take(key, &records);
                }
                let Some(next) = segment.next.checked_sub(1) else {
                    break;
                };
                number = next;
            }
        }
        Ok(())
    }

    fn segment(&self, number: u32) -> io::Result<SegmentImage> {
        let mut bytes = [0; size_of::<SegmentImage>()];
        self.file.read_exact_at(&mut bytes, place_of(number))?;
        SegmentImage::read_from_bytes(&bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn waiting(&self, segment: &SegmentImage, key: RingKey) -> Option<Waiting> {
        // Records of another capture are nobody's any more.
        if segment.capture != self.capture {
            return None;
        }
        let (from, to) = (segment.start.max(segment.drained), segment.head);
        (from < to && to <= capacity(key.size)).then_some(Waiting { from, to })
    }
}

fn place_of(number: u32) -> u64 {
    SEGMENTS_OFFSET as u64 + u64::from(number) * SEGMENT_BYTES as u64
}

/// The ring that begins with a segment, if one does.
fn key_of(segment: &SegmentImage) -> Option<RingKey> {
    let index = (segment.ring as usize).checked_sub(1)?;
    (index < RINGS).then(|| RingKey::of(index))
}
