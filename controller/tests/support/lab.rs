//! What a test has for itself: directories, and processes to attach to.

use super::run::Run;
use msprof_agent_core::{VERSION, VERSION_MARKER};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A home, a place for sockets and an output directory of a test's own.
pub struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Lab {
        let lab = Lab {
            dir: tempfile::tempdir().unwrap(),
        };
        for sub in ["home", "sockets", "out"] {
            std::fs::create_dir(lab.dir.path().join(sub)).unwrap();
        }
        lab
    }

    pub fn path(&self, sub: &str) -> PathBuf {
        self.dir.path().join(sub)
    }

    pub fn socket(&self, key: u32) -> PathBuf {
        self.path("sockets")
            .join(format!("dynamic_profiling_socket_{key}"))
    }

    /// A controller command with this lab's environment.
    pub fn msprof(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_msprof"));
        command
            .current_dir(self.path("out"))
            .env("HOME", self.path("home"))
            .env("MSPROF_AGENT_SOCKET_DIR", self.path("sockets"))
            .env_remove("MSPROF_AGENT_LIB")
            .env_remove("XDG_RUNTIME_DIR");
        command
    }

    /// A shared library of one text, to be preloaded.
    pub fn shared(&self, name: &str, text: &str) -> PathBuf {
        let source = self.path("library.c");
        let code = format!("const char msprof_test_library[] = \"{text}\";\n");
        std::fs::write(&source, code).unwrap();
        let library = self.path(name);
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source);
        assert!(cc.status().unwrap().success());
        library
    }

    /// An agent by its name and its version, which does nothing.
    pub fn library(&self) -> PathBuf {
        let library = self.shared("libmsprof_agent.so", &format!("{VERSION_MARKER}{VERSION}"));
        let dir = self.path("cann");
        std::fs::create_dir_all(&dir).unwrap();
        let drop_in = dir.join("libprofapi.so");
        if !drop_in.exists() {
            std::os::unix::fs::symlink(&library, drop_in).unwrap();
        }
        library
    }

    /// An attach session to these processes.
    pub fn attach(&self, pids: &[u32]) -> Run {
        let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
        let mut command = self.msprof();
        command
            .arg("--dynamic=on")
            .arg(format!("--pid={}", pids.join(",")));
        Run::start(command)
    }
}

/// A process to attach to; killed in the end.
pub struct Sleeper(Child);

impl Sleeper {
    pub fn new() -> Sleeper {
        Sleeper::with(&[])
    }

    /// One with further environment variables.
    pub fn with(variables: &[(&str, &str)]) -> Sleeper {
        let mut command = Command::new("sleep");
        command
            .arg("300")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Sleeper(command.spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.kill();
    }
}
