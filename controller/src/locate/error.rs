//! Why a process cannot be reached.

use super::hint::Hint;
use crate::conn::Peer;
use crate::library;
use crate::screen::clean;
use std::io;
use std::path::{Path, PathBuf};

/// Why a process cannot be reached; each message names the way out.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// The process does not exist.
    #[error("no such pid; see `ps -e` for the running ones")]
    NoSuchPid,
    /// It belongs to somebody else.
    #[error("other user: it belongs to uid {0}; run msprof as that user or as root")]
    OtherUser(u32),
    /// It has ended while its socket was waited for.
    #[error("the process has ended before it opened a socket")]
    Ended,
    /// There is no socket.
    #[error("not armed: no socket in {}; {hint}", list(.dirs))]
    NotArmed {
        /// Where it was looked for.
        dirs: Vec<PathBuf>,
        /// What is probably missing.
        hint: Hint,
    },
    /// There is a socket, but nobody behind it.
    #[error(
        "not armed: the socket {} is stale, nobody answers on it; {hint}",
        shown(.path)
    )]
    Stale {
        /// The socket.
        path: PathBuf,
        /// What is probably missing.
        hint: Hint,
    },
    /// The socket is another process's.
    #[error(
        "the socket {} is served by {}, not by this process; its own could not be found, set MSPROF_AGENT_SOCKET_DIR for both sides",
        shown(.path), name(.peer)
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// Who serves it; not known where it was not connected to.
        peer: Option<Peer>,
    },
    /// Its server is the vendor's, which is not to be connected to for what is wanted.
    #[error("it has the vendor's library, whose captures end with the session that started them")]
    Stock,
    /// Connecting failed.
    #[error("cannot connect to {}: {}", shown(.path), reason(.error))]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl LocateError {
    /// A short word for it that stays the same.
    pub fn code(&self) -> &'static str {
        match self {
            LocateError::NoSuchPid => "no-such-pid",
            LocateError::OtherUser(_) => "other-user",
            LocateError::Ended => "ended",
            LocateError::NotArmed { hint, .. } => hint.code,
            LocateError::Stale { .. } => "stale-socket",
            LocateError::Foreign { .. } => "foreign-socket",
            LocateError::Stock => "stock-process",
            LocateError::Connect { .. } => "cannot-connect",
        }
    }
}

/// Some places come from the process's own environment.
fn list(dirs: &[PathBuf]) -> String {
    clean(&library::list(dirs))
}

fn shown(path: &Path) -> String {
    clean(&path.display().to_string())
}

fn name(peer: &Option<Peer>) -> String {
    let Some(peer) = peer else {
        return "another process".to_owned();
    };
    match peer.pid {
        Some(pid) => format!("pid {pid} of uid {}", peer.uid),
        None => format!("a process of uid {} in another pid namespace", peer.uid),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            "too many clients wait there already; end the others and try again".to_owned()
        }
        _ => error.to_string(),
    }
}
