//! MSTX_EVENTS: marks and ranges that a program sets itself.

use super::Export;
use super::strings::Strings;
use super::table::LazyTable;
use crate::decode::tx::Mark;
use crate::source::Source;
use rusqlite::{Connection, Result};
use std::borrow::Cow;

/// What is not there.
const NONE: i64 = u32::MAX as i64;
/// Connection of a stamp, which leads nowhere. Those of numbered marks follow it.
const UNCONNECTED: i64 = 4_000_000_000;

/// Makes the table and fills it.
pub(super) fn write<'db>(
    export: &mut Export<'_>,
    db: &'db Connection,
    strings: &mut Strings<'db>,
) -> Result<()> {
    let source = export.source;
    let mut table = LazyTable::new(db, "MSTX_EVENTS");
    for mark in source.marks() {
        let Some(mark) = export.read(mark) else {
            continue;
        };
        let (begin, end) = (export.wall.at(mark.begin), export.wall.at(mark.end));
        if export.passes_early(begin) {
            continue;
        }
        let (category, connection) = match mark.numbered {
            true => (NONE, number(mark.id)),
            false => (mark.category.into(), UNCONNECTED),
        };
        let thread = export.global_thread(mark.thread);
        let message = strings.id(&mark.message)?;
        let domain = strings.id(&domain(source, &mark))?;
        table.insert((
            begin,
            end,
            event(mark.event),
            NONE,
            category,
            message,
            thread,
            thread,
            domain,
            connection,
        ))?;
    }
    export.made(table.name(), table.rows());
    Ok(())
}

/// Connection of a numbered mark, which a record of the device has too.
fn number(id: u64) -> i64 {
    let connection = i128::from(UNCONNECTED) + 1 + i128::from(id);
    connection.min(i64::MAX.into()) as i64
}

/// Kind of mark as ENUM_MSTX_EVENT_TYPE has it.
fn event(kind: u32) -> i64 {
    match kind {
        0..=3 => kind.into(),
        _ => u16::MAX.into(),
    }
}

/// What the parser calls a domain: stamps are in none.
fn domain<'a>(source: &'a Source, mark: &Mark) -> Cow<'a, str> {
    if !mark.numbered {
        return Cow::Borrowed("");
    }
    match source.string(mark.domain) {
        // The number is what a source says of an id that has no string.
        Cow::Owned(_) => Cow::Borrowed("invalid"),
        name => name,
    }
}
