//! The CPU's own counter: rdtsc, cntvct_el0.

/// Reads the counter; 0 where there is none. Ordered behind the loads before it: a thread that has seen
/// another one's time reads a later one itself.
#[inline]
pub fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no preconditions.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier has no preconditions.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
    read_unordered()
}

/// Reads the counter without waiting for the loads before it, which the CPU may do later.
#[inline]
pub fn read_unordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no preconditions, and every x86-64 Linux lets user space run it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a register that Linux lets user space read.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nostack));
        }
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

/// Whether the counter runs at one rate on all CPUs and never stops, as far as kernel and CPU say.
pub fn is_trusted() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        invariant_tsc() && kernel_uses(&["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"])
    }
    #[cfg(target_arch = "aarch64")]
    {
        kernel_uses(&["arch_sys_counter"])
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

/// CPUID 0x80000007, EDX bit 8.
#[cfg(target_arch = "x86_64")]
fn invariant_tsc() -> bool {
    use core::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
}

/// Whether the kernel takes its own time from a counter of one of these names: it has checked it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn kernel_uses(names: &[&str]) -> bool {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(CURRENT).is_ok_and(|name| names.contains(&name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_counter_counts() {
        if is_trusted() {
            let before = read();
            assert!(read() > before || cfg!(target_arch = "aarch64"));
        }
    }

    /// It counts the same time as the kernel, and no faster on one side than on the other of a pause.
    #[cfg(target_arch = "aarch64")]
    #[test]
    fn the_counter_goes_at_the_rate_that_it_states() {
        use std::time::{Duration, Instant};
        const CLOSE: Duration = Duration::from_micros(20);
        const PAUSE: Duration = Duration::from_millis(50);
        let until = Instant::now() + Duration::from_secs(60);
        let sample = || {
            loop {
                assert!(Instant::now() < until, "never undisturbed");
                let before = Instant::now();
                let count = read();
                if before.elapsed() < CLOSE {
                    return (before, count);
                }
            }
        };
        let stated: u64;
        // SAFETY: reads a register that Linux lets user space read.
        unsafe {
            core::arch::asm!("mrs {}, cntfrq_el0", out(reg) stated, options(nostack));
        }
        let (began, first) = sample();
        std::thread::sleep(PAUSE);
        let (ended, last) = sample();
        let rate = (last - first) as f64 / (ended - began).as_secs_f64();
        let error = rate / stated as f64 - 1.0;
        assert!(error.abs() < 0.01, "{rate} a second, stated {stated}");
    }
}
