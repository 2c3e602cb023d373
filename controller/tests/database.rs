//! `msprof --export=on --type=db`: what it says, what it leaves, and that the database answers.

mod support;

use msprof_agent_core::records::level;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use support::*;

/// Wall clock at the start, ns.
const WALL_NS: u64 = 1_700_000_000_000_000_000;

/// A finished capture of two calls.
fn capture(lab: &Lab) -> PathBuf {
    let mut capture = Capture::new(lab);
    capture.name(level::ACL, 7, "aclrtMalloc");
    for begin in [1_000, 5_000] {
        capture.call(level::ACL, 7, begin, begin + 250);
    }
    capture.finish()
}

fn export(lab: &Lab, output: &Path) -> Ended {
    let mut command = lab.msprof();
    command.args(["--export=on", "--type=db"]);
    command.arg(format!("--output={}", output.display()));
    Run::start(command).ended()
}

fn databases(capture: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(capture).expect("listed");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().contains(".db"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn a_capture_becomes_a_database_beside_its_data_that_answers() {
    let lab = Lab::new();
    let capture = capture(&lab);
    let ended = export(&lab, &capture);
    ended.exits(0);
    assert_eq!(ended.err, "");
    let [database] = &databases(&capture)[..] else {
        panic!("one database: {:?}", databases(&capture));
    };
    let name = database.file_name().expect("a name").to_string_lossy();
    let said = format!("{}: {name}, 2 calls\n", capture.display());
    assert_eq!(ended.out, said);
    let stamp = name
        .strip_prefix("msprof_")
        .and_then(|name| name.strip_suffix(".db"));
    let stamp = stamp.expect("msprof_<time>.db");
    assert!(
        stamp.len() == 14 && stamp.bytes().all(|byte| byte.is_ascii_digit()),
        "{name}"
    );

    let db = Connection::open(database).expect("opened");
    let query = "SELECT value, COUNT(*), SUM(endNs - startNs), MIN(startNs), MIN(globalTid) FROM CANN_API \
         JOIN STRING_IDS ON name = id GROUP BY value";
    let row: (String, i64, i64, u64, i64) = db
        .query_row(query, [], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })
        .expect("answered");
    let expected = (
        "aclrtMalloc".to_owned(),
        2,
        500,
        WALL_NS + 1_000,
        (4321 << 32) + 4321,
    );
    assert_eq!(row, expected);
}

#[test]
fn every_capture_of_a_parent_becomes_one_and_none_replaces_another() {
    let lab = Lab::new();
    let captures = [capture(&lab), capture(&lab)];
    for count in 1..=2 {
        export(&lab, &lab.path("out")).exits(0);
        for capture in &captures {
            assert_eq!(databases(capture).len(), count);
        }
    }
}

#[test]
fn a_form_that_is_none_is_wrong_usage() {
    let lab = Lab::new();
    let mut command = lab.msprof();
    command.args(["--export=on", "--type=sql", "--output=."]);
    let ended = Run::start(command).ended();
    ended.exits(2).warns("text, db");
}
