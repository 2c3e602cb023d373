//! The records that components report, in the layout in which they are written to disk.
//!
//! All integers are little-endian with natural alignment (spec 2 section 2.2). Sizes and offsets are
//! asserted at compile time: a record is copied from the caller to a ring to a file without conversion.

#![forbid(unsafe_code)]

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

    /// Request id of an event that stands alone by its producer's word. Run 65,535 of a model has it too, and
    /// the parser makes a pair of any two, so that it tells who is not missing a partner and nothing else.
    pub const SINGLE_EVENT: u32 = 0xFFFF;

    /// Whether this is an event and not an api call.
    pub fn is_event(&self) -> bool {
        self.end == Self::EVENT_END
    }

    /// Whether this stands for an event whose partner is in no capture: without times the parser passes over it
    /// (`capture::pairs`).
    pub fn is_neutral(&self) -> bool {
        self.begin == 0 && self.end == 0
    }
}

/// What two events of one request have in common: the first is the begin, the second the end (spec 3 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKey {
    /// One of [`level`].
    pub level: u16,
    /// Kind of call.
    pub kind: u32,
    /// Kernel thread id.
    pub thread_id: u32,
    /// Number of the run.
    pub request_id: u32,
    /// A model id at level model.
    pub item_id: u64,
}

impl EventKey {
    /// The key of an event.
    pub fn of(record: &ApiRecord) -> EventKey {
        EventKey {
            level: record.level,
            kind: record.kind,
            thread_id: record.thread_id,
            request_id: record.request_id,
            item_id: record.item_id,
        }
    }

    /// Whether it may be without a partner.
    pub fn is_single(&self) -> bool {
        self.request_id == ApiRecord::SINGLE_EVENT
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

impl AdditionalRecord {
    /// Type of [`GraphIdMap`] at level model.
    pub const GRAPH_ID_MAP: u32 = 0;
    /// Behind the map in a record that was not reported in its capture: readers count it nowhere. The parser
    /// does not look there.
    const REPEATED: &'static [u8] = b"repeated by msprof_agent";

    /// Whether its payload is a [`GraphIdMap`].
    pub fn is_graph_id_map(&self) -> bool {
        self.head.level == level::MODEL && self.head.kind == Self::GRAPH_ID_MAP
    }

    /// The payload as what [`AdditionalRecord::is_graph_id_map`] says it is.
    pub fn graph_id_map(&self) -> GraphIdMap {
        zerocopy::transmute!(
            *self
                .payload
                .first_chunk()
                .unwrap_or(&[0; GRAPH_ID_MAP_BYTES])
        )
    }

    /// A record that says again what a model is called, as if a thread had done so at a time.
    pub fn repeated(map: GraphIdMap, thread_id: u32, time: u64) -> AdditionalRecord {
        let mut payload = [0; ADDITIONAL_PAYLOAD];
        let end = GRAPH_ID_MAP_BYTES + Self::REPEATED.len();
        payload[..GRAPH_ID_MAP_BYTES].copy_from_slice(map.as_bytes());
        payload[GRAPH_ID_MAP_BYTES..end].copy_from_slice(Self::REPEATED);
        AdditionalRecord {
            head: RecordHead {
                magic: MAGIC,
                level: level::MODEL,
                kind: Self::GRAPH_ID_MAP,
                thread_id,
                data_len: GRAPH_ID_MAP_BYTES as u32,
                time,
            },
            payload,
        }
    }

    /// Whether it was not reported in its capture.
    pub fn is_repeated(&self) -> bool {
        self.is_graph_id_map() && self.payload[GRAPH_ID_MAP_BYTES..].starts_with(Self::REPEATED)
    }
}

/// What a model is called (spec 3 section 6.3).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct GraphIdMap {
    /// Id of the name.
    pub model_name: u64,
    /// Its graph.
    pub graph_id: u32,
    /// Its number, which runs have for an item.
    pub model_id: u32,
}

/// Bytes of a [`GraphIdMap`].
const GRAPH_ID_MAP_BYTES: usize = size_of::<GraphIdMap>();

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(GRAPH_ID_MAP_BYTES == 16);
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
        let known = &LEVELS[level_slot(level)];
        if known.level != level {
            return None;
        }
        known.traces[is_api as usize]
    }
}

/// A level and the traces of its records: of the 64- and 256-byte families, of api and event records.
#[derive(Clone, Copy)]
struct KnownLevel {
    level: u16,
    traces: [Option<Trace>; 2],
}

const LEVEL_SLOTS: usize = 16;

/// Where a level lies in [`LEVELS`]. The factor is one that gives each readable level a slot of its own, so
/// that a report finds its trace with one comparison.
#[inline]
const fn level_slot(level: u16) -> usize {
    const FACTOR: u16 = 17;
    (level.wrapping_mul(FACTOR) >> (u16::BITS - LEVEL_SLOTS.ilog2())) as usize
}

static LEVELS: [KnownLevel; LEVEL_SLOTS] = {
    let none = KnownLevel {
        level: 0,
        traces: [None; 2],
    };
    let mut table = [none; LEVEL_SLOTS];
    let mut i = 0;
    while i < level::READABLE.len() {
        let lvl = level::READABLE[i];
        let slot = &mut table[level_slot(lvl)];
        assert!(slot.level == 0, "two levels share a slot");
        *slot = KnownLevel {
            level: lvl,
            traces: [
                Some(match lvl {
                    level::AICPU => Trace::Aicpu,
                    _ => Trace::Task,
                }),
                Some(match lvl {
                    level::RUNTIME => Trace::RuntimeApi,
                    level::MODEL => Trace::ModelExecution,
                    level::AICPU => Trace::Aicpu,
                    level::ACL => Trace::Acl,
                    _ => Trace::Task,
                }),
            ],
        };
        i += 1;
    }
    table
};

/// Records counted per trace, indexed by [`Trace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NamedCounts", into = "NamedCounts")]
pub struct TraceCounts(pub [u64; Trace::ALL.len()]);

impl TraceCounts {
    /// Sum over all traces. Counts can come from a file that somebody else wrote: sums stay at the largest
    /// number.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, n| sum.saturating_add(*n))
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
        // One comparison a record and one look-up a run of equal levels: neighbours mostly share theirs.
        let (mut level, mut run) = (0, 0);
        for record in bytes.chunks_exact(record_size) {
            let this = match record {
                [_, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
                _ => 0,
            };
            if this != level {
                counts.add_run(level, is_api, run);
                (level, run) = (this, 0);
            }
            run += 1;
        }
        counts.add_run(level, is_api, run);
        counts
    }

    /// The same of whole api and event records; and whether there are events, or api records of level model,
    /// among them.
    pub fn of_apis(bytes: &[u8]) -> (TraceCounts, bool) {
        const END: usize = std::mem::offset_of!(ApiRecord, end);
        let mut counts = TraceCounts::default();
        let (mut level, mut run) = (0, 0);
        let mut events = false;
        for record in bytes.as_chunks::<{ RecordSize::Api.bytes() }>().0 {
            let this = u16::from_le_bytes([record[2], record[3]]);
            events |= record[END..].starts_with(&ApiRecord::EVENT_END.to_le_bytes());
            if this != level {
                counts.add_run(level, true, run);
                (level, run) = (this, 0);
            }
            run += 1;
        }
        counts.add_run(level, true, run);
        (counts, events || counts.get(Trace::ModelExecution) > 0)
    }

    fn add_run(&mut self, level: u16, is_api: bool, records: u64) {
        if let Some(trace) = Trace::of(level, is_api) {
            self.add(trace, records);
        }
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &TraceCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counting_by_runs_finds_what_counting_one_by_one_finds(
            runs in prop::collection::vec(
                (prop_oneof![4 => prop::sample::select(&level::READABLE[..]), 1 => any::<u16>()], 1usize..5),
                0..40,
            ),
            size in prop::sample::select(vec![40usize, 64, 256]),
        ) {
            let mut bytes = Vec::new();
            let mut expected = TraceCounts::default();
            for level in runs.iter().flat_map(|(level, run)| std::iter::repeat_n(*level, *run)) {
                let mut record = vec![0xA5; size];
                record[2..4].copy_from_slice(&level.to_le_bytes());
                bytes.extend(record);
                if let Some(trace) = Trace::of(level, size == 40) {
                    expected.add(trace, 1);
                }
            }
            prop_assert_eq!(TraceCounts::of_records(&bytes, size), expected);
            if size == 40 {
                let (counts, notable) = TraceCounts::of_apis(&bytes);
                prop_assert_eq!(counts, expected);
                prop_assert_eq!(notable, expected.get(Trace::ModelExecution) > 0);
                if let Some(last) = bytes.last_chunk_mut::<16>() {
                    last[..8].fill(0xFF);
                    prop_assert_eq!(TraceCounts::of_apis(&bytes), (expected, true));
                }
            }
        }
    }

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
