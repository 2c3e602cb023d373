//! The directory of exported files: made here, and never through a link in its place.

use crate::newfile::{Directory, NewFile, way_out};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the directory in a PROF_XXX.
pub const OUTPUT: &str = "mindstudio_profiler_output";

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The directory cannot be made or opened.
    #[error("cannot make {path}: {source}{}", way_out(.source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else has the directory's place.
    #[error(
        "{path} is a link or no directory: nothing is written through it; remove it and export again"
    )]
    NotDirectory {
        /// What is there.
        path: PathBuf,
    },
    /// A file cannot be made or written; nothing of it is left.
    #[error("cannot write {path}: {source}; nothing of this file is left{}", way_out(.source))]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// An open directory of exported files.
#[derive(Clone, Debug)]
pub struct OutputDir {
    dir: Directory,
}

impl OutputDir {
    /// Opens the directory of exports in a PROF directory, and makes it where there is none. Links in `profile` are followed,
    /// they are the user's own choice; one in the place of the directory is not.
    pub fn open(profile: &Path) -> Result<OutputDir, OutputError> {
        let path = profile.join(OUTPUT);
        let failed = |errno: Errno| match errno {
            Errno::LOOP | Errno::NOTDIR => OutputError::NotDirectory { path: path.clone() },
            _ => OutputError::Directory {
                path: path.clone(),
                source: errno.into(),
            },
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, profile, flags, Mode::empty()).map_err(failed)?;
        let open = || rustix::fs::openat(&root, OUTPUT, flags | OFlags::NOFOLLOW, Mode::empty());
        let dir = match open() {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&root, OUTPUT, Mode::from_raw_mode(0o750)) {
                    // Another export of this directory may have been faster.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(failed(errno)),
                }
                let dir = open().map_err(failed)?;
                // Some file systems have no modes.
                let _ = rustix::fs::fchmod(&dir, Mode::from_raw_mode(0o750));
                dir
            }
            other => other.map_err(failed)?,
        };
        Ok(OutputDir {
            dir: Directory::of(dir, &path),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory as new files are made in it.
    pub fn directory(&self) -> &Directory {
        &self.dir
    }

    /// Begins a file.
    pub fn create(&self, name: &str) -> Result<Draft, OutputError> {
        let file = self.dir.begin();
        Ok(Draft {
            file: file.map_err(|error| self.failed(name, error))?,
            dir: self.clone(),
            name: name.to_owned(),
        })
    }

    /// A file without a name, for what does not fit into memory.
    pub fn scratch(&self) -> io::Result<File> {
        self.dir.scratch()
    }

    pub(super) fn failed(&self, name: &str, source: io::Error) -> OutputError {
        OutputError::File {
            path: self.path().join(name),
            source,
        }
    }
}

/// A file that grows. One that cannot be finished goes away.
#[derive(Debug)]
pub struct Draft {
    dir: OutputDir,
    file: NewFile,
    name: String,
}

impl Draft {
    /// Writes on.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let written = self.file.write_all(bytes);
        written.map_err(|source| self.dir.failed(&self.name, source))
    }

    /// Gives the file its name. One that is there already is left alone.
    pub fn finish(mut self) -> Result<String, OutputError> {
        let named = self.file.name_it(&self.name);
        self.named(named)
    }

    /// Gives the file its name in the place of one that is there.
    pub fn replace(mut self) -> Result<String, OutputError> {
        let named = self.file.replace(&self.name);
        self.named(named)
    }

    /// The same file by another name.
    pub fn renamed(mut self, name: String) -> Draft {
        self.name = name;
        self
    }

    fn named(self, named: io::Result<()>) -> Result<String, OutputError> {
        match named {
            Ok(()) => Ok(self.name),
            Err(source) => Err(self.dir.failed(&self.name, source)),
        }
    }
}
