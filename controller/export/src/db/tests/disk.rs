//! A disk that becomes full. It is a mount of its own, which the test sees in a process of its own.

use super::NAME;
use super::prof::{Call, Prof};
use crate::db::file::DbFile;
use crate::db::{DbError, write_db};
use crate::source::Source;
use rusqlite::ffi;
use std::path::Path;
use std::process::Command;

/// Where the process of its own has its disk.
const DISK: &str = "MSPROF_TEST_DISK";
/// Exit status of the shell where the host does not let it mount.
const NO_MOUNT: i32 = 77;

#[test]
fn a_full_disk_is_said_and_nothing_is_left_on_it() {
    let home = tempfile::tempdir().expect("a directory");
    let script = "mount --make-rprivate / && mount -t tmpfs -o size=256k none \"$MSPROF_TEST_DISK\" || exit 77\n\
         exec \"$@\"";
    let child = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().expect("a path"))
        .args([
            "--exact",
            "--ignored",
            "db::tests::disk::on_a_disk_of_256_kib",
        ])
        .env(DISK, home.path())
        .output();
    let Ok(child) = child else {
        eprintln!("skipped: there is no unshare");
        return;
    };
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    if child.status.code() == Some(NO_MOUNT) || said.contains("unshare failed") {
        eprintln!("skipped: the host does not let us mount: {said}");
        return;
    }
    assert!(child.status.success(), "{text}{said}");
    assert!(text.contains("1 passed"), "{text}{said}");
}

#[test]
#[ignore = "the part of a_full_disk_is_said_and_nothing_is_left_on_it that has the disk"]
fn on_a_disk_of_256_kib() {
    let disk = std::env::var_os(DISK).expect("a disk");
    let disk = Path::new(&disk);
    let prof = Prof::new();
    for number in 0..20_000 {
        prof.call(Call::new(20000, 1, number, number + 1));
    }
    let source = Source::open(prof.path()).expect("a directory");
    let error = write_db(&source, disk, NAME, &mut |_| {}).expect_err("no room");
    assert!(matches!(error, DbError::Io { .. }), "{error:?}");
    let said = error.to_string();
    assert!(
        said.contains(NAME)
            && said.contains("No space left on device (os error 28); free space there"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(disk).expect("listed").count(), 0);
}

#[test]
fn what_the_system_refuses_is_said_in_its_words_with_the_way_out() {
    for (code, reason, way_out) in [
        (
            ffi::SQLITE_FULL,
            "No space left on device",
            "; free space there, or copy",
        ),
        (
            ffi::SQLITE_READONLY,
            "Read-only file system",
            "; copy the PROF directory to where you may write",
        ),
        (
            ffi::SQLITE_NOMEM,
            "Cannot allocate memory",
            "; raise the limit of memory",
        ),
    ] {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let said = DbError::sqlite(Path::new(NAME), error).to_string();
        assert!(
            said.starts_with(&format!("cannot write {NAME}: {reason}")),
            "{said}"
        );
        assert!(said.contains(way_out), "{said}");
    }
}

#[test]
fn what_sqlite_has_no_word_for_is_asked_of_the_system_again() {
    let home = tempfile::tempdir().expect("a directory");
    let file = DbFile::create(home.path()).expect("made");
    let broken = || rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_WRITE), None);
    // Where writing works, SQLite's own words are left.
    let error = file.failed(Path::new(NAME), broken());
    assert!(matches!(error, DbError::Sqlite { .. }), "{error}");
}
