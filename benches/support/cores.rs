//! Clocks of threads, cores to run on, and real-time scheduling for moments.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid timespec; an unknown clock fails and leaves zero.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of the calling thread, ns.
pub fn cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that `f` takes on the calling thread, ns.
pub fn cpu_of(f: impl FnOnce()) -> u64 {
    let before = cpu_ns();
    f();
    cpu_ns() - before
}

/// A clock that all threads share, ns.
pub fn wall_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of another thread of this process, ns; also what it is just using.
pub fn cpu_ns_of(tid: i32) -> u64 {
    // The kernel's encoding of "scheduler clock of thread `tid`", which pthread_getcpuclockid gives for a
    // pthread_t; these threads are known by their number only.
    const PER_THREAD_SCHED: libc::clockid_t = 6;
    read_ns(!tid << 3 | PER_THREAD_SCHED)
}

/// The thread of that name in this process; it may be just about to take the name.
pub fn thread_named(name: &str) -> i32 {
    let deadline = wall_ns() + 2_000_000_000;
    loop {
        if let Some(tid) = find_thread(name) {
            return tid;
        }
        assert!(wall_ns() < deadline, "no thread {name}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn find_thread(name: &str) -> Option<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    tasks.flatten().find_map(|task| {
        let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
        (comm.trim_end() == name).then(|| task.file_name().to_str()?.parse().ok())?
    })
}

/// Cores that this process may run on.
pub fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero set is a valid one, and the call fills no more than its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    };
    // SAFETY: the index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

/// Binds the calling thread to one core.
pub fn pin(core: usize) {
    // SAFETY: as above; a failure leaves the thread where it is, which the overlap then shows.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// SCHED_FIFO for the calling thread while this lives.
pub struct Fifo(bool);

impl Fifo {
    /// Asks for it; [`Fifo::granted`] tells.
    pub fn begin() -> Fifo {
        Fifo(Self::set(libc::SCHED_FIFO, 1))
    }

    /// Whether the kernel permits it.
    pub fn granted(&self) -> bool {
        self.0
    }

    fn set(policy: libc::c_int, priority: libc::c_int) -> bool {
        // SAFETY: all-zero is a valid sched_param, and the call only reads it.
        unsafe {
            let mut param: libc::sched_param = std::mem::zeroed();
            param.sched_priority = priority;
            libc::sched_setscheduler(0, policy, &param) == 0
        }
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        if self.0 {
            Self::set(libc::SCHED_OTHER, 0);
        }
    }
}

/// Runs `f`, of some milliseconds at most, as SCHED_FIFO where permitted: nobody takes the core and the
/// caches away in the middle.
pub fn undisturbed<R>(f: impl FnOnce() -> R) -> R {
    let _fifo = Fifo::begin();
    f()
}

/// Sleeps until `wall_ns` shows `deadline`.
pub fn sleep_until(deadline: u64) {
    let left = deadline.saturating_sub(wall_ns());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

/// How long a cache line takes from one core to the other, ns one way: the middle of some hundred
/// exchanges of a word between two threads pinned there.
pub fn line_latency(cores: [usize; 2]) -> f64 {
    const ROUNDS: u32 = 200;
    const GROUPS: u32 = 40;
    #[repr(align(128))]
    struct Line(AtomicU32);
    let line = Line(AtomicU32::new(0));
    let mut samples = super::stats::Samples::default();
    super::together::run(&cores, |player, gate| {
        gate.wait();
        let mut latencies = Vec::new();
        for group in 0..GROUPS {
            let begin = wall_ns();
            for round in 0..ROUNDS {
                let turn = (group * ROUNDS + round) * 2 + player as u32;
                while line.0.load(Ordering::Acquire) != turn {
                    std::hint::spin_loop();
                }
                line.0.store(turn + 1, Ordering::Release);
            }
            latencies.push((wall_ns() - begin) as f64 / f64::from(2 * ROUNDS));
        }
        latencies
    })
    .results
    .into_iter()
    .flatten()
    .for_each(|latency| samples.add(latency));
    samples.median()
}
