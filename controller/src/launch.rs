//! Starts a program with the agent inside (spec 4 section 4.1, launch mode).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// File name of the agent.
const LIBRARY: &str = "libmsprof_agent.so";
/// Name under which it stands in for the stock library.
const DROP_IN: &str = "libprofapi.so";
/// Variables that `--environment` must not set: they decide who profiles the program.
pub const RESERVED: [&str; 2] = ["PROFILING_MODE", "PROFILING_OPTIONS"];

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The agent is not where it could be.
    #[error("{LIBRARY} is not found in {}; name it with --agent-lib or MSPROF_AGENT_LIB", list(.0))]
    NoLibrary(Vec<PathBuf>),
    /// What was named is no file that can be read.
    #[error("the agent library {} cannot be read: {error}; name another with --agent-lib or MSPROF_AGENT_LIB", .path.display())]
    Library {
        /// What was named.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The loader cannot take the path.
    #[error("the path of the agent library {} holds a blank or a colon, which LD_PRELOAD cannot take; move it", .0.display())]
    LibraryPath(PathBuf),
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

fn list(paths: &[PathBuf]) -> String {
    let texts: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    texts.join(", ")
}

/// Where the agent lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The library, for LD_PRELOAD.
    library: PathBuf,
    /// A directory with the same file under the stock library's name, for LD_LIBRARY_PATH.
    drop_in: Option<PathBuf>,
}

impl Agent {
    /// Finds the library that was named, or else the one beside this binary.
    pub fn find(named: Option<&Path>) -> Result<Agent, LaunchError> {
        let library = match named {
            Some(path) => path.to_owned(),
            None => beside_binary()?,
        };
        let failed = |error| LaunchError::Library {
            path: library.clone(),
            error,
        };
        // Not resolved further than made absolute: a link keeps its name.
        let library = std::path::absolute(&library).map_err(failed)?;
        let file = std::fs::metadata(&library).map_err(failed)?;
        if !file.is_file() {
            return Err(failed(io::Error::other("it is no file")));
        }
        std::fs::File::open(&library).map_err(failed)?;
        let bytes = library.as_os_str().as_bytes();
        if bytes.iter().any(|b| b.is_ascii_whitespace() || *b == b':') {
            return Err(LaunchError::LibraryPath(library));
        }
        let dir = library.parent().unwrap_or(Path::new("/"));
        let dirs = [dir.join("cann"), dir.join("../lib/msprof-agent/cann")];
        // Two copies would be two agents in one process: only the very same file will do.
        let same = |dir: &PathBuf| {
            std::fs::metadata(dir.join(DROP_IN))
                .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
        };
        let drop_in = dirs.into_iter().find(same);
        Ok(Agent { library, drop_in })
    }

    /// The variables for the program. `current` looks a variable up as it stands.
    fn variables(
        &self,
        params: &str,
        current: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(OsString, OsString)> {
        let key = std::process::id().to_string();
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("PROFILING_MODE".into(), "dynamic".into()),
            ("DYNAMIC_PROFILING_KEY_PID".into(), key.into()),
            ("PROFILER_SAMPLECONFIG".into(), params.into()),
            ("MSPROF_AGENT_BIND".into(), "use".into()),
        ];
        let mut first = |name: &str, value: &Path| {
            let rest = current(name).unwrap_or_default();
            variables.push((name.into(), in_front(value.as_os_str(), &rest)));
        };
        first("LD_PRELOAD", &self.library);
        if let Some(dir) = &self.drop_in {
            first("LD_LIBRARY_PATH", dir);
        }
        variables
    }
}

fn beside_binary() -> Result<PathBuf, LaunchError> {
    let binary = std::env::current_exe().unwrap_or_default();
    let dir = binary.parent().unwrap_or(Path::new("/"));
    let dirs = ["", "../lib", "../lib/msprof-agent"].map(|sub| dir.join(sub).join(LIBRARY));
    let found = dirs.iter().find(|path| path.is_file());
    found
        .cloned()
        .ok_or_else(|| LaunchError::NoLibrary(dirs.to_vec()))
}

/// `value:rest`, or `value` alone when there is no rest.
fn in_front(value: &OsStr, rest: &OsStr) -> OsString {
    let mut joined = value.as_bytes().to_vec();
    if !rest.is_empty() {
        joined.push(b':');
        joined.extend_from_slice(rest.as_bytes());
    }
    OsString::from_vec(joined)
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
    pub fn start(&self, agent: &Agent, params: &str) -> Result<Child, LaunchError> {
        let (program, arguments) = self
            .words
            .split_first()
            .map_or((OsStr::new(""), &[][..]), |(program, rest)| {
                (program.as_os_str(), rest)
            });
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .envs(agent.variables(params, |name| self.variable(name)))
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
    fn variables_are_put_in_front_of_what_is_there() {
        let agent = Agent {
            library: "/l/libmsprof_agent.so".into(),
            drop_in: Some("/l/cann".into()),
        };
        let variables = agent.variables("{}", |name| match name {
            "LD_PRELOAD" => Some("/other.so".into()),
            _ => None,
        });
        let get = |name: &str| {
            let found = variables.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.to_str().expect("UTF-8").to_owned())
        };
        let own_pid = std::process::id().to_string();
        assert_eq!(
            get("LD_PRELOAD").as_deref(),
            Some("/l/libmsprof_agent.so:/other.so")
        );
        assert_eq!(get("LD_LIBRARY_PATH").as_deref(), Some("/l/cann"));
        assert_eq!(get("PROFILING_MODE").as_deref(), Some("dynamic"));
        assert_eq!(get("MSPROF_AGENT_BIND").as_deref(), Some("use"));
        assert_eq!(get("DYNAMIC_PROFILING_KEY_PID"), Some(own_pid));
    }

    #[test]
    fn the_drop_in_is_used_only_when_it_is_the_same_file() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let library = dir.path().join(LIBRARY);
        std::fs::write(&library, "x").expect("written");
        let find = || Agent::find(Some(&library)).expect("found");
        assert_eq!(find().drop_in, None);
        let cann = dir.path().join("cann");
        std::fs::create_dir(&cann).expect("made");
        std::fs::copy(&library, cann.join(DROP_IN)).expect("copied");
        assert_eq!(find().drop_in, None, "a copy is another file");
        std::fs::remove_file(cann.join(DROP_IN)).expect("removed");
        std::os::unix::fs::symlink("../libmsprof_agent.so", cann.join(DROP_IN)).expect("linked");
        assert_eq!(find().drop_in, Some(cann));
    }

    #[test]
    fn a_library_that_is_missing_or_cannot_be_preloaded_is_named() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let missing = dir.path().join("none.so");
        let error = Agent::find(Some(&missing))
            .expect_err("missing")
            .to_string();
        assert!(
            error.contains("none.so") && error.contains("--agent-lib"),
            "{error}"
        );
        let blank = dir.path().join("a b.so");
        std::fs::write(&blank, "x").expect("written");
        assert!(matches!(
            Agent::find(Some(&blank)),
            Err(LaunchError::LibraryPath(_))
        ));
    }

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
