//! Atomics, locks and thread-locals of the code between a report and the drain: std's and parking_lot's in
//! the library, loom's where its models run that same code (`--cfg loom`, tests/loom).
//!
//! Under loom every access of an atomic or lock is a point at which another thread may go on, and the models
//! go through all orders. Memory that is no atomic is raw to loom: [`writes`] and [`reads`] tell it of the
//! accesses, so that it can check that each happens before the next; in the library they are nothing.

#[cfg(not(loom))]
mod real {
    pub use parking_lot::Mutex;
    pub use std::sync::atomic;

    /// The `len` bytes at `start` are written by this thread alone.
    #[inline(always)]
    pub fn writes(_start: *const u8, _len: usize) {}

    /// The `len` bytes at `start` are read by this thread and written by none.
    #[inline(always)]
    pub fn reads(_start: *const u8, _len: usize) {}

    /// A value per thread.
    macro_rules! per_thread {
        ($name:ident: $type:ty = $init:expr) => {
            thread_local! { static $name: $type = const { $init } }
        };
    }
    /// A static that consists of zeros and atomics.
    macro_rules! shared {
        ($name:ident: $type:ty = $init:expr) => {
            static $name: $type = $init;
        };
    }
    pub(crate) use {per_thread, shared};
}

#[cfg(loom)]
mod real {
    use loom::cell::UnsafeCell;
    pub use loom::sync::atomic;
    use std::collections::HashMap;

    /// loom's mutex with parking_lot's calls.
    #[derive(Debug)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// An unlocked mutex.
        pub fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a model ends at the first panic")
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Mutex::new(T::default())
        }
    }

    /// Sizes and offsets of headers and records are multiples of this, bytes.
    const GRAIN: usize = 8;

    /// One cell for each grain of memory that was touched; what it holds is of no interest.
    #[derive(Default)]
    struct Grains(parking_lot::Mutex<HashMap<usize, UnsafeCell<()>>>);

    loom::lazy_static! {
        static ref GRAINS: Grains = Grains::default();
    }

    fn each_grain(start: *const u8, len: usize, access: impl Fn(&UnsafeCell<()>)) {
        let first = start.addr() / GRAIN;
        let mut grains = GRAINS.0.lock();
        for grain in first..first + len.div_ceil(GRAIN) {
            access(grains.entry(grain).or_default());
        }
    }

    /// The `len` bytes at `start` are written by this thread alone.
    pub fn writes(start: *const u8, len: usize) {
        each_grain(start, len, |grain| grain.with_mut(|_| ()));
    }

    /// The `len` bytes at `start` are read by this thread and written by none.
    pub fn reads(start: *const u8, len: usize) {
        each_grain(start, len, |grain| grain.with(|_| ()));
    }

    /// A value per thread.
    macro_rules! per_thread {
        ($name:ident: $type:ty = $init:expr) => {
            loom::thread_local! { static $name: $type = $init; }
        };
    }
    /// A static that consists of zeros and atomics.
    macro_rules! shared {
        ($name:ident: $type:ty = $init:expr) => {
            loom::lazy_static! { static ref $name: $type = $init; }
        };
    }
    pub(crate) use {per_thread, shared};
}

pub use real::*;
