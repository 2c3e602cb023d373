//! The word that every report reads first: is something captured, and what.
//!
//! It lies on a page that a forked child finds zeroed (MADV_WIPEONFORK), whichever way it was forked,
//! and zero means "ask": the slow path then finds out that this is another process. On kernels that
//! cannot mark the page, the atfork handler zeroes it ([`wipe`]).

use crate::records::Trace;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::shared;

/// Size and alignment of the page: the largest page that a kernel may have. On aarch64 many have 64 KiB.
const PAGE: usize = match cfg!(target_arch = "aarch64") {
    true => 64 << 10,
    false => 4 << 10,
};

#[repr(C)]
#[cfg_attr(target_arch = "aarch64", repr(align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(align(4096)))]
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

// Who else wants the reports, as bits; unlike the page, the same in a forked child.
shared!(OTHERS: AtomicU64 = AtomicU64::new(0));

/// Another library, while nothing is captured.
const OTHER_LIBRARY: u64 = 1;
/// Another tool, some of them and always.
const OTHER_TOOL: u64 = 2;

/// A value of the gate.
///
/// From the low end: 8 bits say which traces are taken by the quick way of a report, one bit per [`Trace`]; one
/// says that other tools want reports, so that none goes the quick way; 8 bits say which traces are taken at
/// all. The rest is the capture's number, which is unique among this process and its forked children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// Nobody knows yet: take the slow path.
    pub const ASK: Word = Word(0);
    /// Nothing is captured.
    pub const OFF: Word = Word(u64::MAX);
    /// Nothing is captured, and reports go to another library. Takes no trace; no capture has its number.
    pub const ELSEWHERE: Word = Word(u64::MAX << Self::NUMBER_AT);
    const TRACE_BITS: u32 = 8;
    const SHARED: u64 = 1 << Self::TRACE_BITS;
    const ALL_AT: u32 = Self::TRACE_BITS + 1;
    const NUMBER_AT: u32 = Self::ALL_AT + Self::TRACE_BITS;

    /// The word of a capture. `number` is in `1..2^47 - 1`.
    pub fn capturing(number: u64, traces: u8) -> Word {
        debug_assert!(number != 0 && number < (1 << 47) - 1);
        let traces = u64::from(traces);
        Word(number << Self::NUMBER_AT | traces << Self::ALL_AT | traces)
    }

    /// The word as a number, and back.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The word of which [`Word::bits`] are these.
    pub const fn of_bits(bits: u64) -> Word {
        Word(bits)
    }

    /// The word of the same capture while other tools want reports, or while none does.
    fn shared(self, shared: bool) -> Word {
        const QUICK: u64 = (1 << Word::TRACE_BITS) - 1;
        if shared {
            Word(self.0 & !QUICK | Self::SHARED)
        } else {
            Word(self.0 & !Self::SHARED | self.0 >> Self::ALL_AT & QUICK)
        }
    }

    /// Whether others may want the report, or nobody knows yet.
    #[inline]
    pub fn is_shared(self) -> bool {
        self != Word::OFF && (!self.is_capture() || self.0 & Self::SHARED != 0)
    }

    /// Whether something is captured.
    #[inline]
    pub fn is_capture(self) -> bool {
        self != Word::ASK && self != Word::OFF && self != Word::ELSEWHERE
    }

    /// Number of the capture; meaningless where none is.
    #[inline]
    pub fn number(self) -> u64 {
        self.0 >> Self::NUMBER_AT
    }

    /// Whether records of `trace` are taken by the quick way.
    #[inline]
    pub fn takes_quickly(self, trace: Trace) -> bool {
        self.0 >> (trace as u8) & 1 != 0
    }

    /// Whether records of `trace` are taken.
    #[inline]
    pub fn takes(self, trace: Trace) -> bool {
        self.0 >> (Self::ALL_AT + trace as u32) & 1 != 0
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

/// Opens the gate for a capture.
pub fn open(word: Word) {
    // Swapped, not stored, so that whoever came before is seen below: a tool that has come meanwhile may have found the
    // gate as it was. What is there then is renewed, not opened once more: a drain that has failed may have closed it.
    GATE.word.swap(word.shared(is_shared()).0, Ordering::SeqCst);
    renew();
}

/// What the gate says while nothing is captured.
fn idle() -> Word {
    match OTHERS.load(Ordering::SeqCst) {
        0 => Word::OFF,
        _ => Word::ELSEWHERE,
    }
}

fn is_shared() -> bool {
    OTHERS.load(Ordering::SeqCst) & OTHER_TOOL != 0
}

/// To be called by whoever has closed the gate: others may have come after he had looked for them.
fn look_again() {
    if idle() != Word::OFF {
        renew();
    }
}

/// Has the gate say what is true of others by now.
fn renew() {
    let _ = GATE
        .word
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |word| {
            let renewed = match Word(word) {
                Word::ASK => Word::ASK,
                word if word.is_capture() => word.shared(is_shared()),
                _ => idle(),
            };
            Some(renewed.0)
        });
}

/// Ends the asking: nothing is captured, unless a capture has begun meanwhile.
pub fn answer() {
    let _ = GATE
        .word
        .compare_exchange(Word::ASK.0, idle().0, Ordering::SeqCst, Ordering::Relaxed);
    look_again();
}

/// From here on reports go to another library while nothing is captured.
pub fn pass_on() {
    OTHERS.fetch_or(OTHER_LIBRARY, Ordering::SeqCst);
    answer();
    renew();
}

/// From here on other tools want reports, or none does any more: no report goes the quick way meanwhile.
pub fn share(shared: bool) {
    if shared {
        OTHERS.fetch_or(OTHER_TOOL, Ordering::SeqCst);
    } else {
        OTHERS.fetch_and(!OTHER_TOOL, Ordering::SeqCst);
    }
    renew();
}

/// Closes the gate, whatever is captured.
pub fn close_for_good() {
    GATE.word.swap(idle().0, Ordering::SeqCst);
    look_again();
}

/// Closes the gate of capture `number` only: an older capture's drain must not close a newer one's.
pub fn close(number: u64) {
    let _ = GATE
        .word
        .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |word| {
            (Word(word).is_capture() && Word(word).number() == number).then_some(idle().0)
        });
    look_again();
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
    // An old loader may put the library at an address that suits its kernel's pages only; the range consists of
    // whole ones then too.
    if !PAGE.is_multiple_of(rustix::param::page_size()) {
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
        assert!(word.is_capture());
        for word in [Word::OFF, Word::ASK, Word::ELSEWHERE] {
            assert!(!word.is_capture());
        }
        for trace in Trace::ALL {
            assert!(!Word::ELSEWHERE.takes(trace) && !Word::ELSEWHERE.takes_quickly(trace));
        }
    }

    #[test]
    fn while_other_tools_want_reports_none_goes_the_quick_way() {
        let word = Word::capturing(77, 1 << Trace::Acl as u8);
        assert!(word.takes_quickly(Trace::Acl) && !word.is_shared());
        let shared = word.shared(true);
        assert!(shared.is_capture() && shared.is_shared());
        assert_eq!(shared.number(), 77);
        for trace in Trace::ALL {
            assert!(!shared.takes_quickly(trace));
            assert_eq!(shared.takes(trace), word.takes(trace));
        }
        assert_eq!(shared.shared(true), shared);
        assert_eq!(shared.shared(false), word);
        assert_eq!(word.shared(false), word);
        for word in [Word::ASK, Word::ELSEWHERE] {
            assert!(word.is_shared());
        }
    }
}
