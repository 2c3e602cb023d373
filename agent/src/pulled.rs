//! Records that wait in the buffers of another library, which the components report to: the drain fetches them while
//! something is captured, and they are thrown away before that.
//!
//! They go through the rings of the thread that fetches them, whose row in the ledger has them.

#![forbid(unsafe_code)]

use crate::gate::{self, Word};
use crate::records::RecordSize;
use once_cell::race::OnceRef;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Records of each kind that are fetched at once: what they take in the rings is a part of the smallest budget.
pub const AT_ONCE: usize = 2048;
/// Most records of each kind that wait when a capture begins.
const OLD_MAX: usize = 1 << 20;

/// One record that has waited.
#[derive(Clone, Copy, Debug)]
pub enum Waiting<'a> {
    /// One of a fixed size, and whether it may be deleted to keep the storage limit (1).
    Record(RecordSize, u32, &'a [u8]),
    /// A longer one.
    Variable(&'a [u8]),
}

/// Takes records out of each buffer and hands them over, until it has found that one empty or has taken so many;
/// whether one may hold more.
pub type Take = fn(usize, &mut dyn FnMut(Waiting<'_>)) -> bool;

/// How records are taken out of another library's buffers, and what becomes of them.
#[derive(Debug)]
pub struct Pull {
    /// Takes them out.
    pub take: Take,
    /// Puts one into the rings, for the capture of a word.
    pub give: fn(Word, Waiting<'_>),
    /// Sees to it that the buffers are emptied in a process that has become an agent of its own.
    pub revive: fn(),
}

/// Never waited for: a fork may come while it is set.
static PULL: OnceRef<'static, Pull> = OnceRef::new();

/// What the gate says of the capture that the waiting records belong to, from its begin until its last fetch; that of
/// nobody ([`Word::ASK`]) while there is none. Not the gate itself, which is closed before that.
static OWNER: AtomicU64 = AtomicU64::new(Word::ASK.bits());

/// The buffers went in the midst of the owner's capture.
static CUT: AtomicBool = AtomicBool::new(false);

/// How often records of the owner's capture could not be told from each other.
static BROKEN: AtomicU64 = AtomicU64::new(0);

/// A long record gave a wrong length: where the next one in the buffer begins is not known.
pub fn note_broken() {
    BROKEN.fetch_add(1, Ordering::Relaxed);
}

/// Sets how records are taken out. The first call counts.
pub fn set(pull: &'static Pull) {
    let _ = PULL.set(pull);
}

/// From here on what waits is the capture's of `word`.
pub fn begin(word: Word) {
    CUT.store(false, Ordering::Relaxed);
    BROKEN.store(0, Ordering::Relaxed);
    OWNER.store(word.bits(), Ordering::SeqCst);
}

/// In a forked child that makes its agent: the parent's capture is not there.
pub fn forget_owner() {
    OWNER.store(Word::ASK.bits(), Ordering::SeqCst);
}

/// The first use in this process: whatever empties the buffers while nothing is captured may not be there.
pub fn revive() {
    if let Some(pull) = PULL.get() {
        (pull.revive)();
    }
}

fn owner() -> Option<Word> {
    let word = Word::of_bits(OWNER.load(Ordering::SeqCst));
    // A forked child that has not made its agent yet has its parent's word, and must not touch its parent's rings.
    (word.is_capture() && gate::is_ours()).then_some(word)
}

/// Whether what waits belongs to a capture.
pub fn is_owned() -> bool {
    owner().is_some()
}

/// Gives a record that was taken out to the capture that it belongs to; to nobody where there is none.
pub fn hand_over(waiting: Waiting<'_>) {
    if let (Some(pull), Some(word)) = (PULL.get(), owner()) {
        (pull.give)(word, waiting);
    }
}

/// The buffers go, and what they held was handed over: a capture that runs has nothing more of them.
pub fn note_end() {
    CUT.store(is_owned(), Ordering::Relaxed);
}

/// Throws away what waits and belongs to no capture; what comes once one has begun is that capture's.
pub fn discard() {
    let Some(pull) = PULL.get() else {
        return;
    };
    let mut left = OLD_MAX;
    while left > 0 && !is_owned() && (pull.take)(AT_ONCE, &mut hand_over) {
        left -= AT_ONCE;
    }
}

/// Fetches what belongs to one capture. With its end the capture has no claim any more.
#[derive(Debug)]
pub struct Fetcher {
    word: Word,
}

impl Fetcher {
    /// For the capture of `word`, which may not have begun.
    pub fn new(word: Word) -> Fetcher {
        Fetcher { word }
    }

    /// Fetches some of what waits, if it is the capture's; whether more may wait. After false each buffer has been
    /// empty since the call.
    pub fn fetch(&self) -> bool {
        match PULL.get() {
            Some(pull) if owner() == Some(self.word) => {
                (pull.take)(AT_ONCE, &mut |waiting| (pull.give)(self.word, waiting))
            }
            _ => false,
        }
    }

    /// What comes from here on is nobody's.
    pub fn end(&self) {
        let (mine, nobody) = (self.word.bits(), Word::ASK.bits());
        // Fails where it has ended, or a later one has begun.
        let _ = OWNER.compare_exchange(mine, nobody, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// What is to be said in the ledger.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let full = "records came by the buffers of libprofapi.so; what it drops when these are full is not counted";
        let cut = "the program ended the profiling of libprofapi.so (MsprofStop): what it reported between that and \
                   the next MsprofInit is not in the capture";
        let full = PULL.get().is_some().then_some(full);
        let cut = CUT.load(Ordering::Relaxed).then_some(cut);
        let broken = BROKEN.load(Ordering::Relaxed);
        let broken = (broken != 0).then(|| {
            format!(
                "{broken} reports of more than 256 bytes gave a wrong length: what waited behind each of them in the \
                 buffer of libprofapi.so is lost and in no count"
            )
        });
        let known = full.into_iter().chain(cut).map(str::to_owned);
        known.chain(broken)
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.end();
    }
}
