//! What a killed process still had in its rings, put into its directory: the controller's last service to a capture.
//!
//! A record is published with one store to memory that the controller shares, so that none which was published
//! before the kill is lost; the ring's own word says which are written, and a write that was under way is undone
//! first, so that none is doubled or torn. Nobody writes to that memory any more: the caller makes sure that the
//! process has ended with all its threads.
//!
//! Not in the shared memory, so not to be rescued: reports of more than 256 bytes and those of the old interface
//! that were not yet written (some milliseconds), and names registered since the drain's last pass: their records
//! are filed as those without a name are.
//!
//! Both descriptors come from the process and may be anything (`image`, `profdir::recover::Refill`).

// The tests report records, which is unsafe.
#![cfg_attr(not(test), forbid(unsafe_code))]

mod image;
mod replay;
#[cfg(test)]
mod tests;

pub use image::ImageError;

use crate::ledger::Ledger;
use crate::profdir::LEDGER_FILE;
use crate::profdir::reader::LEDGER_MAX;
use crate::profdir::recover::tree::Tree;
use crate::profdir::recover::{Life, RecoverError, Recovery, recover_refilled};
use crate::records::TraceCounts;
use image::Image;
use replay::Replay;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What the agent hands out at the start of a capture.
#[derive(Debug)]
pub struct Lifeline {
    memory: File,
    directory: OwnedFd,
    capture: u64,
}

/// What became of the records in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// Written.
    pub records: u64,
    /// The same by trace.
    pub by_trace: TraceCounts,
    /// Not written, because of `error`.
    pub unwritten: u64,
    /// Bytes of a write that was under way at the end, and was done again.
    pub undone_bytes: u64,
    /// Why records could not be written.
    pub error: Option<String>,
}

/// A directory that was finished.
#[derive(Debug)]
pub struct Finished {
    /// What came out of the memory; an error leaves the directory finished without it.
    pub rescued: Result<Rescued, ImageError>,
    /// What was done to the directory.
    pub recovery: Recovery,
    /// Its account.
    pub ledger: Option<Ledger>,
}

/// Why nothing was rescued.
#[derive(Debug, thiserror::Error)]
pub enum RescueError {
    /// The directory cannot be finished.
    #[error(transparent)]
    Directory(#[from] RecoverError),
    /// The directory is not the process's own.
    #[error("its directory {path} belongs to uid {uid}, not to the user of the process")]
    Foreign {
        /// By the agent's word.
        path: PathBuf,
        /// Who owns it.
        uid: u32,
    },
}

impl Lifeline {
    /// What came along with the reply to a start: two descriptors, and the capture's number in it.
    pub fn new(descriptors: Vec<OwnedFd>, capture: u64) -> Option<Lifeline> {
        let [memory, directory] = <[OwnedFd; 2]>::try_from(descriptors).ok()?;
        Some(Lifeline {
            memory: File::from(memory),
            directory,
            capture,
        })
    }

    /// Writes what the process, which has ended, still had in memory, and finishes its directory, which it called
    /// `path`. Of another user's process only a directory of that user (`uid`) is touched.
    pub fn rescue(self, path: &Path, uid: Option<u32>) -> Result<Finished, RescueError> {
        let failed = |source: io::Error| RecoverError::Io {
            path: path.to_owned(),
            source,
        };
        let root = Tree::opened(self.directory, path).map_err(failed)?;
        if uid.is_some_and(|uid| uid != root.owner()) {
            return Err(RescueError::Foreign {
                path: path.to_owned(),
                uid: root.owner(),
            });
        }
        let mut rescued = Ok(Rescued::default());
        let recovery = recover_refilled(
            &root,
            |_| Life::Dead,
            |refill| {
                rescued = Image::open(&self.memory, self.capture).and_then(|image| {
                    let mut replay = Replay::new(refill);
                    replay.undo(image.unfinished()?)?;
                    image.each_waiting(|ring, records| replay.take(ring, records))?;
                    Ok(replay.finish())
                });
                rescued.as_ref().map_or(0, |rescued| rescued.records)
            },
        )?;
        // Stopped in the meantime, with everything written.
        if matches!(rescued, Err(ImageError::Other)) {
            rescued = Ok(Rescued::default());
        }
        let ledger = root.read(LEDGER_FILE, LEDGER_MAX).ok();
        Ok(Finished {
            rescued,
            recovery,
            ledger: ledger.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
        })
    }
}
