//! The table `api_statistic`: calls by name.

use super::output::OutputError;
use super::survey::Survey;
use super::table::{Cell, Made, Table};
use super::wall::Wall;
use crate::levels;
use crate::number::round3;

/// Its columns.
pub const COLUMNS: [&str; 8] = [
    "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance",
];

/// Writes the table, once for each device.
pub fn write(
    mut table: Table,
    survey: &Survey,
    wall: &Wall,
    devices: &[String],
) -> Result<Vec<Made>, OutputError> {
    for device in devices {
        for group in &survey.groups {
            let cells = [
                Cell::Own(levels::name(group.level)),
                Cell::Name(group.name.as_str().into()),
                Cell::Float(group.total_us(wall)),
                Cell::Int(group.count.into()),
                Cell::Float(group.mean_us(wall)),
                Cell::Float(round3(wall.duration_us(group.min))),
                Cell::Float(round3(wall.duration_us(group.max))),
                Cell::Float(group.variance()),
            ];
            table.add(device, &cells)?;
        }
    }
    table.finish()
}
