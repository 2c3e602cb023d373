//! What the table compares the agent with, behind the same door: a library that is dlopen'ed and whose
//! C symbols are called through pointers from dlsym.
//!
//! - `bench_empty_*`: calls that do nothing;
//! - `bench_stock_*`: the shape of the stock library's buffer ([`shared`]): the ring alone, without the
//!   checks that a real report makes before it;
//! - `bench_rtrb_*`: a ring of the crate `rtrb` per thread; the caller hands in its own ring, so that no
//!   look-up of the thread's ring is counted.
//!
//! Both alternatives have a live drain thread ([`drain`]) that writes to a file as the agent's does.

#![allow(missing_docs)] // the module comment is the documentation; nothing here is a public interface

mod drain;
mod own;
mod shared;

use drain::Drain;
use own::OwnRing;
use shared::SharedRing;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

/// Slots of a stock buffer: three buffers of this many (40 + 64 + 256 bytes) are the 92 MB that the
/// stock library takes at its start.
const STOCK_SLOTS: usize = 256 * 1024;

static STOCK_40: LazyLock<SharedRing<5>> = LazyLock::new(|| SharedRing::new(STOCK_SLOTS));
static STOCK_64: LazyLock<SharedRing<8>> = LazyLock::new(|| SharedRing::new(STOCK_SLOTS));
static STOCK_256: LazyLock<SharedRing<32>> = LazyLock::new(|| SharedRing::new(STOCK_SLOTS));

/// The two drain threads: of the stock shape, of the rtrb rings.
static DRAINS: Mutex<[Option<Drain>; 2]> = Mutex::new([None, None]);
const STOCK: usize = 0;
const RTRB: usize = 1;

/// Makes the rings and starts the drain threads. Records go to files in `dir`.
///
/// # Safety
/// `dir` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_doors_open(dir: *const c_char) {
    // SAFETY: by this function's contract.
    let dir = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(dir) }.to_bytes()));
    let stock = Drain::spawn("bench-stock", &dir.join("stock.bin"));
    stock.add(STOCK_40.reader());
    stock.add(STOCK_64.reader());
    stock.add(STOCK_256.reader());
    let rtrb = Drain::spawn("bench-rtrb", &dir.join("rtrb.bin"));
    *DRAINS.lock().expect("no panic holds it") = [Some(stock), Some(rtrb)];
}

fn with_drain<R>(which: usize, f: impl FnOnce(&Drain) -> R) -> R {
    let drains = DRAINS.lock().expect("no panic holds it");
    f(drains[which].as_ref().expect("bench_doors_open came first"))
}

/// Records that a drain has written since it began. 0: stock shape, 1: rtrb.
#[unsafe(no_mangle)]
pub extern "C" fn bench_doors_written(which: u32) -> u64 {
    with_drain(which as usize, Drain::written)
}

/// Empties the files of both drains.
#[unsafe(no_mangle)]
pub extern "C" fn bench_doors_trim() {
    with_drain(STOCK, Drain::trim);
    with_drain(RTRB, Drain::trim);
}

#[unsafe(no_mangle)]
pub extern "C" fn bench_empty_report(_aging: u32, _record: *const u64) -> i32 {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn bench_empty_sized(_aging: u32, _record: *const u64, _len: u32) -> i32 {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn bench_empty_time() -> u64 {
    0
}

macro_rules! doors {
    ($($words:literal $ring:ident $stock:ident $open:ident $push:ident;)*) => {$(
        /// Pushes a record into the shared ring; -1 when it is full.
        ///
        /// # Safety
        /// `record` is valid for the words of this size.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $stock(_aging: u32, record: *const u64) -> i32 {
            // SAFETY: by this function's contract.
            if unsafe { $ring.push(record.cast()) } { 0 } else { -1 }
        }

        /// Makes a ring of `slots` for one thread.
        #[unsafe(no_mangle)]
        pub extern "C" fn $open(slots: usize) -> *mut OwnRing<$words> {
            let (ring, reader) = OwnRing::new(slots);
            with_drain(RTRB, |drain| drain.add(reader));
            Box::into_raw(Box::new(ring))
        }

        /// Pushes a record into a thread's own ring; -1 when it is full.
        ///
        /// # Safety
        /// `ring` is from the function above and used by this thread only; `record` is valid for the
        /// words of this size.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $push(ring: *mut OwnRing<$words>, record: *const u64) -> i32 {
            // SAFETY: by this function's contract.
            if unsafe { (*ring).push(record.cast()) } { 0 } else { -1 }
        }
    )*};
}

doors! {
    5 STOCK_40 bench_stock_40 bench_rtrb_open_40 bench_rtrb_40;
    8 STOCK_64 bench_stock_64 bench_rtrb_open_64 bench_rtrb_64;
    32 STOCK_256 bench_stock_256 bench_rtrb_open_256 bench_rtrb_256;
}
