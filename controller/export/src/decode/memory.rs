//! Memory that operators took and gave back, and what static graphs plan (spec 3 section 6.3).

use super::{Decoded, Headed};
use crate::source::Source;
use msprof_agent_core::records::AdditionalRecord;
use std::mem::{offset_of, size_of};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Memory of a device taken or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskMemory {
    /// When, ticks of the host.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Level of the record: who manages this memory.
    pub level: u16,
    /// Type of the record.
    pub kind: u32,
    /// Where.
    pub address: u64,
    /// Bytes; below 0 where they are given back.
    pub size: i64,
    /// Id of the operator's name.
    pub node: u64,
    /// Bytes in use behind it.
    pub allocated: u64,
    /// Bytes reserved behind it.
    pub reserved: u64,
    /// Whose memory.
    pub device: u32,
}

/// Memory that an operator of a static graph has for a part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticOpMemory {
    /// Bytes.
    pub size: i64,
    /// Id of the operator's name; 0 for the whole graph.
    pub operator: u64,
    /// Number of the operator from which on it is used.
    pub life_start: u64,
    /// Number of the operator up to which it is used.
    pub life_end: u64,
    /// Bytes of the whole graph.
    pub allocated: u64,
    /// Id of the dynamic operator that the graph belongs to; 0 for none.
    pub root: u64,
    /// The graph.
    pub graph: u32,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct TaskMemoryLayout {
    address: u64,
    size: i64,
    node: u64,
    allocated: u64,
    reserved: u64,
    device: u32,
    device_kind: u32,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct StaticLayout {
    size: i64,
    operator: u64,
    life_start: u64,
    life_end: u64,
    allocated: u64,
    root: u64,
    graph: u32,
    reserved: u32,
}

const _: () = {
    assert!(size_of::<TaskMemoryLayout>() == 48);
    assert!(offset_of!(TaskMemoryLayout, device) == 40);
    assert!(size_of::<StaticLayout>() == 56);
    assert!(offset_of!(StaticLayout, graph) == 48);
};

impl TaskMemory {
    fn of(record: &AdditionalRecord) -> Option<TaskMemory> {
        let said: TaskMemoryLayout = record.read()?;
        Some(TaskMemory {
            time: record.head.time,
            thread: record.head.thread_id,
            level: record.head.level,
            kind: record.head.kind,
            address: said.address,
            size: said.size,
            node: said.node,
            allocated: said.allocated,
            reserved: said.reserved,
            device: said.device,
        })
    }
}

impl StaticOpMemory {
    fn of(record: &AdditionalRecord) -> Option<StaticOpMemory> {
        let said: StaticLayout = record.read()?;
        Some(StaticOpMemory {
            size: said.size,
            operator: said.operator,
            life_start: said.life_start,
            life_end: said.life_end,
            allocated: said.allocated,
            root: said.root,
            graph: said.graph,
        })
    }
}

impl Source {
    /// Memory that operators took and gave back, in the order of the files.
    pub(crate) fn task_memory(&self) -> Decoded<AdditionalRecord, TaskMemory> {
        let records = self.profile().additional("task_memory_info");
        Decoded::new(records, TaskMemory::of)
    }

    /// What static graphs plan.
    pub(crate) fn static_op_memory(&self) -> Decoded<AdditionalRecord, StaticOpMemory> {
        let records = self.profile().additional("static_op_mem");
        Decoded::new(records, StaticOpMemory::of)
    }
}
