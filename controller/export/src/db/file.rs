//! The file that the database is made in.
//!
//! SQLite opens by path and follows links on the way. The file is therefore made here, by descriptor, and what SQLite has
//! opened is compared with it before anything is written: whoever may rename in the directory can make the export fail, and
//! nothing else. There is no journal beside it: what fails is removed, so there is nothing to go back to.

use super::DbError;
use crate::newfile::{Directory, NewFile};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Before anything else: nothing beside the file, nothing kept for a crash, and 64 MiB of pages in memory at most.
const SETTINGS: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; \
     PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;";

/// SQLite's way of opening without locks of its own: the file is this process's alone, and some file systems have none.
const VFS: &str = "unix-none";

/// A file that is not whole yet. Removed when dropped.
#[derive(Debug)]
pub(super) struct DbFile {
    dir: Directory,
    file: NewFile,
}

impl DbFile {
    /// Makes an empty file in a directory.
    pub(super) fn create(dir: &Path) -> Result<DbFile, DbError> {
        let failed = |error| DbError::io(dir, error);
        let dir = Directory::open(dir).map_err(failed)?;
        let file = dir.begin().map_err(failed)?;
        Ok(DbFile { dir, file })
    }

    /// Whether something has this name already; one that is no name of a file is an error.
    pub(super) fn has(&self, name: &str) -> Result<bool, DbError> {
        if name.contains('/') || matches!(name, "" | "." | "..") {
            return Err(DbError::io(
                &self.dir.path().join(name),
                Errno::INVAL.into(),
            ));
        }
        Ok(self.dir.has(name))
    }

    /// Where it is before it is whole.
    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join(self.file.hidden_name())
    }

    /// Has SQLite open it, and nothing else.
    pub(super) fn open(&self) -> Result<Connection, DbError> {
        // Where the directory is now, whatever its path leads to.
        let fd = self.dir.fd().as_raw_fd();
        let path = format!("/proc/self/fd/{fd}/{}", self.file.hidden_name());
        // Without CREATE: no other file comes into being.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags_and_vfs(path, flags, VFS)
            .map_err(|error| DbError::sqlite(&self.path(), error))?;
        if !self.is_open_twice().unwrap_or(false) {
            return Err(DbError::Astray { path: self.path() });
        }
        connection
            .execute_batch(SETTINGS)
            .map_err(|error| DbError::sqlite(&self.path(), error))?;
        Ok(connection)
    }

    /// Whether a second descriptor of this process is this file: SQLite's.
    fn is_open_twice(&self) -> io::Result<bool> {
        let own = self.file.file().metadata()?;
        let mut found = 0;
        for entry in std::fs::read_dir("/proc/self/fd")? {
            // The link leads to the open file itself, not to what has its name.
            if let Ok(open) = std::fs::metadata(entry?.path()) {
                found += usize::from(open.dev() == own.dev() && open.ino() == own.ino());
            }
        }
        Ok(found > 1)
    }

    /// Why SQLite could not write it. What it has no word of its own for, such as a quota or a broken disk, the system says when
    /// it is asked to write there once more.
    pub(super) fn failed(&self, path: &Path, error: rusqlite::Error) -> DbError {
        if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
            let file = self.file.file();
            let end = file.metadata().map_or(0, |metadata| metadata.len());
            let again = file.write_all_at(&[0; 4096], end);
            if let Err(error) = again.and_then(|()| file.sync_data()) {
                return DbError::io(path, error);
            }
        }
        DbError::sqlite(path, error)
    }

    /// Gives the whole file its name. Nothing that has this name is replaced; another one may be asked for then.
    pub(super) fn publish(&mut self, name: &str) -> Result<PathBuf, DbError> {
        let path = self.dir.path().join(name);
        match self.file.name_it(name) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(DbError::exists(&path))
            }
            Err(error) => Err(DbError::io(&path, error)),
        }
    }
}
