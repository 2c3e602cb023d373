//! Descriptors as a guest makes them: closed on exec, never below 3, closed in forked children.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Lowest descriptor that is ours to use: a program that closed its standard descriptors must not
/// get one of ours in their place.
const LOWEST: RawFd = 3;
/// Sockets and the like that a forked child must close; enough for the listener, its waker, its
/// watch and every client at once.
const TRACKED: usize = 64;

static CLOSE_IN_CHILD: [AtomicI32; TRACKED] = [const { AtomicI32::new(-1) }; TRACKED];

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

/// A descriptor that a forked child closes.
#[derive(Debug)]
pub struct ParentOnly {
    fd: OwnedFd,
    slot: Option<usize>,
}

impl ParentOnly {
    /// Registers `fd`. Beyond the bound it is kept unregistered: a child then merely holds it open.
    pub fn new(fd: OwnedFd) -> ParentOnly {
        let raw = fd.as_raw_fd();
        let slot = CLOSE_IN_CHILD.iter().position(|slot| {
            slot.compare_exchange(-1, raw, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        ParentOnly { fd, slot }
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
            CLOSE_IN_CHILD[slot].store(-1, Ordering::Release);
        }
    }
}

/// In a forked child: closes what belongs to the parent. Async-signal-safe.
pub fn close_in_child() {
    for slot in &CLOSE_IN_CHILD {
        let raw = slot.swap(-1, Ordering::AcqRel);
        if raw >= 0 {
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
