//! The release artifacts that the tests run, and whether they are what the sources say.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// What is under test, by absolute path.
#[derive(Debug)]
pub struct Artifacts {
    /// libmsprof_agent.so
    pub library: PathBuf,
    /// libmsprof_agent.a
    pub archive: PathBuf,
    /// Directory that holds libprofapi.so, a link to the library.
    pub drop_in: PathBuf,
    /// Directory that holds libprofimpl.so, a link to the library.
    pub drop_in_behind: PathBuf,
    /// The controller.
    pub msprof: PathBuf,
    /// The demo task; its stand-in CANN lies beside it.
    pub task: PathBuf,
    /// The demo task, linked with the library.
    pub task_linked: PathBuf,
    /// The demo task with the archive in it.
    pub task_static: PathBuf,
    /// The demo task as a shared library, whose main() a program can call.
    pub task_library: PathBuf,
    /// The stand-in driver.
    pub driver: PathBuf,
    /// The same from before halProfDataFlush.
    pub driver_old: PathBuf,
}

/// The artifacts; panics with what to do when they are missing or older than their sources.
pub fn artifacts() -> &'static Artifacts {
    static FOUND: OnceLock<Artifacts> = OnceLock::new();
    FOUND.get_or_init(find)
}

/// Root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Directory of `release` and `cann`. `make asan` names another one than cargo's.
fn target() -> PathBuf {
    match std::env::var_os("MSPROF_TEST_TARGET") {
        Some(dir) => dir.into(),
        // cargo gives integration tests <target>/tmp, wherever <target> is.
        None => Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .expect("the target directory")
            .to_owned(),
    }
}

fn find() -> Artifacts {
    let target = target();
    let release = target.join("release");
    let cann = target.join("cann");
    let found = Artifacts {
        library: release.join("libmsprof_agent.so"),
        archive: release.join("libmsprof_agent.a"),
        drop_in: release.join("cann"),
        drop_in_behind: release.join("cann-impl"),
        msprof: release.join("msprof"),
        task: cann.join("mlp_task"),
        task_linked: cann.join("mlp_task_linked"),
        task_static: cann.join("mlp_task_static"),
        task_library: cann.join("libmlp_task.so"),
        driver: cann.join("libascend_hal.so"),
        driver_old: cann.join("old/libascend_hal.so"),
    };
    check_fresh(&found.library, &release.join("libmsprof_agent.d"));
    check_fresh(&found.msprof, &release.join("msprof.d"));
    let others = [
        &found.archive,
        &found.task,
        &found.task_linked,
        &found.task_static,
        &found.task_library,
        &found.driver,
        &found.driver_old,
    ];
    for path in others {
        modified(path);
    }
    modified(&found.drop_in.join("libprofapi.so"));
    modified(&found.drop_in_behind.join("libprofimpl.so"));
    for (dir, artifact) in [("tests/cann", &found.task), ("examples", &found.task)] {
        for entry in std::fs::read_dir(root().join(dir)).expect("a source directory") {
            let source = entry.expect("entry").path();
            let is_c = source.extension().is_some_and(|e| e == "c" || e == "h");
            let of_task = dir != "examples" || source.ends_with("mlp_task.c");
            if is_c && of_task && modified(&source) > modified(artifact) {
                stale(artifact, &source);
            }
        }
    }
    found
}

/// Compares with every source that the build's own dependency file names.
fn check_fresh(artifact: &Path, dependencies: &Path) {
    let built = modified(artifact);
    let text = std::fs::read_to_string(dependencies).unwrap_or_default();
    let Some((_, sources)) = text.lines().next().and_then(|line| line.split_once(": ")) else {
        return;
    };
    for source in sources.split_whitespace().map(Path::new) {
        let Ok(meta) = std::fs::metadata(source) else {
            continue;
        };
        if meta.modified().is_ok_and(|changed| changed > built) {
            stale(artifact, source);
        }
    }
}

fn modified(path: &Path) -> SystemTime {
    match std::fs::metadata(path).and_then(|meta| meta.modified()) {
        Ok(time) => time,
        Err(error) => panic!("{}: {error}; run `make test`", path.display()),
    }
}

fn stale(artifact: &Path, source: &Path) -> ! {
    panic!(
        "{} is older than {}; run `make test`",
        artifact.display(),
        source.display()
    );
}
