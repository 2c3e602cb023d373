//! Files of ours in a process that may close them.
//!
//! A program that closes every descriptor it does not know may have a file of its own under our number a moment
//! later. Nothing of ours may then be written to it, nor may it be closed.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};

/// Device and inode of an open file; async-signal-safe.
pub(super) fn identity(fd: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let found = rustix::fs::fstat(fd).ok()?;
    #[allow(clippy::useless_conversion)] // u32 on some architectures
    Some((u64::from(found.st_dev), u64::from(found.st_ino)))
}

/// An open file that is looked at before each use, and on closing.
#[derive(Debug)]
pub struct Guarded<F: AsFd = File> {
    file: ManuallyDrop<F>,
    identity: Option<(u64, u64)>,
}

impl<F: AsFd> Guarded<F> {
    /// Guards a file that was just opened.
    pub fn new(file: F) -> Guarded<F> {
        Guarded {
            identity: identity(file.as_fd()),
            file: ManuallyDrop::new(file),
        }
    }

    /// The file; an error when the program has closed it.
    pub fn get(&self) -> io::Result<&F> {
        if self.is_ours() {
            Ok(&self.file)
        } else {
            Err(io::Error::other(
                "the program has closed the agent's descriptor",
            ))
        }
    }

    /// The file, for whoever has just seen that it is ours.
    pub fn seen(&self) -> &F {
        &self.file
    }

    /// Device and inode of the file that was opened; `None` where the system did not say.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    /// Whether the number still stands for the file that it was opened for.
    pub fn is_ours(&self) -> bool {
        self.identity.is_some() && identity(self.file.as_fd()) == self.identity
    }

    /// Whether both are the same file.
    pub fn is_same(&self, other: &Guarded<F>) -> bool {
        self.identity.is_some() && self.identity == other.identity
    }

    /// The file itself; `None` when the program has closed it.
    pub fn into_file(mut self) -> Option<F> {
        if !self.is_ours() {
            return None;
        }
        // Whatever becomes of it, `drop` must not close it.
        self.identity = None;
        // SAFETY: taken once: `self` is consumed, and its drop finds no identity.
        Some(unsafe { ManuallyDrop::take(&mut self.file) })
    }
}

impl<F: AsFd> AsFd for Guarded<F> {
    /// For system calls that do no harm to whatever file it is.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl<F: AsFd> Drop for Guarded<F> {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: dropped once, here; nobody uses the descriptor afterwards.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_that_the_program_put_in_our_place_is_neither_used_nor_closed() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let ours = File::create(temp.path().join("ours")).expect("create");
        let guarded = Guarded::new(ours);
        assert!(guarded.get().is_ok());
        let theirs = File::create(temp.path().join("theirs")).expect("create");
        let number = guarded.as_fd().as_raw_fd();
        // SAFETY: what the program does: our number now stands for its file.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), number) }, number);
        assert!(guarded.get().is_err());
        drop(guarded);
        // SAFETY: still open, since it was not ours to close; owned here from now on.
        let mut left: File = unsafe { std::os::fd::FromRawFd::from_raw_fd(number) };
        left.write_all(b"theirs").expect("still open");
    }

    #[test]
    fn a_file_that_is_taken_out_stays_open() {
        let guarded = Guarded::new(tempfile::tempfile().expect("temporary file"));
        let mut file = guarded.into_file().expect("ours");
        file.write_all(b"open").expect("open");
    }
}
