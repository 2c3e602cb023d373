//! The address range of the arena in the loom models: heap memory, whose pages are nobody's concern.

use crate::sync;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::OwnedFd;

/// Alignment of segments.
const ALIGN: usize = 128;

/// As the arena counts.
pub(super) fn page_bytes() -> usize {
    super::PAGE_BYTES
}

pub(super) fn room() -> Option<u64> {
    None
}

#[derive(Debug)]
pub(super) struct Mapping {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: the memory is reached through `pointer` alone, and whoever uses that answers for it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn shared(len: usize) -> io::Result<Mapping> {
        let layout = Layout::from_size_align(len, ALIGN).map_err(io::Error::other)?;
        // SAFETY: an arena has at least one segment, so the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        sync::writes(start, len);
        Ok(Mapping { start, layout })
    }

    pub(super) fn anonymous(len: usize) -> io::Result<Mapping> {
        Mapping::shared(len)
    }

    pub(super) fn pointer(&self, offset: usize) -> *mut u8 {
        self.start.wrapping_add(offset)
    }

    pub(super) fn share(&self) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn populate(&self, _offset: usize, _len: usize) {}

    pub(super) fn discards(&self) -> bool {
        true
    }

    pub(super) fn discard(&self, offset: usize, len: usize) {
        sync::writes(self.pointer(offset), len);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: allocated by `shared` with this layout, and never handed on.
        unsafe { dealloc(self.start, self.layout) };
    }
}
