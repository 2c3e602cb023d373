//! An existing directory, worked on by descriptor.
//!
//! Somebody else may be able to write in it, and we may be root: nothing is reached through a link, only a
//! plain file with one name is changed, and what is read is bounded. A file takes its name when it is whole.

use super::super::listing::{ENTRIES_MAX, Entry, EntryKind};
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where a file is written before it takes its name; no name that the parser reads.
pub(super) const TEMP: &str = ".msprof_agent.recover.tmp";
const DIR_MODE: Mode = Mode::from_raw_mode(0o750);
const FILE_MODE: Mode = Mode::from_raw_mode(0o640);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Tree {
    fd: OwnedFd,
    path: PathBuf,
    owner: (fs::Uid, fs::Gid),
}

impl Tree {
    /// Opens a directory; links in `path` are the user's own choice.
    pub(crate) fn open(path: &Path) -> io::Result<Tree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Tree::of(
            fs::openat(fs::CWD, path, flags, Mode::empty())?,
            path.to_owned(),
        )
    }

    /// Takes an open directory over; `path` is its name for those who are told of it.
    pub(crate) fn opened(fd: OwnedFd, path: &Path) -> io::Result<Tree> {
        Tree::of(fd, path.to_owned())
    }

    /// The user who owns it.
    pub(crate) fn owner(&self) -> u32 {
        self.owner.0.as_raw()
    }

    /// Opens a directory in this one.
    pub(crate) fn enter(&self, name: &str) -> io::Result<Tree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Tree::of(
            fs::openat(&self.fd, name, flags, Mode::empty())?,
            self.path.join(name),
        )
    }

    fn of(fd: OwnedFd, path: PathBuf) -> io::Result<Tree> {
        let stat = fs::fstat(&fd)?;
        // Some targets have narrower fields.
        #[allow(clippy::useless_conversion)]
        let owner = (
            fs::Uid::from_raw(stat.st_uid.into()),
            fs::Gid::from_raw(stat.st_gid.into()),
        );
        Ok(Tree { fd, path, owner })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a second recovery out while this is open; false if there is one.
    pub(crate) fn lock(&self) -> io::Result<bool> {
        match fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            // A file system without locks: two at once would do the same work twice.
            Err(Errno::NOLCK | Errno::NOTSUP | Errno::INVAL | Errno::NOSYS) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// What is in it, sorted; a bounded number.
    pub(crate) fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for found in fs::Dir::read_from(&self.fd)?.take(ENTRIES_MAX) {
            let found = found?;
            // Names that are no UTF-8 are none of ours.
            let Ok(name) = found.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") {
                continue;
            }
            let Ok(stat) = fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Directory,
                FileType::Symlink => EntryKind::Link,
                _ => EntryKind::Special,
            };
            entries.push(Entry {
                name: name.to_owned(),
                kind,
                bytes: match kind {
                    EntryKind::File => u64::try_from(stat.st_size).unwrap_or(0),
                    _ => 0,
                },
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Opens a plain file for reading.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY)
    }

    /// Cuts a plain file off. One that has another name elsewhere may be somebody's who never meant it to
    /// be here.
    pub(crate) fn truncate(&self, name: &str, bytes: u64) -> io::Result<()> {
        self.writable(name)?.set_len(bytes)
    }

    /// Opens a plain file with one name for writing.
    pub(crate) fn writable(&self, name: &str) -> io::Result<File> {
        let file = self.open_file(name, OFlags::RDWR)?;
        match fs::fstat(&file)?.st_nlink {
            1 => Ok(file),
            _ => Err(io::Error::other("the file has a second name elsewhere")),
        }
    }

    /// Makes a new file and opens it for writing.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        let file = self.create_private(name)?;
        self.give(file.as_fd(), FILE_MODE);
        Ok(file)
    }

    /// The same, for nobody else to read yet.
    fn create_private(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(File::from(fs::openat(&self.fd, name, flags, mode)?))
    }

    fn open_file(&self, name: &str, access: OFlags) -> io::Result<File> {
        let no_plain_file = || io::Error::other("it is no plain file");
        // Before it is opened: a device may do something then.
        let stat = fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(no_plain_file());
        }
        // NONBLOCK: a pipe that is put in its place must not make us wait.
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.fd, name, flags, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(no_plain_file()),
        }
    }

    /// The content of a plain file of at most `max` bytes.
    pub(crate) fn read(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(name)?.take(max + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > max {
            true => Err(io::Error::other(format!("it is longer than {max} bytes"))),
            false => Ok(bytes),
        }
    }

    /// Makes or replaces a file; a reader sees the old content or the new one. `write` gives the new one.
    pub(crate) fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        // Left by an interrupted attempt.
        self.unlink(TEMP)?;
        let mut file = self.create_private(TEMP)?;
        let made = write(&mut file).and_then(|()| {
            self.give(file.as_fd(), FILE_MODE);
            Ok(fs::renameat(&self.fd, TEMP, &self.fd, name)?)
        });
        if made.is_err() {
            let _ = self.unlink(TEMP);
        }
        made
    }

    /// Makes or replaces a file with this content.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.replace(name, |file| file.write_all(content))
    }

    /// Gives a file another name beside its own; an error where something has that name.
    pub(crate) fn link(&self, name: &str, other: &str) -> io::Result<()> {
        Ok(fs::linkat(
            &self.fd,
            name,
            &self.fd,
            other,
            AtFlags::empty(),
        )?)
    }

    /// Makes a directory.
    pub(crate) fn make_dir(&self, name: &str) -> io::Result<()> {
        fs::mkdirat(&self.fd, name, Mode::RWXU)?;
        self.give(self.enter(name)?.as_fd(), DIR_MODE);
        Ok(())
    }

    /// Mode and owner of what was made here: whoever owns the directory is to read it, also when root has
    /// recovered it. Some file systems have no modes.
    fn give(&self, made: BorrowedFd<'_>, mode: Mode) {
        let _ = fs::fchmod(made, mode);
        if rustix::process::geteuid().is_root() {
            let _ = fs::fchown(made, Some(self.owner.0), Some(self.owner.1));
        }
    }

    /// Removes a file or link, if it is there.
    pub(crate) fn unlink(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes what an interrupted attempt has left behind.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        self.unlink(TEMP)
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_reached_through_a_link_and_no_file_with_two_names_is_cut() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let victim = temp.path().join("victim");
        std::fs::write(&victim, "theirs").expect("victim");
        let inside = temp.path().join("inside");
        std::fs::create_dir(&inside).expect("made");
        std::os::unix::fs::symlink(&victim, inside.join("link")).expect("link");
        std::os::unix::fs::symlink(temp.path(), inside.join("dir")).expect("link");
        std::fs::hard_link(&victim, inside.join("second")).expect("second name");
        let tree = Tree::open(&inside).expect("opens");
        assert!(tree.enter("dir").is_err());
        assert!(tree.read("link", 100).is_err());
        assert!(tree.truncate("link", 0).is_err());
        assert!(tree.truncate("second", 0).is_err());
        tree.put("link", b"ours").expect("the link is replaced");
        assert_eq!(std::fs::read(&victim).expect("victim"), b"theirs");
        assert_eq!(std::fs::read(inside.join("link")).expect("ours"), b"ours");
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_and_nothing_beside_it() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let tree = Tree::open(temp.path()).expect("opens");
        tree.put("file", b"old").expect("written");
        let failed = tree.replace("file", |_| Err(io::Error::other("no")));
        assert!(failed.is_err());
        assert_eq!(tree.read("file", 3).expect("readable"), b"old");
        assert!(tree.read("file", 2).is_err(), "bounded");
        assert_eq!(tree.list().expect("listed").len(), 1);
    }
}
