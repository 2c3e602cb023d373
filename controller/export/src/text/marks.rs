//! The table `msprof_tx`: marks and ranges that programs set, by their begin.

use super::sorted::Sorter;
use super::table::{Cell, Format, Made, Table};
use super::timeline::domain;
use super::wall::Wall;
use super::{ExportError, Problems};
use crate::decode::tx::Mark;
use crate::number;
use crate::source::Source;

/// Columns of the csv file. The last two would come from a device's record of a mark.
pub const CSV_COLUMNS: [&str; 13] = [
    "pid",
    "tid",
    "category",
    "event_type",
    "payload_type",
    "payload_value",
    "Start_time(us)",
    "End_time(us)",
    "message_type",
    "message",
    "domain",
    "Device Start_time(us)",
    "Device End_time(us)",
];
/// Columns of the JSON file.
pub const JSON_COLUMNS: [&str; 12] = [
    "pid",
    "tid",
    "category",
    "event_type",
    "payload_type",
    "payload_value",
    "Start_time(us)",
    "End_time(us)",
    "message_type",
    "message",
    "domain",
    "mark_id",
];

/// Writes the table.
pub fn write(
    mut table: Table,
    mut sorter: Sorter,
    source: &Source,
    wall: &Wall,
    problems: &mut Problems,
) -> Result<Vec<Made>, ExportError> {
    let columns = table.columns();
    let mut marks = source.marks();
    for mark in marks.by_ref() {
        let Some(mark) = problems.read(mark) else {
            continue;
        };
        let cells = cells(source, wall, &mark, columns.format);
        sorter.add(wall.ns(mark.begin), &columns.row("host", &cells))?;
    }
    problems.foreign("msproftx", marks.foreign());
    sorter.finish(|row| table.add_row(row).map_err(ExportError::from))?;
    Ok(table.finish()?)
}

fn cells<'a>(source: &'a Source, wall: &Wall, mark: &'a Mark, format: Format) -> Vec<Cell<'a>> {
    let time = |ticks| Cell::Own(format!("{}\t", number::us(wall.ns(ticks))).into());
    // Numbered ones have no attributes, stamps no domain.
    let stamp = |cell: Cell<'a>| if mark.numbered { Cell::NONE } else { cell };
    let mut cells = vec![
        Cell::Int(mark.process.into()),
        Cell::Int(mark.thread.into()),
        stamp(Cell::Int(mark.category.into())),
        Cell::Own(mark.event_name().into()),
        stamp(Cell::Int(mark.payload_kind.into())),
        stamp(Cell::Int(mark.payload.into())),
        time(mark.begin),
        time(mark.end),
        stamp(Cell::Int(mark.message_kind.into())),
        Cell::Name(mark.message.as_str().into()),
        match mark.numbered {
            true => Cell::Name(domain(source, mark)),
            false => Cell::NONE,
        },
    ];
    match format {
        Format::Csv => cells.extend([Cell::NONE, Cell::NONE]),
        Format::Json if mark.numbered => cells.push(Cell::Int(mark.id.into())),
        Format::Json => cells.push(Cell::NONE),
    }
    cells
}
