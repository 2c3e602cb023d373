//! What a recovery says: what it did and found, or why it left a directory alone.

use super::super::writer::LEDGER_FILE;
use super::tree::Tree;
use crate::ledger::Recovered;
use crate::records::TraceCounts;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Most files of a kind that a report names; the directory can hold any number.
const NAMED_MAX: usize = 1_000;

/// What became of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// It was complete and is as it was.
    #[default]
    Nothing,
    /// Its capture had ended, but a file of the end was missing.
    Completed,
    /// Its process was killed; now it is finished.
    Recovered,
}

/// A slice that was shortened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// The file.
    pub path: PathBuf,
    /// Bytes that were no whole record, or that the parser cannot read.
    pub bytes: u64,
    /// Bytes that are left; with none the file is gone.
    pub left: u64,
}

/// A file that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// What a recovery did and found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recovery {
    /// The directory.
    pub path: PathBuf,
    /// What became of it.
    pub done: Done,
    /// Records that are there, by trace.
    pub kept: TraceCounts,
    /// Bytes of data that are there.
    pub bytes: u64,
    /// Slices that were shortened.
    pub cut: Vec<Cut>,
    /// Control files that were made.
    pub made: Vec<PathBuf>,
    /// `.done` files that were written.
    pub done_files: u64,
    /// What was left as it is: with any, the directory is not yet as it should be.
    pub left: Vec<Left>,
    /// Records lost until the last account; what was lost later nobody knows.
    pub lost: TraceCounts,
    /// Records deleted for the storage limit until the last account.
    pub aged_out: TraceCounts,
    /// When the last account was made, ns after the start; absent where there was none to be read.
    pub account_ns: Option<u64>,
    /// Time of the last record, ns after the start.
    pub last_record_ns: Option<u64>,
    /// What an earlier recovery has found, if there was one.
    #[serde(skip)]
    pub before: Option<Recovered>,
    /// The parser has exported it before, and will not read the data again.
    pub exported: bool,
}

impl Recovery {
    pub(super) fn leave(&mut self, path: &Path, why: &str) {
        if self.left.len() < NAMED_MAX {
            self.left.push(Left {
                path: path.to_owned(),
                why: why.to_owned(),
            });
        }
    }
}

/// Why a directory was not recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The system refused.
    #[error("cannot recover {path}: {source}; {}", way_out(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No host or device directory is in it.
    #[error("{path} is not a PROF_XXX directory: it holds neither host nor device_<id>")]
    NotProfile {
        /// The directory.
        path: PathBuf,
    },
    /// Another collector's.
    #[error(
        "{path} was not made by this agent (it holds no {LEDGER_FILE}) and is left alone; the msprof parser exports a stock directory without end_info as it is"
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// Its ledger is whole, and of an agent that has other words.
    #[error(
        "{path} is left alone: its account, {LEDGER_FILE}, is of another release of the agent and cannot be read here ({cause}); use the msprof of that release"
    )]
    OtherRelease {
        /// The directory.
        path: PathBuf,
        /// What cannot be read.
        cause: String,
    },
    /// Its process was killed while it made the directory.
    #[error(
        "{path} holds no records: its process was killed before the capture began; the directory can be removed"
    )]
    NeverBegan {
        /// The directory.
        path: PathBuf,
    },
    /// The capture is running.
    #[error(
        "{path} is still being written by process {pid}: stop its capture, or recover it when that process has ended"
    )]
    Running {
        /// The directory.
        path: PathBuf,
        /// The process, as seen from here.
        pid: u32,
    },
    /// The capture is running where we cannot look.
    #[error(
        "{path} is still being written, by a process that cannot be seen from here: stop its capture, or recover it when that process has ended"
    )]
    Written {
        /// The directory.
        path: PathBuf,
    },
    /// The process is on another host.
    #[error(
        "{path} was made on host {host}, and whether its process still runs there is not known here: recover it there, or with --force if that process has ended"
    )]
    Elsewhere {
        /// The directory.
        path: PathBuf,
        /// The host by its own name.
        host: String,
    },
    /// The process is somebody else's.
    #[error(
        "{path} may still be written by process {pid}, into which this user cannot look: recover it as the user of that process or as root, or with --force if it is another one"
    )]
    Hidden {
        /// The directory.
        path: PathBuf,
        /// The process, as seen from here.
        pid: u32,
    },
    /// Another recovery is at work.
    #[error("{path} is being recovered by another process: wait until that has ended")]
    Busy {
        /// The directory.
        path: PathBuf,
    },
}

/// What the user can do about a failure of the file system.
fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "name a PROF_XXX directory",
        io::ErrorKind::PermissionDenied => "run it as the user who owns the directory",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space there and run it again"
        }
        io::ErrorKind::IsADirectory | io::ErrorKind::DirectoryNotEmpty => {
            "a directory stands in its place: remove it and run it again"
        }
        io::ErrorKind::ReadOnlyFilesystem => "copy the directory to where it can be written",
        _ => "run it again when that is mended",
    }
}

/// An error of the system on what has this name in a directory.
pub(super) fn failed_in(dir: &Tree, name: &str) -> impl FnOnce(io::Error) -> RecoverError {
    let path = dir.path().join(name);
    move |source| failed(&path, source)
}

/// An error of the system on a file.
pub(super) fn failed(path: &Path, source: io::Error) -> RecoverError {
    RecoverError::Io {
        path: path.to_owned(),
        source,
    }
}
