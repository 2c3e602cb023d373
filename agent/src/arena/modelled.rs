//! The address range of the arena in the loom models: heap memory, whose pages are nobody's concern.

use crate::sync;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;

/// Alignment of segments.
const ALIGN: usize = 128;

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
    pub(super) fn new(len: usize) -> io::Result<Mapping> {
        let layout = Layout::from_size_align(len, ALIGN).map_err(io::Error::other)?;
        // SAFETY: an arena has at least one segment, so the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        sync::writes(start, len);
        Ok(Mapping { start, layout })
    }

    pub(super) fn pointer(&self, offset: usize) -> *mut u8 {
        self.start.wrapping_add(offset)
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
        // SAFETY: allocated by `new` with this layout, and never handed on.
        unsafe { dealloc(self.start, self.layout) };
    }
}
