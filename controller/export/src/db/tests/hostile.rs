//! Directories that mean ill, and disks that fail.

use super::prof::{BASE, Call, Prof, START};
use super::{NAME, left, made};
use crate::db::{DbError, write_db};
use crate::newfile::Directory;
use crate::source::Source;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

fn captured() -> Prof {
    let prof = Prof::new();
    prof.call(Call::new(20000, 1, 10, 20));
    prof
}

#[track_caller]
fn error(prof: &Prof) -> DbError {
    let source = Source::open(prof.path()).expect("a directory");
    write_db(&source, prof.path(), NAME, &mut |_| {}).expect_err("no database")
}

#[test]
fn a_link_in_the_databases_place_is_not_followed_and_not_replaced() {
    let prof = captured();
    let victim = prof.path().join("host/victim");
    fs::write(&victim, "precious").expect("written");
    for target in [victim.clone(), prof.path().join("host/new")] {
        symlink(&target, prof.path().join(NAME)).expect("linked");
        assert!(matches!(error(&prof), DbError::Exists { .. }));
        assert_eq!(
            fs::read_link(prof.path().join(NAME)).expect("a link"),
            target
        );
        assert_eq!(left(&prof), [PathBuf::from(NAME)]);
        fs::remove_file(prof.path().join(NAME)).expect("removed");
    }
    assert_eq!(fs::read(&victim).expect("read"), b"precious");
    assert!(!prof.path().join("host/new").exists());
}

#[test]
fn links_under_the_name_of_the_unfinished_file_are_passed_over() {
    let prof = captured();
    let victim = prof.path().join("host/victim");
    fs::write(&victim, "precious").expect("written");
    // The names that this process would give it, with a number that it has not used.
    let growing = Directory::open(prof.path()).expect("opened").begin();
    let name = growing.expect("begun").hidden_name().to_owned();
    for number in 0..3 {
        let name = name.replace("_0.partial", &format!("_{number}.partial"));
        symlink(&victim, prof.path().join(name)).expect("linked");
    }
    let source = Source::open(prof.path()).expect("a directory");
    let report = write_db(&source, prof.path(), NAME, &mut |_| {}).expect("a database");
    assert_eq!(report.rows("CANN_API"), Some(1));
    assert_eq!(fs::read(&victim).expect("read"), b"precious");
}

#[test]
fn an_existing_file_is_left_as_it_is() {
    let prof = captured();
    fs::write(prof.path().join(NAME), "mine").expect("written");
    let said = error(&prof).to_string();
    assert!(said.contains("exists already: remove it"), "{said}");
    assert_eq!(fs::read(prof.path().join(NAME)).expect("read"), b"mine");
    assert_eq!(left(&prof), [PathBuf::from(NAME)]);
}

#[test]
fn a_file_that_comes_into_being_during_the_export_is_left_as_it_is() {
    let prof = captured();
    for number in 0..10_000 {
        prof.call(Call::new(20000, 1, number, number + 1));
    }
    let source = Source::open(prof.path()).expect("a directory");
    let place = prof.path().join(NAME);
    let mut late = |_| fs::write(&place, "mine").expect("written");
    let error = write_db(&source, prof.path(), NAME, &mut late).expect_err("no database");
    assert!(matches!(error, DbError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&place).expect("read"), b"mine");
    assert_eq!(left(&prof), [PathBuf::from(NAME)]);
}

#[test]
fn a_name_leads_nowhere_else() {
    let prof = captured();
    let source = Source::open(prof.path()).expect("a directory");
    for name in ["../msprof.db", "host/msprof.db", "", ".", ".."] {
        let error = write_db(&source, prof.path(), name, &mut |_| {}).expect_err("no database");
        assert!(matches!(error, DbError::Io { .. }), "{name:?}: {error}");
    }
    assert_eq!(left(&prof), [] as [PathBuf; 0]);
}

#[test]
fn a_directory_that_is_not_there_or_cannot_be_written_is_said_with_the_reason() {
    let prof = captured();
    let source = Source::open(prof.path()).expect("a directory");
    let missing = prof.path().join("missing");
    let error = write_db(&source, &missing, NAME, &mut |_| {}).expect_err("no database");
    let said = error.to_string();
    assert!(
        said.contains("No such file or directory") && said.contains("missing"),
        "{said}"
    );
    // Where root may write nothing either.
    let error =
        write_db(&source, "/proc/self".as_ref(), NAME, &mut |_| {}).expect_err("no database");
    assert!(matches!(error, DbError::Io { .. }), "{error}");
}

#[test]
fn the_file_is_the_owners_to_write_and_the_groups_to_read() {
    let prof = captured();
    made(&prof);
    let mode = fs::metadata(prof.path().join(NAME))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
fn absurd_times_become_the_last_number_and_are_counted() {
    let prof = captured();
    let end = i64::MAX;
    prof.call(Call::new(20000, 1, 30, end))
        .call(Call::new(20000, 1, end - 5, end));
    let made = made(&prof);
    assert_eq!(made.report.outside, 3);
    let rows = made.rows("SELECT startNs, endNs FROM CANN_API ORDER BY connectionId");
    assert_eq!(rows[1], format!("{}|{}", START + 30, i64::MAX));
    assert_eq!(rows[2], format!("{}|{}", i64::MAX, i64::MAX));
}

#[test]
fn without_a_start_times_are_those_of_the_monotonic_clock() {
    let prof = captured();
    fs::remove_file(prof.path().join("host/start_info")).expect("removed");
    let made = made(&prof);
    let source = Source::open(prof.path()).expect("a directory");
    let problems = made.report.problems(&source);
    assert!(
        problems
            .iter()
            .any(|problem| problem.contains("start_info")),
        "{problems:?}"
    );
    let rows = made.rows("SELECT startNs, endNs FROM CANN_API");
    assert_eq!(rows, [format!("{}|{}", BASE + 10, BASE + 20)]);
    assert!(made.rows("SELECT * FROM SESSION_TIME_INFO").is_empty());
}

#[test]
fn torn_and_foreign_records_cost_nothing_but_themselves() {
    let prof = captured();
    let slice = prof.path().join("host/data/aging.api_event.data.slice_0");
    let mut bytes = fs::read(&slice).expect("read");
    bytes.extend([0xAB; 40]);
    bytes.extend_from_within(..40);
    bytes.extend([1; 7]);
    fs::write(&slice, bytes).expect("written");
    let made = made(&prof);
    assert_eq!(made.report.rows("CANN_API"), Some(2));
    assert_eq!(made.report.skipped.foreign, 1);
}

#[test]
fn names_may_hold_anything() {
    let prof = captured();
    let name = "'); DROP TABLE CANN_API; --\"\u{1F600}\u{7}";
    prof.kind(20000, 1, name);
    let made = made(&prof);
    assert_eq!(made.rows("SELECT value FROM STRING_IDS"), [name]);
    assert!(made.has("CANN_API"));
}
