//! Rare reports that fit no ring: a bounded queue of owned buffers.

use crate::records::{MAGIC, Trace};
use crossbeam_channel::{Receiver, Sender, bounded};

/// Buffers that wait at most; at 64 KiB each this bounds the memory to 16 MiB.
const CAPACITY: usize = 256;

/// Where an owned report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LongKind {
    /// A record of more than 256 bytes.
    Variable,
    /// Legacy records of the module DATA_PREPROCESS.
    DataPreprocess {
        /// AICPU, DP, ...
        tag: Box<[u8]>,
        /// Device that they are about; `None` for the host.
        device: Option<u32>,
    },
}

/// One report in a buffer of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongReport {
    /// Number of the capture that it was reported in.
    pub capture: u64,
    /// Trace that it counts for.
    pub trace: Trace,
    /// Where it goes.
    pub kind: LongKind,
    /// As reported.
    pub bytes: Box<[u8]>,
}

/// Legacy binary records have this size (spec 3 section 6.3).
const LEGACY_RECORD: usize = 128;

impl LongReport {
    /// How many records it counts as: the binary ones of the old reporter interface come several at a
    /// time, its text counts as one.
    pub fn records(&self) -> u64 {
        let legacy = matches!(self.kind, LongKind::DataPreprocess { .. });
        let binary = self.bytes.starts_with(&MAGIC.to_le_bytes())
            && self.bytes.len().is_multiple_of(LEGACY_RECORD);
        if legacy && binary {
            (self.bytes.len() / LEGACY_RECORD) as u64
        } else {
            1
        }
    }
}

/// The queue from application threads to the drain.
#[derive(Debug)]
pub struct LongQueue {
    sender: Sender<LongReport>,
    receiver: Receiver<LongReport>,
}

impl Default for LongQueue {
    fn default() -> Self {
        let (sender, receiver) = bounded(CAPACITY);
        LongQueue { sender, receiver }
    }
}

impl LongQueue {
    /// Adds a report; false when the queue is full. Never waits.
    pub fn push(&self, owned: LongReport) -> bool {
        self.sender.try_send(owned).is_ok()
    }

    /// The oldest report.
    pub fn pop(&self) -> Option<LongReport> {
        self.receiver.try_recv().ok()
    }
}
