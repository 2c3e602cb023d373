//! The address range of the arena, and what the kernel does with its pages.

use crate::process::fd;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

/// Shared memory that forked children do not inherit.
#[derive(Debug)]
pub(super) struct Mapping {
    map: MmapRaw,
    /// The memfd behind the mapping; `None` for anonymous memory, where there can be none.
    file: Option<File>,
}

impl Mapping {
    /// Maps `len` bytes. Costs address space only until they are written.
    pub(super) fn new(len: usize) -> io::Result<Mapping> {
        let (map, file) = match fd::memfd("msprof-rings", len as u64) {
            Ok(file) => {
                let map = MmapOptions::new().len(len).map_raw(&file)?;
                (map, Some(file))
            }
            Err(_) => (MmapOptions::new().len(len).map_anon()?.into(), None),
        };
        // Without it a child would hold the parent's buffers in memory for as long as it lives.
        map.advise(Advice::DontFork)?;
        Ok(Mapping { map, file })
    }

    /// The byte at `offset`.
    pub(super) fn pointer(&self, offset: usize) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(offset)
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
        const PAGE: usize = 4096;
        for at in (offset..offset + len).step_by(PAGE) {
            // SAFETY: inside the mapping and aligned. An atomic add of zero changes nothing, whoever uses
            // the page at the same time.
            unsafe { AtomicU8::from_ptr(self.pointer(at)).fetch_add(0, Ordering::Relaxed) };
        }
    }

    /// Whether [`Mapping::discard`] can do anything.
    pub(super) fn discards(&self) -> bool {
        self.file.is_some()
    }

    /// Gives the pages of a range back to the system; it reads zero afterwards.
    pub(super) fn discard(&self, offset: usize, len: usize) {
        if let Some(file) = &self.file {
            // A file system or kernel without holes: the pages stay until the next capture.
            let _ = fd::punch_hole(file, offset as u64, len as u64);
        }
    }
}
