//! The memory in which all rings lie: one shared mapping of a bounded size.
//!
//! The address range is mapped once and never unmapped, so that a producer preempted in the middle
//! of a push can never write into somebody else's memory. Blocks go back to the free list only when
//! the thread that filled them has ended. Pages nobody uses are given back by punching holes.
//! The mapping is not inherited by forked children.

use crate::process::fd;
use memmap2::{Advice, MmapOptions, MmapRaw};
use parking_lot::Mutex;
use std::fs::File;
use std::io;

/// Granularity of blocks; larger than or equal to every page size but 64 KiB, where holes that do
/// not cover a page are simply not punched.
const GRAIN: usize = 4096;

/// A block of the arena. Not `Clone`: whoever holds it owns the bytes.
#[derive(Debug)]
pub struct Block {
    offset: usize,
    len: usize,
}

#[derive(Debug, Default)]
struct State {
    /// First byte that was never handed out.
    fresh: usize,
    free: Vec<Block>,
}

/// One mapping of a fixed number of bytes, handed out in blocks.
#[derive(Debug)]
pub struct Arena {
    map: MmapRaw,
    /// The memfd behind the mapping; `None` for anonymous memory on kernels before 3.17.
    file: Option<File>,
    len: usize,
    state: Mutex<State>,
}

impl Arena {
    /// Maps `bytes` (rounded up to 4 KiB). Costs address space only until blocks are written.
    pub fn new(bytes: usize) -> io::Result<Arena> {
        let len = bytes.next_multiple_of(GRAIN).max(GRAIN);
        let (map, file) = match fd::memfd("msprof-rings") {
            Ok(file) => {
                file.set_len(len as u64)?;
                let map = MmapOptions::new().len(len).map_raw(&file)?;
                (map, Some(file))
            }
            Err(_) => (MmapOptions::new().len(len).map_anon()?.into(), None),
        };
        // Without it a child would hold the parent's buffers in memory for as long as it lives.
        map.advise(Advice::DontFork)?;
        Ok(Arena {
            map,
            file,
            len,
            state: Mutex::default(),
        })
    }

    /// Start of a block, valid for the block's size as long as the arena lives.
    pub fn pointer(&self, block: &Block) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(block.offset)
    }

    /// A block of at least `bytes` whose first 4 KiB are zero; `None` when the budget is used up.
    pub fn take(&self, bytes: usize) -> Option<Block> {
        let need = bytes.next_multiple_of(GRAIN);
        let mut state = self.state.lock();
        // A block of up to twice the size is taken rather than fresh memory: what was touched before
        // costs no page faults.
        let fit = state
            .free
            .iter()
            .enumerate()
            .filter(|(_, block)| block.len >= need && block.len <= 2 * need)
            .min_by_key(|(_, block)| block.len)
            .map(|(index, _)| index);
        if let Some(index) = fit {
            return Some(state.free.swap_remove(index));
        }
        if need > self.len - state.fresh {
            return None;
        }
        let block = Block {
            offset: state.fresh,
            len: need,
        };
        state.fresh += need;
        Some(block)
    }

    /// Takes a block back. The caller guarantees that no thread uses it any more.
    pub fn give_back(&self, block: Block) {
        // SAFETY: the block is owned by the caller, lies inside the mapping (it came from `take`),
        // is at least one grain long, and nobody reads or writes it.
        unsafe { std::ptr::write_bytes(self.pointer(&block), 0, GRAIN) };
        self.state.lock().free.push(block);
    }

    /// Gives the pages of `block` behind its first 4 KiB back to the system. Whatever they held is
    /// gone; a write that comes late merely makes a page again.
    pub fn discard_tail(&self, block: &Block) {
        if let Some(file) = &self.file {
            let (offset, len) = (block.offset + GRAIN, block.len - GRAIN);
            // An old file system or kernel without holes: the pages stay until the next capture.
            let _ = fd::punch_hole(file, offset as u64, len as u64);
        }
    }

    /// [`Arena::discard_tail`] for every block that nobody holds.
    pub fn discard_free(&self) {
        for block in &self.state.lock().free {
            self.discard_tail(block);
        }
    }

    /// Bytes handed out at some time: an upper bound of the resident size.
    pub fn touched(&self) -> usize {
        self.state.lock().fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_end_with_the_budget() {
        let arena = Arena::new(10 * GRAIN).expect("map");
        let blocks: Vec<Block> = std::iter::from_fn(|| arena.take(3 * GRAIN)).collect();
        assert_eq!(blocks.len(), 3);
        for pair in blocks.windows(2) {
            assert!(pair[0].offset + pair[0].len <= pair[1].offset);
        }
        assert!(arena.take(GRAIN).is_some(), "the rest still serves");
        assert!(arena.take(1).is_none());
    }

    #[test]
    fn a_block_that_was_given_back_begins_with_zeros_and_is_used_again() {
        let arena = Arena::new(4 * GRAIN).expect("map");
        let block = arena.take(2 * GRAIN).expect("fits");
        let (offset, pointer) = (block.offset, arena.pointer(&block));
        // SAFETY: the test owns the block.
        unsafe { pointer.write_bytes(0xAB, block.len) };
        arena.give_back(block);
        let again = arena.take(GRAIN).expect("fits");
        assert_eq!(again.offset, offset);
        // SAFETY: as above.
        assert_eq!(unsafe { arena.pointer(&again).read() }, 0);
    }
}
