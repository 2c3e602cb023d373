//! The tables of memory: `operator_memory`, `memory_record` and `static_op_mem`.

use super::sorted::Sorter;
use super::table::{Cell, Made, Table};
use super::wall::Wall;
use super::{ExportError, Problems};
use crate::decode::memory::TaskMemory;
use crate::number::{self, round3};
use crate::source::Source;
use std::collections::HashMap;

/// Columns of `operator_memory`.
pub const OPERATOR_COLUMNS: [&str; 9] = [
    "Name",
    "Size(KB)",
    "Allocation Time(us)",
    "Duration(us)",
    "Allocation Total Allocated(KB)",
    "Allocation Total Reserved(KB)",
    "Release Total Allocated(KB)",
    "Release Total Reserved(KB)",
    "Device",
];
/// Columns of `memory_record`.
pub const RECORD_COLUMNS: [&str; 5] = [
    "Component",
    "Timestamp(us)",
    "Total Allocated(KB)",
    "Total Reserved(KB)",
    "Device",
];
/// Columns of `static_op_mem`.
pub const STATIC_COLUMNS: [&str; 6] = [
    "Op Name",
    "Model Name",
    "Graph ID",
    "Node Index Start",
    "Node Index End",
    "Size(KB)",
];

/// Bytes of a KB.
pub const KB: f64 = 1024.0;
/// Memory that is in use at a time and remembered; of more, it is not told when it was given back.
const USED_MAX: usize = 1 << 20;
/// What the producer of static plans writes for "to the end", and what stands for it.
const TO_THE_END: (u64, u64) = (4_294_967_294, 4_294_967_295);

/// What tells one piece of memory: operator, address, device.
type Key = (u64, u64, u32);

fn key(record: &TaskMemory) -> Key {
    (record.node, record.address, record.device)
}

fn kb(bytes: impl Into<i128>) -> Cell<'static> {
    Cell::Float(round3(bytes.into() as f64 / KB))
}

fn time(wall: &Wall, ticks: u64) -> Cell<'static> {
    Cell::Own(format!("{}\t", number::us(wall.ns(ticks))).into())
}

fn device(record: &TaskMemory) -> Cell<'static> {
    Cell::Own(format!("NPU:{}", record.device).into())
}

/// A table whose rows are there once for each device, one device behind the other. Those of the first one go to the file at
/// once, the others wait in a [`Sorter`].
struct ForEach<'a> {
    table: Table<'a>,
    devices: &'a [String],
    others: Sorter<'a>,
}

impl ForEach<'_> {
    fn add(&mut self, cells: &[Cell]) -> Result<(), ExportError> {
        let columns = self.table.columns();
        for (number, device) in self.devices.iter().enumerate() {
            match number {
                0 => self.table.add(device, cells)?,
                _ => self
                    .others
                    .add(number as i128, &columns.row(device, cells))?,
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Made>, ExportError> {
        let mut table = self.table;
        let others = |row: &[u8]| table.add_row(row).map_err(ExportError::from);
        self.others.finish(others)?;
        Ok(table.finish()?)
    }
}

/// Writes `operator_memory` and `memory_record` in one pass, once for each device. Operators come in the order in which they
/// gave their memory back, then those that never did.
pub fn used<'a>(
    tables: [Table<'a>; 2],
    sorter: impl Fn() -> Sorter<'a>,
    source: &Source,
    wall: &Wall,
    devices: &'a [String],
    problems: &mut Problems,
) -> Result<Vec<Made>, ExportError> {
    let [mut operators, mut records] = tables.map(|table| ForEach {
        table,
        devices,
        others: sorter(),
    });
    let mut used: HashMap<Key, (u64, TaskMemory)> = HashMap::new();
    let mut number = 0;
    let mut taken = source.task_memory();
    for record in taken.by_ref() {
        let Some(record) = problems.read(record) else {
            continue;
        };
        records.add(&[
            Cell::Own("GE".into()),
            time(wall, record.time),
            kb(record.allocated),
            kb(record.reserved),
            device(&record),
        ])?;
        if record.size > 0 {
            number += 1;
            let room = used.len() < USED_MAX;
            match used.get_mut(&key(&record)) {
                // Taken twice: the later one counts, in the place of the first.
                Some((_, taken)) => *taken = record,
                None if room => {
                    used.insert(key(&record), (number, record));
                }
                None => operators.add(&row(source, wall, &record, None))?,
            }
        } else if record.size < 0
            && let Some((_, taken)) = used.remove(&key(&record))
        {
            operators.add(&row(source, wall, &taken, Some(&record)))?;
        }
    }
    problems.foreign("task_memory_info", taken.foreign());
    let mut rest: Vec<(u64, TaskMemory)> = used.into_values().collect();
    rest.sort_unstable_by_key(|(number, _)| *number);
    for (_, taken) in rest {
        operators.add(&row(source, wall, &taken, None))?;
    }
    let mut made = operators.finish()?;
    made.extend(records.finish()?);
    Ok(made)
}

fn row<'a>(
    source: &'a Source,
    wall: &Wall,
    taken: &TaskMemory,
    given: Option<&TaskMemory>,
) -> [Cell<'a>; 9] {
    let ticks = given.map_or(0, |given| i128::from(given.time) - i128::from(taken.time));
    [
        Cell::Name(source.known_string(taken.node).unwrap_or_default()),
        kb(taken.size),
        time(wall, taken.time),
        Cell::Float(round3(wall.duration_us(ticks))),
        kb(taken.allocated),
        kb(taken.reserved),
        kb(given.map_or(0, |given| given.allocated)),
        kb(given.map_or(0, |given| given.reserved)),
        device(taken),
    ]
}

/// Writes `static_op_mem`.
pub fn planned(
    mut table: Table,
    source: &Source,
    problems: &mut Problems,
) -> Result<Vec<Made>, ExportError> {
    let mut plans = source.static_op_memory();
    for plan in plans.by_ref() {
        let Some(plan) = problems.read(plan) else {
            continue;
        };
        let end = match plan.life_end {
            end if end == TO_THE_END.0 => TO_THE_END.1,
            end => end,
        };
        let cells = [
            match plan.operator {
                0 => Cell::Own("TOTAL".into()),
                id => Cell::Name(source.string(id)),
            },
            Cell::Name(source.string(plan.root)),
            Cell::Int(plan.graph.into()),
            Cell::Int(plan.life_start.into()),
            Cell::Int(end.into()),
            plain(plan.size as f64 / KB),
        ];
        table.add("host", &cells)?;
    }
    problems.foreign("static_op_mem", plans.foreign());
    Ok(table.finish()?)
}

/// A number as SQLite keeps it in a column without a type: a whole one loses its decimals.
fn plain(number: f64) -> Cell<'static> {
    match number.fract() == 0.0 {
        true => Cell::Int(number as i128),
        false => Cell::Float(number),
    }
}
