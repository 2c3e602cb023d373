//! Descriptors as a guest makes them: closed on exec, never below 3, closed in forked children.

use super::guarded::{Guarded, identity};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Lowest descriptor that is ours to use: a program that closed its standard descriptors must not
/// get one of ours in their place.
const LOWEST: RawFd = 3;
/// What keeps the length of a memory file.
const FIXED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
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

/// A memory file of `len` bytes, for ever: whoever else has it cannot make it shorter or longer. Fails on
/// kernels before 3.17, and where the program's limit on the size of files forbids it: growing the file would
/// send the program a SIGXFSZ.
pub fn memfd(name: &str, len: u64) -> io::Result<File> {
    use rustix::process::{Resource, getrlimit};
    if getrlimit(Resource::Fsize)
        .current
        .is_some_and(|limit| limit < len)
    {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create(name, flags)?;
    let file = File::from(keep_above_standard(fd)?);
    file.set_len(len)?;
    rustix::fs::fcntl_add_seals(&file, FIXED)?;
    Ok(file)
}

/// Whether a file is a memory file whose length is for ever.
pub fn is_fixed_memory(file: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(FIXED))
}

/// The same file through another descriptor, that can only read.
pub fn reopen_for_reading(file: impl AsFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())?;
    Ok(keep_above_standard(fd)?)
}

/// The same directory through another descriptor, with a position of its own.
pub fn reopen_directory(dir: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, ".", flags, Mode::empty())?;
    Ok(keep_above_standard(fd)?)
}

/// Gives the pages of a range of a memory file back; the range reads zero afterwards.
pub fn punch_hole(file: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
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

/// A descriptor that a forked child closes.
#[derive(Debug)]
pub struct ParentOnly {
    fd: Guarded<OwnedFd>,
    slot: Option<usize>,
}

impl ParentOnly {
    /// Registers `fd`. Beyond the bound it is kept unregistered: a child then merely holds it open.
    pub fn new(fd: OwnedFd) -> ParentOnly {
        let fd = Guarded::new(fd);
        let slot = fd.identity().and_then(|(dev, ino)| {
            CLOSE_IN_CHILD.iter().position(|slot| {
                let free = slot.raw.compare_exchange(
                    -1,
                    fd.as_fd().as_raw_fd(),
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
        ParentOnly { fd, slot }
    }

    /// Whether the number still stands for the file that it was opened for.
    pub fn is_ours(&self) -> bool {
        self.fd.is_ours()
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
            // Before it is closed: its number may be somebody else's right after.
            CLOSE_IN_CHILD[slot].raw.store(-1, Ordering::Release);
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

    #[test]
    fn a_memory_file_that_was_handed_out_can_be_read_and_neither_written_nor_cut() {
        use std::os::unix::fs::FileExt;
        let file = memfd("test", 4096).expect("memfd");
        file.write_all_at(b"seen", 10).expect("written");
        let handed = File::from(reopen_for_reading(&file).expect("reopened"));
        assert!(is_fixed_memory(handed.as_fd()));
        let mut bytes = [0; 4];
        handed.read_exact_at(&mut bytes, 10).expect("read");
        assert_eq!(&bytes, b"seen");
        assert!(handed.write_at(b"x", 0).is_err());
        assert!(file.set_len(0).is_err() && file.set_len(8192).is_err());
        punch_hole(&file, 0, 4096).expect("a hole is no cut");
    }
}
