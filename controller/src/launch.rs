//! Starts a program with the agent inside (spec 4 section 4.1, launch mode).

use crate::inject::{InjectError, Injection};
use msprof_agent_core::names::{self, variable};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Variables that `--environment` must not set: they decide who profiles the program.
pub const RESERVED: [&str; 2] = [names::MODE, names::OPTIONS];

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The agent cannot be got into the program.
    #[error(transparent)]
    Inject(#[from] InjectError),
    /// The program cannot be run.
    #[error("cannot run {}: {error}", .program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl LaunchError {
    /// Exit status, as shells have it: 127 not found, 126 found and not to be run; 2 when nothing
    /// was tried.
    pub fn exit_status(&self) -> u8 {
        match self {
            LaunchError::Run { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            LaunchError::Run { .. } => 126,
            _ => 2,
        }
    }
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The program and its arguments; never empty.
    pub words: Vec<OsString>,
    /// `--environment`.
    pub environment: Vec<(String, String)>,
}

impl Application {
    /// A variable as the program will see it, before ours are set.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.environment.iter().rev().find(|(key, _)| key == name);
        match given {
            Some((_, value)) => Some(value.into()),
            None => std::env::var_os(name),
        }
    }

    /// Starts it, in a process group of its own: Ctrl-C on the terminal is for the controller.
    pub fn start(&self, injection: &Injection, params: &str) -> Result<Child, LaunchError> {
        let (program, arguments) = self
            .words
            .split_first()
            .map_or((OsStr::new(""), &[][..]), |(program, rest)| {
                (program.as_os_str(), rest)
            });
        let key = std::process::id().to_string();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .env(names::MODE, names::DYNAMIC)
            .env(names::KEY_PID, key)
            .env("PROFILER_SAMPLECONFIG", params)
            .env(variable::BIND, variable::BIND_USE)
            .envs(injection.variables(|name| self.variable(name))?)
            .stdin(Stdio::null())
            .process_group(0);
        command.spawn().map_err(|error| LaunchError::Run {
            program: program.into(),
            error,
        })
    }
}

/// Reads `K=V;K2=V2`; the error is what is wrong, in words.
pub fn parse_environment(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for part in text.split(';').filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err("each part must be NAME=VALUE".to_owned());
        };
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) || value.contains('\0') {
            return Err("a name is empty or holds a blank".to_owned());
        }
        if RESERVED.contains(&key) {
            return Err(format!("{key} is set by msprof itself"));
        }
        variables.push((key.to_owned(), value.to_owned()));
    }
    if variables.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(variables)
}

/// Exit status of a program as shells have it: 128 + n for signal n.
pub fn exit_status(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code & 0xFF).unwrap_or(u8::MAX)
}

/// How a program ended, in words.
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program has ended with exit status {code}"),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal);
            let name = name.map_or_else(String::new, |name| format!(" ({name})"));
            format!("the program was ended by signal {signal}{name}")
        }
        (None, None) => "the program has ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_lists_of_assignments() {
        let pairs = parse_environment("A=1;B=x=y;C=").expect("valid");
        let expected = [("A", "1"), ("B", "x=y"), ("C", "")];
        assert_eq!(pairs, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        for bad in [
            "",
            ";",
            "A",
            "=1",
            "A B=1",
            "PROFILING_MODE=off",
            "X=1;PROFILING_OPTIONS={}",
        ] {
            assert!(parse_environment(bad).is_err(), "{bad}");
        }
    }
}
