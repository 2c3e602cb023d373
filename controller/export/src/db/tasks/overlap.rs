//! OVERLAP_ANALYSIS: from when to when devices computed, and were free.

use super::runs::Ran;
use super::sent::SentTasks;
use crate::db::Export;
use crate::db::table::LazyTable;
use rusqlite::{Connection, Result};

const COMPUTE: i64 = 0;
const FREE: i64 = 3;

/// A time, wall ns.
type Section = (i64, i64);

/// Makes the table and fills it. Where devices communicated as well, it would be wrong, and is not made.
pub(in crate::db) fn write(
    export: &mut Export<'_>,
    db: &Connection,
    sent: &SentTasks,
    mut ran: Vec<Ran>,
) -> Result<()> {
    if export.report.without_communication {
        return Ok(());
    }
    let mut table = LazyTable::new(db, "OVERLAP_ANALYSIS");
    ran.sort_by_key(|ran| (ran.device, ran.start, ran.end));
    for ran in ran.chunk_by(|one, next| one.device == next.device) {
        let device = ran[0].device;
        let computing = ran.iter().filter(|ran| sent.is_computing(ran.key));
        let computing = united(computing.map(|ran| (ran.start, ran.end)));
        let used = ran.iter().filter(|ran| ran.is_use);
        let used = used.map(|ran| (ran.start, ran.end));
        let first = used
            .clone()
            .chain(computing.iter().copied())
            .map(|(start, _)| start)
            .min();
        let last = used
            .chain(computing.iter().copied())
            .map(|(_, end)| end)
            .max();
        let free = match (first, last) {
            (Some(first), Some(last)) => between(first, last, &computing),
            _ => Vec::new(),
        };
        for (sections, kind) in [(&computing, COMPUTE), (&free, FREE)] {
            for (start, end) in sections.iter().filter(|(start, end)| start < end) {
                table.insert((table.rows() as i64, device, start, end, kind))?;
            }
        }
    }
    export.made(table.name(), table.rows());
    Ok(())
}

/// Sections that come by their start, those put together that overlap or meet.
fn united(sections: impl Iterator<Item = Section>) -> Vec<Section> {
    let mut united: Vec<Section> = Vec::new();
    for (start, end) in sections {
        match united.last_mut() {
            Some(last) if last.1 >= start => last.1 = last.1.max(end),
            _ => united.push((start, end)),
        }
    }
    united
}

/// What lies between sections, from a first time to a last one.
fn between(first: i64, last: i64, sections: &[Section]) -> Vec<Section> {
    let mut free = Vec::new();
    let mut from = first;
    for (start, end) in sections {
        free.push((from, *start));
        from = from.max(*end);
    }
    free.push((from, last));
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_overlap_or_meet_are_one() {
        let sections = [(1, 4), (2, 3), (4, 6), (8, 9)];
        assert_eq!(united(sections.into_iter()), [(1, 6), (8, 9)]);
        assert_eq!(between(0, 12, &[(1, 6), (8, 9)]), [(0, 1), (6, 8), (9, 12)]);
    }
}
