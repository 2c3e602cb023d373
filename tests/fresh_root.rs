//! The main job in a root file system that has nothing of the machine that built: an installation and the demo task.
//!
//! Here it is a directory with the C library alone. `make check-install` runs the same in a fresh Debian, which it names
//! by MSPROF_TEST_ROOT.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::artifacts::artifacts;
use support::counting::Window;
use support::home::{Home, only_prof_dir};
use support::msprof::run_script;
use support::namespace::Namespace;
use support::prefix::{Prefix, assert_success};
use support::rules::{assert_named, lost, open_complete};
use tempfile::TempDir;

/// A root to run programs in.
enum Root {
    /// Somebody else's, who removes it.
    Given(PathBuf),
    /// With the C library of this machine alone.
    Bare(TempDir),
}

impl Root {
    fn new() -> Root {
        match std::env::var_os("MSPROF_TEST_ROOT") {
            Some(root) => Root::Given(root.into()),
            None => Root::Bare(tempfile::tempdir().expect("a temporary directory")),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Root::Given(path) => path,
            Root::Bare(dir) => dir.path(),
        }
    }

    /// A file below it, by its absolute path inside.
    fn inside(&self, path: &Path) -> PathBuf {
        let path = path.strip_prefix("/").expect("absolute");
        self.path().join(path)
    }

    /// Copies a file to the same place, or into a directory inside.
    fn take(&self, file: &Path, dir: Option<&str>) {
        let to = match dir {
            Some(dir) => Path::new(dir).join(file.file_name().expect("a name")),
            None => file.to_owned(),
        };
        let to = self.inside(&to);
        std::fs::create_dir_all(to.parent().expect("a directory")).expect("made");
        std::fs::copy(file, &to).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// The shared libraries of the system that a program and its libraries are linked with, by `ldd`.
fn system_libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("ldd");
    assert_success(&output, "ldd");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    let own = program.parent().expect("a directory");
    let paths = words
        .map(PathBuf::from)
        .filter(|path| !path.starts_with(own));
    paths.collect()
}

/// The directory of the demo task and its stand-in CANN.
fn demo() -> PathBuf {
    match std::env::var_os("MSPROF_TEST_DEMO") {
        Some(dir) => dir.into(),
        None => artifacts().task.parent().expect("a directory").to_owned(),
    }
}

#[test]
fn an_installation_does_its_job_in_a_root_of_its_own() {
    let (home, root) = (Home::new(), Root::new());
    for dir in ["proc", "dev", "tmp", "root"] {
        std::fs::create_dir_all(root.path().join(dir)).expect("made");
    }
    let [proc, dev] = ["proc", "dev"].map(|dir| root.path().join(dir).display().to_string());
    let mounts = format!("mount --rbind /proc '{proc}'\nmount --rbind /dev '{dev}'\n");
    let Some(namespace) = Namespace::new(&mounts) else {
        return;
    };
    Prefix::install(root.path(), "/usr/local");
    for name in [
        "mlp_task",
        "libascendcl.so",
        "libge_executor.so",
        "libprofapi.so",
        "libruntime.so",
    ] {
        root.take(&demo().join(name), Some("/demo"));
    }
    if matches!(root, Root::Bare(_)) {
        let programs = [
            demo().join("mlp_task"),
            artifacts().msprof.clone(),
            artifacts().library.clone(),
        ];
        for library in programs
            .iter()
            .flat_map(|program| system_libraries(program))
        {
            root.take(&library, None);
        }
    }
    // As a container's first process: no home, and nothing set.
    let inside = |words: &[&str]| {
        let program = namespace.plain(&home, "chroot");
        let program = program.without("HOME").without("MSPROF_AGENT_SOCKET_DIR");
        program.arg(root.path()).args(words)
    };
    let program = inside(&["/usr/local/bin/msprof", "--dynamic=on", "--output=/prof"])
        .args(["--runtime-api=on", "--model-execution=on", "--aicpu=on"])
        .args([
            "/demo/mlp_task",
            "--seconds=8",
            "--streams=2",
            "--pause-us=1000",
        ]);
    let finished = run_script(program, &["start", "sleep 1", "stop", "quit"]);
    finished.expect_code(0);
    finished.line_with("stop success");

    let windows = finished
        .stdout
        .iter()
        .filter_map(|line| Window::from_line(line));
    let windows: Vec<Window> = windows.collect();
    let [window] = windows.as_slice() else {
        panic!("one window: {finished:#?}");
    };
    let dir = only_prof_dir(&root.path().join("prof"));
    let prof = open_complete(&dir);
    assert_named(&prof);
    window.assert_matches(&prof);
    assert!(window.calls("runtime")["KernelLaunch"] > 0);
    assert!(window.records()["aicpu"] > 0);
    assert_eq!(lost(&prof.ledger()), 0);

    let name = dir.file_name().expect("a name").to_str().expect("UTF-8");
    let summary = inside(&["/usr/local/bin/msprof", "summary", &format!("/prof/{name}")]).run();
    summary.expect_code(0);
    summary.line_with("KernelLaunch");
}
