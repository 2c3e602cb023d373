//! What is wrong with a command line, in one line each.

use msprof_agent_core::options::OptionError;
use std::path::PathBuf;

/// What is wrong with a command line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// An option.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A word that is no text.
    #[error("argument {0} is not UTF-8; use another name")]
    NotUtf8(String),
    /// Nothing to do.
    #[error("--dynamic=on is missing; see msprof --help")]
    NoDynamic,
    /// Nobody to profile.
    #[error("whom to profile is missing: give --pid=<pid> or a program to start")]
    Nobody,
    /// Both.
    #[error("arguments --pid and --application cannot be configured at the same time")]
    PidAndApplication,
    /// An application twice.
    #[error("the program to start is given twice: by --application and behind the options")]
    TwoApplications,
    /// An option that only a program can use.
    #[error("argument --{0} needs a program to start; it cannot be used with --pid")]
    OnlyLaunch(&'static str),
    /// The output is something else than a directory.
    #[error("argument --output: \"{}\" is no directory; name another path", .0.display())]
    OutputNotDirectory(PathBuf),
    /// The working directory cannot be used for a relative output.
    #[error("the working directory cannot be used: {0}; give --output an absolute path")]
    WorkingDirectory(String),
}
