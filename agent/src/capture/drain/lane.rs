//! One thread's rings as they are drained.

use super::Account;
use crate::arena::Arena;
use crate::lanes::{Lane, MadeRing};
use crate::ring::Consumer;
use std::sync::Arc;

/// One ring being drained.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ring: Arc<MadeRing>,
    pub(super) consumer: Consumer,
}

/// One thread's rings being drained.
#[derive(Debug)]
pub(super) struct LaneDrain {
    pub(super) lane: Arc<Lane>,
    pub(super) sources: Vec<Source>,
    pub(super) account: Account,
}

impl LaneDrain {
    /// Records of the thread that were published so far, by the producers' own indices.
    pub(super) fn published(&self, arena: &Arena, capture: u64) -> u64 {
        let of = |source: &Source| source.consumer.published(arena, capture);
        self.sources.iter().map(of).sum()
    }

    pub(super) fn find_new_rings(&mut self) {
        while self.sources.len() < self.lane.rings() {
            let Some(ring) = self.lane.ring(self.sources.len()) else {
                return;
            };
            // SAFETY: captures are drained one after the other (`Captures` starts none before the last
            // one's drain has ended, which put its consumers back), and within one each ring is taken up
            // once, here.
            let consumer = unsafe { ring.consumer() };
            self.sources.push(Source { ring, consumer });
        }
    }
}
