//! Taking records from application threads.
//!
//! While nothing is captured, each function is one relaxed load and a branch and returns success
//! whatever its arguments. While a capture runs, a record is checked (magic, a level that the parser
//! reads), selected by trace, and copied once into the calling thread's ring. A full ring drops the
//! record and counts it; the report still returns success, since components would log every failure.

use crate::agent::{self, Agent};
use crate::gate::{self, Word};
use crate::lanes::{self, Dropped, OpenRange, RingKey};
use crate::long::{LongKind, LongReport};
use crate::pulled::Waiting;
use crate::readable::{readable, readable_long};
use crate::records::{
    AdditionalRecord, ApiRecord, CompactRecord, HEAD_SIZE, MAGIC, RecordHead, RecordSize, Trace,
    VARIABLE_MAX, level,
};
use crate::{clock, process};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The report was taken, or dropped and counted.
pub const SUCCESS: i32 = 0;
/// A null pointer or handler, a wrong length or magic.
pub const BAD_ARGUMENT: i32 = -1;

/// Offset of the payload's length in the head of a record.
const DATA_LEN_OFFSET: usize = std::mem::offset_of!(RecordHead, data_len);
/// Bytes of one additional record.
const ADDITIONAL: usize = size_of::<AdditionalRecord>();
/// Most bytes of a batch of additional records.
pub const BATCH_MAX: usize = 131_072;

/// The gate, after the slow path has been taken where nobody had yet.
#[inline]
fn open_gate() -> Option<Word> {
    let word = gate::load();
    if word == Word::OFF || word == Word::ELSEWHERE {
        return None;
    }
    if word == Word::ASK {
        return asked();
    }
    Some(word)
}

#[cold]
fn asked() -> Option<Word> {
    let _not_cancelled = process::NotCancelled::new();
    agent::used();
    Some(gate::load()).filter(|word| word.is_capture())
}

/// The way of nearly every record: takes it if it is as it should be and its thread's ring has taken one of
/// this capture already and has room. False: nothing was done, and the functions below do all that is
/// needed. Cannot panic. `word` is what the gate said; `size` is that of `N` bytes.
///
/// # Safety
/// `record` is null or valid for reads of `N` bytes.
#[inline(always)]
pub unsafe fn quick<const N: usize>(
    word: Word,
    size: RecordSize,
    aging: u32,
    record: *const u8,
) -> bool {
    if record.is_null() {
        return false;
    }
    // SAFETY: by this function's contract.
    let Some(trace) = (unsafe { readable(size, record) }) else {
        return false;
    };
    if !word.takes_quickly(trace) {
        return !word.is_shared();
    }
    // SAFETY: by this function's contract.
    unsafe { lanes::push_quick::<N>(word, RingKey::new(size, aging), record) }
}

/// An api or event record of 40 bytes. `aging` is 1 for records that may be deleted to keep the
/// storage limit.
///
/// # Safety
/// `record` is null or valid for reads of 40 bytes.
#[inline]
pub unsafe fn api(aging: u32, record: *const u8) -> i32 {
    match open_gate() {
        None => SUCCESS,
        // SAFETY: by this function's contract.
        Some(word) => unsafe { take::<40>(word, RecordSize::Api, aging, record) },
    }
}

/// An event of 40 bytes, whose end mark is set here.
///
/// # Safety
/// `record` is null or valid for reads of 40 bytes.
pub unsafe fn event(aging: u32, record: *const u8) -> i32 {
    let Some(word) = open_gate() else {
        return SUCCESS;
    };
    if record.is_null() {
        return BAD_ARGUMENT;
    }
    // SAFETY: by this function's contract; callers need not align theirs.
    let mut event = unsafe { record.cast::<ApiRecord>().read_unaligned() };
    event.end = ApiRecord::EVENT_END;
    // SAFETY: a local of 40 bytes.
    unsafe { take::<40>(word, RecordSize::Api, aging, event.as_bytes().as_ptr()) }
}

/// A compact record; `len` must be 64.
///
/// # Safety
/// `record` is null or valid for reads of `len` bytes.
#[inline]
pub unsafe fn compact(aging: u32, record: *const u8, len: usize) -> i32 {
    let Some(word) = open_gate() else {
        return SUCCESS;
    };
    if len != size_of::<CompactRecord>() {
        return BAD_ARGUMENT;
    }
    // SAFETY: by this function's contract.
    unsafe { take::<64>(word, RecordSize::Compact, aging, record) }
}

/// An additional record: up to 256 bytes are filled up with zeros, up to 65,536 are a variable record.
///
/// # Safety
/// `record` is null or valid for reads of `len` bytes.
#[inline]
pub unsafe fn additional(aging: u32, record: *const u8, len: usize) -> i32 {
    let Some(word) = open_gate() else {
        return SUCCESS;
    };
    if record.is_null() || !(HEAD_SIZE..=VARIABLE_MAX).contains(&len) {
        return BAD_ARGUMENT;
    }
    if len == ADDITIONAL {
        // SAFETY: by this function's contract.
        return unsafe { take::<ADDITIONAL>(word, RecordSize::Additional, aging, record) };
    }
    // SAFETY: by this function's contract.
    let bytes = unsafe { std::slice::from_raw_parts(record, len) };
    if len > ADDITIONAL {
        return variable(word, bytes);
    }
    let mut filled = AdditionalRecord::new_zeroed();
    filled.as_mut_bytes()[..len].copy_from_slice(bytes);
    let filled = filled.as_bytes().as_ptr();
    // SAFETY: a local of exactly that size.
    unsafe { take::<ADDITIONAL>(word, RecordSize::Additional, aging, filled) }
}

/// Many additional records in one call; `len` must be a multiple of 256 in `256..=131072`.
///
/// # Safety
/// `records` is null or valid for reads of `len` bytes.
pub unsafe fn batch(aging: u32, records: *const u8, len: usize) -> i32 {
    let Some(word) = open_gate() else {
        return SUCCESS;
    };
    if records.is_null() || len == 0 || len > BATCH_MAX || !len.is_multiple_of(ADDITIONAL) {
        return BAD_ARGUMENT;
    }
    let mut worst = SUCCESS;
    for offset in (0..len).step_by(ADDITIONAL) {
        // SAFETY: the offset lies inside the `len` bytes that the caller vouches for.
        let result = unsafe {
            let record = records.add(offset);
            take::<ADDITIONAL>(word, RecordSize::Additional, aging, record)
        };
        if result != SUCCESS {
            worst = result;
        }
    }
    worst
}

/// A record that has waited in another library's buffer, for the capture of `word`, whether the gate is open or not.
pub fn pulled(word: Word, waiting: Waiting<'_>) {
    match waiting {
        Waiting::Record(size, aging, record) if record.len() == size.bytes() => {
            let record = record.as_ptr();
            // SAFETY: the record has as many bytes as its size says, which the arms repeat.
            unsafe {
                match size {
                    RecordSize::Api => take::<40>(word, size, aging, record),
                    RecordSize::Compact => take::<64>(word, size, aging, record),
                    RecordSize::Additional => take::<ADDITIONAL>(word, size, aging, record),
                };
            }
        }
        Waiting::Record(..) => {}
        Waiting::Variable(bytes) => {
            variable(word, bytes);
        }
    }
}

/// # Safety
/// `record` is null or valid for reads of `N` bytes, and `N` is `size.bytes()`.
#[inline]
unsafe fn take<const N: usize>(word: Word, size: RecordSize, aging: u32, record: *const u8) -> i32 {
    if record.is_null() {
        return BAD_ARGUMENT;
    }
    // SAFETY: by this function's contract.
    let Some(trace) = (unsafe { readable(size, record) }) else {
        // SAFETY: every record begins with its magic; callers need not align theirs.
        return unreadable(unsafe { record.cast::<u16>().read_unaligned() });
    };
    if !word.takes(trace) {
        return SUCCESS;
    }
    let Some(agent) = Agent::current() else {
        return SUCCESS;
    };
    let key = RingKey::new(size, aging);
    // SAFETY: by this function's contract.
    match unsafe { agent.lanes.push::<N>(word, key, trace, record) } {
        Ok(()) | Err(Dropped::Counted) => {}
        Err(Dropped::Nested) => agent.lanes.lose_nested(trace),
        Err(Dropped::NoLane) => {
            // A destructor of the thread or, on the main thread, of the program.
            // SAFETY: by this function's contract.
            let bytes = unsafe { std::slice::from_raw_parts(record, N) };
            queue(word, trace, LongKind::Record(key), bytes.into());
        }
    }
    SUCCESS
}

/// A record that would make the parser drop its whole family (spec 3 section 9).
#[cold]
fn unreadable(magic: u16) -> i32 {
    if let Some(agent) = Agent::current() {
        agent.count_unreadable();
    }
    // A level that only the parser does not know is no fault of the caller's.
    if magic == MAGIC {
        SUCCESS
    } else {
        BAD_ARGUMENT
    }
}

#[cold]
fn variable(word: Word, bytes: &[u8]) -> i32 {
    let Ok((head, _)) = RecordHead::read_from_prefix(bytes) else {
        return BAD_ARGUMENT;
    };
    let Some(trace) = readable_long(bytes) else {
        return unreadable(head.magic);
    };
    if word.takes(trace) {
        let mut long: Box<[u8]> = bytes.into();
        // The parser walks such a family by this field; the call's own length is what counts.
        let data_len = (bytes.len() - HEAD_SIZE) as u32;
        long[DATA_LEN_OFFSET..DATA_LEN_OFFSET + 4].copy_from_slice(&data_len.to_le_bytes());
        queue(word, trace, LongKind::Variable, long);
    }
    SUCCESS
}

fn queue(word: Word, trace: Trace, kind: LongKind, bytes: Box<[u8]>) {
    if let Some(agent) = Agent::current() {
        let long = LongReport {
            capture: word.number(),
            trace,
            kind,
            bytes,
        };
        let records = long.records();
        if !agent.long.push(long) {
            agent.lanes.lose_homeless(trace, records);
        }
    }
}

/// A report of the old reporter interface from module DATA_PREPROCESS: whole legacy records of `tag`
/// (AICPU, DP, AICPUMI, AICPU_MODEL) for `device`.
pub fn data_preprocess(tag: &[u8], device: i32, bytes: &[u8]) -> i32 {
    let Some(word) = open_gate() else {
        return SUCCESS;
    };
    if tag.is_empty() || bytes.is_empty() || bytes.len() > VARIABLE_MAX {
        return BAD_ARGUMENT;
    }
    if word.takes(Trace::Aicpu) {
        let kind = LongKind::DataPreprocess {
            tag: tag.into(),
            device: u32::try_from(device).ok(),
        };
        queue(word, Trace::Aicpu, kind, bytes.into());
    }
    SUCCESS
}

/// The running capture, if it takes marks, as each does: the agent that makes it, and its number. Costs a load
/// and a branch while nothing is captured.
#[inline]
pub fn capture_of_marks() -> Option<(&'static Agent, u64)> {
    let word = open_gate().filter(|word| word.takes(Trace::Task))?;
    Some((Agent::current()?, word.number()))
}

/// An additional record of our own making, such as that of a mark; not one that may be deleted.
pub fn own_additional(record: &AdditionalRecord) -> i32 {
    let bytes = record.as_bytes();
    // SAFETY: the record's own bytes.
    unsafe { additional(0, bytes.as_ptr(), bytes.len()) }
}

/// Opens a named range on the calling thread. Costs a load and a branch while nothing is captured.
/// False when more than 64 are open, or too many names are in use.
pub fn push_range(name: &[u8]) -> bool {
    let Some(word) = open_gate() else {
        return true;
    };
    let Some(agent) = Agent::current() else {
        return true;
    };
    if !word.takes(Trace::Acl) {
        return true;
    }
    let Some(kind) = agent.dictionary.range_type(name) else {
        return false;
    };
    let range = OpenRange {
        kind,
        begin: clock::now(),
    };
    agent.lanes.push_range(word.number(), range)
}

/// Closes the innermost named range of the calling thread and reports it as an api record of level acl.
/// False when none was opened in this capture.
pub fn pop_range() -> bool {
    let Some(word) = open_gate() else {
        return true;
    };
    let Some(agent) = Agent::current() else {
        return true;
    };
    if !word.takes(Trace::Acl) {
        return true;
    }
    let Some((range, thread_id)) = agent.lanes.pop_range(word.number()) else {
        return false;
    };
    let record = ApiRecord {
        magic: MAGIC,
        level: level::ACL,
        kind: range.kind,
        thread_id,
        request_id: 0,
        begin: range.begin,
        end: clock::now(),
        item_id: 0,
    };
    // SAFETY: a local of 40 bytes.
    unsafe { take::<40>(word, RecordSize::Api, 1, record.as_bytes().as_ptr()) == SUCCESS }
}
