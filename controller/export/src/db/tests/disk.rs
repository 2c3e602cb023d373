//! A disk that becomes full. It is a mount of its own, which the test sees in a process of its own.

use super::NAME;
use super::prof::{Call, Prof};
use crate::db::{DbError, write_db};
use crate::source::Source;
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
        said.contains(NAME) && said.contains("No space left on device"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(disk).expect("listed").count(), 0);
}
