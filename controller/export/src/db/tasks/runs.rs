//! TASK: when tasks ran on devices.

use super::sent::SentTasks;
use super::{TaskIds, TaskKey, device};
use crate::db::Export;
use crate::db::schema::TASK_INDEX;
use crate::db::strings::Strings;
use crate::db::table::LazyTable;
use crate::db::wall::Wall;
use rusqlite::{Connection, Result};

/// What the host calls tasks whose parts the device names.
const IN_PARTS: &str = "FFTS_PLUS";
/// Type of a task that only the device knows.
const UNKNOWN: &str = "UNKNOWN";
/// Types that do not count when it is looked up from when to when a device was in use.
const ASIDE: [&str; 7] = [
    "KERNEL_AICORE",
    "KERNEL_AIVEC",
    IN_PARTS,
    "KERNEL_MIX_AIC",
    "KERNEL_MIX_AIV",
    "PROFILING_ENABLE",
    "PROFILING_DISABLE",
];

/// A task on a device, wall ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) struct Ran {
    pub(super) device: u32,
    pub(super) key: TaskKey,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Whether its device was in use by it, computing or not.
    pub(super) is_use: bool,
}

/// Makes the table and fills it.
pub(in crate::db) fn write<'db>(
    export: &mut Export<'_>,
    db: &'db Connection,
    sent: &SentTasks,
    ids: &mut TaskIds,
    strings: &mut Strings<'db>,
) -> Result<Vec<Ran>> {
    let mut table = LazyTable::new(db, "TASK");
    let mut ran = Vec::new();
    for number in sent.devices.iter().copied() {
        // The parser needs both sides.
        let Some(wall) = Wall::of_device(export.source, number).filter(|_| sent.any(number)) else {
            continue;
        };
        for run in device::runs(export, number) {
            let Some(kind) = run.kind else { continue };
            let known = match sent.get(run.key) {
                Some(sent) if sent.count > 1 => {
                    export.report.doubled += 1;
                    continue;
                }
                known => known,
            };
            let (start, end) = (wall.at(run.start), wall.at(run.end));
            if wall.start().is_some_and(|first| end < first) {
                export.report.early += 1;
                continue;
            }
            let host_kind = known.map_or(UNKNOWN, |known| sent.kind_name(known.kind));
            let shown = match host_kind {
                IN_PARTS | UNKNOWN => kind,
                host_kind => host_kind,
            };
            export.report.without_communication |= known.is_some_and(|known| known.communicates);
            table.insert((
                start,
                end,
                number,
                known.map_or(-1, |known| known.connection),
                ids.id(run.key),
                export.pid,
                strings.id(shown)?,
                run.key.context,
                run.key.stream,
                run.key.number,
                known.map_or(u32::MAX, |known| known.model),
            ))?;
            ran.push(Ran {
                device: number,
                key: run.key,
                start,
                end,
                is_use: !ASIDE.contains(&host_kind),
            });
        }
    }
    if table.rows() > 0 {
        db.execute_batch(TASK_INDEX)?;
    }
    export.made(table.name(), table.rows());
    Ok(ran)
}
