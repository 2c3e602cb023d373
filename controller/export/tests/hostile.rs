//! Damaged, foreign and hostile directories: what can be read is exported, what is wrong is said, nothing else is touched.

mod support;

use msprof_export::text::{ExportError, Options, OutputError, Report};
use std::os::unix::fs::symlink;
use std::path::Path;
use support::full::prof;
use support::{Prof, at, call, events, mark, problem, tree};

const RUNTIME: u16 = 5000;
const HCCL: u16 = 5500;

#[test]
fn a_link_in_the_place_of_the_output_is_not_followed() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let prof = prof();
    symlink(elsewhere.path(), prof.output()).expect("a link");
    let report = prof.export(&Options::default());
    let failed = report.failed.expect("refused").to_string();
    assert!(failed.contains("is a link or no directory"), "{failed}");
    assert_eq!(
        std::fs::read_dir(elsewhere.path()).expect("read").count(),
        0
    );
}

#[test]
fn a_file_in_the_place_of_the_output_stays() {
    let prof = prof();
    prof.put("mindstudio_profiler_output", b"mine");
    let report = prof.export(&Options::default());
    let failed = report.failed.expect("refused").to_string();
    assert!(failed.contains("is a link or no directory"), "{failed}");
    assert_eq!(std::fs::read(prof.output()).expect("there"), b"mine");
}

#[test]
fn links_in_the_output_are_not_written_through() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let victim = elsewhere.path().join("victim");
    std::fs::write(&victim, "theirs").expect("written");
    let prof = prof();
    std::fs::create_dir(prof.output()).expect("made");
    symlink(&victim, prof.output().join("README.txt")).expect("a link");
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(std::fs::read(&victim).expect("there"), b"theirs");
    let readme = std::fs::symlink_metadata(prof.output().join("README.txt")).expect("there");
    assert!(readme.is_file());
}

#[test]
fn nothing_is_touched_but_the_output_and_modes_are_the_stock_collectors() {
    use std::os::unix::fs::PermissionsExt;
    let prof = prof().device();
    let before = tree(prof.path());
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(tree(prof.path()), before);
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    assert_eq!(mode(&prof.output()), 0o750);
    let entries = std::fs::read_dir(prof.output()).expect("read");
    let mut files = 0;
    for entry in entries {
        assert_eq!(mode(&entry.expect("entry").path()), 0o640);
        files += 1;
    }
    assert_eq!(files, report.files.len() + 1);
}

#[test]
fn an_export_leaves_that_of_the_same_second_alone() {
    let prof = prof();
    let first = prof.export(&Options::default());
    let second = prof.export(&Options::default());
    assert!(second.is_complete(), "{second:?}");
    let names = |report: &Report| {
        report
            .files
            .iter()
            .map(|file| file.file.clone())
            .collect::<Vec<_>>()
    };
    assert!(
        names(&first)
            .iter()
            .all(|name| !names(&second).contains(name))
    );
    let files = std::fs::read_dir(prof.output()).expect("read").count();
    assert_eq!(files, 2 * first.files.len() + 1);
}

#[test]
fn links_and_pipes_in_the_directory_are_named_and_not_read() {
    let prof = prof();
    symlink(
        "/dev/zero",
        prof.path().join("host/data/aging.api_event.data.slice_1"),
    )
    .expect("a link");
    symlink(
        "/etc/passwd",
        prof.path()
            .join("host/data/unaging.additional.hash_dic.slice_1"),
    )
    .expect("a link");
    let report = prof.export(&Options::default());
    let said = problem(&report, "links and other things");
    assert!(
        said.contains("host/data/aging.api_event.data.slice_1"),
        "{said}"
    );
    assert_eq!(events(&prof, "msprof").len(), 12);
}

#[test]
fn names_inject_nothing() {
    let prof = Prof::new();
    let evil = "=HYPERLINK(\"http://x\"),<script>alert('x')</script>";
    prof.host(
        "unaging.additional.type_info_dic",
        &[format!("5000_1:{evil}\n5000_2:@x\n").into()],
    );
    prof.host(
        "unaging.additional.hash_dic",
        &[b"7:</script>\\\"\n113:-d\n".to_vec()],
    );
    prof.host(
        "aging.api_event.data",
        &[
            call(RUNTIME, 1, 7, at(1), at(2), 7),
            call(RUNTIME, 2, 7, at(3), at(4), 0),
        ],
    );
    prof.host(
        "aging.additional.msproftx",
        &[
            mark(None, 0, at(5), at(5), "+a,\"b\"\nc\r\u{7}"),
            mark(Some((1, 0)), 0, at(6), at(6), "\ttab"),
        ],
    );
    prof.put(
        "host/info.json",
        br#"{"version":"1.0","pid":"4321","pid_name":"\"}]<b>\n\u0000"}"#,
    );
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    let statistic = prof.exported("api_statistic", ".csv");
    let quoted = evil.replace('"', "\"\"");
    assert!(
        statistic.contains(&format!("\nhost,runtime,\"'{quoted}\",1.0,1,")),
        "{statistic}"
    );
    assert!(
        statistic.contains("\nhost,runtime,'@x,1.0,1,"),
        "{statistic}"
    );
    let marks = prof.exported("msprof_tx", ".csv");
    assert!(
        marks.contains(",0,\"'+a,\"\"b\"\"\nc\r\u{7}\",N/A,N/A,N/A\n"),
        "{marks:?}"
    );
    assert!(marks.contains(",N/A,'\ttab,'-d,N/A,N/A\n"), "{marks:?}");
    let events = events(&prof, "msprof");
    assert_eq!(events[0]["name"], format!("Runtime@{evil}"));
    assert_eq!(events[0]["args"]["item_id"], "</script>\\\"");
    assert_eq!(events[2]["name"], "+a,\"b\"\nc\r\u{7}");
}

#[test]
fn more_distinct_names_than_rows_of_a_file_are_cut_into_slices() {
    const NAMES: u64 = 1_000_001;
    let prof = Prof::new();
    let mut calls = Vec::with_capacity(NAMES as usize * 40);
    let mut names = String::new();
    for number in 0..NAMES {
        calls.extend(call(HCCL, 1, 7, at(1), at(2), number + 1));
        names.push_str(&format!("{}:name-{number}\n", number + 1));
    }
    prof.host("aging.api_event.data", &[calls]);
    prof.host("unaging.additional.hash_dic", &[names.into_bytes()]);
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    let slices: Vec<_> = report
        .files
        .iter()
        .filter(|file| file.kind == "api_statistic")
        .collect();
    assert_eq!(
        slices.iter().map(|file| file.rows).collect::<Vec<_>>(),
        [1_000_000, 1]
    );
    assert!(slices[0].file.starts_with("api_statistic_slice_0_"));
}

#[test]
fn a_full_disk_is_said_and_leaves_no_piece_of_a_file() {
    // A file system that is full is made by the tests of the whole program; here the output goes away in mid export.
    let prof = prof();
    std::fs::create_dir(prof.output()).expect("made");
    let mut removed = false;
    let output = prof.output();
    let report = msprof_export::text::export(&prof.open(), &Options::default(), &mut |_| {
        if !removed {
            std::fs::remove_dir_all(&output).expect("removed");
            removed = true;
        }
    });
    let failed = report.failed.as_ref().expect("failed");
    assert!(failed.to_string().contains("cannot write"), "{failed}");
    assert!(matches!(
        failed,
        ExportError::Output(OutputError::File { .. })
    ));
    assert!(report.files.is_empty());
}
