//! Memory for when the program has none left.
//!
//! Rust ends the process when an allocation fails, and the process is not ours: it may live with an address
//! space that is used up (`ulimit -v`) and deal with that itself. So the library's allocator falls back to a
//! reserve in its own image, which costs nothing until it is touched. What is taken out of it comes back;
//! when it runs low ([`is_low`]), captures end and none begins.
//!
//! Used by the C library alone: ffi/ makes [`Allocator`] the global one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

/// Room for the end of a capture: its ledger in text, with the threads' rows, is the largest part of it.
const RESERVE_BYTES: usize = 1 << 20;
/// More than this taken out of it at a time is more than a moment's want.
const LOW_BYTES: usize = RESERVE_BYTES / 4;

static RESERVE: Reserve<RESERVE_BYTES> = Reserve::new();

/// Whether the process has no memory left, so that nothing may be begun that needs any. What was taken and lives
/// on does not make it so for ever: it counts while the system has no more than the reserve, or when too little
/// of the reserve is left for the next time.
pub fn is_low() -> bool {
    is_low_at(RESERVE.taken(), || system_has(RESERVE_BYTES))
}

fn is_low_at(taken: usize, system_is_well: impl FnOnce() -> bool) -> bool {
    taken > LOW_BYTES && (RESERVE_BYTES - taken < LOW_BYTES || !system_is_well())
}

/// Something small, bytes.
const SMALL: usize = 4096;

/// Whether the system has memory for something small, as of this moment. std makes what belongs to a thread with
/// the system's own allocator, and ends the process when it cannot.
pub fn system_has_some() -> bool {
    system_has(SMALL)
}

/// Whether the system has so many `bytes`, as of this moment. What is to live as long as the process
/// asks first, so that it does not take from the reserve.
pub fn system_has(bytes: usize) -> bool {
    let Ok(layout) = Layout::array::<u8>(bytes.max(SMALL)) else {
        return false;
    };
    // SAFETY: the size is not zero, and the memory goes back as it came.
    unsafe {
        let found = System.alloc(layout);
        // Else a compiler may leave out both.
        let found = std::hint::black_box(found);
        if !found.is_null() {
            System.dealloc(found, layout);
        }
        !found.is_null()
    }
}

/// Room for one more, which the system has; else false, and nothing may be added.
pub fn grow_map<K: Eq + Hash, V>(map: &mut HashMap<K, V>) -> bool {
    // It grows to twice as many, of which an eighth stays free, with a byte of its own for each.
    let grown = || (map.capacity() + 4) * 4 * (size_of::<(K, V)>() + 1);
    map.len() < map.capacity() || (system_has(grown()) && map.try_reserve(1).is_ok())
}

/// The same for a vector.
pub fn grow_vec<T>(vec: &mut Vec<T>) -> bool {
    let grown = || (vec.capacity() + 4) * 2 * size_of::<T>();
    vec.len() < vec.capacity() || (system_has(grown()) && vec.try_reserve(1).is_ok())
}

/// The system's allocator, backed by the reserve.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: memory comes from the system's allocator or from the reserve, which hands out each byte once until it
// comes back, and goes back to where it came from.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by this function's contract.
        let found = unsafe { System.alloc(layout) };
        if found.is_null() {
            return RESERVE.take(layout);
        }
        found
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by this function's contract.
        let found = unsafe { System.alloc_zeroed(layout) };
        if !found.is_null() {
            return found;
        }
        let found = RESERVE.take(layout);
        if !found.is_null() {
            // SAFETY: just taken, of that size.
            unsafe { found.write_bytes(0, layout.size()) };
        }
        found
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if RESERVE.holds(pointer) {
            RESERVE.give_back(pointer, layout.size());
        } else {
            // SAFETY: by this function's contract, and it is none of the reserve's.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !RESERVE.holds(pointer) {
            // SAFETY: by this function's contract, and it is none of the reserve's.
            let grown = unsafe { System.realloc(pointer, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: by this function's contract the size is one that a layout may have; old and new memory are
        // both valid for the smaller of their sizes, and are two.
        unsafe {
            let grown = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !grown.is_null() {
                grown.copy_from_nonoverlapping(pointer, size.min(layout.size()));
                self.dealloc(pointer, layout);
            }
            grown
        }
    }
}

/// `N` bytes that are handed out from the front. What was handed out last can be had anew when it has come back,
/// the rest when all of it has.
#[repr(align(64))]
struct Reserve<const N: usize> {
    bytes: UnsafeCell<[u8; N]>,
    /// How many pieces are out, in the high half, and where the free rest begins.
    word: AtomicU64,
}

// SAFETY: `word` gives each part of the bytes to one owner.
unsafe impl<const N: usize> Sync for Reserve<N> {}

impl<const N: usize> Reserve<N> {
    const fn new() -> Reserve<N> {
        assert!(N <= u32::MAX as usize);
        Reserve {
            bytes: UnsafeCell::new([0; N]),
            word: AtomicU64::new(0),
        }
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    /// A piece; null when there is no room for it.
    fn take(&self, layout: Layout) -> *mut u8 {
        let start = self.start();
        let mut at = 0;
        let taken = self
            .word
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |word| {
                let (pieces, begin) = (word >> 32, word as u32 as usize);
                let padding = start.wrapping_add(begin).align_offset(layout.align());
                at = begin.checked_add(padding)?;
                let end = at.checked_add(layout.size())?;
                (end <= N).then_some((pieces + 1) << 32 | end as u64)
            });
        match taken {
            Ok(_) => start.wrapping_add(at),
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// A piece of `size` bytes is no longer used.
    fn give_back(&self, piece: *const u8, size: usize) {
        let begin = piece.addr().wrapping_sub(self.start().addr());
        let last_one_empties = |word: u64| {
            let (pieces, end) = (word >> 32, word as u32 as usize);
            let end = if begin + size == end { begin } else { end };
            match pieces {
                0 | 1 => Some(0),
                _ => Some((pieces - 1) << 32 | end as u64),
            }
        };
        // Release: who takes it next comes after what its last owner did with it. Never fails.
        let _ = self
            .word
            .fetch_update(Ordering::Release, Ordering::Relaxed, last_one_empties);
    }

    fn holds(&self, pointer: *const u8) -> bool {
        let offset = pointer.addr().wrapping_sub(self.start().addr());
        offset < N
    }

    /// Bytes that cannot be had any more at the moment.
    fn taken(&self) -> usize {
        self.word.load(Ordering::Relaxed) as u32 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).expect("a layout")
    }

    #[test]
    fn pieces_are_aligned_and_apart_and_there_is_an_end() {
        let reserve = Box::new(Reserve::<1024>::new());
        let first = reserve.take(layout(3, 1));
        let second = reserve.take(layout(100, 64));
        let third = reserve.take(layout(8, 8));
        assert_eq!(second.addr() % 64, 0);
        assert!(second.addr() >= first.addr() + 3 && third.addr() >= second.addr() + 100);
        for piece in [first, second, third] {
            assert!(reserve.holds(piece));
        }
        assert!(reserve.take(layout(1000, 8)).is_null());
        assert!(!reserve.holds(reserve.start().wrapping_add(1024)));
        assert!(!reserve.holds(reserve.start().wrapping_sub(1)));
    }

    #[test]
    fn it_is_whole_again_when_everything_has_come_back() {
        let reserve = Box::new(Reserve::<1024>::new());
        for _ in 0..3 {
            let first = reserve.take(layout(600, 8));
            assert!(reserve.take(layout(600, 8)).is_null());
            let second = reserve.take(layout(400, 8));
            assert!(!first.is_null() && !second.is_null());
            reserve.give_back(first, 600);
            assert_eq!(reserve.taken(), 1000, "one is still out");
            reserve.give_back(second, 400);
            assert_eq!(reserve.taken(), 0);
        }
    }

    #[test]
    fn what_lives_on_does_not_keep_what_came_after_it() {
        let reserve = Box::new(Reserve::<1024>::new());
        assert!(!reserve.take(layout(100, 1)).is_null());
        for _ in 0..3 {
            let piece = reserve.take(layout(900, 1));
            assert!(!piece.is_null());
            reserve.give_back(piece, 900);
            assert_eq!(reserve.taken(), 100);
        }
    }

    #[test]
    fn a_moments_want_is_over_when_the_system_has_memory_again() {
        let (most, low) = (RESERVE_BYTES - LOW_BYTES, LOW_BYTES);
        assert!(!is_low_at(low, || false));
        assert!(is_low_at(low + 1, || false));
        assert!(!is_low_at(low + 1, || true));
        assert!(!is_low_at(most, || true));
        assert!(is_low_at(most + 1, || true));
        assert!(system_has(RESERVE_BYTES));
        assert!(!system_has(isize::MAX as usize) && !system_has(usize::MAX));
    }

    #[test]
    fn what_has_grown_takes_one_more_without_growing() {
        let (mut map, mut vec) = (HashMap::new(), Vec::new());
        for number in 0..1000 {
            assert!(grow_map(&mut map) && grow_vec(&mut vec));
            let room = (map.capacity(), vec.capacity());
            map.insert(number, number);
            vec.push(number);
            assert_eq!((map.capacity(), vec.capacity()), room);
        }
    }

    #[test]
    fn threads_that_take_and_give_back_never_hold_the_same_bytes() {
        let reserve = Box::leak(Box::new(Reserve::<4096>::new()));
        let reserve: &'static Reserve<4096> = reserve;
        let threads: Vec<_> = (1..=4u8)
            .map(|me| {
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        let piece = reserve.take(layout(64, 16));
                        if piece.is_null() {
                            continue;
                        }
                        // SAFETY: the piece is this thread's until it is given back.
                        unsafe {
                            piece.write_bytes(me, 64);
                            let bytes = std::slice::from_raw_parts(piece, 64);
                            assert!(bytes.iter().all(|&byte| byte == me));
                        }
                        reserve.give_back(piece, 64);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("never the same");
        }
        assert_eq!(reserve.taken(), 0);
    }

    #[test]
    fn memory_of_the_reserve_grows_by_moving() {
        let allocator = Allocator;
        let small = layout(16, 8);
        let piece = RESERVE.take(small);
        // SAFETY: the piece is the test's, and goes back to the allocator that would have handed it out.
        unsafe {
            piece.write_bytes(7, 16);
            let grown = allocator.realloc(piece, small, 4096);
            assert!(!RESERVE.holds(grown), "the system has some");
            assert_eq!(std::slice::from_raw_parts(grown, 16), [7; 16]);
            allocator.dealloc(grown, layout(4096, 8));
        }
        assert_eq!(RESERVE.taken(), 0);
        assert!(!is_low());
    }
}
