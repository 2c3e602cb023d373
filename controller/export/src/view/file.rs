//! The file that a page is written to.

use crate::newfile::{Directory, NewFile};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Names that are tried where the first one is taken.
const NAMES_MAX: u32 = 1000;

/// A page in the making. One that is dropped before its end is removed again.
#[derive(Debug)]
pub struct PageFile {
    dir: Directory,
    file: NewFile,
    name: Name,
}

/// What the file is to be called.
#[derive(Debug)]
enum Name {
    Given(OsString),
    /// `<stem><extension>`, or where that is taken `<stem>-1<extension>` and so on.
    Free {
        stem: String,
        extension: &'static str,
    },
}

impl PageFile {
    /// Begins a file of this name, readable to its owner and group. Never through a link, and never in the place of another
    /// file: fails with [`AlreadyExists`](io::ErrorKind::AlreadyExists).
    pub fn at(path: &Path) -> io::Result<PageFile> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let dir = Directory::open(parent)?;
        // Said now and not after the work.
        if dir.has(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let name = Name::Given(name.to_owned());
        Ok(PageFile {
            file: dir.begin()?,
            dir,
            name,
        })
    }

    /// Begins `<stem><extension>` in a directory, or, where that is taken, `<stem>-1<extension>` and so on.
    pub fn beside(parent: &Path, stem: &str, extension: &'static str) -> io::Result<PageFile> {
        let dir = Directory::open(parent)?;
        let stem = stem.to_owned();
        Ok(PageFile {
            file: dir.begin()?,
            dir,
            name: Name::Free { stem, extension },
        })
    }

    /// Writes what is still in memory, and gives the file its name; where it is and how many bytes it has.
    pub fn finish(mut self) -> io::Result<(PathBuf, u64)> {
        let name = match &self.name {
            Name::Given(name) => {
                self.file.name_it(name)?;
                name.clone()
            }
            Name::Free { stem, extension } => free(&mut self.file, stem, extension)?.into(),
        };
        let bytes = self.file.file().metadata()?.len();
        Ok((self.dir.path().join(name), bytes))
    }
}

/// Gives a file the first name that is free.
fn free(file: &mut NewFile, stem: &str, extension: &str) -> io::Result<String> {
    let mut name = format!("{stem}{extension}");
    for number in 1..=NAMES_MAX {
        match file.name_it(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                name = format!("{stem}-{number}{extension}");
            }
            named => return named.map(|()| name),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Write for PageFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
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
        let mut made = PageFile::beside(home.path(), "a", ".html").expect("made");
        made.write_all(b"text").expect("written");
        assert_eq!(made.finish().expect("written"), (path("a-2.html"), 4));
        assert_eq!(std::fs::read(path("a-2.html")).expect("there"), b"text");
        let mode = path("a-2.html")
            .metadata()
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert_eq!(std::fs::read(path("a.html")).expect("there"), b"mine");
        assert!(!path("elsewhere").exists());
        let taken = PageFile::at(&path("a.html")).expect_err("refused");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn one_that_is_not_finished_is_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let mut made = PageFile::beside(home.path(), "a", ".html").expect("made");
        made.write_all(b"half").expect("written");
        drop(made);
        assert_eq!(std::fs::read_dir(home.path()).expect("there").count(), 0);
        assert!(PageFile::at(&home.path().join("none/a.html")).is_err());
        assert!(PageFile::at(Path::new("/")).is_err());
    }
}
