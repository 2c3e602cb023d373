//! How a record gets from the caller to its ring.
//!
//! Two things that a plain copy leaves to chance, worth 3 to 6 ns of a report:
//! - the caller has just stored the record's first fields one by one. A load of 16 bytes that spans several
//!   stores still on their way has to wait for all of them; loads of 8 bytes mostly match one;
//! - the ring's next cache line was last used by the drain thread, on another core. It is asked for some
//!   records ahead, to be written.

/// Bytes at the start of a record that are copied in words: what callers fill in field by field.
const FIELDS: usize = 64;
/// How far ahead a line is asked for, bytes. Far enough to be here in time, near enough to be still there.
const AHEAD: usize = if cfg!(loom) { 0 } else { 512 };
/// The same for records of several lines.
const AHEAD_LONG: usize = 2 * AHEAD;
const LINE: usize = 64;

/// Eight bytes at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Word(u64);

const WORD: usize = size_of::<Word>();

/// Copies a record of `N` bytes, a multiple of 8.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `N` bytes; they do not overlap. Neither need be aligned.
#[inline(always)]
pub unsafe fn record<const N: usize>(from: *const u8, to: *mut u8) {
    const { assert!(N.is_multiple_of(WORD)) };
    let words = if N < FIELDS { N / WORD } else { FIELDS / WORD };
    let (source, target) = (from.cast::<Word>(), to.cast::<Word>());
    for word in 0..words {
        // SAFETY: inside the `N` bytes; a `Word` has no alignment. Volatile, so that the loads stay apart.
        unsafe { target.add(word).write(source.add(word).read_volatile()) };
    }
    let done = words * WORD;
    // SAFETY: the rest of the `N` bytes.
    unsafe { std::ptr::copy_nonoverlapping(from.add(done), to.add(done), N - done) };
}

/// Asks for the lines that a record some places after `place` will be written to. `place` may lie anywhere.
#[inline(always)]
pub fn ahead<const N: usize>(place: *const u8) {
    let distance = if N > LINE { AHEAD_LONG } else { AHEAD };
    let mut line = 0;
    while line < N.div_ceil(LINE) {
        prefetch(place.wrapping_add(distance + line * LINE));
        line += 1;
    }
}

#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a hint: it reads nothing and cannot fault. A CPU that does not know it does nothing.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(all(target_arch = "aarch64", not(loom)))]
    // SAFETY: a hint: it reads nothing and cannot fault.
    unsafe {
        std::arch::asm!(
            "prfm pstl1keep, [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(any(loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied<const N: usize>(from_offset: usize) -> bool {
        let source: Vec<u8> = (0..N + from_offset).map(|i| (i * 7 + 1) as u8).collect();
        let mut target = vec![0xEE; N + 16];
        // SAFETY: both buffers hold `N` bytes from there on.
        unsafe { record::<N>(source.as_ptr().add(from_offset), target.as_mut_ptr().add(8)) };
        target[8..8 + N] == source[from_offset..]
            && target[..8]
                .iter()
                .chain(&target[8 + N..])
                .all(|&byte| byte == 0xEE)
    }

    #[test]
    fn every_byte_of_a_record_is_copied_and_no_other_from_any_address() {
        for offset in 0..16 {
            assert!(copied::<40>(offset), "40 bytes at {offset}");
            assert!(copied::<64>(offset), "64 bytes at {offset}");
            assert!(copied::<256>(offset), "256 bytes at {offset}");
        }
    }
}
