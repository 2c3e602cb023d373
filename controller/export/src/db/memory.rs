//! NPU_OP_MEM: memory of devices that operators took and gave back.

use super::Export;
use super::strings::Strings;
use super::table::LazyTable;
use rusqlite::{Connection, Result};

/// Who manages the memory that these records are about.
const COMPONENT: &str = "GE";

/// Makes the table and fills it.
pub(super) fn write<'db>(
    export: &mut Export<'_>,
    db: &'db Connection,
    strings: &mut Strings<'db>,
) -> Result<()> {
    let source = export.source;
    let mut table = LazyTable::new(db, "NPU_OP_MEM");
    for memory in source.task_memory() {
        let Some(memory) = export.read(memory) else {
            continue;
        };
        let time = export.wall.at(memory.time);
        if export.passes_early(time) {
            continue;
        }
        let kind = match memory.size < 0 {
            true => "release",
            false => "allocate",
        };
        table.insert((
            strings.id(&source.string(memory.node))?,
            // An address is 64 bits; the table's number has the same ones.
            memory.address as i64,
            strings.id(kind)?,
            memory.size.saturating_abs(),
            time,
            export.global_thread(memory.thread),
            bytes(memory.allocated),
            bytes(memory.reserved),
            strings.id(COMPONENT)?,
            // The parser's own number of a device has 16 bits.
            memory.device & u32::from(u16::MAX),
        ))?;
    }
    export.made(table.name(), table.rows());
    Ok(())
}

/// Bytes, as many as a number of the table can tell.
fn bytes(count: u64) -> i64 {
    count.min(i64::MAX as u64) as i64
}
