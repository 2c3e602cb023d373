//! Compiles the C and C++ programs of the tests against the committed header.

use super::artifacts::{artifacts, root};
use super::process::words;
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
    /// Not at all: it opens the library itself, or never meets it.
    Without,
}

/// Flags under which everything must compile without a warning.
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// More flags for the C and C++ compilers: the sanitizers, of `make asan`.
const MORE_FLAGS: &str = "MSPROF_TEST_CFLAGS";

/// What the names of the C and C++ compilers begin with that build for another machine, of `make aarch64`.
const CROSS: &str = "MSPROF_TEST_CROSS";

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

fn compiler_of(source: &str) -> (String, &'static str) {
    match source.ends_with(".cpp") {
        true => (compiler("c++", "g++"), "-std=c++17"),
        false => (compiler("cc", "gcc"), "-std=c11"),
    }
}

fn compile(source: &str, linkage: Linkage) -> PathBuf {
    if source.ends_with(".rs") {
        return compile_rust(source);
    }
    let (compiler, standard) = compiler_of(source);
    let stem = Path::new(source).file_stem().expect("a file name");
    let program = directory().join(format!("{}-{linkage:?}", stem.to_string_lossy()));
    let release = artifacts().library.parent().expect("a directory");
    let mut command = Command::new(compiler);
    command
        .args([standard, "-O1", "-g", "-D_GNU_SOURCE", "-pthread"])
        .args(WARNINGS)
        .args(words(&std::env::var(MORE_FLAGS).unwrap_or_default()))
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
        Linkage::Without => {
            command.arg("-ldl");
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

/// This machine's compiler, or gcc's for another one.
pub fn compiler(own: &str, gcc: &str) -> String {
    match std::env::var(CROSS) {
        Ok(prefix) => prefix + gcc,
        Err(_) => own.to_owned(),
    }
}

/// Compiles `source` to a shared library at `path`, whose file name becomes its soname.
pub fn build_library(source: &str, path: &Path) {
    build_library_with(source, &[], path);
}

/// The same with more flags for the compiler.
pub fn build_library_with(source: &str, flags: &[&str], path: &Path) {
    let soname = path.file_name().expect("a file name").to_string_lossy();
    let (compiler, standard) = compiler_of(source);
    let output = Command::new(compiler)
        .args([standard, "-O1", "-g", "-fPIC", "-shared", "-pthread"])
        .args(flags)
        .args(WARNINGS)
        .args(words(&std::env::var(MORE_FLAGS).unwrap_or_default()))
        .arg(format!("-Wl,-soname,{soname}"))
        .arg(root().join(source))
        .arg("-o")
        .arg(path)
        .output()
        .expect("a C compiler");
    assert!(
        output.status.success(),
        "{source}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Libraries that were compiled already.
static LIBRARIES: Mutex<BTreeMap<Vec<String>, PathBuf>> = Mutex::new(BTreeMap::new());

/// Compiles `source` to a shared library of that name, in a directory of its own; each once.
pub fn library(source: &str, flags: &[&str], name: &str) -> PathBuf {
    let mut built = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let key = [&[source, name], flags].concat();
    let key: Vec<String> = key.into_iter().map(str::to_owned).collect();
    if let Some(path) = built.get(&key) {
        return path.clone();
    }
    let dir = directory().join(format!("library-{}", built.len()));
    std::fs::create_dir(&dir).expect("a new directory");
    let path = dir.join(name);
    build_library_with(source, flags, &path);
    built.insert(key, path.clone());
    path
}

/// A Rust program that finds libmsprof_agent.so by RUNPATH, and has a std of its own.
fn compile_rust(source: &str) -> PathBuf {
    let stem = Path::new(source).file_stem().expect("a file name");
    let program = directory().join(stem);
    let release = artifacts().library.parent().expect("a directory");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "-D",
            "warnings",
            "-l",
            "dylib=msprof_agent",
        ])
        .arg("-L")
        .arg(release)
        .arg("-C")
        .arg(format!("link-arg=-Wl,-rpath,{}", release.display()))
        .arg("-o")
        .arg(&program)
        .arg(root().join(source))
        .output()
        .expect("a Rust compiler");
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
