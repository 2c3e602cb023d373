//! What the loader is told, and what comes of it: preloads in every form, early and late binding, an auditor, search
//! paths that go before ours, and programs with hundreds of libraries.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::artifacts::{artifacts, root};
use support::builder::{Linkage, build, build_library, compiler};
use support::client::{ByteClient, params};
use support::counting::Window;
use support::home::{Home, only_prof_dir};
use support::proc::Proc;
use support::process::Program;
use support::rules::open_complete;
use support::task::{self, EASY, Task, Way, wait_runs};
use tempfile::TempDir;

/// Starts a task that was prepared, captures some of it and compares with its own counts.
#[track_caller]
fn captured(home: &Home, program: Program) -> Task {
    let mut task = Task::start_program(home, program, true);
    let output = home.output();
    let mut client = ByteClient::open(task.socket(), &params(&output));
    client.start();
    wait_runs(&output, 10);
    client.stop();
    client.quit();
    let window = task.window(1);
    let prof = open_complete(&only_prof_dir(&output));
    window.assert_matches(&prof);
    assert!(window.total() > 100);
    Proc::of(task.pid()).wait_for_control_thread_alone();
    assert_eq!(home.sockets(), std::slice::from_ref(task.socket()));
    task
}

/// How often a file is loaded: mapped from its beginning on. Its code an emulator maps without leave to run.
fn times_loaded(task: &Task, file: &str) -> usize {
    let mappings = Proc::of(task.pid()).mappings();
    let begins = |line: &&String| line.split_whitespace().nth(2) == Some("00000000");
    mappings
        .iter()
        .filter(|line| begins(line) && line.ends_with(file))
        .count()
}

fn preload(home: &Home, list: &str) -> Program {
    task::program(home, Way::None, EASY).env("LD_PRELOAD", list)
}

// ---- preloads -----------------------------------------------------------------

#[test]
fn a_preload_may_be_one_of_a_list_and_may_be_relative() {
    let library = &artifacts().library;
    let directory = library.parent().expect("a directory");
    let ours = library.display();
    let lists = [
        format!("{ours}:libm.so.6"),
        format!("libm.so.6:{ours}"),
        format!("libm.so.6 {ours} libdl.so.2"),
        format!(" {ours}"),
        "./libmsprof_agent.so".to_owned(),
        "../release/libmsprof_agent.so:libm.so.6".to_owned(),
    ];
    for list in lists {
        let home = Home::new();
        let program = preload(&home, &list).current_dir(directory);
        let task = captured(&home, program);
        assert_eq!(times_loaded(&task, "/libmsprof_agent.so"), 1, "{list}");
        task.terminate();
    }
}

#[test]
fn two_paths_to_one_file_are_one_agent() {
    let home = Home::new();
    let link = home.path().join("liblink.so");
    std::os::unix::fs::symlink(&artifacts().library, &link).expect("a link");
    let both = format!("{}:{}", link.display(), artifacts().library.display());
    let task = captured(&home, preload(&home, &both));
    assert_eq!(times_loaded(&task, "/libmsprof_agent.so"), 1);
    task.terminate();
}

#[test]
fn of_two_copies_in_either_order_one_answers_and_the_other_says_that_it_does_not() {
    for ours_first in [true, false] {
        let home = Home::new();
        let copy = home.path().join("libcopy.so");
        std::fs::copy(&artifacts().library, &copy).expect("a copy");
        let mut both = [artifacts().library.display(), copy.display()].map(|path| path.to_string());
        if !ours_first {
            both.reverse();
        }
        let task = captured(&home, preload(&home, &both.join(":")));
        assert_eq!(times_loaded(&task, "/libcopy.so"), 1);
        let said = "no control socket: another copy of the library in this process";
        assert_eq!(home.log().matches(said).count(), 1, "{}", home.log());
        task.terminate();
    }
}

#[test]
fn preloaded_linked_and_in_place_of_libprofapi_at_once_is_one_agent() {
    let home = Home::new();
    let program = task::program(&home, Way::Linked, EASY)
        .env("LD_PRELOAD", &artifacts().library)
        .env("LD_LIBRARY_PATH", &artifacts().drop_in);
    let task = captured(&home, program);
    assert_eq!(times_loaded(&task, "/libmsprof_agent.so"), 1);
    task.terminate();
}

// ---- binding ------------------------------------------------------------------

#[test]
fn binding_everything_at_the_start_changes_nothing() {
    for way in [Way::Preload, Way::DropIn, Way::Linked] {
        let home = Home::new();
        let program = task::program(&home, way, EASY).env("LD_BIND_NOW", "1");
        captured(&home, program).terminate();
    }
}

#[test]
fn an_auditor_of_the_loader_changes_nothing() {
    let home = Home::new();
    let auditor = home.path().join("libaudit.so");
    build_library("tests/c/audit.c", &auditor);
    for way in [Way::Preload, Way::DropIn] {
        let home = Home::new();
        let program = task::program(&home, way, EASY).env("LD_AUDIT", &auditor);
        let task = captured(&home, program);
        assert_eq!(times_loaded(&task, "/libaudit.so"), 1);
        task.terminate();
    }
}

// ---- CANN that is bound to itself ---------------------------------------------

/// Runs a program that opens CANN's library with RTLD_DEEPBIND, captures it once, and gives the task's count of what
/// it did and the capture.
fn deep(prepare: impl Fn(Program) -> Program, is_seen: bool) {
    let home = Home::new();
    let cann = artifacts().task.with_file_name("libascendcl.so");
    let program = home.armed(build("tests/c/deep_task.c", Linkage::Without));
    let mut running = prepare(program.arg(cann).arg("bind")).spawn();
    running.line("the task", |line| (line == "ready").then_some(()));
    let socket = home.wait_socket(running.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    if is_seen {
        wait_runs(&home.output(), 10);
    }
    client.stop();
    client.quit();
    let finished = running.finish();
    finished.expect_code(0);
    let prof = open_complete(&only_prof_dir(&home.output()));
    let windows: Vec<Window> = finished
        .stdout
        .iter()
        .filter_map(|line| Window::from_line(line))
        .collect();
    if is_seen {
        let [window] = windows.as_slice() else {
            panic!("one window: {finished:#?}");
        };
        window.assert_matches(&prof);
        assert!(window.total() > 100);
    } else {
        // Its components have never heard of the start.
        assert_eq!(windows.len(), 0);
        assert_eq!(prof.api(), []);
    }
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn cann_that_is_opened_with_deepbind_is_seen_in_place_of_libprofapi_and_not_by_preload_alone() {
    let ours = artifacts();
    deep(|p| p.env("LD_PRELOAD", &ours.library), false);
    deep(|p| p.env("LD_LIBRARY_PATH", &ours.drop_in), true);
    deep(
        |p| {
            p.env("LD_PRELOAD", &ours.library)
                .env("LD_LIBRARY_PATH", &ours.drop_in)
        },
        true,
    );
}

// ---- search paths -------------------------------------------------------------

/// The stand-in CANN and the task, linked with DT_RPATH in the place of DT_RUNPATH, and to be bound at once.
fn with_rpath() -> TempDir {
    let dir = tempfile::Builder::new()
        .prefix("msprof-test-rpath-")
        .tempdir()
        .expect("a temporary directory");
    let output = Command::new("make")
        .current_dir(root())
        .args(["-s", "-f", "tests/cann/build.mk", "mlp_task"])
        .arg(format!("OUT={}", dir.path().display()))
        .arg(format!("CC={}", compiler("cc", "gcc")))
        .arg("CFLAGS=-O1")
        .arg("LDFLAGS=-Wl,--disable-new-dtags,-z,now")
        .env_remove("MAKEFLAGS")
        .output()
        .expect("make");
    assert!(output.status.success(), "{output:?}");
    dir
}

/// A task whose libraries' DT_RPATH goes before LD_LIBRARY_PATH.
fn rpath_task(home: &Home, dir: &Path) -> Program {
    let options = support::process::words(EASY);
    home.armed(dir.join("mlp_task")).args(options)
}

#[test]
fn dt_rpath_goes_before_ld_library_path_and_a_preload_before_both() {
    let built = with_rpath();
    let dir = built.path();
    let ours = artifacts();
    // In place of libprofapi: the loader does not even look there.
    let home = Home::new();
    let program = rpath_task(&home, dir).env("LD_LIBRARY_PATH", &ours.drop_in);
    let task = Task::start_program(&home, program, false);
    assert_eq!(times_loaded(&task, "/libmsprof_agent.so"), 0);
    assert_eq!(times_loaded(&task, "/libprofapi.so"), 1);
    task.terminate();
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    // Both, as in launch mode, and the preload alone.
    for drop_in in [true, false] {
        let home = Home::new();
        let mut program = rpath_task(&home, dir).env("LD_PRELOAD", &ours.library);
        if drop_in {
            program = program.env("LD_LIBRARY_PATH", &ours.drop_in);
        }
        let task = captured(&home, program);
        assert_eq!(times_loaded(&task, "/libmsprof_agent.so"), 1);
        task.terminate();
    }
}

// ---- many libraries -----------------------------------------------------------

const LIBRARIES: usize = 320;

/// Copies of one file without a name of its own, which are as many libraries.
fn many_libraries(dir: &Path) -> Vec<PathBuf> {
    let first = dir.join("tls0.so");
    let output = Command::new(compiler("cc", "gcc"))
        .args(["-std=c11", "-O1", "-fPIC", "-shared"])
        .arg(root().join("tests/c/tls_block.c"))
        .arg("-o")
        .arg(&first)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{output:?}");
    let copies = (1..LIBRARIES).map(|number| {
        let copy = dir.join(format!("tls{number}.so"));
        std::fs::copy(&first, &copy).expect("a copy");
        copy
    });
    std::iter::once(first.clone()).chain(copies).collect()
}

#[test]
fn a_program_with_hundreds_of_libraries_and_much_static_tls_is_captured() {
    let home = Home::new();
    let libraries = many_libraries(home.path());
    let list = libraries.iter().map(|path| path.display().to_string());
    let list: Vec<String> = list
        .chain([artifacts().library.display().to_string()])
        .collect();
    let task = captured(&home, preload(&home, &list.join(":")));
    let mapped = (0..LIBRARIES).filter(|n| times_loaded(&task, &format!("/tls{n}.so")) == 1);
    assert_eq!(mapped.count(), LIBRARIES);
    task.terminate();
}

#[test]
fn the_library_is_opened_where_no_static_tls_is_left() {
    let home = Home::new();
    let libraries = many_libraries(home.path());
    let opener = home.armed(build("tests/c/opener.c", Linkage::Without));
    let mut opener = opener.arg(&artifacts().library).args(&libraries).spawn();
    opener.answer(support::wait::PATIENCE);
    let opened: usize = opener.tell("others").parse().expect("a number");
    // The loader has kept some for libraries to come, and it is used up.
    assert!((1..LIBRARIES).contains(&opened), "{opened}");
    assert_eq!(opener.tell("open 0"), "0");
    let socket = home.wait_socket(opener.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    assert_eq!(opener.tell("report 1000 1"), "0");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 1000);
    opener.finish().expect_code(0);
}
