//! Compiles the C and C++ programs of the tests against the committed header.

use super::artifacts::{artifacts, root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use tempfile::TempDir;

/// How a program gets the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Linkage {
    /// libmsprof_agent.so, found by RUNPATH.
    Shared,
    /// libmsprof_agent.a.
    Static,
}

/// Flags under which everything must compile without a warning.
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// Programs that were compiled already; locked while one is, since tests run side by side.
static BUILT: Mutex<BTreeMap<(String, Linkage), PathBuf>> = Mutex::new(BTreeMap::new());

/// Compiles `source`, a path in the repository, to a program; each once.
pub fn build(source: &str, linkage: Linkage) -> PathBuf {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (source.to_owned(), linkage);
    if let Some(program) = built.get(&key) {
        return program.clone();
    }
    let program = compile(source, linkage);
    built.insert(key, program.clone());
    program
}

fn compile(source: &str, linkage: Linkage) -> PathBuf {
    let (compiler, standard) = match source.ends_with(".cpp") {
        true => ("c++", "-std=c++17"),
        false => ("cc", "-std=c11"),
    };
    let stem = Path::new(source).file_stem().expect("a file name");
    let program = directory().join(format!("{}-{linkage:?}", stem.to_string_lossy()));
    let release = artifacts().library.parent().expect("a directory");
    let mut command = Command::new(compiler);
    command
        .args([standard, "-O1", "-g", "-D_GNU_SOURCE", "-pthread"])
        .args(WARNINGS)
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join(source))
        .arg("-o")
        .arg(&program);
    match linkage {
        Linkage::Shared => {
            command.arg("-L").arg(release).arg("-lmsprof_agent");
            command.arg(format!("-Wl,-rpath,{}", release.display()));
        }
        Linkage::Static => {
            command.arg(&artifacts().archive).arg("-ldl");
        }
    }
    command.arg("-lm");
    let output = command.output().expect("a C compiler");
    assert!(
        output.status.success(),
        "{source}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// Where the programs of this test binary go; removed when it ends.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<TempDir> = OnceLock::new();
    let dir = DIRECTORY.get_or_init(|| {
        let dir = tempfile::Builder::new()
            .prefix("msprof-test-build-")
            .tempdir();
        remove_at_exit();
        dir.expect("a temporary directory")
    });
    dir.path()
}

/// A static is never dropped.
fn remove_at_exit() {
    extern "C" fn remove() {
        let _ = std::fs::remove_dir_all(directory());
    }
    // SAFETY: the handler touches an initialised static and the file system only.
    unsafe { libc::atexit(remove) };
}
