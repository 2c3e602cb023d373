//! Tasks that the host sent, the operators they belong to, and copies of memory (spec 3 section 6.2).

use super::{Decoded, Headed};
use crate::source::Source;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::records::CompactRecord;
use std::mem::{offset_of, size_of};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Bits of a task's device that are its number; the others tell what kind of device it is.
const DEVICE_MASK: u16 = 0x0FFF;
/// Numbers behind the kernel's name.
const EXTENT: usize = 8;

/// A task that the host sent to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTrack {
    /// When, ticks of the host.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Bytes of the payload in use; what is behind the kernel's name counts only where it is all.
    pub data_len: u32,
    /// Number of the device.
    pub device: u16,
    /// Its stream.
    pub stream: u16,
    /// Its number within stream and batch.
    pub task: u16,
    /// How many times the stream's numbers have begun anew.
    pub batch: u16,
    /// Type, named at level runtime.
    pub kind: u64,
    /// Id of the kernel's name.
    pub kernel: u64,
    /// Blocks that it runs on.
    pub blocks: u16,
    /// All behind the kernel's name: what it runs on, by its type (spec 3 section 6.2). Starts with the blocks.
    pub extent: [u16; EXTENT],
    /// Whether it is a task of another kind of device than an NPU.
    pub foreign_device: bool,
}

/// What an operator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeBasicInfo {
    /// When, ticks of the host.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Id of its name.
    pub name: u64,
    /// Kind of task (spec 3 section 6.2).
    pub task_kind: u32,
    /// Id of its type's name.
    pub op_kind: u64,
    /// Blocks in the low 16 bits, the mix ratio in the high ones.
    pub block_dim: u32,
    /// Flags, such as HF32.
    pub flags: u32,
}

impl TaskTrack {
    /// What an NPU's task in a payload that is full runs on; `None` where the record has nothing to say about it.
    pub fn full_extent(&self) -> Option<[u16; EXTENT]> {
        (self.data_len as usize == size_of::<TrackLayout>()).then_some(self.extent)
    }
}

/// A copy of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memcpy {
    /// When, ticks of the host: its call's begin and one.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Bytes.
    pub size: u64,
    /// Most bytes of one piece.
    pub max_size: u64,
    /// From where to where (spec 3 section 6.2).
    pub direction: u16,
}

/// How streams are numbered from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// Their numbers have 15 bits, not 11.
    pub wide: bool,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct TrackLayout {
    device: U16,
    stream: U16,
    task: U16,
    batch: U16,
    kind: U64,
    kernel: U64,
    extent: [U16; EXTENT],
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct NodeLayout {
    name: U64,
    task_kind: U32,
    op_kind: U64,
    block_dim: U32,
    flags: U32,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct MemcpyLayout {
    size: U64,
    max_size: U64,
    direction: U16,
}

const _: () = {
    assert!(size_of::<TrackLayout>() == 40);
    assert!(offset_of!(TrackLayout, kernel) == 16);
    assert!(size_of::<NodeLayout>() == 28);
    assert!(offset_of!(NodeLayout, op_kind) == 12);
    assert!(offset_of!(MemcpyLayout, direction) == 16);
};

impl TaskTrack {
    fn of(record: &CompactRecord) -> Option<TaskTrack> {
        let said: TrackLayout = record.read()?;
        Some(TaskTrack {
            time: record.head.time,
            thread: record.head.thread_id,
            data_len: record.head.data_len,
            device: said.device.get() & DEVICE_MASK,
            stream: said.stream.get(),
            task: said.task.get(),
            batch: said.batch.get(),
            kind: said.kind.get(),
            kernel: said.kernel.get(),
            blocks: said.extent[0].get(),
            extent: said.extent.map(U16::get),
            foreign_device: said.device.get() & !DEVICE_MASK != 0,
        })
    }
}

impl NodeBasicInfo {
    fn of(record: &CompactRecord) -> Option<NodeBasicInfo> {
        let said: NodeLayout = record.read()?;
        Some(NodeBasicInfo {
            time: record.head.time,
            thread: record.head.thread_id,
            name: said.name.get(),
            task_kind: said.task_kind.get(),
            op_kind: said.op_kind.get(),
            block_dim: said.block_dim.get(),
            flags: said.flags.get(),
        })
    }
}

impl Memcpy {
    fn of(record: &CompactRecord) -> Option<Memcpy> {
        let said: MemcpyLayout = record.read()?;
        Some(Memcpy {
            time: record.head.time,
            thread: record.head.thread_id,
            size: said.size.get(),
            max_size: said.max_size.get(),
            direction: said.direction.get(),
        })
    }
}

impl Source {
    /// Tasks that the host sent, in the order of the files.
    pub(crate) fn task_tracks(&self) -> Decoded<CompactRecord, TaskTrack> {
        Decoded::new(self.profile().compact("task_track"), TaskTrack::of)
    }

    /// What operators are whose models are loaded once, or those of models that are made as they run.
    pub(crate) fn node_infos_of(&self, dynamic: bool) -> Decoded<CompactRecord, NodeBasicInfo> {
        let family = match dynamic {
            true => "aging.compact.node_basic_info",
            false => "unaging.compact.node_basic_info",
        };
        let records = self
            .profile()
            .records_of(Place::Host, |name| name == family);
        Decoded::new(records, NodeBasicInfo::of)
    }

    /// How streams are numbered.
    pub(crate) fn stream_specs(&self) -> Decoded<CompactRecord, StreamSpec> {
        let records = self.profile().compact("expand_stream_spec");
        Decoded::new(records, |record| {
            let wide = record.payload[0] == 1;
            Some(StreamSpec { wide })
        })
    }

    /// Copies of memory in the order of the files.
    pub(crate) fn memcpys(&self) -> Decoded<CompactRecord, Memcpy> {
        Decoded::new(self.profile().compact("memcpy_info"), Memcpy::of)
    }
}
