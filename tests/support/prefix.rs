//! An installation of the artifacts in a directory of a test's own.

use super::artifacts::{artifacts, root};
use super::process::Program;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Where it is installed below the stage: not where the compilers and the loader look by themselves.
const PREFIX: &str = "/opt/agent";

/// What `make install` has made.
#[derive(Debug)]
pub struct Prefix {
    stage: TempDir,
}

impl Prefix {
    pub fn new() -> Prefix {
        let stage = tempfile::Builder::new()
            .prefix("msprof-test-stage-")
            .tempdir()
            .expect("a temporary directory");
        let prefix = Prefix { stage };
        prefix.make("install");
        prefix
    }

    /// `make install` or `make uninstall`.
    pub fn make(&self, target: &str) {
        make(target, self.stage.path(), PREFIX);
    }

    /// `make install` into a directory that somebody else removes.
    pub fn install(stage: &Path, prefix: &str) {
        make("install", stage, prefix);
    }

    /// The directory that stands for the root.
    pub fn stage(&self) -> &Path {
        self.stage.path()
    }

    /// A file below the prefix.
    pub fn path(&self, name: &str) -> PathBuf {
        self.stage
            .path()
            .join(PREFIX.trim_start_matches('/'))
            .join(name)
    }
}

fn make(target: &str, stage: &Path, prefix: &str) {
    // `make check-install` may name files that were built elsewhere.
    let built = match std::env::var_os("MSPROF_TEST_BUILT") {
        Some(dir) => dir.into(),
        None => artifacts().library.with_file_name(""),
    };
    let output = Command::new("make")
        .args(["-s", target])
        .arg(format!("BUILT={}", built.display()))
        .arg(format!("DESTDIR={}", stage.display()))
        .arg(format!("PREFIX={prefix}"))
        .current_dir(root())
        // What an outer make has set is for that one.
        .env_remove("MAKEFLAGS")
        .output()
        .expect("make");
    assert_success(&output, target);
}

/// A program's output; `None`, said on stderr, where there is no such program.
pub fn run_tool(tool: impl AsRef<OsStr>, set_up: impl FnOnce(&mut Command)) -> Option<Output> {
    let mut command = Command::new(&tool);
    set_up(&mut command);
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            super::skip::skipped(format_args!("there is no {}", tool.as_ref().display()));
            None
        }
        Err(error) => panic!("{}: {error}", tool.as_ref().display()),
    }
}

#[track_caller]
pub fn assert_success(output: &Output, what: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{what}: {out}{text}");
}

/// All files and links below a directory, by their paths from there, sorted.
pub fn files_below(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let entry = entry.expect("an entry");
            match entry.file_type().expect("a type").is_dir() {
                true => dirs.push(entry.path()),
                false => {
                    let path = entry.path();
                    let path = path.strip_prefix(dir).expect("below it");
                    found.push(path.to_str().expect("UTF-8").to_owned());
                }
            }
        }
    }
    found.sort();
    found
}

/// The program finds the installed library by its directory.
pub fn with_library(program: Program, prefix: &Prefix) -> Program {
    program.env("LD_LIBRARY_PATH", prefix.path("lib"))
}
