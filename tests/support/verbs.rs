//! msprof without a prompt: its verbs and what they say for programs.

use super::artifacts::artifacts;
use super::home::Home;
use super::process::{Finished, Program};
use serde_json::Value;

/// `msprof <words>`, which looks in this home.
pub fn verb(home: &Home, words: &[&str]) -> Program {
    home.plain(&artifacts().msprof).args(words)
}

/// Its end.
pub fn run(home: &Home, words: &[&str]) -> Finished {
    verb(home, words).run()
}

/// Wrong usage: one line on stderr and nothing done.
#[track_caller]
pub fn refused(home: &Home, words: &[&str]) -> Finished {
    let refused = run(home, words);
    refused.expect_code(2);
    let lines = (refused.stdout.len(), refused.stderr.len());
    assert_eq!(lines, (0, 1), "{refused:#?}");
    refused
}

/// The same with `--json`: the only line on stdout, and the exit status.
#[track_caller]
pub fn json(home: &Home, words: &[&str]) -> (Value, i32) {
    object(&verb(home, words).arg("--json").run())
}

/// What a verb with `--json` has said, and its exit status.
#[track_caller]
pub fn object(finished: &Finished) -> (Value, i32) {
    assert_eq!(finished.stdout.len(), 1, "{finished:#?}");
    let object = serde_json::from_str(&finished.stdout[0]).expect("JSON");
    (object, finished.status.code().expect("a status"))
}

/// The process of that pid in an object; `None` where it is not.
pub fn find(object: &Value, pid: u32) -> Option<&Value> {
    let processes = object["processes"].as_array().expect("an array");
    let mut found = processes.iter().filter(|row| row["pid"] == pid);
    let row = found.next();
    assert!(found.next().is_none(), "pid {pid} is there twice: {object}");
    row
}

/// The same, which is there.
#[track_caller]
pub fn row(object: &Value, pid: u32) -> &Value {
    find(object, pid).unwrap_or_else(|| panic!("no pid {pid} in {object}"))
}

/// The row of a process in `list`.
#[track_caller]
pub fn listed(home: &Home, pid: u32) -> Value {
    let (object, code) = json(home, &["list", "--all"]);
    assert_eq!(code, 0);
    row(&object, pid).clone()
}

/// The object of the only process of a verb.
#[track_caller]
pub fn only(home: &Home, words: &[&str], code: i32) -> Value {
    let (object, status) = json(home, words);
    assert_eq!(status, code, "{object}");
    assert_eq!(object["processes"].as_array().map(Vec::len), Some(1));
    object["processes"][0].clone()
}
