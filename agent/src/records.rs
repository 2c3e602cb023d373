//! The records that components report, in the layout in which they are written to disk.
//!
//! All integers are little-endian with natural alignment (spec 2 section 2.2). Sizes and offsets are
//! asserted at compile time: a record is copied from the caller to a ring to a file without conversion.

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First two bytes of every record.
pub const MAGIC: u16 = 0x5A5A;

/// Levels of records (field `level`), the producer's layer.
pub mod level {
    #![allow(missing_docs)]
    pub const PYTORCH: u16 = 30000;
    pub const PTA: u16 = 25000;
    pub const TX: u16 = 20500;
    pub const ACL: u16 = 20000;
    pub const MODEL: u16 = 15000;
    pub const NODE: u16 = 10000;
    pub const AICPU: u16 = 6000;
    pub const HCCL: u16 = 5500;
    pub const RUNTIME: u16 = 5000;

    /// Every level that the msprof parser reads. One record of another level in a family makes it
    /// drop the whole family (spec 3 section 6).
    pub const READABLE: [u16; 9] = [PYTORCH, PTA, TX, ACL, MODEL, NODE, AICPU, HCCL, RUNTIME];
}

/// Largest payload of a 256-byte additional record.
pub const ADDITIONAL_PAYLOAD: usize = 232;
/// Longest report that is accepted as a variable record, head included.
pub const VARIABLE_MAX: usize = 65_536;
/// Head of compact, additional and variable records.
pub const HEAD_SIZE: usize = 24;

/// An API call with its begin and end, 40 bytes.
///
/// An event (one point in time) has the same size: its time is in `begin`, its request id in
/// `request_id` and `end` is all ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ApiRecord {
    /// [`MAGIC`].
    pub magic: u16,
    /// One of [`level`].
    pub level: u16,
    /// Kind of call, named by the type dictionary per level.
    pub kind: u32,
    /// Kernel thread id of the caller.
    pub thread_id: u32,
    /// Events only: 1st and 2nd event of one request pair up.
    pub request_id: u32,
    /// Ticks of `MsprofSysCycleTime` (ns).
    pub begin: u64,
    /// Ticks, or [`ApiRecord::EVENT_END`].
    pub end: u64,
    /// Hash of an item name, or a model id at level model.
    pub item_id: u64,
}

impl ApiRecord {
    /// Value of `end` that marks an event.
    pub const EVENT_END: u64 = u64::MAX;

    /// Whether this is an event and not an api call.
    pub fn is_event(&self) -> bool {
        self.end == Self::EVENT_END
    }
}

/// The 24 bytes that compact, additional and variable records begin with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RecordHead {
    /// [`MAGIC`].
    pub magic: u16,
    /// One of [`level`].
    pub level: u16,
    /// Record type, named by the type dictionary per level.
    pub kind: u32,
    /// Kernel thread id.
    pub thread_id: u32,
    /// Bytes of the payload in use.
    pub data_len: u32,
    /// Ticks of `MsprofSysCycleTime` (ns).
    pub time: u64,
}

/// A compact record, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CompactRecord {
    /// Common head.
    pub head: RecordHead,
    /// Layout by (level, type): spec 3 section 6.2.
    pub payload: [u8; 40],
}

/// An additional record, 256 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct AdditionalRecord {
    /// Common head.
    pub head: RecordHead,
    /// Layout by (level, type): spec 3 section 6.3.
    pub payload: [u8; ADDITIONAL_PAYLOAD],
}

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<ApiRecord>() == 40);
    assert!(offset_of!(ApiRecord, thread_id) == 8);
    assert!(offset_of!(ApiRecord, begin) == 16);
    assert!(offset_of!(ApiRecord, end) == 24);
    assert!(offset_of!(ApiRecord, item_id) == 32);
    assert!(size_of::<RecordHead>() == HEAD_SIZE);
    assert!(offset_of!(RecordHead, time) == 16);
    assert!(size_of::<CompactRecord>() == 64);
    assert!(size_of::<AdditionalRecord>() == 256);
};

/// The three record sizes that have rings and slices of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSize {
    /// [`ApiRecord`], 40 bytes.
    Api,
    /// [`CompactRecord`], 64 bytes.
    Compact,
    /// [`AdditionalRecord`], 256 bytes.
    Additional,
}

impl RecordSize {
    /// Size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            RecordSize::Api => 40,
            RecordSize::Compact => 64,
            RecordSize::Additional => 256,
        }
    }
}

/// What a record counts as in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Trace {
    /// Api records of level runtime.
    RuntimeApi = 0,
    /// Api and event records of level model.
    ModelExecution = 1,
    /// Records of level aicpu.
    Aicpu = 2,
    /// Api records of level acl.
    Acl = 3,
    /// Everything else, which is taken whenever it is sent: api records of nodes, communication, marks
    /// and frameworks; compact, additional and variable families.
    Task = 4,
}

impl Trace {
    /// All traces, in the order of their numbers.
    pub const ALL: [Trace; 5] = [
        Trace::RuntimeApi,
        Trace::ModelExecution,
        Trace::Aicpu,
        Trace::Acl,
        Trace::Task,
    ];

    /// Name as in options, ledger and result lines.
    pub fn name(self) -> &'static str {
        match self {
            Trace::RuntimeApi => "runtime-api",
            Trace::ModelExecution => "model-execution",
            Trace::Aicpu => "aicpu",
            Trace::Acl => "acl",
            Trace::Task => "task",
        }
    }

    /// The trace that a record of a readable level belongs to; `None` for a level that the parser
    /// cannot read. `is_api` tells api and event records from the 64- and 256-byte families.
    #[inline]
    pub fn of(level: u16, is_api: bool) -> Option<Trace> {
        let index = level / LEVEL_STEP;
        if !level.is_multiple_of(LEVEL_STEP) || index as usize >= LEVEL_SLOTS {
            return None;
        }
        TRACE_OF[is_api as usize][index as usize]
    }
}

/// Every level is a multiple of this, which makes the trace of a level one table look-up.
const LEVEL_STEP: u16 = 500;
const LEVEL_SLOTS: usize = 64;

static TRACE_OF: [[Option<Trace>; LEVEL_SLOTS]; 2] = {
    let mut table = [[None; LEVEL_SLOTS]; 2];
    let mut i = 0;
    while i < level::READABLE.len() {
        let lvl = level::READABLE[i];
        let slot = (lvl / LEVEL_STEP) as usize;
        let aicpu = lvl == level::AICPU;
        table[0][slot] = Some(if aicpu { Trace::Aicpu } else { Trace::Task });
        table[1][slot] = Some(match lvl {
            level::RUNTIME => Trace::RuntimeApi,
            level::MODEL => Trace::ModelExecution,
            level::AICPU => Trace::Aicpu,
            level::ACL => Trace::Acl,
            _ => Trace::Task,
        });
        i += 1;
    }
    table
};

/// Records counted per trace, indexed by [`Trace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NamedCounts", into = "NamedCounts")]
pub struct TraceCounts(pub [u64; Trace::ALL.len()]);

impl TraceCounts {
    /// Sum over all traces.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds `n` records of one trace.
    #[inline]
    pub fn add(&mut self, trace: Trace, n: u64) {
        self.0[trace as usize] += n;
    }

    /// Count of one trace.
    pub fn get(&self, trace: Trace) -> u64 {
        self.0[trace as usize]
    }

    /// Counts whole records of one size by trace; the level is in the third and fourth byte of every
    /// record. Records of a level that the parser cannot read are in no count.
    pub fn of_records(bytes: &[u8], record_size: usize) -> TraceCounts {
        let is_api = record_size == RecordSize::Api.bytes();
        let mut counts = TraceCounts::default();
        for record in bytes.chunks_exact(record_size) {
            let level = match record {
                [_, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
                _ => 0,
            };
            if let Some(trace) = Trace::of(level, is_api) {
                counts.add(trace, 1);
            }
        }
        counts
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &TraceCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// [`TraceCounts`] as it appears in JSON: one key per trace.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[derive(Default)]
struct NamedCounts {
    runtime_api: u64,
    model_execution: u64,
    aicpu: u64,
    acl: u64,
    task: u64,
}

impl From<NamedCounts> for TraceCounts {
    fn from(n: NamedCounts) -> Self {
        TraceCounts([n.runtime_api, n.model_execution, n.aicpu, n.acl, n.task])
    }
}

impl From<TraceCounts> for NamedCounts {
    fn from(c: TraceCounts) -> Self {
        let [runtime_api, model_execution, aicpu, acl, task] = c.0;
        NamedCounts {
            runtime_api,
            model_execution,
            aicpu,
            acl,
            task,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_readable_level_has_a_trace_and_no_other_level_has() {
        for lvl in 0..=u16::MAX {
            let readable = level::READABLE.contains(&lvl);
            assert_eq!(Trace::of(lvl, true).is_some(), readable, "api level {lvl}");
            assert_eq!(Trace::of(lvl, false).is_some(), readable, "level {lvl}");
        }
        assert_eq!(Trace::of(level::RUNTIME, true), Some(Trace::RuntimeApi));
        assert_eq!(Trace::of(level::RUNTIME, false), Some(Trace::Task));
        assert_eq!(Trace::of(level::AICPU, false), Some(Trace::Aicpu));
    }

    #[test]
    fn counts_are_named_by_trace_in_json() {
        let mut counts = TraceCounts::default();
        counts.add(Trace::RuntimeApi, 3);
        let text = serde_json::to_string(&counts).expect("counts serialise");
        assert!(text.contains("\"runtime-api\":3"), "{text}");
        let back: TraceCounts = serde_json::from_str(&text).expect("counts parse");
        assert_eq!(back, counts);
    }
}
