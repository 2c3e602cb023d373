//! The table `fusion_op`: operators that were fused from others while a model was loaded.

use super::memory::KB;
use super::table::{Cell, Made, Table};
use super::{ExportError, Problems};
use crate::loads::Loads;
use crate::source::Source;

/// Its columns.
pub const COLUMNS: [&str; 9] = [
    "Model Name",
    "Model ID",
    "Fusion Op",
    "Original Ops",
    "Memory Input(KB)",
    "Memory Output(KB)",
    "Memory Weight(KB)",
    "Memory Workspace(KB)",
    "Memory Total(KB)",
];

/// Writes the table, once for each device. Operators of no load of a model that has a name are left out, as they are by the
/// stock parser.
pub fn write(
    mut table: Table,
    source: &Source,
    loads: &Loads,
    devices: &[String],
    problems: &mut Problems,
) -> Result<Vec<Made>, ExportError> {
    let (names, errors) = source.model_names();
    problems.unread.extend(errors);
    for device in devices {
        let mut ops = source.fusion_ops();
        for op in ops.by_ref() {
            let Some(op) = problems.read(op) else {
                continue;
            };
            let model = loads.model(op.thread, op.time);
            let name = model.and_then(|model| names.get(&u32::try_from(model).ok()?));
            let (Some(model), Some(name)) = (model, name) else {
                continue;
            };
            let originals = op.originals.iter().map(|id| source.string(*id));
            let originals = originals.collect::<Vec<_>>().join(";");
            let kb = |bytes: u64| Cell::Float(bytes as f64 / KB);
            let cells = [
                Cell::Name(source.string(*name)),
                Cell::Int(model.into()),
                Cell::Name(source.string(op.name)),
                Cell::Name(originals.into()),
                kb(op.input),
                kb(op.output),
                kb(op.weight),
                kb(op.workspace),
                kb(op.total),
            ];
            table.add(device, &cells)?;
        }
        problems.foreign("fusion_op_info", ops.foreign());
    }
    Ok(table.finish()?)
}
