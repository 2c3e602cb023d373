//! A table and the rows that go into it.

use super::schema;
use rusqlite::{Connection, Params, Result, Statement};

/// A table that has been made, with its prepared statement.
pub(super) struct Table<'db> {
    name: &'static str,
    insert: Statement<'db>,
    rows: u64,
    ignored: u64,
}

impl<'db> Table<'db> {
    /// Makes a table of the schema.
    pub(super) fn create(db: &'db Connection, name: &'static str) -> Result<Table<'db>> {
        db.execute_batch(&schema::create(name))?;
        let places = vec!["?"; schema::columns(name).len()].join(",");
        Ok(Table {
            name,
            insert: db.prepare(&format!("INSERT OR IGNORE INTO {name} VALUES ({places})"))?,
            rows: 0,
            ignored: 0,
        })
    }

    /// Adds a row; the first of those with one key.
    pub(super) fn insert(&mut self, row: impl Params) -> Result<()> {
        match self.insert.execute(row)? {
            0 => self.ignored += 1,
            _ => self.rows += 1,
        }
        Ok(())
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }
}

/// A table that is made with its first row: the stock parser makes none that would be empty.
pub(super) struct LazyTable<'db> {
    db: &'db Connection,
    name: &'static str,
    table: Option<Table<'db>>,
}

impl<'db> LazyTable<'db> {
    pub(super) fn new(db: &'db Connection, name: &'static str) -> LazyTable<'db> {
        LazyTable {
            db,
            name,
            table: None,
        }
    }

    /// Adds a row; the first of those with one key.
    pub(super) fn insert(&mut self, row: impl Params) -> Result<()> {
        let table = match &mut self.table {
            Some(table) => table,
            none => none.insert(Table::create(self.db, self.name)?),
        };
        table.insert(row)
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> u64 {
        self.table.as_ref().map_or(0, Table::rows)
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// How many rows there were whose key another one had.
    pub(super) fn ignored(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| table.ignored)
    }
}
