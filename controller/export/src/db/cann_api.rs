//! CANN_API: every call of the host.

use super::Export;
use super::strings::Strings;
use super::table::LazyTable;
use crate::calls::{Call, NameKey};
use crate::loads::{LoadFinder, Loads};
use crate::source::Source;
use msprof_agent_core::records::level;
use rusqlite::{Connection, Result};
use std::collections::HashMap;

/// Names in a row that are looked up by their number before the numbers are forgotten.
const KNOWN_MAX: usize = 1 << 16;

/// Makes the table and fills it.
pub(super) fn write<'db>(
    export: &mut Export<'_>,
    db: &'db Connection,
    strings: &mut Strings<'db>,
) -> Result<()> {
    let source = export.source;
    let mut table = LazyTable::new(db, "CANN_API");
    let mut names = Names::new(source);
    let mut loads = None;
    let mut calls = source.calls();
    for call in calls.by_ref() {
        let Some(call) = export.read(call) else {
            continue;
        };
        export.advance();
        let (begin, end) = (export.wall.at(call.begin), export.wall.at(call.end));
        if export.wall.start().is_some_and(|start| end < start) {
            // What lies in one is kept, however long before the capture it was.
            let loads = loads.get_or_insert_with(|| all_loads(export));
            if !loads.enclose(&call) {
                export.report.early += 1;
                continue;
            }
        }
        let thread = export.global_thread(call.thread);
        let name = names.id(&call, strings)?;
        let number = call.connection.min(i64::MAX as u64) as i64;
        table.insert((begin, end, export_level(call.level), thread, number, name))?;
    }
    export.report.skipped = calls.skipped();
    export.made(table.name(), table.rows());
    Ok(())
}

/// All loads of models of the capture.
fn all_loads(export: &mut Export<'_>) -> Loads {
    let source = export.source;
    let mut finder = LoadFinder::new(source);
    for call in source.calls() {
        if let Some(call) = export.read(call) {
            finder.see(&call);
        }
    }
    let loads = finder.found();
    export.report.loads_overflow = loads.overflow();
    loads
}

/// Level as the table has it: those above the calls of CANN have no number there.
fn export_level(lvl: u16) -> i64 {
    match lvl {
        level::PYTORCH | level::PTA | level::TX => u16::MAX.into(),
        lvl => lvl.into(),
    }
}

/// Numbers of the names of calls.
struct Names<'a> {
    source: &'a Source,
    known: HashMap<NameKey, i64>,
}

impl Names<'_> {
    fn new(source: &Source) -> Names<'_> {
        Names {
            source,
            known: HashMap::new(),
        }
    }

    fn id(&mut self, call: &Call, strings: &mut Strings<'_>) -> Result<i64> {
        let key = call.name_key();
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let id = strings.id(&self.source.name(key))?;
        self.known.insert(key, id);
        Ok(id)
    }
}
