//! The process that we are guests in: its environment, threads, forks and identity.

pub mod environment;
pub mod fd;
pub mod guarded;
pub mod peer;
pub mod reserve;
pub mod user;
pub mod user_map;

use once_cell::race::OnceRef;
use std::io;
use std::thread::{Builder, JoinHandle};

/// Stack of our threads. Given explicitly so that std does not read RUST_MIN_STACK: the environment is
/// read only once, at load.
const STACK_BYTES: usize = 1 << 20;

/// Who is told of a panic in a thread of ours, and in which one. Never waited for: a fork may come while it is set.
static PANICKED: OnceRef<'static, fn(&str)> = OnceRef::new();

/// Kernel thread id of the caller.
pub fn current_tid() -> u32 {
    // SAFETY: gettid has no preconditions and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Process id as the process sees it.
pub fn current_pid() -> u32 {
    std::process::id()
}

/// Effective user id.
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// Bytes of address space that the process may still take; `None` where nobody limits it (`ulimit -v`), or
/// nothing is known.
pub fn address_space_left() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::As).current?;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    // The kernel compares the limit with this very number of pages.
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    Some(limit.saturating_sub(pages * rustix::param::page_size() as u64))
}

/// Sets who is told of a panic in a thread of [`spawn`]. The first call counts.
pub fn on_panic(told: &'static fn(&str)) {
    let _ = PANICKED.set(told);
}

/// Starts a thread of ours: named, all signals blocked. A panic ends it and goes to [`on_panic`].
pub fn spawn(
    name: &'static str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    if !reserve::system_has_some() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // Blocked before the thread exists, so that it inherits the mask and never runs a handler of the
    // program's.
    let _blocked = SignalsBlocked::new();
    Builder::new()
        .name(name.into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let body = std::panic::AssertUnwindSafe(body);
            if let Err(panic) = std::panic::catch_unwind(body)
                && let Some(told) = PANICKED.get()
            {
                told(&format!("thread {name}: {}", panic_text(&*panic)));
            }
        })
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic without a text")
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: i32, old: *mut i32) -> i32;
}

/// Keeps pthread_cancel from acting on the calling thread until dropped: its unwinding cannot pass our
/// frames, and glibc aborts the program when it is caught.
pub struct NotCancelled {
    before: i32,
}

impl NotCancelled {
    /// From here on.
    pub fn new() -> NotCancelled {
        const PTHREAD_CANCEL_DISABLE: i32 = 1;
        let mut before = 0;
        // SAFETY: the state is the calling thread's own; the old one goes to a local.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before) };
        NotCancelled { before }
    }
}

impl Default for NotCancelled {
    fn default() -> Self {
        NotCancelled::new()
    }
}

impl Drop for NotCancelled {
    fn drop(&mut self) {
        // SAFETY: as above; the state is the one that was found on this thread.
        unsafe { pthread_setcancelstate(self.before, std::ptr::null_mut()) };
    }
}

/// Blocks every signal on the calling thread until dropped.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> SignalsBlocked {
        // SAFETY: both sets are plain data that the calls fill in; the mask is the calling thread's
        // own and is restored on drop.
        unsafe {
            let mut all = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalsBlocked { before }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask on this thread.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_threads_block_every_signal_and_leave_the_callers_mask_alone() {
        fn blocked(signal: i32) -> bool {
            // SAFETY: reads the calling thread's mask into a local.
            unsafe {
                let mut mask = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
                libc::sigismember(&mask, signal) == 1
            }
        }
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let thread = spawn("msprof-test", move || {
            let _ = sender.send(blocked(libc::SIGINT) && blocked(libc::SIGTERM));
        });
        assert_eq!(receiver.recv(), Ok(true));
        thread.expect("thread").join().expect("ended");
        assert!(!blocked(libc::SIGINT));
    }
}
