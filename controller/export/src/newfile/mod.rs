//! A file that was not there before: what is exported grows under a hidden name and has its own one when it is whole.
//!
//! Everything is done by the descriptor of the directory, never through a link in the place of a file, and nothing that is
//! there already is replaced unless that is asked for. What a killed export leaves is hidden, and the [`sweep`] of the next
//! one in that directory removes it.

mod advice;
mod owner;
mod stamp;
mod sweep;
#[cfg(test)]
mod tests;

pub use advice::way_out;
pub use stamp::{Stamp, stamps};

use owner::Owner;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Begins the name of a file that is not whole.
const HIDDEN: &str = ".msprof_";
/// Ends it.
const PARTIAL: &str = ".partial";
/// Mode of each file, whatever the umask: the owner's to write, the group's to read.
const FILE_MODE: u32 = 0o640;
/// Files of one process that grow in a directory at a time; there are few.
const GROWING_MAX: u32 = 1000;
/// Bytes that are written at a time.
const BUFFER: usize = 256 * 1024;
/// Entries of a directory that are looked at.
const ENTRIES_MAX: usize = 100_000;

/// An open directory that files are made in.
#[derive(Clone, Debug)]
pub struct Directory {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory, and removes what killed exports have left in it. Links in the path are followed: they are the
    /// user's own choice.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(CWD, path, flags | OFlags::RDONLY, Mode::empty()) {
            // One may write where one may not list.
            Err(Errno::ACCESS) => {
                rustix::fs::openat(CWD, path, flags | OFlags::PATH, Mode::empty())
            }
            opened => opened,
        };
        Ok(Directory::of(fd?, path))
    }

    /// The same of a directory that is open.
    pub fn of(fd: OwnedFd, path: &Path) -> Directory {
        let dir = Directory {
            fd: Arc::new(fd),
            path: path.to_owned(),
        };
        sweep::sweep(&dir, &Owner::this());
        dir
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its descriptor.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Names of what is in it, as far as they can be read.
    pub fn names(&self) -> Vec<String> {
        let entries = rustix::fs::Dir::read_from(&*self.fd).into_iter().flatten();
        let names = entries.flatten().take(ENTRIES_MAX);
        names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Whether something has this name, be it a link that leads nowhere.
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        rustix::fs::statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Begins a file.
    pub fn begin(&self) -> io::Result<NewFile> {
        let owner = Owner::this();
        for number in 0..GROWING_MAX {
            let hidden = format!("{HIDDEN}{owner}_{number}{PARTIAL}");
            match self.open_new(&hidden) {
                Ok(file) => {
                    // Some file systems have no modes; the restrictive one of the creation stands then.
                    let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(FILE_MODE));
                    // Tells a sweep that cannot see this process, from another pid namespace or host, that it lives.
                    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                    return Ok(NewFile {
                        dir: self.clone(),
                        file: BufWriter::with_capacity(BUFFER, file),
                        hidden,
                        named: false,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// A file without a name, for what does not fit into memory.
    pub fn scratch(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        match rustix::fs::openat(&self.fd, ".", flags, mode) {
            Ok(file) => Ok(file.into()),
            // File systems without such files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let file = self.begin()?;
                // It goes away with the name; what is open stays.
                file.file.get_ref().try_clone()
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn open_new(&self, name: &str) -> rustix::io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::openat(&self.fd, name, flags, mode).map(File::from)
    }

    fn remove(&self, name: &str) {
        // What cannot be removed now is the next sweep's.
        let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
    }
}

/// A file that grows. One that is dropped without a name is removed.
#[derive(Debug)]
pub struct NewFile {
    dir: Directory,
    file: BufWriter<File>,
    hidden: String,
    named: bool,
}

impl NewFile {
    /// The file itself, without what still waits to be written.
    pub fn file(&self) -> &File {
        self.file.get_ref()
    }

    /// Its name while it grows.
    pub fn hidden_name(&self) -> &str {
        &self.hidden
    }

    /// Writes what waits, and gives the file a name. Fails with [`AlreadyExists`](io::ErrorKind::AlreadyExists), and can be
    /// asked again with another name, where something has this one.
    pub fn name_it(&mut self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.settle()?;
        let dir = &self.dir.fd;
        name_new(dir, &self.hidden, name.as_ref())?;
        self.named = true;
        Ok(())
    }

    /// The same in the place of a file that is there.
    pub fn replace(&mut self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.settle()?;
        rustix::fs::renameat(&self.dir.fd, &self.hidden, &self.dir.fd, name.as_ref())?;
        self.named = true;
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        self.file.flush()?;
        // Network file systems say only when asked what they could not write.
        self.file.get_ref().sync_data()
    }
}

/// Renames a file, and replaces nothing.
fn name_new(dir: &OwnedFd, hidden: &str, name: &OsStr) -> rustix::io::Result<()> {
    let unknown = |errno: Errno| {
        let without = [
            Errno::INVAL,
            Errno::NOSYS,
            Errno::OPNOTSUPP,
            Errno::PERM,
            Errno::MLINK,
        ];
        without.contains(&errno)
    };
    match rustix::fs::renameat_with(dir, hidden, dir, name, RenameFlags::NOREPLACE) {
        Err(errno) if unknown(errno) => {}
        renamed => return renamed,
    }
    // Kernels and file systems without that.
    match rustix::fs::linkat(dir, hidden, dir, name, AtFlags::empty()) {
        Err(errno) if unknown(errno) => take_name(dir, hidden, name),
        Ok(()) => {
            // A second name that cannot be removed now is the next sweep's.
            let _ = rustix::fs::unlinkat(dir, hidden, AtFlags::empty());
            Ok(())
        }
        Err(errno) => Err(errno),
    }
}

/// The way that each file system knows: an empty file takes the name, and is then replaced. Killed between the two, it stays.
fn take_name(dir: &OwnedFd, hidden: &str, name: &OsStr) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
    let renamed = rustix::fs::renameat(dir, hidden, dir, name);
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
    }
    renamed
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.named {
            self.dir.remove(&self.hidden);
        }
    }
}
