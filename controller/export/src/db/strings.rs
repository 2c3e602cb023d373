//! STRING_IDS: every string of the other tables once, numbered from 0 as it is met.

use super::table::Table;
use rusqlite::{Connection, Result};
use std::collections::HashMap;

/// The strings so far. Memory grows with what is different among them.
pub(super) struct Strings<'db> {
    table: Table<'db>,
    ids: HashMap<Box<str>, i64>,
}

impl<'db> Strings<'db> {
    pub(super) fn new(db: &'db Connection) -> Result<Strings<'db>> {
        Ok(Strings {
            table: Table::create(db, "STRING_IDS")?,
            ids: HashMap::new(),
        })
    }

    /// The number of a string.
    pub(super) fn id(&mut self, text: &str) -> Result<i64> {
        if let Some(id) = self.ids.get(text) {
            return Ok(*id);
        }
        let id = self.ids.len() as i64;
        self.table.insert((id, text))?;
        self.ids.insert(text.into(), id);
        Ok(id)
    }

    /// How many there are.
    pub(super) fn rows(&self) -> u64 {
        self.table.rows()
    }
}
