//! MEMCPY_INFO: how much each task copies, from where to where.

use super::{TaskIds, Tasks, WHOLE, kind_name};
use crate::db::Export;
use crate::db::table::Table;
use rusqlite::{Connection, Result};
use std::collections::HashMap;

/// Name of the type of tasks that copy.
const COPY: &str = "MEMCPY_ASYNC";
/// Highest direction that has a name.
const DIRECTION_MAX: u16 = 7;
/// Direction of what is not known.
const OTHER: u16 = u16::MAX;

/// What is left to copy of what a call wants copied.
struct Copy {
    left: u64,
    piece: u64,
    direction: u16,
}

/// Makes the table and fills it. There is none where the host said nothing of copies.
pub(in crate::db) fn write(
    export: &mut Export<'_>,
    db: &Connection,
    tasks: &Tasks,
    ids: &mut TaskIds,
) -> Result<()> {
    let mut copies = HashMap::new();
    for copy in export.source.memcpys() {
        let Some(copy) = export.read(copy) else {
            continue;
        };
        let copy_of = Copy {
            left: copy.size,
            piece: copy.max_size,
            direction: copy.direction,
        };
        copies.insert((copy.thread, copy.time), copy_of);
    }
    if copies.is_empty() {
        return Ok(());
    }
    let mut table = Table::create(db, "MEMCPY_INFO")?;
    let mut names = HashMap::new();
    for tasks in tasks.by_thread() {
        for sent in tasks.chunk_by(|one, next| one.time == next.time) {
            let mut sent: Vec<_> = sent.iter().collect();
            // Tasks of one call share what it copies, in the order in which the device does them.
            sent.sort_by_key(|task| (task.batch, task.number));
            for task in sent {
                let name = names
                    .entry(task.kind)
                    .or_insert_with(|| kind_name(export, task.kind));
                if name != COPY {
                    continue;
                }
                let (bytes, direction) = match copies.get_mut(&(task.thread, task.time)) {
                    Some(copy) => copy.take(),
                    None => (0, OTHER),
                };
                let bytes = bytes.min(i64::MAX as u64) as i64;
                table.insert((ids.id(task.key(WHOLE)), bytes, direction))?;
            }
        }
    }
    export.report.tables.push((table.name(), table.rows()));
    Ok(())
}

impl Copy {
    /// What one task more copies.
    fn take(&mut self) -> (u64, u16) {
        if self.left == 0 {
            return (0, OTHER);
        }
        let bytes = self.left.min(self.piece);
        self.left -= bytes;
        let direction = match self.direction {
            known @ ..=DIRECTION_MAX => known,
            _ => OTHER,
        };
        (bytes, direction)
    }
}
