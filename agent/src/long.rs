//! Rare reports that fit no ring: a queue of owned buffers, bounded by bytes.

#![forbid(unsafe_code)]

use crate::lanes::RingKey;
use crate::process::reserve;
use crate::records::{MAGIC, Trace};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that wait at most.
const BYTES_MAX: usize = 16 << 20;
/// What a small report takes beside its own bytes.
const OVERHEAD: usize = 128;

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LongKind {
    /// A record of more than 256 bytes.
    Variable,
    /// A record of a thread that has no rings any more: a destructor reports.
    Record(RingKey),
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
    waiting_bytes: AtomicUsize,
}

impl Default for LongQueue {
    fn default() -> Self {
        let (sender, receiver) = unbounded();
        LongQueue {
            sender,
            receiver,
            waiting_bytes: AtomicUsize::new(0),
        }
    }
}

fn weight(report: &LongReport) -> usize {
    report.bytes.len() + OVERHEAD
}

impl LongQueue {
    /// Adds a report; false when too much waits already, or no memory is left. Never waits.
    pub fn push(&self, report: LongReport) -> bool {
        let weight = weight(&report);
        let before = self.waiting_bytes.fetch_add(weight, Ordering::Relaxed);
        let refused = before + weight > BYTES_MAX || reserve::is_low();
        if refused || self.sender.send(report).is_err() {
            self.waiting_bytes.fetch_sub(weight, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// The oldest report.
    pub fn pop(&self) -> Option<LongReport> {
        let report = self.receiver.try_recv().ok()?;
        self.waiting_bytes
            .fetch_sub(weight(&report), Ordering::Relaxed);
        Some(report)
    }
}
