//! Tensors of operators as the strings of the table, each set of tensors once.

use super::kinds;
use crate::db::strings::Strings;
use crate::decode::operators::Tensor;
use rusqlite::Result;
use std::collections::HashMap;

/// What is not known.
pub(super) const NOTHING: &str = "N/A";
const INPUT: u32 = 0;
const OUTPUT: u32 = 1;

/// Numbers of the strings of formats, types and shapes: of the inputs, then of the outputs.
pub(super) type ShapeIds = [i64; 6];

/// Sets of tensors by a number.
#[derive(Default)]
pub(super) struct Sets {
    numbers: HashMap<Box<[Tensor]>, u32>,
}

impl Sets {
    /// The number of a set.
    pub(super) fn number(&mut self, tensors: Vec<Tensor>) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(tensors.into()).or_insert(next)
    }

    /// The sets by their numbers.
    pub(super) fn into_list(self) -> Vec<Box<[Tensor]>> {
        let mut sets: Vec<_> = self.numbers.into_iter().collect();
        sets.sort_by_key(|(_, number)| *number);
        sets.into_iter().map(|(tensors, _)| tensors).collect()
    }
}

/// Strings of the tensors of one operator.
pub(super) fn ids(tensors: &[&Tensor], strings: &mut Strings<'_>) -> Result<ShapeIds> {
    let mut ids = [0; 6];
    for (side, role) in [INPUT, OUTPUT].into_iter().enumerate() {
        let of_role: Vec<_> = tensors
            .iter()
            .filter(|tensor| tensor.role == role)
            .collect();
        let texts = [
            joined(of_role.iter().map(|tensor| kinds::format(tensor.format))),
            joined(
                of_role
                    .iter()
                    .map(|tensor| kinds::data_type(tensor.data_type)),
            ),
            quoted(joined(of_role.iter().map(|tensor| shape(tensor)))),
        ];
        for (at, text) in texts.iter().enumerate() {
            let text = text.as_deref().unwrap_or(NOTHING);
            ids[side * texts.len() + at] = strings.id(text)?;
        }
    }
    Ok(ids)
}

fn shape(tensor: &Tensor) -> String {
    let dimensions = tensor.shape.iter().take_while(|dimension| **dimension != 0);
    let dimensions: Vec<String> = dimensions.map(u32::to_string).collect();
    dimensions.join(",")
}

fn joined(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(";"))
}

/// In the quotes that the parser puts around shapes.
fn quoted(shapes: Option<String>) -> Option<String> {
    shapes.map(|shapes| format!("\"{shapes}\""))
}
