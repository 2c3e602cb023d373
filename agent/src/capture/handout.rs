//! What a controller needs to finish a capture whose process was killed: the rings' memory and the directory.

#![forbid(unsafe_code)]

use crate::arena::Arena;
use crate::process::fd::{self, ParentOnly};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Two descriptors for somebody else, closed when nobody is to be sent them any more.
#[derive(Debug)]
pub struct Handout {
    /// Number of the capture, as in the rings.
    pub capture: u64,
    memory: ParentOnly,
    directory: ParentOnly,
}

impl Handout {
    /// What `directory` is, opened anew: whoever gets it neither shares a position with us nor a lock.
    pub fn directory(directory: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        fd::reopen_directory(directory)
    }

    /// The memory, for reading alone, and a directory.
    pub fn new(capture: u64, arena: Option<&Arena>, directory: OwnedFd) -> io::Result<Handout> {
        let arena = arena.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Handout {
            capture,
            memory: ParentOnly::new(arena.share()?),
            directory: ParentOnly::new(directory),
        })
    }

    /// Both, in the order in which they are sent; `None` when the program has closed one.
    pub fn descriptors(&self) -> Option<[BorrowedFd<'_>; 2]> {
        let both = [&self.memory, &self.directory];
        both.iter()
            .all(|fd| fd.is_ours())
            .then(|| both.map(|fd| fd.as_fd()))
    }
}
