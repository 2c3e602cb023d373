//! The records that components report, in the layout in which they are written to disk.
//!
//! All integers are little-endian with natural alignment (spec 2 section 2.2). Sizes and offsets are
//! asserted at compile time: a record is copied from the caller to a ring to a file without conversion.

#![forbid(unsafe_code)]

mod trace;

pub use trace::{Trace, TraceCounts};

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
