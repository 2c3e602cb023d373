//! The word that every report reads first: is something captured, and what.
//!
//! It lies on a page that a forked child finds zeroed (MADV_WIPEONFORK), whichever way it was forked,
//! and zero means "ask": the slow path then finds out that this is another process. On kernels or
//! page sizes where the page cannot be marked, the atfork handler zeroes it ([`wipe`]).

use crate::records::Trace;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::shared;

/// Size and alignment of the page; with other page sizes the atfork handler alone does the wiping.
const PAGE: usize = 4096;

#[repr(C, align(4096))]
struct Page {
    word: AtomicU64,
    /// Non-zero in the process that made its agent; zero in a child that has not.
    owned: AtomicU64,
    fill: [u8; PAGE - 16],
}

shared!(GATE: Page = Page {
    word: AtomicU64::new(0),
    owned: AtomicU64::new(0),
    fill: [0; PAGE - 16],
});

/// A value of the gate.
///
/// Low 8 bits: which traces are taken, one bit per [`Trace`]; the rest: the capture's number, which is
/// unique among this process and its forked children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// Nobody knows yet: take the slow path.
    pub const ASK: Word = Word(0);
    /// Nothing is captured.
    pub const OFF: Word = Word(u64::MAX);
    const TRACE_BITS: u32 = 8;

    /// The word of a capture. `number` is in `1..2^56 - 1`.
    pub fn capturing(number: u64, traces: u8) -> Word {
        debug_assert!(number != 0 && number < (1 << 56) - 1);
        Word(number << Self::TRACE_BITS | u64::from(traces))
    }

    /// Number of the capture; meaningless for [`Word::ASK`] and [`Word::OFF`].
    #[inline]
    pub fn number(self) -> u64 {
        self.0 >> Self::TRACE_BITS
    }

    /// Whether records of `trace` are taken.
    #[inline]
    pub fn takes(self, trace: Trace) -> bool {
        self.0 >> (trace as u8) & 1 != 0
    }
}

/// The gate as of now. Relaxed: a report that races with a start or stop may fall on either side.
#[inline]
pub fn load() -> Word {
    Word(GATE.word.load(Ordering::Relaxed))
}

/// Whether nothing is captured, for certain; false also when nobody knows yet.
#[inline]
pub fn is_off() -> bool {
    load() == Word::OFF
}

/// Opens or closes the gate.
pub fn set(word: Word) {
    GATE.word.store(word.0, Ordering::Release);
}

/// Ends the asking: nothing is captured, unless a capture has begun meanwhile.
pub fn answer() {
    let _ = GATE.word.compare_exchange(
        Word::ASK.0,
        Word::OFF.0,
        Ordering::AcqRel,
        Ordering::Relaxed,
    );
}

/// Closes the gate of capture `number` only: an older capture's drain must not close a newer one's.
pub fn close(number: u64) {
    let _ = GATE
        .word
        .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
            (word != Word::ASK.0 && word != Word::OFF.0 && Word(word).number() == number)
                .then_some(Word::OFF.0)
        });
}

/// Whether this process has made its agent; false in a forked child until it makes its own.
#[inline]
pub fn is_ours() -> bool {
    GATE.owned.load(Ordering::Acquire) != 0
}

/// Marks this process as the one that made its agent.
pub fn own() {
    GATE.owned.store(1, Ordering::Release);
}

/// What fork does to the page, for kernels that do not: both words become zero.
pub fn wipe() {
    GATE.word.store(Word::ASK.0, Ordering::Relaxed);
    GATE.owned.store(0, Ordering::Relaxed);
}

/// Asks the kernel to wipe the page in children. Failure is no error: [`wipe`] remains.
pub fn mark_wipe_on_fork() {
    const _: () = assert!(std::mem::size_of::<Page>() == PAGE);
    let page: &Page = &GATE;
    debug_assert!(page.fill.first() == Some(&0));
    // SAFETY: sysconf takes any name.
    if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } != PAGE as libc::c_long {
        return;
    }
    // SAFETY: the range is exactly one page of this library's own zero-initialised data, and the
    // advice changes only what a child finds there. A kernel that does not know it answers EINVAL.
    unsafe {
        libc::madvise(
            std::ptr::from_ref(page).cast_mut().cast(),
            PAGE,
            libc::MADV_WIPEONFORK,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_tells_number_and_traces() {
        let word = Word::capturing(77, 1 << Trace::Acl as u8);
        assert_eq!(word.number(), 77);
        assert!(word.takes(Trace::Acl) && !word.takes(Trace::RuntimeApi));
        assert_ne!(word, Word::OFF);
        assert_ne!(word, Word::ASK);
    }
}
