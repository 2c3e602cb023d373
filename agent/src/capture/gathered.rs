//! Records of one stretch of a ring, sorted by family before they are written.

#![forbid(unsafe_code)]

use crate::board;
use crate::profdir::FamilyId;
use crate::records::TraceCounts;

/// Families with their bytes; the buffers are kept for the next stretch. A stretch is one segment, so all
/// of them together hold 64 KiB at a time.
#[derive(Debug, Default)]
pub struct Gathered {
    families: Vec<Heap>,
    /// Number of families in use.
    used: usize,
}

#[derive(Debug)]
struct Heap {
    family: FamilyId,
    bytes: Vec<u8>,
    counts: TraceCounts,
}

/// Families at a time: an intent names as many files, and looking for one stays cheap.
const FAMILIES_MAX: usize = board::FILES_MAX;

impl Gathered {
    /// Whether nothing was added since the last drain.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Adds records behind those of the same family; false for a family too many, which is to wait for the
    /// next drain.
    pub fn add(&mut self, family: FamilyId, bytes: &[u8], counts: &TraceCounts) -> bool {
        let known = self.families[..self.used]
            .iter()
            .position(|heap| heap.family == family);
        if known.is_none() && self.used == FAMILIES_MAX {
            return false;
        }
        let index = known.unwrap_or_else(|| self.open(family));
        let heap = &mut self.families[index];
        heap.bytes.extend_from_slice(bytes);
        heap.counts.merge(counts);
        true
    }

    /// Takes a heap for a family, with the buffer of an earlier one where there is one.
    fn open(&mut self, family: FamilyId) -> usize {
        let index = self.used;
        self.used += 1;
        match self.families.get_mut(index) {
            Some(heap) => heap.family = family,
            None => self.families.push(Heap {
                family,
                bytes: Vec::new(),
                counts: TraceCounts::default(),
            }),
        }
        index
    }

    /// Hands each family's records out, in the order of their first record, and forgets them.
    pub fn drain(&mut self, mut write: impl FnMut(FamilyId, &[u8], &TraceCounts)) {
        for heap in &mut self.families[..self.used] {
            write(heap.family, &heap.bytes, &heap.counts);
            heap.bytes.clear();
            heap.counts = TraceCounts::default();
        }
        self.used = 0;
    }
}
