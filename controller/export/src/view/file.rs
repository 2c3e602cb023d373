//! A file that was not there before.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Names that are tried where the first one is taken.
const NAMES_MAX: u32 = 1000;
/// Bytes that are written at a time.
const BUFFER: usize = 256 * 1024;

/// A file in the making. One that is dropped before its end is removed again.
#[derive(Debug)]
pub struct NewFile {
    dir: OwnedFd,
    path: PathBuf,
    file: BufWriter<File>,
    finished: bool,
}

impl NewFile {
    /// Makes a file, readable to its owner and group. Never through a link, and never in the place of another file.
    pub fn at(path: &Path) -> io::Result<NewFile> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        // Whatever happens to the directory's name, what is removed is what was made.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, parent, flags, Mode::empty())?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&dir, name, flags, Mode::from_raw_mode(0o640))?;
        Ok(NewFile {
            dir,
            path: path.to_owned(),
            file: BufWriter::with_capacity(BUFFER, file.into()),
            finished: false,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is still in memory; how many bytes the file has.
    pub fn finish(mut self) -> io::Result<u64> {
        self.file.flush()?;
        self.finished = true;
        Ok(self.file.get_ref().metadata()?.len())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(name) = self.path.file_name().filter(|_| !self.finished) {
            let _ = unlinkat(&self.dir, name, AtFlags::empty());
        }
    }
}

/// Makes `<stem><extension>` in a directory, or, where that is taken, `<stem>-1<extension>` and so on.
pub fn create(dir: &Path, stem: &str, extension: &str) -> io::Result<NewFile> {
    let mut name = format!("{stem}{extension}");
    for number in 1..=NAMES_MAX {
        match NewFile::at(&dir.join(&name)) {
            Err(error) if error.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {
                name = format!("{stem}-{number}{extension}");
            }
            made => return made,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_made_beside_those_that_are_there_and_links_are_not_followed() {
        let home = tempfile::tempdir().expect("a directory");
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("a.html"), "mine").expect("written");
        symlink(path("elsewhere"), path("a-1.html")).expect("linked");
        let mut made = create(home.path(), "a", ".html").expect("made");
        made.write_all(b"text").expect("written");
        assert_eq!(made.path(), path("a-2.html"));
        assert_eq!(made.finish().expect("written"), 4);
        assert_eq!(std::fs::read(path("a-2.html")).expect("there"), b"text");
        let mode = path("a-2.html")
            .metadata()
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777 & !0o640, 0);
        assert_eq!(std::fs::read(path("a.html")).expect("there"), b"mine");
        assert!(!path("elsewhere").exists());
        let taken = NewFile::at(&path("a.html")).expect_err("refused");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn one_that_is_not_finished_is_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let mut made = create(home.path(), "a", ".html").expect("made");
        made.write_all(b"half").expect("written");
        drop(made);
        assert_eq!(std::fs::read_dir(home.path()).expect("there").count(), 0);
        assert!(NewFile::at(&home.path().join("none/a.html")).is_err());
        assert!(NewFile::at(Path::new("/")).is_err());
    }
}
