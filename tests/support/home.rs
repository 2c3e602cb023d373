//! A home directory of a test's own, removed at its end.

use super::process::Program;
use super::wait::wait_until;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary directory that is home and socket directory of processes. Short and free of
/// characters that the parser refuses.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
}

impl Home {
    pub fn new() -> Home {
        let dir = tempfile::Builder::new()
            .prefix("msprof-test-")
            .tempdir()
            .expect("a temporary directory");
        Home { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A place for PROF directories; made by the agent.
    pub fn output(&self) -> PathBuf {
        self.path().join("output")
    }

    /// Where the socket of process `key` is.
    pub fn socket(&self, key: u32) -> PathBuf {
        self.path().join(format!("dynamic_profiling_socket_{key}"))
    }

    /// The same, once it is there.
    pub fn wait_socket(&self, key: u32) -> PathBuf {
        let socket = self.socket(key);
        wait_until("the socket", || socket.exists());
        socket
    }

    /// All sockets that are there.
    pub fn sockets(&self) -> Vec<PathBuf> {
        self.entries(|name| name.starts_with("dynamic_profiling_socket_"))
    }

    /// Everything in the home but what the tests put there themselves.
    pub fn entries(&self, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = std::fs::read_dir(self.path())
            .expect("the home can be read")
            .map(|entry| entry.expect("entry").path())
            .filter(|path| {
                path.file_name()
                    .and_then(OsStr::to_str)
                    .is_some_and(&wanted)
            })
            .collect();
        found.sort();
        found
    }

    /// A program with this home, an otherwise nearly empty environment, and the agent armed.
    pub fn armed(&self, program: impl AsRef<OsStr>) -> Program {
        self.plain(program)
            .env("PROFILING_MODE", "dynamic")
            .env("MSPROF_AGENT_LOG", "info")
            .env("MSPROF_AGENT_LOG_FILE", self.path().join("agent.log"))
    }

    /// A program with this home and an otherwise nearly empty environment.
    pub fn plain(&self, program: impl AsRef<OsStr>) -> Program {
        Program::new(program)
            .env("HOME", self.path())
            .env("MSPROF_AGENT_SOCKET_DIR", self.path())
    }

    /// What the agents of this home have logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("agent.log")).unwrap_or_default()
    }
}

/// The PROF directories in `dir`, oldest first by their capture number; none if there is no `dir`.
pub fn prof_dirs(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("entry").path())
        .filter(|path| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| name.starts_with("PROF_"))
        })
        .collect();
    found.sort();
    found
}

/// The only PROF directory in `dir`.
pub fn only_prof_dir(dir: &Path) -> PathBuf {
    let found = prof_dirs(dir);
    assert_eq!(
        found.len(),
        1,
        "one capture in {}: {found:?}",
        dir.display()
    );
    found.into_iter().next().expect("one")
}
