//! Ranges that have begun and not ended, of the running capture.

#![forbid(unsafe_code)]

use super::Busy;
use super::record::Attributes;
use crate::process::reserve::{self, grow_map, grow_vec};
use crate::section::{Section, SectionLock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ranges that are open at a time, of each kind in each shard; what begins beyond that is not recorded.
const OPEN_MAX: usize = 4096;
/// Bytes of all their messages; what begins beyond that is not recorded.
const BYTES_MAX: usize = 4 << 20;
/// Threads and ids are spread over so many locks.
const SHARDS: usize = 16;

/// A range as it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRange {
    /// Ticks.
    pub begin: u64,
    /// Thread that began it.
    pub thread_id: u32,
    /// What its stamp said then.
    pub attributes: Attributes,
    /// Dictionary id of its domain's name; 0 for stamps.
    pub domain: u64,
    /// What its stamp said then.
    pub message: Box<str>,
}

/// Those of some threads and ids. All are of one capture: what an earlier one left is forgotten at the first
/// look of a later one.
#[derive(Debug, Default)]
struct Shard {
    capture: u64,
    by_thread: HashMap<u32, Vec<OpenRange>>,
    by_id: HashMap<u64, OpenRange>,
}

impl Shard {
    /// Those of `capture`.
    fn of(&mut self, capture: u64, bytes: &AtomicUsize) -> &mut Shard {
        if self.capture != capture {
            self.forget(bytes);
            self.capture = capture;
        }
        self
    }

    fn forget(&mut self, bytes: &AtomicUsize) {
        let stacks = std::mem::take(&mut self.by_thread);
        let ranges = stacks.into_values().flatten();
        for range in ranges.chain(std::mem::take(&mut self.by_id).into_values()) {
            bytes.fetch_sub(range.message.len(), Ordering::Relaxed);
        }
    }
}

/// All open ranges. A lock is held for a few moves only.
#[derive(Debug, Default)]
pub struct OpenRanges {
    shards: [SectionLock<Shard>; SHARDS],
    /// Of the messages of all.
    bytes: AtomicUsize,
}

impl OpenRanges {
    fn shard(&self, key: u64) -> &SectionLock<Shard> {
        &self.shards[key as usize % SHARDS]
    }

    /// Counts the bytes of a range that is to be open; false when it may not be.
    fn admit(&self, range: &OpenRange) -> bool {
        let len = range.message.len();
        let before = self.bytes.fetch_add(len, Ordering::Relaxed);
        let admitted = before + len <= BYTES_MAX && !reserve::is_low();
        if !admitted {
            self.bytes.fetch_sub(len, Ordering::Relaxed);
        }
        admitted
    }

    fn release(&self, range: &OpenRange) {
        self.bytes.fetch_sub(range.message.len(), Ordering::Relaxed);
    }

    /// Puts a range on its thread's stack; false when too many are there, or it cannot be done now.
    pub fn push(&self, section: &Section, capture: u64, range: OpenRange) -> bool {
        let Some(mut shard) = self.shard(u64::from(range.thread_id)).write(section) else {
            return false;
        };
        let shard = shard.of(capture, &self.bytes);
        if !grow_map(&mut shard.by_thread) {
            return false;
        }
        let stack = shard.by_thread.entry(range.thread_id).or_default();
        if stack.len() < OPEN_MAX && grow_vec(stack) && self.admit(&range) {
            stack.push(range);
            return true;
        }
        if stack.is_empty() {
            shard.by_thread.remove(&range.thread_id);
        }
        false
    }

    /// Takes the innermost range off a thread's stack.
    pub fn pop(
        &self,
        section: &Section,
        capture: u64,
        thread_id: u32,
    ) -> Result<Option<OpenRange>, Busy> {
        let shard = self.shard(u64::from(thread_id));
        let mut shard = shard.write(section).ok_or(Busy)?;
        let stacks = &mut shard.of(capture, &self.bytes).by_thread;
        let Some(stack) = stacks.get_mut(&thread_id) else {
            return Ok(None);
        };
        let range = stack.pop();
        if stack.is_empty() {
            stacks.remove(&thread_id);
        }
        Ok(range.inspect(|range| self.release(range)))
    }

    /// Keeps a range until its id ends it; false when too many are kept, or it cannot be done now.
    pub fn keep(&self, section: &Section, capture: u64, id: u64, range: OpenRange) -> bool {
        let Some(mut shard) = self.shard(id).write(section) else {
            return false;
        };
        let kept = &mut shard.of(capture, &self.bytes).by_id;
        if kept.len() >= OPEN_MAX || !grow_map(kept) || !self.admit(&range) {
            return false;
        }
        if let Some(old) = kept.insert(id, range) {
            self.release(&old);
        }
        true
    }

    /// Ends the range of that id.
    pub fn take(
        &self,
        section: &Section,
        capture: u64,
        id: u64,
    ) -> Result<Option<OpenRange>, Busy> {
        let mut shard = self.shard(id).write(section).ok_or(Busy)?;
        let range = shard.of(capture, &self.bytes).by_id.remove(&id);
        Ok(range.inspect(|range| self.release(range)))
    }

    /// Frees all of them. What cannot be freed now is freed at the first look of a later capture.
    pub fn forget(&self, section: &Section) {
        for shard in &self.shards {
            if let Some(mut shard) = shard.write(section) {
                shard.forget(&self.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(thread_id: u32, begin: u64) -> OpenRange {
        OpenRange {
            begin,
            thread_id,
            attributes: Attributes::default(),
            domain: 0,
            message: "".into(),
        }
    }

    fn inside() -> Section {
        Section::enter().expect("outside")
    }

    #[test]
    fn a_threads_ranges_end_innermost_first_and_are_no_other_threads() {
        let (open, section) = (OpenRanges::default(), inside());
        assert!(open.push(&section, 1, range(5, 10)));
        assert!(open.push(&section, 1, range(5, 11)));
        assert_eq!(open.pop(&section, 1, 5 + SHARDS as u32), Ok(None));
        assert_eq!(open.pop(&section, 1, 5), Ok(Some(range(5, 11))));
        assert_eq!(open.pop(&section, 1, 5), Ok(Some(range(5, 10))));
        assert_eq!(open.pop(&section, 1, 5), Ok(None));
    }

    #[test]
    fn a_range_of_an_earlier_capture_does_not_end_in_a_later_one() {
        let (open, section) = (OpenRanges::default(), inside());
        assert!(open.push(&section, 1, range(5, 10)));
        assert!(open.keep(&section, 1, 5, range(5, 10)));
        assert_eq!(open.pop(&section, 2, 5), Ok(None));
        assert_eq!(open.take(&section, 2, 5), Ok(None));
        assert!(open.keep(&section, 2, 6, range(5, 10)));
        assert_eq!(open.take(&section, 2, 6), Ok(Some(range(5, 10))));
        assert_eq!(open.take(&section, 2, 6), Ok(None));
    }

    #[test]
    fn what_is_never_ended_does_not_add_up_for_ever() {
        let (open, section) = (OpenRanges::default(), inside());
        let pushed = (0..2 * OPEN_MAX as u64).filter(|&i| open.push(&section, 1, range(5, i)));
        assert_eq!(pushed.count(), OPEN_MAX);
        let kept = (0..2 * (OPEN_MAX * SHARDS) as u64)
            .filter(|&id| open.keep(&section, 1, id, range(5, id)));
        assert_eq!(kept.count(), OPEN_MAX * SHARDS);
    }

    #[test]
    fn long_messages_do_not_add_up_either_and_go_with_the_capture() {
        let (open, section) = (OpenRanges::default(), inside());
        let long = |thread_id| OpenRange {
            message: "x".repeat(8192).into(),
            ..range(thread_id, 1)
        };
        let most = BYTES_MAX as u64 / 8192;
        let kept = (0..2 * most).filter(|&id| open.keep(&section, 1, id, long(5)));
        assert_eq!(kept.count() as u64, most);
        assert!(!open.push(&section, 1, long(5)));
        assert!(open.take(&section, 1, 0).is_ok_and(|range| range.is_some()));
        assert!(open.push(&section, 1, long(5)));
        assert!(!open.push(&section, 1, long(6)));
        assert!(open.pop(&section, 1, 5).is_ok_and(|range| range.is_some()));
        assert!(open.push(&section, 2, long(5)), "another capture");
        open.forget(&section);
        assert_eq!(open.bytes.load(Ordering::Relaxed), 0);
        for shard in &open.shards {
            let shard = shard.read(&section).expect("free");
            assert_eq!((shard.by_id.capacity(), shard.by_thread.capacity()), (0, 0));
        }
    }

    #[test]
    fn a_thread_without_open_ranges_leaves_nothing() {
        let (open, section) = (OpenRanges::default(), inside());
        for thread in 0..100 {
            assert!(open.push(&section, 1, range(thread, 1)));
            assert!(
                open.pop(&section, 1, thread)
                    .is_ok_and(|range| range.is_some())
            );
        }
        for shard in &open.shards {
            assert_eq!(shard.read(&section).expect("free").by_thread.len(), 0);
        }
    }
}
