//! Why a session could not begin, or a request was not answered.

use msprof_agent_core::control::extension::{FrameError, Holder};
use msprof_agent_core::control::wire::Message;
use std::io;
use std::time::Duration;

/// Why a session could not begin or a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Another client holds the session.
    #[error("busy: {}", busy(.0))]
    Busy(Holder),
    /// The params were refused.
    #[error("refused: {0}")]
    Refused(String),
    /// A stock server refused without a reason.
    #[error("refused by the process; another msprof may hold it, or it cannot read the options")]
    Failed,
    /// No answer to the params.
    #[error(
        "no answer to the connection within {} s: another msprof may hold the process, or it hangs",
        .0.as_secs()
    )]
    NoHello(Duration),
    /// Closed before the params were answered.
    #[error(
        "the process closed the connection at once: another msprof may hold it, or it is ending"
    )]
    ClosedAtOnce,
    /// No reply to a command.
    #[error(
        "no reply within {} s; the process may hang, the command may still take effect: see `status`",
        .0.as_secs()
    )]
    NoReply(Duration),
    /// The process is gone.
    #[error("the process has ended")]
    Ended,
    /// The process lives, but has ended the session.
    #[error("the process has ended the session{}", because(.0))]
    Disconnected(Option<String>),
    /// The process lives, and has ended the session because nothing was captured for a while: a new one can be begun.
    #[error("the process has ended the session: {0}")]
    Idle(String),
    /// No new session could be begun in the place of one that was ended for that.
    #[error("the process has ended the session: {why}; a new one cannot begin: {error}")]
    NotRenewed {
        /// Why the old one was ended.
        why: String,
        /// Why there is no new one.
        error: String,
    },
    /// It says something that is not in the protocol.
    #[error("unexpected answer (type {}, status {:#x}): it is perhaps of another version", .0.kind, .0.status)]
    Unexpected(Message),
    /// A frame that cannot be read.
    #[error("unreadable answer: {0}")]
    Frame(#[from] FrameError),
    /// The connection failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

impl SessionError {
    /// A short word for it that stays the same.
    pub fn code(&self) -> &'static str {
        match self {
            SessionError::Busy(_) => "busy",
            SessionError::Refused(_) | SessionError::Failed => "refused",
            SessionError::NoHello(_) | SessionError::NoReply(_) => "no-reply",
            SessionError::ClosedAtOnce | SessionError::Disconnected(_) => "disconnected",
            SessionError::Ended => "ended",
            SessionError::Idle(_) | SessionError::NotRenewed { .. } => "idle",
            SessionError::Unexpected(_) | SessionError::Frame(_) => "unexpected-answer",
            SessionError::Io(_) => "connection-failed",
        }
    }

    /// Whether the session is over.
    pub fn is_final(&self) -> bool {
        !matches!(self, SessionError::NoReply(_))
    }
}

fn busy(holder: &Holder) -> String {
    match holder.pid {
        0 => format!(
            "held by a client of uid {} in another pid namespace",
            holder.uid
        ),
        pid => format!("held by pid {pid} of uid {}; end it first", holder.uid),
    }
}

fn because(reason: &Option<String>) -> String {
    reason
        .as_ref()
        .map_or_else(String::new, |text| format!(": {text}"))
}
