//! A ring of the crate `rtrb` per thread.

use crate::drain::{Sink, Source};
use rtrb::{Consumer, Producer, RingBuffer};

/// The writing side; records have `W` words of 8 bytes.
pub struct OwnRing<const W: usize>(Producer<[u64; W]>);

impl<const W: usize> OwnRing<W> {
    /// A ring of `slots`, with its pages there, and its reading side.
    pub fn new(slots: usize) -> (OwnRing<W>, OwnReader<W>) {
        let (mut producer, mut consumer) = RingBuffer::new(slots);
        while producer.push([1; W]).is_ok() {}
        while consumer.pop().is_ok() {}
        (OwnRing(producer), OwnReader(consumer))
    }

    /// Copies a record in; false when the ring is full.
    ///
    /// # Safety
    /// `record` is valid for reads of `W` words.
    #[inline]
    pub unsafe fn push(&mut self, record: *const [u64; W]) -> bool {
        // SAFETY: by this function's contract.
        self.0.push(unsafe { *record }).is_ok()
    }
}

/// The reading side.
pub struct OwnReader<const W: usize>(Consumer<[u64; W]>);

impl<const W: usize> Source for OwnReader<W> {
    fn drain(&mut self, sink: &mut Sink) -> u64 {
        let count = self.0.slots();
        let Ok(chunk) = self.0.read_chunk(count) else {
            return 0;
        };
        let (first, second) = chunk.as_slices();
        sink.write(first);
        sink.write(second);
        chunk.commit_all();
        count as u64
    }
}
