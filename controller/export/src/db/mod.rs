//! `msprof_<ts>.db`: the capture as an SQLite database with the schema of the stock parser's (spec 3 section 10.8).
//!
//! Rows go straight from the records to the file, in one transaction. Memory grows with the number of different strings, and
//! with that of tasks that the host sent to a device.

mod cann_api;
mod enums;
mod file;
mod frequency;
mod marks;
mod memory;
mod schema;
mod session;
mod strings;
mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod wall;

use crate::calls::{Call, Skipped};
use crate::newfile::{stamps, way_out};
use crate::notes;
use crate::source::Source;
use crate::unread::Unread;
use file::DbFile;
use msprof_agent_core::profdir::reader::ReadError;
use rusqlite::{Connection, ErrorCode};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use strings::Strings;
use tasks::{TaskIds, Tasks, compute, memcpy, overlap, runs};
use wall::Wall;

/// Bytes of records between two reports of the progress.
const PROGRESS_EVERY: u64 = 1 << 18;

/// Why there is no database.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The directory cannot be written, or its disk is full.
    #[error("cannot write {path}: {source}{}", way_out(.source))]
    Io {
        /// The database.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something has its name; it is left as it is.
    #[error("{path} exists already: remove it, or export again")]
    Exists {
        /// The database.
        path: PathBuf,
    },
    /// While it was opened, somebody put another file in its place; nothing was written there.
    #[error(
        "{path} was replaced by another file while it was opened: see who else writes in this directory"
    )]
    Astray {
        /// The file.
        path: PathBuf,
    },
    /// SQLite says no.
    #[error("cannot write {path}: {source}")]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

impl DbError {
    fn io(path: &Path, source: io::Error) -> DbError {
        DbError::Io {
            path: path.to_owned(),
            source,
        }
    }

    fn exists(path: &Path) -> DbError {
        DbError::Exists {
            path: path.to_owned(),
        }
    }

    /// Of the system's trouble, its own word for it.
    fn sqlite(path: &Path, source: rusqlite::Error) -> DbError {
        let errno = match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Errno::NOSPC,
            Some(ErrorCode::ReadOnly) => Errno::ROFS,
            Some(ErrorCode::OutOfMemory) => Errno::NOMEM,
            Some(ErrorCode::PermissionDenied) => Errno::ACCESS,
            _ => {
                return DbError::Sqlite {
                    path: path.to_owned(),
                    source,
                };
            }
        };
        DbError::io(path, errno.into())
    }
}

/// A database that has been made, and what is not in it.
#[derive(Debug, Default)]
pub struct DbReport {
    /// Where it is.
    pub path: PathBuf,
    /// Its tables with their rows.
    pub tables: Vec<(&'static str, u64)>,
    /// What was over before the capture began, and is left out as the stock parser leaves it out.
    pub early: u64,
    /// Times beyond the numbers of a database; they are its last one, some 292 years after 1970.
    pub outside: u64,
    /// Tasks that another one of the same stream, batch and number came before. Two rows with one key cannot be; the stock
    /// parser has none at all then.
    pub doubled: u64,
    /// Whether there were more loads of models than are remembered: calls in the others count as early.
    pub loads_overflow: bool,
    /// Records of the api_event files that are no calls.
    pub skipped: Skipped,
    /// Whether devices ran communications: the tables of these, and OVERLAP_ANALYSIS, which has to have them, are not made.
    pub without_communication: bool,
    /// Slices that could not be read to their end.
    pub unread: Unread,
}

impl DbReport {
    /// Rows of a table, `None` where there is no such table.
    pub fn rows(&self, name: &str) -> Option<u64> {
        let mut tables = self.tables.iter().filter(|(table, _)| *table == name);
        tables.next().map(|(_, rows)| *rows)
    }

    /// What is wrong with the directory: the database holds what can be read of it.
    pub fn problems(&self, source: &Source) -> Vec<String> {
        let mut problems = notes::problems(source);
        problems.extend(self.unread.sentences());
        problems.extend(notes::of_calls(&self.skipped));
        if self.outside > 0 {
            problems.push(format!(
                "{} times are beyond what a database can hold, and are the last one that it can",
                self.outside
            ));
        }
        problems
    }

    /// What else is to be known.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.early > 0 {
            notes.push(format!(
                "{} calls, marks and tasks were over before the capture began, and are left out",
                self.early
            ));
        }
        notes.extend(notes::of_loads(self.loads_overflow));
        if self.doubled > 0 {
            notes.push(format!(
                "{} tasks have the stream and number of another one, and no row of their own",
                self.doubled
            ));
        }
        if self.without_communication {
            notes.push(
                "devices communicated: COMMUNICATION_OP, COMMUNICATION_TASK_INFO and OVERLAP_ANALYSIS are not made"
                    .to_owned(),
            );
        }
        notes
    }
}

/// Writes a directory's records as `msprof_<time>.db` into it, `<time>` being the local time or, where that is taken, one of
/// the next seconds. For the rest see [`write_db`].
pub fn export(source: &Source, progress: &mut dyn FnMut(u64)) -> Result<DbReport, DbError> {
    let directory = source.profile().path();
    let mut file = DbFile::create(directory)?;
    let names = stamps().map(|stamp| format!("msprof_{stamp}.db"));
    let names: Vec<String> = names.collect();
    let shown = names.first().map_or("msprof.db", String::as_str);
    let mut report = write(source, &file, &directory.join(shown), progress)?;
    let mut outcome = Err(DbError::exists(directory));
    for name in &names {
        outcome = file.publish(name);
        if !matches!(outcome, Err(DbError::Exists { .. })) {
            break;
        }
    }
    report.path = outcome?;
    Ok(report)
}

/// How many bytes of records an export reads, as far as its progress tells them.
pub fn work(source: &Source) -> u64 {
    source.call_bytes()
}

/// Writes a directory's records as a database called `name` into an existing directory, as a rule the PROF_XXX directory
/// itself. `progress` hears now and then how many bytes of calls have been read since.
///
/// The database is there when it is whole, with mode 0640, and never in the place of another file; on an error nothing is
/// left. It may be called from any thread.
pub fn write_db(
    source: &Source,
    directory: &Path,
    name: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<DbReport, DbError> {
    let path = directory.join(name);
    let mut file = DbFile::create(directory)?;
    // Said now and not after the work.
    if file.has(name)? {
        return Err(DbError::exists(&path));
    }
    let mut report = write(source, &file, &path, progress)?;
    report.path = file.publish(name)?;
    Ok(report)
}

/// Fills a file that is to be at `path`.
fn write(
    source: &Source,
    file: &DbFile,
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<DbReport, DbError> {
    let connection = file.open()?;
    let mut export = Export {
        source,
        wall: Wall::new(source),
        pid: source.process().pid,
        report: DbReport::default(),
        progress,
        bytes: 0,
    };
    let written = export.write(&connection);
    let closed = match written {
        Ok(()) => connection.close().map_err(|(_, error)| error),
        Err(error) => Err(error),
    };
    closed.map_err(|error| file.failed(path, error))?;
    let mut report = export.report;
    report.outside += export.wall.outside();
    Ok(report)
}

/// An export at work.
struct Export<'a> {
    source: &'a Source,
    wall: Wall,
    pid: u32,
    report: DbReport,
    progress: &'a mut dyn FnMut(u64),
    /// Bytes of calls that the progress has not been told of.
    bytes: u64,
}

impl Export<'_> {
    fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        db.execute_batch("BEGIN")?;
        self.report.tables = enums::write(db)?;
        session::write(self, db)?;
        frequency::write(self, db)?;
        let mut strings = Strings::new(db)?;
        cann_api::write(self, db, &mut strings)?;
        marks::write(self, db, &mut strings)?;
        memory::write(self, db, &mut strings)?;
        let tasks = Tasks::read(self);
        let mut ids = TaskIds::default();
        memcpy::write(self, db, &tasks, &mut ids)?;
        let sent = compute::write(self, db, &tasks, &mut ids, &mut strings)?;
        drop(tasks);
        let runs = runs::write(self, db, &sent, &mut ids, &mut strings)?;
        overlap::write(self, db, &sent, runs)?;
        self.report.tables.push(("STRING_IDS", strings.rows()));
        db.execute_batch("COMMIT")
    }

    /// Whether what was at that time is left out, since the capture began later; it is counted then.
    fn passes_early(&mut self, time: i64) -> bool {
        let early = self.wall.start().is_some_and(|start| time < start);
        self.report.early += u64::from(early);
        early
    }

    /// What was read; an error is kept for the report.
    fn read<T>(&mut self, read: Result<T, ReadError>) -> Option<T> {
        read.map_err(|error| self.report.unread.push(error)).ok()
    }

    /// One call more has been read.
    fn advance(&mut self) {
        self.bytes += Call::BYTES;
        if self.bytes >= PROGRESS_EVERY {
            (self.progress)(std::mem::take(&mut self.bytes));
        }
    }

    /// A thread among those of all processes.
    fn global_thread(&self, thread: u32) -> i64 {
        // Kernel pids have 22 bits; the sign bit is that of a file that says otherwise.
        (u64::from(self.pid) << 32 | u64::from(thread)) as i64
    }

    /// A table has been made, if it has rows.
    fn made(&mut self, name: &'static str, rows: u64) {
        if rows > 0 {
            self.report.tables.push((name, rows));
        }
    }
}
