//! The C symbols of benches/doors.

use super::library::{self, Library};
use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A report of a record by its own pointer.
pub type Report = unsafe extern "C" fn(u32, *const u64) -> i32;
/// A report with the record's length.
pub type SizedReport = unsafe extern "C" fn(u32, *const u64, u32) -> i32;
/// A push into a ring that the caller names.
pub type OwnPush = unsafe extern "C" fn(*mut c_void, *const u64) -> i32;
/// A time stamp.
pub type Time = extern "C" fn() -> u64;

/// Rings of the crate rtrb, one per producer thread.
pub struct OwnRings {
    /// Pushes an api record, 40 bytes.
    pub push_40: OwnPush,
    /// Compact, 64 bytes.
    pub push_64: OwnPush,
    /// Additional, 256 bytes.
    pub push_256: OwnPush,
    /// One per producer thread.
    pub of_40: Vec<*mut c_void>,
    /// For one thread.
    pub of_64: *mut c_void,
    /// For one thread.
    pub of_256: *mut c_void,
}

/// All alternatives.
pub struct Doors {
    /// Does nothing.
    pub empty: Report,
    /// Does nothing.
    pub empty_sized: SizedReport,
    /// Returns 0.
    pub empty_time: Time,
    /// Stock shape: api, compact, additional.
    pub stock: [Report; 3],
    /// rtrb.
    pub rtrb: OwnRings,
    written: extern "C" fn(u32) -> u64,
    trim: extern "C" fn(),
}

// SAFETY: function pointers, and rings each of which one thread at a time is given.
unsafe impl Sync for Doors {}

/// Numbers of the drains.
#[derive(Clone, Copy)]
pub enum Drained {
    /// Of the stock shape.
    Stock = 0,
    /// Of the rtrb rings.
    Rtrb = 1,
}

impl Doors {
    /// Builds and loads them; their drains write into `dir`. `threads` is the most producers at a time.
    pub fn open(dir: &Path, threads: usize) -> Doors {
        /// Slots of the rings of the first two producers, which get long bursts, and of the others.
        const LONG: usize = 256 * 1024;
        const SHORT: usize = 32 * 1024;
        let library = Library::open(&library::doors_path());
        let dir = CString::new(dir.as_os_str().as_bytes()).expect("a path has no NUL");
        // SAFETY: the types are those of benches/doors/lib.rs; `dir` is a C string.
        unsafe {
            let open: unsafe extern "C" fn(*const c_char) = library.function("bench_doors_open");
            open(dir.as_ptr());
            let make = |name| library.function::<extern "C" fn(usize) -> *mut c_void>(name);
            let of_40 = make("bench_rtrb_open_40");
            let slots = |thread: usize| if thread < 2 { LONG } else { SHORT };
            Doors {
                empty: library.function("bench_empty_report"),
                empty_sized: library.function("bench_empty_sized"),
                empty_time: library.function("bench_empty_time"),
                stock: ["bench_stock_40", "bench_stock_64", "bench_stock_256"]
                    .map(|name| library.function(name)),
                rtrb: OwnRings {
                    push_40: library.function("bench_rtrb_40"),
                    push_64: library.function("bench_rtrb_64"),
                    push_256: library.function("bench_rtrb_256"),
                    of_40: (0..threads).map(|thread| of_40(slots(thread))).collect(),
                    of_64: make("bench_rtrb_open_64")(LONG),
                    of_256: make("bench_rtrb_open_256")(LONG),
                },
                written: library.function("bench_doors_written"),
                trim: library.function("bench_doors_trim"),
            }
        }
    }

    /// Records that a drain has written.
    pub fn written(&self, which: Drained) -> u64 {
        (self.written)(which as u32)
    }

    /// Waits until `count` records have been written in all, and empties the files.
    pub fn settle(&self, which: Drained, count: u64) {
        self.wait(which, count);
        self.trim();
    }

    /// Waits until `count` records have been written in all.
    pub fn wait(&self, which: Drained, count: u64) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.written(which) < count {
            assert!(Instant::now() < deadline, "a drain of benches/doors hangs");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Empties the files.
    pub fn trim(&self) {
        (self.trim)();
    }
}
