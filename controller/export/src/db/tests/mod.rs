//! Databases of PROF directories that are written byte by byte.

mod devices;
mod disk;
mod hostile;
mod prof;
mod queries;
mod rows;
mod schemas;
mod tasks;

use super::{DbReport, write_db};
use crate::source::Source;
use prof::Prof;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::PathBuf;

const NAME: &str = "msprof_20260605155111.db";

/// A database that was made.
struct Made {
    report: DbReport,
    db: Connection,
}

/// The database of a directory.
#[track_caller]
fn made(prof: &Prof) -> Made {
    let source = Source::open(prof.path()).expect("a directory");
    let report = write_db(&source, prof.path(), NAME, &mut |_| {}).expect("a database");
    assert_eq!(report.path, prof.path().join(NAME));
    assert_eq!(left(prof), [PathBuf::from(NAME)]);
    let db = Connection::open(&report.path).expect("opened");
    let check: String = db
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("checked");
    assert_eq!(check, "ok");
    Made { report, db }
}

/// What is in a directory besides what was captured.
fn left(prof: &Prof) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(prof.path()).expect("listed");
    let names = entries.map(|entry| PathBuf::from(entry.expect("an entry").file_name()));
    let mut names: Vec<PathBuf> = names
        .filter(|name| !name.starts_with("host") && !name.to_string_lossy().starts_with("device_"))
        .collect();
    names.sort();
    names
}

impl Made {
    /// Rows of a query as text, columns with a bar between them.
    #[track_caller]
    fn rows(&self, query: &str) -> Vec<String> {
        let mut statement = self.db.prepare(query).expect(query);
        let columns = statement.column_count();
        let rows = statement
            .query_map([], |row| {
                let values = (0..columns).map(|column| {
                    Ok(match row.get(column)? {
                        Value::Null => "NULL".to_owned(),
                        Value::Integer(number) => number.to_string(),
                        Value::Real(number) => format!("{number:?}"),
                        Value::Text(text) => text,
                        Value::Blob(_) => "BLOB".to_owned(),
                    })
                });
                let values: rusqlite::Result<Vec<String>> = values.collect();
                Ok(values?.join("|"))
            })
            .expect(query);
        rows.map(|row| row.expect(query)).collect()
    }

    /// Whether there is such a table.
    fn has(&self, table: &str) -> bool {
        let query = format!("SELECT 1 FROM sqlite_master WHERE name = '{table}'");
        !self.rows(&query).is_empty()
    }
}
