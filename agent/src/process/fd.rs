//! Descriptors as a guest makes them: closed on exec, never below 3, closed in forked children.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Lowest descriptor that is ours to use: a program that closed its standard descriptors must not
/// get one of ours in their place.
const LOWEST: RawFd = 3;
/// Sockets and the like that a forked child must close; enough for the listener, its waker
/// and every client at once.
const TRACKED: usize = 64;

/// The descriptor itself, or a copy that is not below 3.
pub fn keep_above_standard(fd: OwnedFd) -> Result<OwnedFd, rustix::io::Errno> {
    if fd.as_raw_fd() >= LOWEST {
        return Ok(fd);
    }
    rustix::io::fcntl_dupfd_cloexec(&fd, LOWEST)
}

/// A memory file of `len` bytes; fails on kernels before 3.17, and where the program's limit on the size of
/// files forbids it: growing the file would send the program a SIGXFSZ.
pub fn memfd(name: &str, len: u64) -> io::Result<File> {
    use rustix::process::{Resource, getrlimit};
    if getrlimit(Resource::Fsize)
        .current
        .is_some_and(|limit| limit < len)
    {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    let file = File::from(keep_above_standard(fd)?);
    file.set_len(len)?;
    Ok(file)
}

/// Gives the pages of a range of a memory file back; the range reads zero afterwards.
pub fn punch_hole(file: &File, offset: u64, len: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, mode, offset, len)?)
}

/// A descriptor and the file that it was opened for. A program that closes descriptors it does not know
/// may get our number for a file of its own: then it is no longer ours.
struct Tracked {
    raw: AtomicI32,
    dev: AtomicU64,
    ino: AtomicU64,
}

static CLOSE_IN_CHILD: [Tracked; TRACKED] = [const {
    Tracked {
        raw: AtomicI32::new(-1),
        dev: AtomicU64::new(0),
        ino: AtomicU64::new(0),
    }
}; TRACKED];

/// Device and inode of an open file; async-signal-safe.
fn identity(fd: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let found = rustix::fs::fstat(fd).ok()?;
    #[allow(clippy::useless_conversion)] // u32 on some architectures
    Some((u64::from(found.st_dev), u64::from(found.st_ino)))
}

/// A descriptor that a forked child closes.
#[derive(Debug)]
pub struct ParentOnly {
    fd: ManuallyDrop<OwnedFd>,
    slot: Option<usize>,
    identity: Option<(u64, u64)>,
}

impl ParentOnly {
    /// Registers `fd`. Beyond the bound it is kept unregistered: a child then merely holds it open.
    pub fn new(fd: OwnedFd) -> ParentOnly {
        let identity = identity(fd.as_fd());
        let slot = identity.and_then(|(dev, ino)| {
            CLOSE_IN_CHILD.iter().position(|slot| {
                let free = slot.raw.compare_exchange(
                    -1,
                    fd.as_raw_fd(),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if free.is_ok() {
                    slot.dev.store(dev, Ordering::Relaxed);
                    slot.ino.store(ino, Ordering::Release);
                }
                free.is_ok()
            })
        });
        ParentOnly {
            fd: ManuallyDrop::new(fd),
            slot,
            identity,
        }
    }

    /// Whether the number still stands for the file that it was opened for.
    pub fn is_ours(&self) -> bool {
        identity(self.fd.as_fd()) == self.identity
    }
}

impl AsFd for ParentOnly {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for ParentOnly {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            CLOSE_IN_CHILD[slot].raw.store(-1, Ordering::Release);
        }
        if self.is_ours() {
            // SAFETY: dropped once, here; nobody uses the descriptor afterwards.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

/// In a forked child: closes what belongs to the parent. Async-signal-safe.
pub fn close_in_child() {
    for slot in &CLOSE_IN_CHILD {
        let raw = slot.raw.swap(-1, Ordering::AcqRel);
        if raw < 0 {
            continue;
        }
        let known = (
            slot.dev.load(Ordering::Relaxed),
            slot.ino.load(Ordering::Acquire),
        );
        // SAFETY: used for a system call only, which fails if the number is not open.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        if identity(fd) == Some(known) {
            // SAFETY: in the child the owner of this descriptor (an agent object of the parent) is
            // abandoned and never used, so closing its copy disturbs nobody.
            unsafe { libc::close(raw) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_file_is_closed_on_exec_and_above_the_standard_descriptors() {
        let file = memfd("test", 4096).expect("memfd");
        assert!(file.as_raw_fd() >= LOWEST);
        let flags = rustix::io::fcntl_getfd(&file).expect("open");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
