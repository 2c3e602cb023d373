//! What operators work on: their tensors, attributes and parts of tasks, and the streams of communication kernels
//! (spec 3 sections 6.2 and 6.3).

use super::{Decoded, Headed};
use crate::source::Source;
use msprof_agent_core::records::{AdditionalRecord, CompactRecord};
use std::mem::{offset_of, size_of};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Tensors that a record has room for.
const TENSORS_MAX: usize = 5;
/// Dimensions that a tensor has room for; 0 behind the last one.
const DIMENSIONS: usize = 8;
/// Parts of a task that a record has room for.
const CONTEXTS_MAX: usize = 55;

/// A tensor of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// 0 input, 1 output.
    pub role: u32,
    /// Format in the low 8 bits, its sub-format in the 16 above.
    pub format: u32,
    /// Type of its elements.
    pub data_type: u32,
    /// Dimensions, 0 behind the last one.
    pub shape: [u32; DIMENSIONS],
}

/// Tensors of an operator: all of them, or as many as a record has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// When, ticks of the host.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Id of the operator's name.
    pub name: u64,
    /// The tensors.
    pub tensors: Vec<Tensor>,
}

/// Attributes of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAttr {
    /// When, ticks of the host.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Id of the operator's name.
    pub name: u64,
    /// Id of what the attributes are.
    pub text: u64,
}

/// Parts that a task of an operator, or of a communication, has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextIds {
    /// When, ticks of the host.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Level of the record: node or communication.
    pub level: u16,
    /// Id of the operator's name.
    pub name: u64,
    /// Numbers of the parts.
    pub ids: Vec<u32>,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct TensorLayout {
    role: U32,
    format: U32,
    data_type: U32,
    shape: [U32; DIMENSIONS],
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct TensorInfoLayout {
    name: U64,
    count: U32,
    tensors: [TensorLayout; TENSORS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct AttrLayout {
    name: U64,
    kind: U32,
    text: U64,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct ContextLayout {
    name: U64,
    count: U32,
    ids: [U32; CONTEXTS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct CommunicationInfoLayout {
    names: [U64; 3],
    ranks: [U32; 5],
    part: U32,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct CommunicationLayout {
    group: U64,
    ranks: [U32; 3],
    stream: U32,
}

const _: () = {
    assert!(size_of::<TensorLayout>() == 44);
    assert!(size_of::<TensorInfoLayout>() == 232);
    assert!(offset_of!(AttrLayout, text) == 12);
    assert!(size_of::<ContextLayout>() == 232);
    assert!(offset_of!(CommunicationInfoLayout, part) == 68 - 24);
    assert!(offset_of!(CommunicationLayout, stream) == 20);
};

impl TensorInfo {
    fn of(record: &AdditionalRecord) -> Option<TensorInfo> {
        let said: TensorInfoLayout = record.read()?;
        let count = (said.count.get() as usize).min(TENSORS_MAX);
        let tensors = said.tensors[..count].iter().map(|tensor| Tensor {
            role: tensor.role.get(),
            format: tensor.format.get(),
            data_type: tensor.data_type.get(),
            shape: tensor.shape.map(U32::get),
        });
        Some(TensorInfo {
            time: record.head.time,
            thread: record.head.thread_id,
            name: said.name.get(),
            tensors: tensors.collect(),
        })
    }
}

impl NodeAttr {
    fn of(record: &CompactRecord) -> Option<NodeAttr> {
        let said: AttrLayout = record.read()?;
        Some(NodeAttr {
            time: record.head.time,
            thread: record.head.thread_id,
            name: said.name.get(),
            text: said.text.get(),
        })
    }
}

impl ContextIds {
    fn of(record: &AdditionalRecord) -> Option<ContextIds> {
        let said: ContextLayout = record.read()?;
        let count = (said.count.get() as usize).min(CONTEXTS_MAX);
        Some(ContextIds {
            time: record.head.time,
            thread: record.head.thread_id,
            level: record.head.level,
            name: said.name.get(),
            ids: said.ids[..count].iter().map(|id| id.get()).collect(),
        })
    }
}

impl Source {
    /// Tensors of operators in the order of the files.
    pub(crate) fn tensors(&self) -> Decoded<AdditionalRecord, TensorInfo> {
        let records = self.profile().additional("tensor_info");
        Decoded::new(records, TensorInfo::of)
    }

    /// Attributes of operators in the order of the files.
    pub(crate) fn node_attrs(&self) -> Decoded<CompactRecord, NodeAttr> {
        Decoded::new(self.profile().compact("node_attr_info"), NodeAttr::of)
    }

    /// Parts of tasks in the order of the files.
    pub(crate) fn context_ids(&self) -> Decoded<AdditionalRecord, ContextIds> {
        let records = self.profile().additional("context_id_info");
        Decoded::new(records, ContextIds::of)
    }

    /// Parts of tasks that belong to communications: when, on which thread, and which part.
    pub(crate) fn communication_parts(&self) -> Decoded<AdditionalRecord, (u64, u32, u32)> {
        let records = self.profile().additional("hccl_info");
        Decoded::new(records, |record: &AdditionalRecord| {
            let said: CommunicationInfoLayout = record.read()?;
            Some((record.head.time, record.head.thread_id, said.part.get()))
        })
    }

    /// Streams of the kernels on the device's own processors that communicate within an operator.
    pub(crate) fn kernel_streams(&self) -> Decoded<AdditionalRecord, u32> {
        let records = self.profile().additional("mc2_comm_info");
        Decoded::new(records, |record: &AdditionalRecord| {
            let said: CommunicationLayout = record.read()?;
            Some(said.stream.get())
        })
    }
}
