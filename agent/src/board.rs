//! The front of the rings' memory: what somebody needs who has that memory and no process any more.
//!
//! A controller reads it after the process was killed (`rescue`). Which capture runs stands here, and where the
//! drain is in the midst of writing; everything else that is needed lies in the segments' own headers (`ring`).
//!
//! Invariant: a kill may come between any two stores, and then nothing that was stored before is missing. So
//! each store leaves a state that can be read: an [`Intent`] is complete before it is said to be there, and is
//! there from before the first byte of a write until the ring says that its records are done with.
//!
//! Only the drain thread writes here. The other end of a capture, [`BoardImage`], is plain data of the same
//! layout.

use crate::profdir::Place;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// First bytes of the memory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"msprings");
/// Version of this layout and of the segments' headers.
pub const LAYOUT: u32 = 1;
/// Most files that are written for one intent; the drain cuts what it writes at a time so that these do.
pub const FILES_MAX: usize = if cfg!(loom) { 1 } else { 32 };
/// Bytes of a family's name, in words: one more than a family's name has (`profdir`).
const NAME_WORDS: usize = if cfg!(loom) { 1 } else { 29 };
/// The same in bytes.
pub const NAME_MAX: usize = NAME_WORDS * size_of::<u64>();
/// How [`Note::place`] says "host"; devices are counted from 1.
const HOST: u32 = 0;

/// The front of the memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Board {
    magic: AtomicU64,
    layout: AtomicU32,
    segment_bytes: AtomicU32,
    page_bytes: AtomicU32,
    segments: AtomicU32,
    /// Where the first segment begins.
    offset: AtomicU64,
    /// Number of the capture whose records are still to be written; 0 for none.
    capture: AtomicU64,
    intent: Intent,
}

/// Records that are being written, and where to.
#[repr(C)]
#[derive(Debug)]
pub struct Intent {
    /// 1 while the rest is valid.
    present: AtomicU32,
    /// Number of the segment.
    segment: AtomicU32,
    /// Index of the first record in the segment.
    from: AtomicU64,
    /// Index behind the last one.
    to: AtomicU64,
    /// Files of `notes` that may have been written to.
    files: AtomicU32,
    _unused: [AtomicU32; 3],
    notes: [Note; FILES_MAX],
}

/// A slice as it was before records were appended.
#[repr(C)]
#[derive(Debug)]
struct Note {
    /// Bytes in it; 0 before it was made.
    length: AtomicU64,
    /// 0 for the host, device number + 1.
    place: AtomicU32,
    slice: AtomicU32,
    /// Bytes of the family's name.
    name_bytes: AtomicU32,
    _unused: AtomicU32,
    /// The name, eight bytes a word, as in memory.
    name: [AtomicU64; NAME_WORDS],
}

/// A slice that is about to be appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Whose directory.
    pub place: Place,
    /// Name of the family.
    pub family: &'a str,
    /// Number of the slice.
    pub slice: u32,
    /// Bytes in it, all of them whole records.
    pub length: u64,
}

/// Where in the rings the records lie that are about to be written.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    intent: &'a Intent,
    segment: u32,
    from: u64,
}

impl Board {
    /// The board of a memory with so many segments, `offset` bytes from its beginning.
    pub fn new(segments: usize, segment_bytes: usize, page_bytes: usize, offset: usize) -> Board {
        Board {
            magic: AtomicU64::new(MAGIC),
            layout: AtomicU32::new(LAYOUT),
            segment_bytes: AtomicU32::new(segment_bytes as u32),
            page_bytes: AtomicU32::new(page_bytes as u32),
            segments: AtomicU32::new(segments as u32),
            offset: AtomicU64::new(offset as u64),
            capture: AtomicU64::new(0),
            intent: Intent {
                present: AtomicU32::new(0),
                segment: AtomicU32::new(0),
                from: AtomicU64::new(0),
                to: AtomicU64::new(0),
                files: AtomicU32::new(0),
                _unused: std::array::from_fn(|_| AtomicU32::new(0)),
                notes: std::array::from_fn(|_| Note {
                    length: AtomicU64::new(0),
                    place: AtomicU32::new(0),
                    slice: AtomicU32::new(0),
                    name_bytes: AtomicU32::new(0),
                    _unused: AtomicU32::new(0),
                    name: std::array::from_fn(|_| AtomicU64::new(0)),
                }),
            },
        }
    }

    /// Records of `capture` in the rings are to be written from here on.
    pub fn begin(&self, capture: u64) {
        self.capture.store(capture, Ordering::Release);
    }

    /// Everything is written: what a preempted thread publishes later is in no capture.
    pub fn end(&self) {
        self.capture.store(0, Ordering::Release);
    }

    /// The records of segment `segment` from index `from` on are to be written next.
    pub fn stretch(&self, segment: u32, from: u64) -> Stretch<'_> {
        Stretch {
            intent: &self.intent,
            segment,
            from,
        }
    }
}

impl Stretch<'_> {
    /// Says that the first `count` records are being written.
    pub fn begin(&self, count: u64) {
        let intent = self.intent;
        // Keeps the stores below behind the one that ended the last intent: a mixture of both would have
        // finished slices cut.
        fence(Ordering::Release);
        intent.segment.store(self.segment, Ordering::Relaxed);
        intent.from.store(self.from, Ordering::Relaxed);
        intent.to.store(self.from + count, Ordering::Relaxed);
        intent.files.store(0, Ordering::Relaxed);
        intent.present.store(1, Ordering::Release);
    }

    /// Says where some of them are about to be appended. Whoever reads it undoes that much; a slice beyond
    /// [`FILES_MAX`] is none of the drain's.
    pub fn note(&self, target: Target<'_>) {
        let index = self.intent.files.load(Ordering::Relaxed);
        let Some(note) = self.intent.notes.get(index as usize) else {
            debug_assert!(false, "more files than are noted");
            return;
        };
        let place = match target.place {
            Place::Host => HOST,
            Place::Device(device) => device + 1,
        };
        note.length.store(target.length, Ordering::Relaxed);
        note.place.store(place, Ordering::Relaxed);
        note.slice.store(target.slice, Ordering::Relaxed);
        let name = target.family.as_bytes();
        debug_assert!(name.len() <= NAME_MAX);
        note.name_bytes.store(name.len() as u32, Ordering::Relaxed);
        for (word, bytes) in note.name.iter().zip(name.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
        self.intent.files.store(index + 1, Ordering::Release);
    }

    /// They are written, and the ring says so.
    pub fn end(&self) {
        // Release: behind the ring's own word.
        self.intent.present.store(0, Ordering::Release);
    }
}

pub use image::{BoardImage, NoteImage};

mod image {
    use super::{FILES_MAX, HOST, NAME_MAX};
    use crate::profdir::Place;
    use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

    /// A [`Board`] as it lies in memory. Nothing in it can be trusted.
    #[repr(C)]
    #[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[allow(missing_docs)] // as in the board
    pub struct BoardImage {
        pub magic: u64,
        pub layout: u32,
        pub segment_bytes: u32,
        pub page_bytes: u32,
        pub segments: u32,
        pub offset: u64,
        pub capture: u64,
        pub intent: IntentImage,
    }

    /// An [`Intent`] as it lies in memory.
    #[repr(C)]
    #[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[allow(missing_docs)]
    pub struct IntentImage {
        pub present: u32,
        pub segment: u32,
        pub from: u64,
        pub to: u64,
        pub files: u32,
        pub unused: [u32; 3],
        pub notes: [NoteImage; FILES_MAX],
    }

    /// A note as it lies in memory.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[allow(missing_docs)]
    pub struct NoteImage {
        pub length: u64,
        pub place: u32,
        pub slice: u32,
        pub name_bytes: u32,
        pub unused: u32,
        pub name: [u8; NAME_MAX],
    }

    impl NoteImage {
        /// Whose directory.
        pub fn place(&self) -> Place {
            match self.place {
                HOST => Place::Host,
                device => Place::Device(device - 1),
            }
        }

        /// The family's name; `None` if it is no text of a possible length.
        pub fn family(&self) -> Option<&str> {
            std::str::from_utf8(self.name.get(..self.name_bytes as usize)?).ok()
        }
    }

    // The models' atomics have a layout of their own, and nobody reads them from outside.
    #[cfg(not(loom))]
    const _: () = {
        use super::{Board, Intent, Note};
        use std::mem::offset_of;
        macro_rules! same {
            ($live:ty, $image:ty, $($field:ident),+) => {
                assert!(size_of::<$live>() >= size_of::<$image>());
                $(assert!(offset_of!($live, $field) == offset_of!($image, $field));)+
            };
        }
        same!(
            Board,
            BoardImage,
            magic,
            layout,
            segment_bytes,
            page_bytes,
            segments,
            offset,
            capture
        );
        same!(Board, BoardImage, intent);
        same!(
            Intent,
            IntentImage,
            present,
            segment,
            from,
            to,
            files,
            notes
        );
        same!(Note, NoteImage, length, place, slice, name_bytes, name);
        assert!(size_of::<Note>() == 256 && size_of::<NoteImage>() == 256);
        assert!(offset_of!(Board, capture) == 32 && offset_of!(Board, intent) == 40);
        assert!(offset_of!(Intent, notes) == 40);
    };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use zerocopy::{FromBytes, IntoBytes};

    fn image(board: &Board) -> BoardImage {
        let mut bytes = vec![0u8; size_of::<BoardImage>()];
        // SAFETY: a board is at least as long as its image and consists of atomics, which nobody changes here.
        let from = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(board).cast::<u8>(), bytes.len())
        };
        bytes.copy_from_slice(from);
        BoardImage::read_from_bytes(&bytes).expect("as long")
    }

    #[test]
    fn an_intent_is_read_back_from_the_bytes_until_it_has_ended() {
        let board = Board::new(7, 65_536, 4096, 65_536);
        board.begin(3);
        let stretch = board.stretch(5, 11);
        stretch.begin(4);
        let target = Target {
            place: Place::Device(2),
            family: "aicpu.data.2",
            slice: 1,
            length: 512,
        };
        stretch.note(target);
        let read = image(&board);
        assert_eq!((read.magic, read.capture, read.segments), (MAGIC, 3, 7));
        let intent = &read.intent;
        assert_eq!((intent.segment, intent.from, intent.to), (5, 11, 15));
        assert_eq!((intent.present, intent.files), (1, 1));
        let note = intent.notes[0];
        assert_eq!(
            (note.place(), note.family()),
            (Place::Device(2), Some("aicpu.data.2"))
        );
        assert_eq!((note.slice, note.length), (1, 512));
        stretch.end();
        board.end();
        let read = image(&board);
        assert_eq!((read.intent.present, read.capture), (0, 0));
        assert_eq!(read.as_bytes().len(), size_of::<BoardImage>());
    }

    #[test]
    fn a_name_of_every_length_is_read_back() {
        let board = Board::new(1, 65_536, 4096, 65_536);
        for length in [0, 1, 7, 8, 9, 63, NAME_MAX] {
            let name = "x".repeat(length);
            let stretch = board.stretch(0, 0);
            stretch.begin(1);
            stretch.note(Target {
                place: Place::Host,
                family: &name,
                slice: 0,
                length: 0,
            });
            let read = image(&board);
            assert_eq!(read.intent.notes[0].family(), Some(name.as_str()));
        }
    }
}
