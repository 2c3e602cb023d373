//! What msprof exports of captures of the demo, beside what the stock parser does, and on disks that fail.

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;
use support::artifacts::{artifacts, root};
use support::builder::{Linkage, build};
use support::captured::Capture;
use support::home::{Home, only_prof_dir};
use support::namespace::Namespace;
use support::parser::stock_parser;
use support::process::{Finished, Program};
use support::reported::capture;

const OPTIONS: &str = "--seconds=-1 --streams=2 --pause-us=5000";
/// The stock parser takes seconds for a directory, on a loaded machine a minute.
const LIMIT: Duration = Duration::from_secs(600);

/// Compares the two exports of directories; every difference is named by the script.
fn assert_equal_exports(parser: &Path, directories: &[PathBuf]) {
    let finished = Program::new("python3")
        .arg(root().join("tests/compare_export.py"))
        .arg(format!("--msprof={}", artifacts().msprof.display()))
        .arg(parser)
        .args(directories)
        .spawn()
        .finish_within(LIMIT);
    eprintln!("{}", finished.text());
    finished.expect_code(0);
}

#[test]
fn exports_of_our_captures_are_those_of_the_stock_parser() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let demo = Capture::make(OPTIONS);
    let (families, odd, marks) = (Home::new(), Home::new(), Home::new());
    let (every_family, _) = capture(&families, "tests/c/families.c");
    for (home, program) in [
        (&odd, "tests/c/odd_families.c"),
        (&marks, "tests/c/marks.c"),
    ] {
        let program = home.plain(build(program, Linkage::Shared));
        program.arg(home.output()).run().expect_code(0);
    }
    let captures = [
        demo.open().path,
        every_family.path,
        only_prof_dir(&odd.output()),
        only_prof_dir(&marks.output()),
    ];
    assert_equal_exports(&parser, &captures);
}

#[test]
fn exports_of_captures_of_the_stock_collector_are_those_of_the_stock_parser() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let Some(golden) = std::env::var_os("MSPROF_GOLDEN").filter(|path| !path.is_empty()) else {
        support::skip::skipped(
            "MSPROF_GOLDEN is not set (path of directories made by the stock collector)",
        );
        return;
    };
    let entries = std::fs::read_dir(golden).expect("read");
    let mut directories: Vec<PathBuf> = entries
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.join("host").is_dir())
        .collect();
    directories.sort();
    assert!(!directories.is_empty());
    assert_equal_exports(&parser, &directories);
}

/// A capture on a disk of its own, which is mounted with these options behind it, and its export.
fn export_on_disk(remount: &str) -> Option<(Finished, Home)> {
    let home = Home::new();
    let disk = home.path().join("disk");
    let prof = disk.join("PROF_1");
    std::fs::create_dir(&disk).expect("made");
    let capture = Capture::make(OPTIONS);
    let setup = format!(
        "mount -t tmpfs -o size=16m none '{disk}'\ncp -r '{from}' '{prof}'\n{remount}\n",
        disk = disk.display(),
        from = capture.open().path.display(),
        prof = prof.display(),
        remount = remount.replace("DISK", &disk.display().to_string()),
    );
    let namespace = Namespace::new(&setup)?;
    let script = "\"$0\" --export=on --output=\"$1\"; status=$?; ls -a \"$1/mindstudio_profiler_output\"; exit $status";
    let program = namespace.plain(&home, "sh");
    let finished = program
        .args(["-c", script])
        .arg(&artifacts().msprof)
        .arg(&prof)
        .run();
    Some((finished, home))
}

#[test]
fn a_full_disk_is_said_and_no_piece_of_a_file_is_left() {
    let Some((finished, _home)) =
        export_on_disk("dd if=/dev/zero of=DISK/fill bs=64k 2>/dev/null || true")
    else {
        return;
    };
    finished.expect_code(1);
    let text = finished.text();
    assert!(text.contains("No space left on device"), "{text}");
    assert!(!text.contains(".partial"), "{text}");
}

#[test]
fn a_disk_that_cannot_be_written_is_said_with_the_way_out() {
    let Some((finished, _home)) = export_on_disk("mount -o remount,ro DISK") else {
        return;
    };
    finished.expect_code(1);
    let text = finished.text();
    assert!(text.contains("Read-only file system"), "{text}");
    assert!(
        text.contains("copy the PROF directory to where you may write"),
        "{text}"
    );
}
