//! Operators that were fused from others, and what models are called (spec 3 section 6.3).

use super::{Decoded, Headed};
use crate::source::Source;
use msprof_agent_core::profdir::reader::ReadError;
use msprof_agent_core::records::AdditionalRecord;
use std::collections::HashMap;
use std::mem::{offset_of, size_of};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Original operators that a record has room for.
const ORIGINALS_MAX: usize = 8;

/// An operator that was fused from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FusionOp {
    /// When, ticks of the host.
    pub time: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Level of the record.
    pub level: u16,
    /// Id of its name.
    pub name: u64,
    /// Ids of what it was fused from: [`ORIGINALS_MAX`] at most.
    pub originals: Vec<u64>,
    /// Bytes of its inputs.
    pub input: u64,
    /// Bytes of its outputs.
    pub output: u64,
    /// Bytes of its weights.
    pub weight: u64,
    /// Bytes of its workspace.
    pub workspace: u64,
    /// Bytes of all of them.
    pub total: u64,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct FusionLayout {
    name: U64,
    count: U32,
    input: U64,
    output: U64,
    weight: U64,
    workspace: U64,
    total: U64,
    originals: [U64; ORIGINALS_MAX],
}

const _: () = {
    assert!(size_of::<FusionLayout>() == 116);
    assert!(offset_of!(FusionLayout, input) == 12);
    assert!(offset_of!(FusionLayout, originals) == 52);
};

impl FusionOp {
    fn of(record: &AdditionalRecord) -> Option<FusionOp> {
        let said: FusionLayout = record.read()?;
        let count = (said.count.get() as usize).min(ORIGINALS_MAX);
        Some(FusionOp {
            time: record.head.time,
            thread: record.head.thread_id,
            level: record.head.level,
            name: said.name.get(),
            originals: said.originals[..count].iter().map(|id| id.get()).collect(),
            input: said.input.get(),
            output: said.output.get(),
            weight: said.weight.get(),
            workspace: said.workspace.get(),
            total: said.total.get(),
        })
    }
}

impl Source {
    /// Fused operators in the order of the files.
    pub(crate) fn fusion_ops(&self) -> Decoded<AdditionalRecord, FusionOp> {
        let records = self.profile().additional("fusion_op_info");
        Decoded::new(records, FusionOp::of)
    }

    /// Ids of the names of models, by the model; the last of several. What could not be read is missing, and named.
    pub(crate) fn model_names(&self) -> (HashMap<u32, u64>, Vec<ReadError>) {
        let records = self.profile().additional("graph_id_map");
        let (mut names, mut errors) = (HashMap::new(), Vec::new());
        for map in Decoded::new(records, |record: &AdditionalRecord| {
            record.is_graph_id_map().then(|| record.graph_id_map())
        }) {
            match map {
                Ok(map) => {
                    names.insert(map.model_id, map.model_name);
                }
                Err(error) => errors.push(error),
            }
        }
        (names, errors)
    }
}
