//! A row of COMPUTE_TASK_INFO in words: of an operator, or of a kernel outside operators.

use super::kinds::{AI_CORE, AI_CPU, MIX_AIC, MIX_AIV, SIMT, VECTOR_CORE};
use super::operators::Info;
use super::shapes::{NOTHING, ShapeIds};
use super::{Task, WHOLE, kinds};
use crate::source::Source;
use std::borrow::Cow;

/// The row.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) context: u32,
    pub(super) blocks: u32,
    pub(super) mixed_blocks: u32,
    pub(super) task_kind: String,
    pub(super) op_kind: String,
    pub(super) shapes: Option<ShapeIds>,
    pub(super) attr: String,
    pub(super) state: &'static str,
    pub(super) hf32: &'static str,
    /// Whether the parser says on how many threads it runs.
    pub(super) has_dimensions: bool,
}

impl Row {
    /// An operator that node_basic_info tells of.
    pub(super) fn full(
        source: &Source,
        info: &Info,
        attr: Option<u64>,
        shapes: Option<ShapeIds>,
        context: u32,
    ) -> Row {
        let blocks = info.block_dim & 0xFFFF;
        Row {
            name: source.string(info.name).into_owned(),
            context,
            blocks,
            mixed_blocks: blocks * (info.block_dim >> 16),
            task_kind: kinds::task(info.task_kind),
            op_kind: source.string(info.op_kind).into_owned(),
            shapes,
            attr: attr.map_or_else(String::new, |id| attributes(source, id)),
            state: match info.dynamic {
                true => "dynamic",
                false => "static",
            },
            hf32: match info.hf32 {
                true => "YES",
                false => "NO",
            },
            has_dimensions: true,
        }
    }

    /// A row of a capture that says little.
    pub(super) fn brief(source: &Source, name: u64, context: u32) -> Row {
        Row {
            name: source.string(name).into_owned(),
            context,
            blocks: 0,
            mixed_blocks: 0,
            task_kind: NOTHING.to_owned(),
            op_kind: NOTHING.to_owned(),
            shapes: None,
            attr: String::new(),
            state: NOTHING,
            hf32: NOTHING,
            has_dimensions: true,
        }
    }

    /// A kernel outside operators.
    pub(super) fn bare(source: &Source, task: &Task, kind: &str, level0: bool, sixth: bool) -> Row {
        let context = match kind {
            MIX_AIC | MIX_AIV if !sixth => 0,
            _ => WHOLE,
        };
        let mut row = Row::brief(source, task.kernel, context);
        row.has_dimensions = !level0;
        if !level0 {
            row.op_kind = row.name.clone();
            row.task_kind = match kind {
                AI_CORE => kinds::task(0),
                AI_CPU => kinds::task(1),
                VECTOR_CORE | SIMT => kinds::task(2),
                MIX_AIC => kinds::task(4),
                MIX_AIV => kinds::task(5),
                kind => kind.to_owned(),
            };
        }
        row
    }
}

/// What the attributes are; empty where there is no string of this id.
fn attributes(source: &Source, id: u64) -> String {
    match source.string(id) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(_) => String::new(),
    }
}
