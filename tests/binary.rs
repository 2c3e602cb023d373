//! What the library asks of a host and of a program's other libraries: the files of `make build`, and of `make portable`
//! where MSPROF_TEST_PORTABLE names their directory (`make check-portable` does).

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::artifacts::{artifacts, root};
use support::elf::Elf;

/// Directory of files that have to run on old hosts; to test those of `make build`, unset.
const PORTABLE: &str = "MSPROF_TEST_PORTABLE";
/// The oldest glibc that they may want.
const OLDEST_GLIBC: (u32, u32) = (2, 17);
/// What every host has: glibc, in several files until 2.33.
const GLIBC: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];
/// Thread-local memory that a library may take: what comes at run time has little room.
const THREAD_LOCAL_BYTES: u64 = 256;

fn portable() -> Option<PathBuf> {
    std::env::var_os(PORTABLE).map(PathBuf::from)
}

/// The directory of the files under test.
fn directory() -> PathBuf {
    let of_build = || {
        artifacts()
            .library
            .parent()
            .expect("a directory")
            .to_owned()
    };
    portable().unwrap_or_else(of_build)
}

fn library() -> Elf {
    Elf::of(&directory().join("libmsprof_agent.so"))
}

fn msprof() -> Elf {
    Elf::of(&directory().join("msprof"))
}

fn listed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("tests/symbols.txt")).expect("a list");
    text.lines().map(str::to_owned).collect()
}

/// Of "GLIBC_2.3.4" the first two numbers.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

#[track_caller]
fn assert_wants_no_newer_glibc(elf: &Elf) {
    let versions = elf.wanted_versions();
    assert!(!versions.is_empty());
    for name in &versions {
        // GLIBC_PRIVATE and other libraries' versions are none.
        let version = glibc_version(name).unwrap_or_else(|| panic!("{name} of {versions:?}"));
        assert!(version <= OLDEST_GLIBC, "{name} of {versions:?}");
    }
}

#[track_caller]
fn assert_needs_only(elf: &Elf, allowed: &[&str]) {
    let needed = elf.names("NEEDED");
    assert!(needed.contains("libc.so.6"), "{needed:?}");
    let others: Vec<&String> = needed
        .iter()
        .filter(|name| !allowed.contains(&name.as_str()))
        .collect();
    assert!(others.is_empty(), "needs {others:?}");
}

#[test]
fn portable_files_want_nothing_of_a_glibc_after_2_17() {
    if portable().is_none() {
        support::skip::skipped(format_args!(
            "{PORTABLE} is not set; `make check-portable` sets it"
        ));
        return;
    }
    assert_wants_no_newer_glibc(&library());
    assert_wants_no_newer_glibc(&msprof());
}

/// std's unwinder is gcc's. A program of gcc has it in any case; one that was linked on an old host, or a container with
/// little in it, may not.
#[test]
fn nothing_but_glibc_is_needed_and_gccs_unwinder_in_files_of_this_host() {
    let mut allowed = GLIBC.to_vec();
    if portable().is_none() {
        allowed.push("libgcc_s.so.1");
    }
    assert_needs_only(&library(), &allowed);
    assert_needs_only(&msprof(), &allowed);
}

#[test]
fn the_library_is_called_what_programs_are_linked_with_and_stays_loaded() {
    let library = library();
    assert_eq!(
        library.names("SONAME"),
        BTreeSet::from(["libmsprof_agent.so".to_owned()])
    );
    let flags = library.dynamic("FLAGS_1").join(" ");
    assert!(flags.contains("NODELETE"), "{flags:?}");
    // An object that is loaded by a path of its own finds its libraries where the host has them.
    for tag in ["RPATH", "RUNPATH"] {
        assert_eq!(library.dynamic(tag), [] as [String; 0], "{tag}");
    }
}

/// The room for thread locals of the static model is a few hundred bytes in all, shared by what a program loads later.
#[test]
fn it_can_be_loaded_late_by_a_program_with_little_room_for_thread_locals() {
    let library = library();
    let flags = library.dynamic("FLAGS").join(" ");
    assert!(!flags.contains("STATIC_TLS"), "{flags}");
    let bytes = library.thread_local_bytes();
    assert!(
        bytes < THREAD_LOCAL_BYTES,
        "{bytes} bytes of every thread; a build without LTO takes more than the shipped one"
    );
}

#[test]
fn hardened_hosts_load_it() {
    for elf in [library(), msprof()] {
        let stack = elf.header("GNU_STACK").expect("said");
        assert!(!stack.iter().any(|word| word.contains('E')), "{stack:?}");
        assert_eq!(elf.dynamic("TEXTREL"), [] as [String; 0]);
        let flags = elf.dynamic("FLAGS").join(" ");
        assert!(!flags.contains("TEXTREL"), "{flags}");
    }
}

#[test]
fn exactly_the_listed_symbols_are_exported() {
    assert_eq!(library().exports(), listed());
}

/// All else is local to the archive, has a name that only Rust gives, or is in a member that a program takes only when it
/// lacks the symbol: the helpers that compilers call, whose names begin with two underscores, and one that those of
/// aarch64 share.
#[test]
fn the_static_library_brings_no_name_that_a_program_may_have() {
    let globals = Elf::of(&directory().join("libmsprof_agent.a")).globals();
    let listed = listed();
    let missing: Vec<&String> = listed.difference(&globals).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let is_allowed = |name: &str| {
        let is_reserved = ["__", "_R"].iter().any(|begin| name.starts_with(begin));
        let is_of_runtime = name == "do_abort" || name.ends_with("rust_eh_personality");
        is_reserved || is_of_runtime || listed.contains(name)
    };
    let others: Vec<&String> = globals.iter().filter(|name| !is_allowed(name)).collect();
    let some = &others[..others.len().min(10)];
    assert!(others.is_empty(), "{}: {some:?} ...", others.len());
}

/// The directory that a test of `make portable` is told of holds what that makes.
#[test]
fn all_three_files_are_there() {
    for name in ["libmsprof_agent.so", "libmsprof_agent.a", "msprof"] {
        let path = directory().join(name);
        assert!(Path::new(&path).is_file(), "{}", path.display());
    }
}
