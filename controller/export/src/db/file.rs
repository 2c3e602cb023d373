//! The file that the database is made in: beside its place under a name of its own, whole or not there.
//!
//! SQLite opens by path and follows links on the way. The file is therefore made here, by descriptor, and what SQLite has
//! opened is compared with it before anything is written: whoever may rename in the directory can make the export fail, and
//! nothing else. There is no journal beside it: what fails is removed, so there is nothing to go back to.

use super::DbError;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of the file when it is whole.
const FILE_MODE: u32 = 0o640;
/// Names that are tried for a file that is not whole; others may have been left by exports that were killed.
const TRIES: u32 = 100;
/// Before anything else: nothing beside the file, nothing kept for a crash, and 64 MiB of pages in memory at most.
const SETTINGS: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; \
     PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;";

/// A file that is not whole yet. Removed when dropped.
#[derive(Debug)]
pub(super) struct DbFile {
    dir: File,
    dir_path: PathBuf,
    file: File,
    name: String,
    whole: bool,
}

impl DbFile {
    /// Makes an empty file in a directory, for a database that is to be called `name`.
    pub(super) fn create(dir_path: &Path, name: &str) -> Result<DbFile, DbError> {
        let failed = |errno: Errno| DbError::io(&dir_path.join(name), errno.into());
        if name.contains('/') || matches!(name, "" | "." | "..") {
            return Err(failed(Errno::INVAL));
        }
        // A link in the path is the user's own choice; from here on the directory is this one.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(dir_path, flags, Mode::empty()).map_err(failed)?;
        // Said now and not after the work.
        if rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(DbError::exists(&dir_path.join(name)));
        }
        let pid = std::process::id();
        for number in 0..TRIES {
            let temporary = format!(".{name}.{pid}.{number}");
            let flags =
                OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(&dir, &temporary, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    let file = File::from(file);
                    // Some file systems have no modes; the restrictive one of the creation stands then.
                    let _ = file.set_permissions(Permissions::from_mode(FILE_MODE));
                    return Ok(DbFile {
                        dir: File::from(dir),
                        dir_path: dir_path.to_owned(),
                        file,
                        name: temporary,
                        whole: false,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Err(failed(Errno::EXIST))
    }

    /// Where it is before it is whole.
    pub(super) fn path(&self) -> PathBuf {
        self.dir_path.join(&self.name)
    }

    /// Has SQLite open it, and nothing else.
    pub(super) fn open(&self) -> Result<Connection, DbError> {
        // Where the directory is now, whatever its path leads to.
        let path = format!("/proc/self/fd/{}/{}", self.dir.as_raw_fd(), self.name);
        // Without CREATE: no other file comes into being.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)
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
        let own = self.file.metadata()?;
        let mut found = 0;
        for entry in std::fs::read_dir("/proc/self/fd")? {
            // The link leads to the open file itself, not to what has its name.
            if let Ok(open) = std::fs::metadata(entry?.path()) {
                found += usize::from(open.dev() == own.dev() && open.ino() == own.ino());
            }
        }
        Ok(found > 1)
    }

    /// Gives the whole file its name. Nothing that has this name is replaced.
    pub(super) fn publish(mut self, name: &str) -> Result<PathBuf, DbError> {
        let path = self.dir_path.join(name);
        let named = match rustix::fs::renameat_with(
            &self.dir,
            &self.name,
            &self.dir,
            name,
            RenameFlags::NOREPLACE,
        ) {
            // File systems that cannot refuse to replace; whoever comes between the two loses his file.
            Err(Errno::INVAL | Errno::NOSYS) => {
                match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(_) => rustix::fs::renameat(&self.dir, &self.name, &self.dir, name),
                }
            }
            named => named,
        };
        match named {
            Ok(()) => {
                self.whole = true;
                Ok(path)
            }
            Err(Errno::EXIST) => Err(DbError::exists(&path)),
            Err(errno) => Err(DbError::io(&path, errno.into())),
        }
    }
}

impl Drop for DbFile {
    fn drop(&mut self) {
        if !self.whole {
            let _ = rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}
