//! What a drain thread does with rings and lanes, in its order.

use super::BYTES;
use msprof_agent_core::arena::Arena;
use msprof_agent_core::lanes::{Lane, Lanes, MadeRing};
use msprof_agent_core::ring::Consumer;
use msprof_agent_core::sync;
use std::sync::Arc;

/// The numbers of whole records.
fn numbers(bytes: &[u8]) -> Vec<u64> {
    // The bytes are read now, not when the consumer handed them out.
    sync::reads(bytes.as_ptr(), bytes.len());
    let number = |record: &[u8]| {
        let mut words = record.chunks_exact(8).map(|word| {
            let word: [u8; 8] = word.try_into().expect("8 bytes");
            u64::from_ne_bytes(word)
        });
        let first = words.next().expect("a word");
        assert!(words.all(|word| word == first), "torn record");
        first
    };
    bytes.chunks_exact(BYTES).map(number).collect()
}

/// Takes what waits, as `Drain::drain_source` does.
pub(super) fn take(consumer: &mut Consumer, arena: &Arena, capture: u64) -> Vec<u64> {
    let mut taken = Vec::new();
    loop {
        let readable = consumer.readable(arena, capture);
        let found = numbers(readable.bytes);
        let full = readable.full;
        consumer.release(arena, found.len() as u64);
        let empty = found.is_empty();
        taken.extend(found);
        if empty || !full {
            return taken;
        }
    }
}

/// One thread's lane being drained, in the order in which `Drain` does it.
struct LaneReader {
    lane: Arc<Lane>,
    sources: Vec<(Arc<MadeRing>, Consumer)>,
    taken: Vec<u64>,
}

impl LaneReader {
    fn take(&mut self, arena: &Arena, capture: u64) {
        while self.sources.len() < self.lane.rings() {
            let ring = self.lane.ring(self.sources.len()).expect("made");
            // SAFETY: the readers of one capture are closed before the next one's are made.
            let consumer = unsafe { ring.consumer() };
            self.sources.push((ring, consumer));
        }
        for (_, consumer) in &mut self.sources {
            self.taken.extend(take(consumer, arena, capture));
        }
    }

    fn close(&mut self, capture: u64) -> Closed {
        for (ring, consumer) in self.sources.drain(..) {
            ring.put_back(&consumer);
        }
        Closed {
            taken: std::mem::take(&mut self.taken),
            lost: self.lane.lost(capture).total(),
        }
    }
}

/// What a drain thread does with all lanes during one capture.
pub(super) struct Reader {
    lanes: Arc<Lanes>,
    capture: u64,
    known: Vec<LaneReader>,
    closed: Vec<Closed>,
}

/// One thread's share of a capture.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Closed {
    pub(super) taken: Vec<u64>,
    pub(super) lost: u64,
}

impl Reader {
    pub(super) fn new(lanes: &Arc<Lanes>, capture: u64) -> Reader {
        Reader {
            lanes: lanes.clone(),
            capture,
            known: Vec::new(),
            closed: Vec::new(),
        }
    }

    pub(super) fn pass(&mut self) {
        for lane in self.lanes.snapshot() {
            if !self
                .known
                .iter()
                .any(|known| Arc::ptr_eq(&known.lane, &lane))
            {
                self.known.push(LaneReader {
                    lane,
                    sources: Vec::new(),
                    taken: Vec::new(),
                });
            }
        }
        let arena = self.lanes.arena().expect("prepared");
        for mut lane in std::mem::take(&mut self.known) {
            lane.take(arena, self.capture);
            if !lane.lane.ended() {
                self.known.push(lane);
                continue;
            }
            lane.take(arena, self.capture);
            self.closed.push(lane.close(self.capture));
            // SAFETY: the thread has ended, and its consumers were put back.
            unsafe { self.lanes.retire(&lane.lane) };
        }
    }

    /// What became of the capture, lane by lane.
    pub(super) fn finish(mut self) -> Vec<Closed> {
        self.pass();
        let open = self.known.iter_mut().map(|lane| lane.close(self.capture));
        self.closed.extend(open);
        self.closed
    }
}

pub(super) fn sum(closed: Vec<Closed>) -> (Vec<u64>, u64) {
    let lost = closed.iter().map(|lane| lane.lost).sum();
    (
        closed.into_iter().flat_map(|lane| lane.taken).collect(),
        lost,
    )
}
