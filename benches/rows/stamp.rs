//! Time stamps.

use crate::support::contestants::Contest;
use crate::support::cores;
use crate::support::table::{Row, Table};
use std::hint::black_box;
use std::time::Duration;

/// Calls per repetition.
const CALLS: u64 = 100_000;
/// The agent's way from the counter to the time is forgotten this long after a capture.
pub const FORGOTTEN: Duration = Duration::from_secs(5);
/// It is found this long after the start of the first capture.
pub const FOUND: Duration = Duration::from_millis(1200);

/// The kernel's clock, as a component without MsprofSysCycleTime would read it.
pub fn kernel_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU's counter, as it is.
#[inline]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: rdtsc has no preconditions.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a register that Linux lets user space read.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

#[inline(never)]
fn calls(time: impl Fn() -> u64) -> f64 {
    let calls = || {
        for _ in 0..CALLS {
            black_box(time());
        }
    };
    let cpu_ns = cores::undisturbed(|| cores::cpu_of(calls));
    cpu_ns as f64 / CALLS as f64
}

/// Measures them.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section("Time stamps, CPU ns per call");
    for (name, capturing) in [
        ("time stamp, nothing captured", false),
        ("time stamp, capturing", true),
    ] {
        let mut row = Row::new(
            name,
            &["agent", "clock_gettime(RAW)", "cpu counter", "empty call"],
        );
        let capture = capturing.then(|| contest.agent.capture());
        std::thread::sleep(if capturing { FOUND } else { FORGOTTEN });
        let (agent, empty) = (contest.agent.time, contest.doors.empty_time);
        for _ in 0..contest.reps {
            row.add("agent", calls(|| agent()));
            row.add("clock_gettime(RAW)", calls(kernel_time));
            row.add("cpu counter", calls(counter));
            row.add("empty call", calls(|| empty()));
        }
        if let Some(capture) = capture {
            row.notes.push(capture.stop().note(0));
        }
        table.row(row);
    }
}
