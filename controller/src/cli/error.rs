//! What is wrong with a command line, in one line each.

use crate::command::shown;
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
    /// An empty command line.
    #[error(
        "nothing to do: give --dynamic=on and --pid=<pid>, or --dynamic=on and a program to start; see msprof --help"
    )]
    Nothing,
    /// Options, but not the one that says what they are for.
    #[error(
        "--dynamic=on is missing: this msprof profiles in dynamic mode only; see msprof --help"
    )]
    NoDynamic,
    /// A first word that is none of the verbs.
    #[error("\"{}\" is no command of msprof; {}", shown(.word), instead(.word, .similar))]
    NotAVerb {
        /// The word.
        word: String,
        /// The verb that looks most like it.
        similar: Option<&'static str>,
    },
    /// What belongs to the prompt.
    #[error(
        "\"{0}\" is a command of the prompt: run msprof --dynamic=on --pid=<pid> and type it there"
    )]
    PromptCommand(String),
    /// Nobody to profile.
    #[error("whom to profile is missing: give --pid=<pid> or a program to start")]
    Nobody,
    /// Both.
    #[error("arguments --pid and --application cannot be configured at the same time")]
    PidAndApplication,
    /// Both, and the program is perhaps none.
    #[error(
        "arguments --pid and --application cannot be configured at the same time: \"{}\" is taken for a program to start; several pids are written --pid=1,2",
        shown(.0)
    )]
    PidAndWord(String),
    /// The program's name is "".
    #[error("the program to start has an empty name; give its path")]
    EmptyProgram,
    /// An application twice.
    #[error("the program to start is given twice: by --application and behind the options")]
    TwoApplications,
    /// An option that only a program can use.
    #[error("argument --{0} needs a program to start; it cannot be used with --pid")]
    OnlyLaunch(&'static str),
    /// A library, and that it is not to be used.
    #[error("arguments --inject=none and --agent-lib cannot be configured at the same time")]
    NothingToInject,
    /// The output is something else than a directory.
    #[error("argument --output: \"{}\" is no directory; name another path", .0.display())]
    OutputNotDirectory(PathBuf),
    /// The working directory cannot be used for a relative output.
    #[error("the working directory cannot be used: {0}; give --output an absolute path")]
    WorkingDirectory(String),
}

/// The way out for a word that is no verb.
fn instead(word: &str, similar: &Option<&'static str>) -> String {
    match similar {
        Some(verb) => format!("did you mean {verb}?"),
        None => format!(
            "to profile a program: msprof --dynamic=on {}; see msprof --help",
            shown(word)
        ),
    }
}
