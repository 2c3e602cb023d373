//! The address range of the arena, and what the kernel does with its pages.

use crate::process;
use crate::process::fd::{self, ParentOnly};
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the kernel makes at a time, bytes.
pub(super) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Bytes that can be mapped at all; `None` for any number.
pub(super) fn room() -> Option<u64> {
    process::address_space_left()
}

/// Shared memory that forked children do not inherit.
#[derive(Debug)]
pub(super) struct Mapping {
    map: MmapRaw,
    /// The memfd behind the mapping; `None` for anonymous memory, where there can be none.
    file: Option<ParentOnly>,
}

impl Mapping {
    /// Maps `len` bytes of a memory file. Costs address space only until they are written.
    pub(super) fn shared(len: usize) -> io::Result<Mapping> {
        let file = fd::memfd("msprof-rings", len as u64)?;
        let map = MmapOptions::new().len(len).map_raw(&file)?;
        // Without it a child would have the parent's buffers, and hold them in memory for as long as it lives.
        map.advise(Advice::DontFork)?;
        Ok(Mapping {
            map,
            file: Some(ParentOnly::new(file.into())),
        })
    }

    /// Maps `len` bytes of memory of this process alone, for kernels and sandboxes without memory files.
    pub(super) fn anonymous(len: usize) -> io::Result<Mapping> {
        let map: MmapRaw = MmapOptions::new().len(len).map_anon()?.into();
        // A sandbox may forbid it. What a child then has is a copy, which only costs memory.
        let _ = map.advise(Advice::DontFork);
        Ok(Mapping { map, file: None })
    }

    /// The byte at `offset`.
    pub(super) fn pointer(&self, offset: usize) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(offset)
    }

    /// The memory file, opened anew for reading alone.
    pub(super) fn share(&self) -> io::Result<OwnedFd> {
        let file = self.file.as_ref().filter(|file| file.is_ours());
        let file = file.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        fd::reopen_for_reading(file)
    }

    /// Makes the pages of a range, whose content stays.
    pub(super) fn populate(&self, offset: usize, len: usize) {
        let populated = self.map.advise_range(Advice::PopulateWrite, offset, len);
        if populated.is_err() {
            self.touch(offset, len);
        }
    }

    /// One atomic no-op write a page, for kernels before 5.14.
    fn touch(&self, offset: usize, len: usize) {
        for at in (offset..offset + len).step_by(page_bytes()) {
            // SAFETY: inside the mapping and aligned. An atomic add of zero changes nothing, whoever uses
            // the page at the same time.
            unsafe { AtomicU8::from_ptr(self.pointer(at)).fetch_add(0, Ordering::Relaxed) };
        }
    }

    /// Whether [`Mapping::discard`] can do anything.
    pub(super) fn discards(&self) -> bool {
        self.file.as_ref().is_some_and(ParentOnly::is_ours)
    }

    /// Gives the pages of a range back to the system; it reads zero afterwards.
    pub(super) fn discard(&self, offset: usize, len: usize) {
        if let Some(file) = self.file.as_ref().filter(|file| file.is_ours()) {
            // A file system or kernel without holes: the pages stay until the next capture.
            let _ = fd::punch_hole(file, offset as u64, len as u64);
        }
    }
}
