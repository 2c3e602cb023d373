//! Directories and files by descriptor.
//!
//! Everything is made relative to an open directory, exclusively, and never through a link, so that
//! nobody who can write beside us turns a file of ours into one of theirs. Modes do not depend on
//! the process's umask, which is not ours to change. Descriptors are close-on-exec and never 0 to 2:
//! a program that closed those must not find our files there.

use crate::process::fd::keep_above_standard;
use crate::process::guarded::Guarded;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of directories in their final state.
const DIR_MODE: u32 = 0o750;
/// Mode of files in their final state.
const FILE_MODE: u32 = 0o640;

/// An open directory.
#[derive(Debug)]
pub(super) struct Dir {
    file: Guarded,
    path: PathBuf,
}

/// A directory's descriptor for one call.
enum Handle<'a> {
    Kept(&'a File),
    /// The program has closed the one that was kept.
    Again(Guarded),
}

impl AsRawFd for Handle<'_> {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Handle::Kept(file) => file.as_raw_fd(),
            Handle::Again(file) => file.as_fd().as_raw_fd(),
        }
    }
}

impl Dir {
    /// Opens an existing directory; links in `path` are followed, it is the user's own choice.
    pub(super) fn open(path: &Path) -> io::Result<Dir> {
        let name = c_string(path.as_os_str())?;
        let file = open_at(libc::AT_FDCWD, &name, libc::O_RDONLY | libc::O_DIRECTORY)?;
        Ok(Dir {
            file: Guarded::new(file),
            path: path.to_owned(),
        })
    }

    /// A descriptor that is this directory's for certain, whatever the program has closed.
    fn handle(&self) -> io::Result<Handle<'_>> {
        let lost = match self.file.get() {
            Ok(file) => return Ok(Handle::Kept(file)),
            Err(lost) => lost,
        };
        let name = c_string(self.path.as_os_str())?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let again = Guarded::new(open_at(libc::AT_FDCWD, &name, flags)?);
        if again.is_same(&self.file) {
            Ok(Handle::Again(again))
        } else {
            Err(lost)
        }
    }

    /// Where it was when it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Owner, mode and the like.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.file.get()?.metadata()
    }

    /// Makes and opens a new directory inside.
    pub(super) fn make_dir(&self, name: &str) -> io::Result<Dir> {
        let c_name = c_string(OsStr::new(name))?;
        make_dir_at(self.handle()?.as_raw_fd(), &c_name)?;
        match self.open_dir(name) {
            Ok(dir) => Ok(dir),
            Err(error) => {
                let _ = self.remove_dir(name);
                Err(error)
            }
        }
    }

    fn open_dir(&self, name: &str) -> io::Result<Dir> {
        let c_name = c_string(OsStr::new(name))?;
        Ok(Dir {
            file: Guarded::new(open_new_dir(self.handle()?.as_raw_fd(), &c_name)?),
            path: self.path.join(name),
        })
    }

    /// Makes a new file and opens it for writing.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let c_name = c_string(OsStr::new(name))?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = open_at(self.handle()?.as_raw_fd(), &c_name, flags)?;
        // Some file systems have no modes; the restrictive one of the creation stands then.
        let _ = file.set_permissions(Permissions::from_mode(FILE_MODE));
        Ok(file)
    }

    /// Opens a file that [`create`](Dir::create) made for writing on.
    pub(super) fn reopen(&self, name: &str) -> io::Result<File> {
        let c_name = c_string(OsStr::new(name))?;
        // O_NONBLOCK: if somebody put a pipe in its place, the open must not wait for a reader.
        let flags = libc::O_WRONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = open_at(self.handle()?.as_raw_fd(), &c_name, flags)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        Ok(file)
    }

    /// Makes a file with all its content, or none.
    pub(super) fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.create(name)?;
        let written = file.write_all(content);
        let written = written.and_then(|()| close(Guarded::new(file)));
        if written.is_err() {
            let _ = self.unlink(name);
        }
        written
    }

    /// Removes a file or link.
    pub(super) fn unlink(&self, name: &str) -> io::Result<()> {
        self.unlink_at(name, 0)
    }

    /// Removes an empty directory.
    pub(super) fn remove_dir(&self, name: &str) -> io::Result<()> {
        self.unlink_at(name, libc::AT_REMOVEDIR)
    }

    fn unlink_at(&self, name: &str, flags: libc::c_int) -> io::Result<()> {
        let c_name = c_string(OsStr::new(name))?;
        let handle = self.handle()?;
        // SAFETY: the descriptor is open for the duration of the call, the name is NUL-terminated.
        check(unsafe { libc::unlinkat(handle.as_raw_fd(), c_name.as_ptr(), flags) }).map(drop)
    }

    /// Moves `from` in this directory to `to` in another one; an existing file is replaced.
    pub(super) fn rename(&self, from: &str, target: &Dir, to: &str) -> io::Result<()> {
        let (c_from, c_to) = (c_string(OsStr::new(from))?, c_string(OsStr::new(to))?);
        let (here, there) = (self.handle()?, target.handle()?);
        // SAFETY: both descriptors are open for the duration of the call, both names are
        // NUL-terminated.
        check(unsafe {
            libc::renameat(
                here.as_raw_fd(),
                c_from.as_ptr(),
                there.as_raw_fd(),
                c_to.as_ptr(),
            )
        })
        .map(drop)
    }

    /// Bytes that an ordinary user may still write here; `None` where the file system does not say.
    pub(super) fn free_bytes(&self) -> io::Result<Option<u64>> {
        let handle = self.handle()?;
        let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the descriptor is open, the buffer has the size the call fills.
        check(unsafe { libc::fstatvfs(handle.as_raw_fd(), stat.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so it filled the buffer.
        let stat = unsafe { stat.assume_init() };
        if stat.f_blocks == 0 {
            return Ok(None);
        }
        // These fields are narrower on some targets.
        #[allow(clippy::unnecessary_cast)]
        let (blocks, size) = (stat.f_bavail as u64, stat.f_frsize as u64);
        Ok(Some(blocks.saturating_mul(size)))
    }

    /// The same open directory, by the path that it was moved to.
    pub(super) fn moved(self, path: PathBuf) -> Dir {
        Dir { path, ..self }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens `path` as a directory, making it and its missing parents. `made` receives those that were
/// made, outermost first.
pub(super) fn make_dirs(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<Dir> {
    match Dir::open(path) {
        Ok(dir) => return Ok(dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|p| !p.as_os_str().is_empty() && !p.exists())
        .collect();
    for dir in missing.into_iter().rev() {
        let name = c_string(dir.as_os_str())?;
        match make_dir_at(libc::AT_FDCWD, &name) {
            Ok(()) => {
                made.push(dir.to_owned());
                open_new_dir(libc::AT_FDCWD, &name)?;
            }
            // Another rank of the same job makes the same directory at the same time.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Dir::open(path)
}

/// Closes a file and passes on what only the close reports: delayed write errors of network file
/// systems. One that the program has closed is left alone.
pub(super) fn close(file: Guarded) -> io::Result<()> {
    let Some(file) = file.into_file() else {
        return Ok(());
    };
    let fd = file.into_raw_fd();
    // SAFETY: into_raw_fd made us the owner; the descriptor is not used again.
    match check(unsafe { libc::close(fd) }) {
        Ok(_) => Ok(()),
        // The descriptor is gone all the same (Linux), and nothing was lost.
        Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether somebody removed the file while we had it open.
pub(super) fn is_removed(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

/// Reserves disk blocks for a file; `false` where the file system cannot.
pub(super) fn reserve_blocks(file: &File, bytes: u32) -> bool {
    // SAFETY: the descriptor is open for the life of `file`.
    unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes.into()) == 0 }
}

/// Asks the kernel to begin writing a range out. A hint: file systems without the call do without.
pub(super) fn start_write_back(file: &File, offset: u64, length: u64) {
    let (offset, length) = (offset as libc::off64_t, length as libc::off64_t);
    // SAFETY: the descriptor is open for the life of `file`.
    unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            offset,
            length,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    };
}

/// Takes the pages of a range out of the page cache, those that are on the disk. A hint, too.
pub(super) fn give_up_pages(file: &File, offset: u64, length: u64) {
    let (offset, length) = (offset as libc::off_t, length as libc::off_t);
    // SAFETY: the descriptor is open for the life of `file`.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, length, libc::POSIX_FADV_DONTNEED) };
}

/// Opens for reading, for files of the system such as those in /proc.
pub(super) fn open_system_file(path: &str) -> io::Result<File> {
    open_at(
        libc::AT_FDCWD,
        &c_string(OsStr::new(path))?,
        libc::O_RDONLY | libc::O_NOCTTY,
    )
}

fn make_dir_at(at: RawFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated; `at` is open or AT_FDCWD.
    check(unsafe { libc::mkdirat(at, name.as_ptr(), 0o700) }).map(drop)
}

/// Opens a directory that was just made, and gives it its mode.
fn open_new_dir(at: RawFd, name: &CStr) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let dir = match open_at(at, name, libc::O_RDONLY | flags) {
        // A umask such as 0777 took our own permissions away: give them back through a descriptor
        // that needs none, never by name.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            let handle = open_at(at, name, libc::O_PATH | flags)?;
            let by_fd = format!("/proc/self/fd/{}", handle.as_raw_fd());
            std::fs::set_permissions(by_fd, Permissions::from_mode(DIR_MODE))?;
            open_at(at, name, libc::O_RDONLY | flags)?
        }
        other => other?,
    };
    // Some file systems have no modes; the restrictive one of the creation stands then.
    let _ = dir.set_permissions(Permissions::from_mode(DIR_MODE));
    Ok(dir)
}

fn open_at(at: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<File> {
    loop {
        // SAFETY: the name is NUL-terminated; `at` is open or AT_FDCWD; the mode argument is there
        // for O_CREAT.
        let fd = unsafe { libc::openat(at, name.as_ptr(), flags | libc::O_CLOEXEC, 0o600) };
        match check(fd) {
            Ok(fd) => {
                // SAFETY: the call returned a new descriptor that nobody else owns.
                let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                return Ok(File::from(keep_above_standard(fd)?));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_new_file_is_not_followed() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let victim = temp.path().join("victim");
        std::fs::write(&victim, "theirs").expect("victim");
        std::os::unix::fs::symlink(&victim, temp.path().join("ours")).expect("link");
        let dir = Dir::open(temp.path()).expect("opens");
        assert!(dir.create("ours").is_err());
        assert!(dir.reopen("ours").is_err());
        assert!(dir.make_dir("ours").is_err());
        assert_eq!(std::fs::read(&victim).expect("victim"), b"theirs");
    }

    #[test]
    fn parents_are_made_with_their_mode_and_reported_outermost_first() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let (a, b) = (temp.path().join("a"), temp.path().join("a/b"));
        let mut made = Vec::new();
        make_dirs(&b, &mut made).expect("made");
        assert_eq!(made, [a.clone(), b.clone()]);
        for dir in [&a, &b] {
            let mode = std::fs::metadata(dir).expect("there").permissions().mode();
            assert_eq!(mode & 0o7777, 0o750);
        }
        let mut again = Vec::new();
        make_dirs(&b, &mut again).expect("opened");
        assert!(again.is_empty());
    }

    #[test]
    fn files_do_not_depend_on_the_umask() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let dir = Dir::open(temp.path()).expect("opens");
        dir.put("file", b"x").expect("written");
        let mode = std::fs::metadata(temp.path().join("file"))
            .expect("there")
            .mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert!(
            dir.put("file", b"y").is_err(),
            "an existing file is never reused"
        );
    }
}
