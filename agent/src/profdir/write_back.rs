//! Hands what was written to slices on to the disk, so that a long capture neither fills the page cache with
//! dirty pages nor pushes the program's own files out of it.
//!
//! A thread of its own, made when there is something to do: the kernel may let it wait for the disk, for which
//! the drain has no time. The disk is asked to begin with a range at once, and its pages are given up when
//! much more has been written since. Nothing here is needed for what is read later: what goes wrong is left
//! to the kernel.

#![forbid(unsafe_code)]

use super::files;
use crate::process;
use crate::process::guarded::Guarded;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::VecDeque;
use std::fs::File;

/// Ranges begin and end at multiples of this, bytes: a page that still grows is left alone.
const PAGE: u64 = 4096;
/// Written back in pieces of at least this many bytes.
const PIECE_MIN: u64 = 1024 * 1024;
/// Ranges that wait for the thread; further ones are left to the kernel. Each holds a descriptor.
const WAITING_MAX: usize = 8;
/// The newest bytes, which stay in the page cache: they may be on their way to the disk, and whoever exports
/// a short capture reads them.
const KEPT_BYTES: u64 = 64 * 1024 * 1024;
/// Ranges whose pages are kept; each holds a descriptor.
const KEPT_MAX: usize = 24;

/// What the thread is to do.
#[derive(Debug)]
enum Job {
    WriteBack(Range),
    /// Close all descriptors that are kept.
    Forget,
}

/// Whole pages of an open file.
#[derive(Debug)]
struct Range {
    file: Guarded,
    offset: u64,
    length: u64,
}

/// The way to the thread.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    jobs: Option<Sender<Job>>,
    /// There is no thread to be had.
    failed: bool,
}

impl WriteBack {
    /// Has the bytes of `file` from `from` to `to` written out, if they are worth it; returns up to where.
    /// Never waits.
    pub(super) fn add(&mut self, file: &File, from: u64, to: u64) -> u64 {
        let Some((offset, length)) = whole_pages(from, to) else {
            return from;
        };
        // What nobody takes now is not tried again: the kernel writes it back in its own time.
        let end = offset + length;
        if let (Some(jobs), Ok(file)) = (self.jobs(), file.try_clone()) {
            let _ = jobs.try_send(Job::WriteBack(Range {
                file: Guarded::new(file),
                offset,
                length,
            }));
        }
        end
    }

    /// Has the descriptors closed that the thread keeps: they are wanted elsewhere, or the files are deleted
    /// and would keep their space. Never waits; the thread may need a moment.
    pub(super) fn forget(&self) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.try_send(Job::Forget);
        }
    }

    fn jobs(&mut self) -> Option<&Sender<Job>> {
        if self.jobs.is_none() && !self.failed {
            let (sender, receiver) = bounded(WAITING_MAX);
            match process::spawn("msprof-flush", move || run(&receiver)) {
                Ok(_) => self.jobs = Some(sender),
                Err(_) => self.failed = true,
            }
        }
        self.jobs.as_ref()
    }
}

/// Offset and length of the whole pages in a range; `None` if they are too few.
fn whole_pages(from: u64, to: u64) -> Option<(u64, u64)> {
    let (from, to) = (from / PAGE * PAGE, to / PAGE * PAGE);
    let length = to.saturating_sub(from);
    (length >= PIECE_MIN).then_some((from, length))
}

/// Ends when the directory is finished, or left.
fn run(jobs: &Receiver<Job>) {
    let mut kept = Kept::default();
    for job in jobs {
        let Job::WriteBack(range) = job else {
            kept = Kept::default();
            continue;
        };
        if let Ok(file) = range.file.get() {
            files::start_write_back(file, range.offset, range.length);
        }
        kept.add(range, |old| {
            if let Ok(file) = old.file.get() {
                files::give_up_pages(file, old.offset, old.length);
            }
        });
    }
}

/// Ranges on their way to the disk, oldest first.
#[derive(Debug, Default)]
struct Kept {
    ranges: VecDeque<Range>,
    bytes: u64,
}

impl Kept {
    /// Takes the newest range and hands out those that are old by now.
    fn add(&mut self, range: Range, mut give_up: impl FnMut(&Range)) {
        self.bytes += range.length;
        self.ranges.push_back(range);
        while self.bytes > KEPT_BYTES || self.ranges.len() > KEPT_MAX {
            let Some(old) = self.ranges.pop_front() else {
                return;
            };
            self.bytes -= old.length;
            give_up(&old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_page_that_still_grows_is_left_alone_and_comes_with_the_next_range() {
        assert_eq!(whole_pages(0, MIB - 1), None);
        assert_eq!(whole_pages(0, MIB + 40), Some((0, MIB)));
        assert_eq!(whole_pages(MIB, 3 * MIB - 1), Some((MIB, 2 * MIB - PAGE)));
        assert_eq!(whole_pages(5, 4), None);
    }

    #[test]
    fn pages_are_given_up_oldest_first_and_never_the_newest() {
        let temp = tempfile::tempfile().expect("temporary file");
        let mut kept = Kept::default();
        let mut given_up = Vec::new();
        let pieces = KEPT_BYTES / (8 * MIB) + 3;
        for piece in 0..pieces {
            let range = Range {
                file: Guarded::new(temp.try_clone().expect("descriptor")),
                offset: piece * 8 * MIB,
                length: 8 * MIB,
            };
            kept.add(range, |old| given_up.push(old.offset));
        }
        assert_eq!(given_up, [0, 8 * MIB, 16 * MIB]);
    }

    #[test]
    fn small_pieces_do_not_hold_ever_more_descriptors() {
        let temp = tempfile::tempfile().expect("temporary file");
        let mut kept = Kept::default();
        for piece in 0..100 {
            let range = Range {
                file: Guarded::new(temp.try_clone().expect("descriptor")),
                offset: piece * MIB,
                length: MIB,
            };
            kept.add(range, |_| {});
            assert!(kept.ranges.len() <= KEPT_MAX);
        }
    }
}
