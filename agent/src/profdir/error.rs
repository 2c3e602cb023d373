//! What can go wrong when a PROF_XXX directory is written: the path, the cause, and the way out.
//!
//! The messages travel to the controller and are read by the person who typed `start`; the
//! [`io::Error`] stays reachable for code that decides by its kind.

#![forbid(unsafe_code)]

use crate::records::TraceCounts;
use std::io;
use std::path::PathBuf;

/// Failure of a [`ProfDir`](super::ProfDir) operation.
#[derive(Debug, thiserror::Error)]
pub enum ProfDirError {
    /// The directory or one of its first files could not be made; nothing was left behind.
    #[error("cannot create {path}: {source}; {}", way_out_of_creating(source))]
    Create {
        /// What was to be made.
        path: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
    /// The file system has less than the space that a capture needs to begin with.
    #[error(
        "only {free} bytes are free in {path}, a capture needs {needed}; free some space there or choose another output directory"
    )]
    LittleSpace {
        /// The parent of the directory that was to be made.
        path: PathBuf,
        /// Bytes an ordinary user may still write.
        free: u64,
        /// Bytes that must be free.
        needed: u64,
    },
    /// Others could put something in the place of the directory that was to be made.
    #[error(
        "{path} {why}; choose a directory of your own (chmod go-w), or set MSPROF_AGENT_ALLOW_SHARED_DIR=1 for the program"
    )]
    Shared {
        /// The directory or link that is not safe.
        path: PathBuf,
        /// Who may do what.
        why: String,
    },
    /// The sample configuration of the caller is no JSON object.
    #[error(
        "the profiling parameters are not a JSON object ({cause}); start again with a matching controller"
    )]
    Sample {
        /// The parser's words.
        cause: String,
    },
    /// A file could not be written. Slices hold whole records only.
    #[error("cannot write {path}: {source}; {}", way_out(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What of this call is in the directory nevertheless.
        kept: Kept,
    },
    /// Only data that may not be deleted is left, and it fills the storage limit. The batch of this
    /// call is not written; later calls that find room succeed.
    #[error(
        "{path} has reached its storage limit of {limit} bytes and holds nothing that may be deleted; stop, or start with a larger --storage-limit"
    )]
    LimitReached {
        /// The PROF directory.
        path: PathBuf,
        /// The limit, bytes.
        limit: u64,
    },
    /// A batch of no whole number of records, or for a family or device that was never declared.
    /// Nothing of it is written.
    #[error(
        "a batch for {path} was refused: {cause}; this is a fault of the agent, please report it"
    )]
    Misuse {
        /// The file or directory that it was meant for.
        path: PathBuf,
        /// What was wrong with it.
        cause: &'static str,
    },
}

/// The part of a failed batch that is in the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Bytes from the beginning of the batch, a whole number of records.
    pub bytes: u64,
    /// Records in them, 0 for families without a record size.
    pub records: u64,
    /// The same by trace, as [`Trace::of`](crate::records::Trace::of) sorts them.
    pub counts: TraceCounts,
}

impl ProfDirError {
    /// The system's error, if there is one behind this.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            ProfDirError::Create { source, .. } | ProfDirError::Write { source, .. } => {
                Some(source)
            }
            _ => None,
        }
    }

    /// Number of the system's error.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.io().and_then(io::Error::raw_os_error)
    }

    /// What of a failed batch is in the directory.
    pub fn kept(&self) -> Kept {
        match self {
            ProfDirError::Write { kept, .. } => *kept,
            _ => Kept::default(),
        }
    }

    /// The same failure with another account of what was kept.
    pub(super) fn with_kept(self, kept: Kept) -> ProfDirError {
        match self {
            ProfDirError::Write { path, source, .. } => ProfDirError::Write { path, source, kept },
            other => other,
        }
    }

    /// Whether the process or the system had no descriptor or memory for it at that moment, and nothing of it
    /// was done: it can be tried again.
    pub fn is_passing(&self) -> bool {
        let wants = matches!(
            self.raw_os_error(),
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)
        );
        wants && self.kept() == Kept::default()
    }

    /// Whether the batch was refused for the storage limit alone: the capture can go on.
    pub fn is_limit(&self) -> bool {
        matches!(self, ProfDirError::LimitReached { .. })
    }
}

/// What the user can do when nothing can be made there.
fn way_out_of_creating(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP) => "choose another output directory",
        _ => way_out(error),
    }
}

/// What the user can do about a failure of the file system.
fn way_out(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => "free some space there or choose another output directory",
        Some(libc::EDQUOT) => {
            "the disk quota is used up: free some of it or choose another output directory"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "give the user of the profiled process write permission there or choose another output directory"
        }
        Some(libc::EROFS) => "that file system is read-only: choose another output directory",
        Some(libc::ENOENT | libc::ESTALE) => {
            "it was removed from outside: leave the directory alone until the capture has stopped"
        }
        Some(libc::EFBIG) => "the process has a file size limit: raise it (ulimit -f)",
        Some(libc::EMFILE | libc::ENFILE) => {
            "the process has no file descriptor left: raise its limit (ulimit -n)"
        }
        Some(libc::ENOTDIR | libc::EEXIST | libc::ELOOP) => {
            "a file or link stands in the way: remove it or choose another output directory"
        }
        Some(libc::ENAMETOOLONG) => "choose an output directory with a shorter path",
        Some(libc::EIO) => {
            "the device reports a fault: check it or choose another output directory"
        }
        _ => "choose another output directory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_path_the_cause_and_the_way_out() {
        let error = ProfDirError::Write {
            path: "/data/PROF_1/host/data/x.slice_0".into(),
            source: io::Error::from_raw_os_error(libc::ENOSPC),
            kept: Kept::default(),
        };
        let text = error.to_string();
        assert!(text.contains("/data/PROF_1/host/data/x.slice_0"), "{text}");
        assert!(text.contains("No space left"), "{text}");
        assert!(text.contains("free some space"), "{text}");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(
            error.io().map(io::Error::kind),
            Some(io::ErrorKind::StorageFull)
        );
    }
}
