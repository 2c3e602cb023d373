//! Children of an armed program that have another C library, or none that is loaded, and threads that no C library
//! knows of: they are as without us.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::artifacts::{artifacts, root};
use support::builder::{Linkage, build, compiler};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::process::{Finished, Program};
use support::rules::open_complete;
use support::wait::PATIENCE;

/// Compiles the child with a compiler and its options; `None` where there is no such compiler.
fn child(home: &Home, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let name = format!("{compiler}{}", options.concat());
    let program = home.path().join(name);
    let output = Command::new(compiler)
        .args(options)
        .arg(root().join("tests/c/child_of_another.c"))
        .arg("-o")
        .arg(&program)
        .output();
    match output {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => {
            support::skip::skipped(format_args!(
                "{compiler} is not installed (package musl-tools)"
            ));
            return None;
        }
    }
    Some(program)
}

/// A shell that runs the child and then tells its status.
fn shell(home: &Home, child: &Path) -> Program {
    let script = r#""$0" word; echo "status $?""#;
    home.armed("sh").arg("-c").arg(script).arg(child)
}

#[track_caller]
fn assert_unharmed(home: &Home, finished: &Finished, child: &Path) {
    finished.expect_code(0);
    let shown = child.display();
    assert_eq!(finished.stdout, ["child word", "status 5"], "{shown}");
    assert_eq!(finished.stderr, ["complaint"], "{shown}");
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn statically_linked_children_of_an_armed_shell_are_as_without_us() {
    let home = Home::new();
    let ours = artifacts();
    let children = [
        child(&home, &compiler("cc", "gcc"), &["-static"]),
        child(&home, &compiler("cc", "gcc"), &["-static-pie"]),
        child(&home, "musl-gcc", &["-static"]),
    ];
    for child in children.into_iter().flatten() {
        let program = shell(&home, &child)
            .env("LD_PRELOAD", &ours.library)
            .env("LD_LIBRARY_PATH", &ours.drop_in);
        assert_unharmed(&home, &program.run(), &child);
    }
}

/// musl ends a program whose preloads it cannot link, as it does with every library that was made for glibc.
#[test]
fn a_musl_child_is_as_without_us_where_nothing_is_preloaded_that_musl_finds() {
    let home = Home::new();
    let Some(child) = child(&home, "musl-gcc", &[]) else {
        return;
    };
    // In place of libprofapi alone: nothing is preloaded.
    let program = shell(&home, &child).env("LD_LIBRARY_PATH", &artifacts().drop_in);
    assert_unharmed(&home, &program.run(), &child);
    // By a path that means something to glibc alone, which puts the name of its directory for $LIB.
    let place = home.path().join("place");
    std::fs::create_dir(&place).expect("a directory");
    std::os::unix::fs::symlink(&artifacts().library, place.join("libmsprof_agent.so"))
        .expect("a link");
    for name in ["lib", "lib64", "x86_64-linux-gnu", "aarch64-linux-gnu"] {
        std::os::unix::fs::symlink(".", place.join(name)).expect("a link");
    }
    let preload = format!("{}/$LIB/libmsprof_agent.so", place.display());
    let program = shell(&home, &child).env("LD_PRELOAD", &preload);
    assert_unharmed(&home, &program.run(), &child);
    let maps = Program::new("cat").arg("/proc/self/maps");
    let maps = maps.env("LD_PRELOAD", &preload).run();
    maps.line_with("/libmsprof_agent.so");
}

#[test]
fn threads_and_children_that_no_c_library_knows_of_end_in_peace_while_something_is_captured() {
    let home = Home::new();
    let mut program = home
        .armed(build("tests/c/raw_clone.c", Linkage::Shared))
        .spawn();
    assert_eq!(program.answer(PATIENCE), "ready");
    let socket = home.wait_socket(program.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    assert_eq!(program.tell("report 1000 1"), "0");
    assert_eq!(program.tell("clone 200"), "200");
    assert_eq!(program.tell("vfork 50"), "50");
    assert_eq!(program.tell("report 1000 2"), "0");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 2000);
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}
