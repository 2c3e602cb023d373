//! What is asked of a capture and what comes of it.

#![forbid(unsafe_code)]

use super::STOP_LIMIT;
use super::handout::Handout;
use crate::clock::Moment;
use crate::ledger::{Anchor, Ledger};
use crate::params::Params;
use crate::process::peer::Peer;
use crate::profdir::ProfDirError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Who started a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client on the control socket: its capture ends when it goes.
    Client(Peer),
    /// A client on the control socket that went, or will go, and leaves it behind.
    Detached(Peer),
    /// The program itself, through our own API.
    Program,
}

/// Why a capture does not start. Nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// One runs.
    #[error("a capture is running already")]
    AlreadyStarted,
    /// MSPROF_AGENT_NEED_DEVICE=1 and no device.
    #[error("no device is open yet (MSPROF_AGENT_NEED_DEVICE=1 asks for one)")]
    NoDevice,
    /// A slow disk still takes the last capture.
    #[error("the last capture is still being written to {}; try again when it is complete", .0.display())]
    StillWriting(PathBuf),
    /// The PROF directory cannot be made.
    #[error(transparent)]
    Directory(#[from] ProfDirError),
    /// No memory for the rings.
    #[error(
        "no memory for the buffers ({0}); raise the limit of address space (ulimit -v) or lower MSPROF_AGENT_BUFFER_MB"
    )]
    Memory(io::Error),
    /// No thread.
    #[error(
        "no thread can be started ({0}); raise the limit of processes (ulimit -u, pids.max) or of address space (ulimit -v)"
    )]
    Thread(io::Error),
    /// The process has used up what it may have.
    #[error(
        "the process has no memory left; raise its limits (ulimit -v, memory of the container)"
    )]
    NoMemory,
    /// The agent has turned itself off.
    #[error("the agent has turned itself off: {0}")]
    Disabled(String),
    /// An earlier start or stop ended in an internal error.
    #[error("an internal error ended an earlier capture; nothing more is captured in this process")]
    Broken,
    /// The directory was made, but could not be written.
    #[error("{0}")]
    Output(String),
    /// MsprofFinalize is under way.
    #[error("the program is finalizing profiling")]
    Finalizing,
    /// Another start or stop did not end.
    #[error("another start or stop is under way and does not end")]
    Turn,
}

/// A capture that has begun.
#[derive(Clone, Debug)]
pub struct Started {
    /// Number of the capture, unique in this process and its forks.
    pub number: u64,
    /// The PROF_XXX directory.
    pub path: PathBuf,
    /// CLOCK_MONOTONIC_RAW ns at which records began to be taken.
    pub started_ns: u64,
    /// Things to say although it succeeded.
    pub notes: Vec<String>,
    /// For a controller that takes it.
    pub handout: Option<Arc<Handout>>,
}

/// Why a capture does not stop.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// None runs.
    #[error("no capture is running")]
    NotStarted,
    /// Records are no longer taken, but the rest is not written yet.
    #[error(
        "the capture has ended, but {} MB are still to be written to {}; \
         they are written in the background and the directory is complete when end_info is there",
        .remaining >> 20, .path.display()
    )]
    StillWriting {
        /// The PROF_XXX directory.
        path: PathBuf,
        /// Bytes to go.
        remaining: u64,
    },
    /// Another start or stop did not end.
    #[error("another start or stop is under way and does not end")]
    Turn,
    /// The drain thread was lost.
    #[error("an internal error ended the capture; its directory holds what was written until then")]
    Broken,
}

impl StopError {
    /// The PROF_XXX directory that is still being written.
    pub fn path(&self) -> Option<String> {
        match self {
            StopError::StillWriting { path, .. } => Some(path.to_string_lossy().into_owned()),
            _ => None,
        }
    }
}

/// What ended a capture early or kept it from being written whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub reason: String,
    /// When, ns since 1970 (CLOCK_REALTIME).
    pub since_unix_ns: u64,
}

/// A capture that has ended.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The PROF_XXX directory.
    pub path: PathBuf,
    /// Its account.
    pub ledger: Ledger,
    /// Why it ended early or could not be written whole.
    pub error: Option<Failure>,
}

/// How a stop treats the components and the clock on the wall.
#[derive(Clone, Copy, Debug)]
pub struct StopMode {
    /// Whether handlers are told; not during exit, when their libraries may be half torn down.
    pub tell_components: bool,
    /// What the stop may take.
    pub limit: Duration,
    /// Number of the capture that is to be stopped; `None` for whichever runs.
    pub only: Option<u64>,
    /// Why, where nobody has asked for it; for its account.
    pub note: Option<&'static str>,
}

impl StopMode {
    /// A stop on command.
    pub const NORMAL: StopMode = StopMode {
        tell_components: true,
        limit: STOP_LIMIT,
        only: None,
        note: None,
    };
}

/// What a capture is told at its start.
#[derive(Clone, Debug)]
pub struct Request {
    /// Options of the session.
    pub params: Params,
    /// Who asks.
    pub origin: Origin,
    /// Where PROF_XXX goes when the params do not say.
    pub default_dir: PathBuf,
    /// Whether that may be where other users could put something in its place.
    pub allow_shared_dir: bool,
    /// Whether an open device is required.
    pub need_device: bool,
    /// How long it is to run at most; who asks sees to it ([`Current::ends_at`]).
    pub time_limit: Option<Duration>,
}

/// The capture that runs.
#[derive(Clone, Debug)]
pub struct Current {
    /// Its number.
    pub number: u64,
    /// The PROF_XXX directory.
    pub path: PathBuf,
    /// Who started it.
    pub origin: Origin,
    /// When.
    pub start: Anchor,
    /// When it is to be ended, if nobody does so before.
    pub ends_at: Option<Moment>,
    /// Why it takes nothing more, if it does not.
    pub failed: Option<Failure>,
}

/// What is going on.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Whether a capture runs.
    pub capturing: bool,
    /// Whether the last capture is still being written.
    pub writing: bool,
    /// Its directory, or that of the last one.
    pub path: Option<PathBuf>,
    /// Its account so far, or that of the last one.
    pub ledger: Option<Ledger>,
    /// Captures begun so far.
    pub captures: u64,
    /// Why the agent has turned itself off, if it has.
    pub disabled: Option<String>,
}
