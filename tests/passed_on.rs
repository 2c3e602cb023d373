//! Without PROFILING_MODE=dynamic every call of the ABI belongs to the vendor's library, wherever that is: its other
//! profiling modes go on working.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::artifacts::{artifacts, root};
use support::builder::{Linkage, build, build_library};
use support::home::Home;
use support::process::{Finished, Program};

const SOURCE: &str = "tests/c/passed_on.c";
const EXIT_NOT_LOADED: i32 = 3;

/// A directory with a stand-in for the vendor's library.
struct Vendor {
    home: Home,
}

impl Vendor {
    fn new() -> Vendor {
        let vendor = Vendor { home: Home::new() };
        std::fs::create_dir(vendor.dir()).expect("a new directory");
        build_library("tests/c/vendor_profapi.c", &vendor.library());
        vendor
    }

    fn dir(&self) -> PathBuf {
        self.home.path().join("vendor")
    }

    fn library(&self) -> PathBuf {
        self.dir().join("libprofapi.so")
    }

    /// The program that calls everything.
    fn caller(&self) -> Program {
        self.home
            .plain(build(SOURCE, Linkage::Without))
            .arg(self.library())
    }
}

/// Directory of the agent's library in the place of the vendor's.
fn drop_in() -> &'static Path {
    &artifacts().drop_in
}

fn functions() -> usize {
    let symbols = std::fs::read_to_string(root().join("tests/stock_symbols.txt"));
    symbols.expect("the list").lines().count()
}

#[track_caller]
fn assert_all_passed_on(finished: &Finished) {
    finished.line_with(&format!("right {} wrong 0", functions()));
    finished.expect_code(0);
}

#[test]
fn the_next_library_in_the_order_of_symbols_gets_every_call() {
    let vendor = Vendor::new();
    let both = format!(
        "{}:{}",
        artifacts().library.display(),
        vendor.library().display()
    );
    assert_all_passed_on(&vendor.caller().env("LD_PRELOAD", both).run());
}

#[test]
fn what_the_vendors_library_throws_goes_to_whoever_has_called() {
    let home = Home::new();
    let vendor = home.path().join("libprofapi.so");
    build_library("tests/c/vendor_throws.cpp", &vendor);
    let both = format!("{}:{}", artifacts().library.display(), vendor.display());
    let program = build("tests/c/catches.cpp", Linkage::Shared);
    let finished = home.plain(program).env("LD_PRELOAD", both).run();
    finished.line_with("caught 11");
    finished.expect_code(0);
}

#[test]
fn a_library_that_is_loaded_out_of_that_order_gets_every_call() {
    let vendor = Vendor::new();
    let caller = vendor.caller().arg(vendor.library());
    assert_all_passed_on(&caller.env("LD_PRELOAD", &artifacts().library).run());
}

#[test]
fn the_library_that_ours_hides_gets_every_call() {
    let vendor = Vendor::new();
    let path = format!("{}:{}", drop_in().display(), vendor.dir().display());
    let caller = vendor.caller().arg("libprofapi.so");
    assert_all_passed_on(&caller.env("LD_LIBRARY_PATH", path).run());
}

#[test]
fn the_library_beside_others_of_the_vendor_gets_every_call() {
    let vendor = Vendor::new();
    let runtime = vendor.dir().join("libruntime.so");
    build_library("tests/c/vendor_profapi.c", &runtime);
    let caller = vendor.caller().arg("libprofapi.so").arg(runtime);
    assert_all_passed_on(&caller.env("LD_LIBRARY_PATH", drop_in()).run());
}

#[test]
fn the_library_in_the_vendors_home_gets_every_call() {
    let vendor = Vendor::new();
    let lib64 = vendor.home.path().join("lib64");
    std::fs::rename(vendor.dir(), &lib64).expect("a free name");
    let program = vendor.home.plain(build(SOURCE, Linkage::Without));
    let caller = program
        .arg(lib64.join("libprofapi.so"))
        .arg("libprofapi.so");
    let caller = caller.env("LD_LIBRARY_PATH", drop_in());
    assert_all_passed_on(&caller.env("ASCEND_HOME_PATH", vendor.home.path()).run());
}

#[test]
fn a_copy_of_our_library_does_not_count_as_the_vendors() {
    let vendor = Vendor::new();
    let copies = vendor.home.path().join("copies");
    std::fs::create_dir(&copies).expect("a new directory");
    std::fs::copy(&artifacts().library, copies.join("libprofapi.so")).expect("a copy");
    let path = format!("{}:{}", copies.display(), vendor.dir().display());
    let caller = vendor.caller().arg("libprofapi.so");
    let caller = caller.env("LD_PRELOAD", &artifacts().library);
    assert_all_passed_on(&caller.env("LD_LIBRARY_PATH", path).run());
}

#[test]
fn a_pipe_with_the_librarys_name_is_passed_over() {
    let vendor = Vendor::new();
    let pipes = vendor.home.path().join("pipes");
    std::fs::create_dir(&pipes).expect("a new directory");
    for name in ["libprofapi.so", "libruntime.so"] {
        let name = pipes.join(name).into_os_string().into_encoded_bytes();
        let name = std::ffi::CString::new(name).expect("no NUL");
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }
    let path = format!("{}:{}", pipes.display(), vendor.dir().display());
    let caller = vendor.caller().env("LD_PRELOAD", &artifacts().library);
    assert_all_passed_on(&caller.env("LD_LIBRARY_PATH", path).run());
}

#[test]
fn the_vendors_library_stays_while_calls_go_there() {
    let vendor = Vendor::new();
    let program = build("tests/c/reopened.c", Linkage::Without);
    let program = vendor.home.plain(program).arg(vendor.library());
    let finished = program.env("LD_PRELOAD", &artifacts().library).run();
    finished.line_with("called in each round");
    finished.expect_code(0);
}

#[test]
fn a_constructor_of_the_vendors_library_may_wait_for_a_thread_that_calls() {
    let vendor = Vendor::new();
    build_library("tests/c/vendor_waits.c", &vendor.library());
    let path = format!("{}:{}", drop_in().display(), vendor.dir().display());
    let caller = vendor.caller().arg("libprofapi.so");
    assert_all_passed_on(&caller.env("LD_LIBRARY_PATH", path).run());
}

#[test]
fn after_the_first_call_none_waits_for_the_loader() {
    let vendor = Vendor::new();
    build_library("tests/c/vendor_old.c", &vendor.library());
    let slow = vendor.home.path().join("libslow.so");
    build_library("tests/c/slow_load.c", &slow);
    let both = format!(
        "{}:{}",
        artifacts().library.display(),
        vendor.library().display()
    );
    let program = build("tests/c/while_loading.c", Linkage::Without);
    let program = vendor.home.plain(program).arg(slow);
    let finished = program.env("LD_PRELOAD", both).run();
    finished.line_with("no call waited");
    finished.expect_code(0);
}

#[test]
fn in_dynamic_mode_no_call_is_passed_on() {
    let vendor = Vendor::new();
    let path = format!("{}:{}", drop_in().display(), vendor.dir().display());
    let caller = vendor
        .caller()
        .arg("libprofapi.so")
        .env("LD_LIBRARY_PATH", path);
    caller
        .env("PROFILING_MODE", "dynamic")
        .run()
        .expect_code(EXIT_NOT_LOADED);
}

#[test]
fn without_the_vendors_library_nothing_is_loaded() {
    let vendor = Vendor::new();
    let caller = vendor.caller().arg("libprofapi.so");
    caller
        .env("LD_LIBRARY_PATH", drop_in())
        .run()
        .expect_code(EXIT_NOT_LOADED);
}

#[test]
fn the_list_of_functions_is_that_of_the_test_program() {
    let header = std::fs::read_to_string(root().join("tests/c/profapi.h")).expect("the header");
    let listed: BTreeSet<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("    N(").or(line.strip_prefix("    V(")))
        .filter_map(|line| line.split(',').next())
        .collect();
    let symbols =
        std::fs::read_to_string(root().join("tests/stock_symbols.txt")).expect("the list");
    assert_eq!(listed, symbols.lines().collect());
}
