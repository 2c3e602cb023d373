//! Emptying the vendor's buffers, where it cannot hand reports over at once.
//!
//! One thread at a time takes records out: the drain while something is captured, else a thread of its own, since a
//! full buffer would cost the program's threads more than one that has room.

use crate::boundary::guard;
use crate::stock::pass_on;
use msprof_agent_core::agent;
use msprof_agent_core::clock::Moment;
use msprof_agent_core::process;
use msprof_agent_core::pulled::{self, AT_ONCE, Pull, Waiting};
use msprof_agent_core::records::{HEAD_SIZE, MAGIC, RecordSize, VARIABLE_MAX};
use msprof_agent_core::report;
use msprof_agent_core::waiting;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

/// How often buffers are emptied while nothing is captured.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
/// How long another thread's turn is waited for, thousands of times what one takes.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that are asked of a buffer of batches, and of one of long records.
const BLOCK_BYTES: usize = 512 << 10;
/// More bytes than such a buffer holds.
const BLOCK_MAX: usize = 256 << 20;
/// Offset of the length of the data in a record's head.
const DATA_LEN_AT: usize = 12;

// By the vendor's functions. References of C++ are pointers.
type Pop = unsafe extern "C" fn(aging: *mut u32, record: *mut c_void) -> bool;
type PopBatch = unsafe extern "C" fn(size: *mut usize, force: bool) -> *mut c_void;
type PopBlock = unsafe extern "C" fn(size: *mut usize) -> *mut c_void;
type Shift = unsafe extern "C" fn(block: *mut c_void, size: usize);

/// The vendor's functions; null before they were set, and once the buffers are gone.
struct Pops {
    api: AtomicPtr<c_void>,
    compact: AtomicPtr<c_void>,
    additional: AtomicPtr<c_void>,
    batch: AtomicPtr<c_void>,
    batch_shift: AtomicPtr<c_void>,
    block: AtomicPtr<c_void>,
    block_shift: AtomicPtr<c_void>,
}

const fn none() -> AtomicPtr<c_void> {
    AtomicPtr::new(null_mut())
}

static POPS: Pops = Pops {
    api: none(),
    compact: none(),
    additional: none(),
    batch: none(),
    batch_shift: none(),
    block: none(),
    block_shift: none(),
};

impl Pops {
    fn all(&self) -> [&AtomicPtr<c_void>; 7] {
        [
            &self.api,
            &self.compact,
            &self.additional,
            &self.batch,
            &self.batch_shift,
            &self.block,
            &self.block_shift,
        ]
    }

    fn is_empty(&self) -> bool {
        let is_null = |pop: &AtomicPtr<c_void>| pop.load(Ordering::Acquire).is_null();
        self.all().into_iter().all(is_null)
    }
}

/// The function in a place.
///
/// # Safety
/// `F` is the type of the functions in this place.
unsafe fn function<F: Copy>(place: &AtomicPtr<c_void>) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let function = place.load(Ordering::Acquire);
    // SAFETY: by this function's contract; not null.
    (!function.is_null()).then(|| unsafe { std::mem::transmute_copy(&function) })
}

// ---- whose turn it is ---------------------------------------------------------

/// The begin of a long record whose end has not come yet.
struct Rest(UnsafeCell<Vec<u8>>);
// SAFETY: used by the holder of a `Turn` alone.
unsafe impl Sync for Rest {}

static REST: Rest = Rest(UnsafeCell::new(Vec::new()));
/// Process whose thread takes records out; 0 for nobody. In a forked child the parent's thread is not there.
static HOLDER: AtomicU32 = AtomicU32::new(0);

/// The right to take records out.
struct Turn;

impl Turn {
    fn try_take() -> Option<Turn> {
        let pid = process::current_pid();
        let holder = HOLDER.load(Ordering::Acquire);
        if holder == pid {
            return None;
        }
        HOLDER
            .compare_exchange(holder, pid, Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        if holder != 0 {
            // A thread of the parent was in the midst of it.
            // SAFETY: this thread is the holder.
            std::mem::forget(std::mem::take(unsafe { &mut *REST.0.get() }));
        }
        Some(Turn)
    }

    fn take_within(limit: Duration) -> Option<Turn> {
        waiting::until(Moment::now() + limit, Turn::try_take)
    }

    fn rest(&mut self) -> &mut Vec<u8> {
        // SAFETY: there is one turn at a time, which is borrowed for as long.
        unsafe { &mut *REST.0.get() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HOLDER.store(0, Ordering::Release);
    }
}

// ---- taking records out -------------------------------------------------------

/// What the agent fetches records by.
static PULL: Pull = Pull {
    take: |limit, take| {
        let turn = Turn::take_within(PATIENCE);
        turn.is_some_and(|mut turn| pull(&mut turn, limit, take))
    },
    give: report::pulled,
    revive: sweep,
};

/// Takes records out of each buffer; whether one may hold more. It may not once it was found empty.
fn pull(turn: &mut Turn, limit: usize, take: &mut dyn FnMut(Waiting<'_>)) -> bool {
    let mut more = pop_each::<40>(&POPS.api, RecordSize::Api, limit, take);
    more |= pop_each::<64>(&POPS.compact, RecordSize::Compact, limit, take);
    more |= pop_each::<256>(&POPS.additional, RecordSize::Additional, limit, take);
    more |= pop_batches(take);
    more | pop_long(turn.rest(), take)
}

/// Room for a record, aligned as the vendor's are.
#[repr(C, align(8))]
struct Room<const N: usize>([u8; N]);

fn pop_each<const N: usize>(
    place: &AtomicPtr<c_void>,
    size: RecordSize,
    limit: usize,
    take: &mut dyn FnMut(Waiting<'_>),
) -> bool {
    // SAFETY: the type of these places.
    let Some(pop) = (unsafe { function::<Pop>(place) }) else {
        return false;
    };
    let mut room = Room([0; N]);
    let mut aging = 1;
    let mut count = 0;
    // SAFETY: the record and the flag go to locals of the right sizes.
    while count < limit && unsafe { pop(&mut aging, room.0.as_mut_ptr().cast()) } {
        take(Waiting::Record(size, aging, &room.0));
        count += 1;
    }
    count == limit
}

/// Takes blocks out of a buffer until it is empty or many bytes were taken: the end of the buffer's memory cuts one
/// short. Whether it may hold more.
///
/// # Safety
/// `pop` shows a block of the length that it sets, which stays as it is until `shift` gives it back.
unsafe fn pop_blocks(
    pop: impl Fn(&mut usize) -> *mut c_void,
    shift: Shift,
    mut take: impl FnMut(&[u8]),
) -> bool {
    let mut taken = 0;
    while taken < BLOCK_BYTES {
        let mut size = BLOCK_BYTES;
        let block = pop(&mut size);
        if block.is_null() || size == 0 || size > BLOCK_MAX {
            return false;
        }
        // SAFETY: by this function's contract; not null, and no longer than memory can be.
        take(unsafe { std::slice::from_raw_parts(block.cast::<u8>(), size) });
        // SAFETY: what the buffer has given out, as a whole; the slice is gone.
        unsafe { shift(block, size) };
        taken += size;
    }
    true
}

fn pop_batches(take: &mut dyn FnMut(Waiting<'_>)) -> bool {
    // SAFETY: the types of these places.
    let functions = unsafe {
        let pop = function::<PopBatch>(&POPS.batch);
        pop.zip(function::<Shift>(&POPS.batch_shift))
    };
    let Some((pop, shift)) = functions else {
        return false;
    };
    // SAFETY: the size is a local.
    let pop = |size: &mut usize| unsafe { pop(size, true) };
    // SAFETY: the vendor's functions for this buffer; nobody else takes from it during a turn.
    unsafe {
        pop_blocks(pop, shift, |block| {
            for record in block.chunks_exact(RecordSize::Additional.bytes()) {
                take(Waiting::Record(RecordSize::Additional, 0, record));
            }
        })
    }
}

/// Long records, each as long as its head says, without regard to the ends of blocks.
fn pop_long(rest: &mut Vec<u8>, take: &mut dyn FnMut(Waiting<'_>)) -> bool {
    // SAFETY: the types of these places.
    let functions = unsafe {
        let pop = function::<PopBlock>(&POPS.block);
        pop.zip(function::<Shift>(&POPS.block_shift))
    };
    let Some((pop, shift)) = functions else {
        rest.clear();
        return false;
    };
    // SAFETY: the size is a local.
    let pop = |size: &mut usize| unsafe { pop(size) };
    // SAFETY: the vendor's functions for this buffer; nobody else takes from it during a turn.
    unsafe {
        pop_blocks(pop, shift, |block| {
            rest.extend_from_slice(block);
            take_whole(rest, take);
        })
    }
}

/// Takes the whole records at the begin.
fn take_whole(rest: &mut Vec<u8>, take: &mut dyn FnMut(Waiting<'_>)) {
    let mut done = 0;
    while let Some(len) = rest.get(done..).and_then(record_len) {
        if len > VARIABLE_MAX || !rest[done..].starts_with(&MAGIC.to_le_bytes()) {
            // No record, and nobody knows where the next one begins.
            pulled::note_broken();
            done = rest.len();
            break;
        }
        let Some(record) = rest.get(done..done + len) else {
            break;
        };
        take(Waiting::Variable(record));
        done += len;
    }
    rest.drain(..done);
}

fn record_len(head: &[u8]) -> Option<usize> {
    let len = head.get(DATA_LEN_AT..DATA_LEN_AT + 4)?;
    let len = u32::from_le_bytes(len.try_into().ok()?);
    (head.len() >= HEAD_SIZE).then(|| HEAD_SIZE.saturating_add(len as usize))
}

/// The buffers are about to go: what a running capture is to have of them is taken out first, and nobody looks into
/// them once this has returned.
pub fn quiesce() {
    if POPS.is_empty() {
        return;
    }
    let mut turn = Turn::take_within(PATIENCE);
    if let Some(turn) = &mut turn {
        let deadline = Moment::now() + PATIENCE;
        while pulled::is_owned()
            && pull(turn, AT_ONCE, &mut pulled::hand_over)
            && !deadline.has_come()
        {}
    }
    for place in POPS.all() {
        place.store(null_mut(), Ordering::Release);
    }
    pulled::note_end();
    drop(turn);
}

// ---- while nothing is captured -------------------------------------------------

/// Process whose idle thread runs.
static SWEEPER: AtomicU32 = AtomicU32::new(0);

/// Sees to it that buffers that nobody captures from are emptied.
fn sweep() {
    if POPS.is_empty() {
        return;
    }
    let pid = process::current_pid();
    if SWEEPER.swap(pid, Ordering::AcqRel) == pid {
        return;
    }
    let started = process::spawn("msprof-pop", move || {
        loop {
            waiting::sleep(IDLE_INTERVAL);
            pulled::discard();
            if POPS.is_empty() {
                SWEEPER.store(0, Ordering::Release);
                if POPS.is_empty() || SWEEPER.swap(pid, Ordering::AcqRel) == pid {
                    return;
                }
            }
        }
    });
    if started.is_err() {
        SWEEPER.store(0, Ordering::Release);
    }
}

unsafe extern "C" {
    /// What `atexit` is made of.
    fn __cxa_atexit(
        function: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
        library: *mut c_void,
    ) -> i32;
}

/// The vendor's library gives its buffers back when the program exits, and before our own end.
unsafe extern "C" fn at_exit(_argument: *mut c_void) {
    guard(|| {
        agent::exit();
        quiesce();
    });
}

fn set(place: &AtomicPtr<c_void>, function: *mut c_void) {
    static WATCHING: AtomicBool = AtomicBool::new(false);
    guard(|| {
        if !agent::current().is_armed() {
            return;
        }
        if function.is_null() {
            // Once this has returned the caller may give the buffer back.
            let _turn = Turn::take_within(PATIENCE);
            place.store(function, Ordering::Release);
            return;
        }
        place.store(function, Ordering::Release);
        pulled::set(&PULL);
        if !WATCHING.swap(true, Ordering::AcqRel) {
            // SAFETY: the handler stays: this library is never unloaded. It comes before what the vendor's library has
            // registered until now.
            unsafe { __cxa_atexit(at_exit, null_mut(), null_mut()) };
        }
        sweep();
    });
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $place:ident),* $(,)?) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The function is null or has the type that the vendor's library gives it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(function: *mut c_void) {
            pass_on!($name(function));
            set(&POPS.$place, function);
        }
    )*};
}

setters! {
    /// Sets the function that takes a record of 40 bytes out of the vendor's buffer.
    ProfImplSetApiBufPop: api,
    /// The same of 64 bytes.
    ProfImplSetCompactBufPop: compact,
    /// The same of 256 bytes.
    ProfImplSetAdditionalBufPop: additional,
    /// Sets the function that shows a block of batches.
    ProfImplSetBatchAddBufPop: batch,
    /// Sets the function that gives it back.
    ProfImplSetBatchAddBufIndexShift: batch_shift,
    /// Sets the function that shows a block of long records.
    ProfImplSetVarAddBlockBufBatchPop: block,
    /// Sets the function that gives it back.
    ProfImplSetVarAddBlockBufIndexShift: block_shift,
}
