//! The clock of all records.
//!
//! Records carry CLOCK_MONOTONIC_RAW nanoseconds, which is what a stock host without an oscillator
//! report from the driver writes and what every parser version reads right (spec 3 section 7).
//! All functions may be called from any thread and never block.

use crate::capture::ledger::Anchor;

/// Ticks of `MsprofSysCycleTime`: CLOCK_MONOTONIC_RAW, ns, monotonic across cores.
#[inline]
pub fn now() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Wall clock, ns since the epoch.
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec that the call fills; both clock ids exist since Linux 2.6.28.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU's own counter: rdtsc, cntvct_el0; 0 where neither exists.
#[inline]
pub fn cpu_counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: rdtsc has no preconditions and every x86-64 Linux lets user space run it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a register that Linux lets user space read; touches no memory.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

/// All clocks at one instant (the reads lie within a microsecond unless the thread is preempted).
pub fn anchor() -> Anchor {
    let before = cpu_counter();
    let monotonic_raw_ns = now();
    let realtime_ns = realtime_ns();
    let after = cpu_counter();
    Anchor {
        ticks: monotonic_raw_ns,
        monotonic_raw_ns,
        realtime_ns,
        cpu_counter: before + after.wrapping_sub(before) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_backwards() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn an_anchor_holds_both_clocks_of_one_instant() {
        let first = anchor();
        let second = anchor();
        let raw = second.monotonic_raw_ns - first.monotonic_raw_ns;
        assert_eq!(first.ticks, first.monotonic_raw_ns);
        assert!(second.realtime_ns >= first.realtime_ns || raw < 1_000_000_000);
    }
}
