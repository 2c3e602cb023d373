//! The directory of exported files: everything in it is made by descriptor, exclusively, and never through a link.
//!
//! A file has a name of its own while it grows, and its right one when it is whole. One that cannot be finished goes away.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the directory in a PROF_XXX.
pub const OUTPUT: &str = "mindstudio_profiler_output";
/// Ends the name of a file that grows.
const GROWING: &str = ".partial";
/// Bytes that are written at a time.
const BUFFER: usize = 256 * 1024;

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The directory cannot be made or opened.
    #[error("cannot make {path}: {source}{}", instead(.source))]
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
    #[error("cannot write {path}: {source}; nothing of this file is left")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The way out of a directory that cannot be written into.
fn instead(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; copy the PROF directory to where you may write, and export the copy"
        }
        _ => "",
    }
}

/// An open directory of exported files.
#[derive(Clone, Debug)]
pub struct OutputDir {
    dir: Arc<OwnedFd>,
    path: PathBuf,
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
            dir: Arc::new(dir),
            path,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of what is in it, as far as they can be read.
    pub fn names(&self) -> Vec<String> {
        /// Entries that are looked at.
        const ENTRIES_MAX: usize = 100_000;
        let entries = rustix::fs::Dir::read_from(&*self.dir).into_iter().flatten();
        let names = entries.flatten().take(ENTRIES_MAX);
        names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Begins a file.
    pub fn create(&self, name: &str) -> Result<Draft, OutputError> {
        let growing = format!("{name}{GROWING}");
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&*self.dir, &growing, flags, Mode::from_raw_mode(0o640));
        let file = file.map_err(|errno| self.failed(name, errno.into()))?;
        // Some file systems have no modes.
        let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(0o640));
        Ok(Draft {
            dir: self.clone(),
            file: Some(BufWriter::with_capacity(BUFFER, File::from(file))),
            name: name.to_owned(),
            growing,
        })
    }

    /// A file without a name, for what does not fit into memory.
    pub fn scratch(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        match rustix::fs::openat(&*self.dir, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(file.into()),
            // File systems without such files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(errno) => return Err(errno.into()),
        }
        let name = format!(
            ".rows-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&*self.dir, &name, flags, mode)?;
        rustix::fs::unlinkat(&*self.dir, &name, AtFlags::empty())?;
        Ok(file.into())
    }

    pub(super) fn failed(&self, name: &str, source: io::Error) -> OutputError {
        OutputError::File {
            path: self.path.join(name),
            source,
        }
    }
}

/// A file that grows.
#[derive(Debug)]
pub struct Draft {
    dir: OutputDir,
    /// `None` behind the end of it.
    file: Option<BufWriter<File>>,
    name: String,
    growing: String,
}

impl Draft {
    /// Writes on.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let written = match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => Ok(()),
        };
        written.map_err(|source| self.dir.failed(&self.name, source))
    }

    /// Gives the file its name. One that is there already is left alone.
    pub fn finish(self) -> Result<String, OutputError> {
        self.end(|dir, growing, name| {
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(dir, growing, dir, name, flags) {
                // Kernels and file systems without the flag.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    rustix::fs::linkat(dir, growing, dir, name, AtFlags::empty())?;
                    rustix::fs::unlinkat(dir, growing, AtFlags::empty())
                }
                other => other,
            }
        })
    }

    /// Gives the file its name in the place of one that is there.
    pub fn replace(self) -> Result<String, OutputError> {
        self.end(|dir, growing, name| rustix::fs::renameat(dir, growing, dir, name))
    }

    /// The same file by another name.
    pub fn renamed(mut self, name: String) -> Draft {
        self.name = name;
        self
    }

    fn end(
        mut self,
        name_it: impl FnOnce(&OwnedFd, &str, &str) -> rustix::io::Result<()>,
    ) -> Result<String, OutputError> {
        if let Some(file) = &mut self.file {
            // Network file systems say only when asked what they could not write.
            let flushed = file.flush().and_then(|()| file.get_ref().sync_data());
            flushed.map_err(|source| self.dir.failed(&self.name, source))?;
        }
        let named = name_it(&self.dir.dir, &self.growing, &self.name);
        named.map_err(|errno| self.dir.failed(&self.name, errno.into()))?;
        self.file = None;
        Ok(std::mem::take(&mut self.name))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // What is still in memory is of no use.
            drop(file.into_parts());
            let _ = rustix::fs::unlinkat(&*self.dir.dir, &self.growing, AtFlags::empty());
        }
    }
}
