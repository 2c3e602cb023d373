//! `msprof summary` on a terminal, and as JSON.

mod support;

use msprof_agent_core::ledger::ThreadLedger;
use msprof_agent_core::records::{Trace, level};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use support::*;

const LONG: &str = "anOperatorWithANameThatIsLongerThanTheTerminalIsWideAndThenSome";

fn made(lab: &Lab) -> PathBuf {
    let mut capture = Capture::new(lab);
    capture.name(level::RUNTIME, 1001, LONG);
    capture.name(level::MODEL, 1, "ModelExecute");
    capture.call(level::RUNTIME, 1001, 1_000, 3_500);
    capture.event(level::MODEL, 1, 1_000);
    capture.event(level::MODEL, 1, 101_000);
    capture.ledger.lost.add(Trace::RuntimeApi, 5);
    capture.ledger.threads = vec![ThreadLedger {
        tid: 4321,
        ..ThreadLedger::default()
    }];
    capture.ledger.notes = vec!["a note".to_owned()];
    capture.finish()
}

fn shown(lab: &Lab, path: &Path, columns: u16, variables: &[(&str, &str)]) -> String {
    let mut command = lab.msprof();
    command.arg("summary").arg(path);
    command
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied());
    Terminal::of_width(command, columns).shows_until_exit(0)
}

#[test]
fn a_terminal_has_colours_unless_they_are_refused_and_a_pipe_has_none() {
    let lab = Lab::new();
    let path = made(&lab);
    let coloured = shown(&lab, &path, 200, &[("NO_COLOR", "")]);
    assert!(
        coloured.contains("\x1b[1;31mlost: 5 (runtime-api 5)\x1b[0m"),
        "{coloured:?}"
    );
    assert!(coloured.contains("\x1b[32mcomplete\x1b[0m"), "{coloured:?}");
    assert!(
        coloured.contains("\x1b[36mmodel\x1b[0m    ModelExecute"),
        "{coloured:?}"
    );
    let refused = shown(&lab, &path, 200, &[("NO_COLOR", "1")]);
    assert!(!refused.contains('\x1b'), "{refused:?}");
    let mut command = lab.msprof();
    command.arg("summary").arg(&path);
    let piped = Run::start(command).ended();
    piped.exits(0).says("lost: 5 (runtime-api 5)");
    assert!(!piped.out.contains('\x1b'), "{:?}", piped.out);
    // The same words and columns everywhere, but for what is cut.
    let mut plain = coloured.replace('\r', "");
    for code in ["0", "1", "1;31", "32", "36"] {
        plain = plain.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(plain, refused.replace('\r', ""));
    let words = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().map(str::to_owned);
        words
            .filter(|word| !word.starts_with("anOperator"))
            .collect()
    };
    assert_eq!(words(&plain), words(&piped.out));
    assert!(plain.contains(LONG) && !piped.out.contains(LONG));
}

#[test]
fn names_are_cut_so_that_a_row_fits_into_the_terminal() {
    let lab = Lab::new();
    let path = made(&lab);
    for columns in [78, 90, 120] {
        let shown = shown(&lab, &path, columns, &[("NO_COLOR", "1")]);
        let mut lines = shown.lines().skip_while(|line| !line.contains("Level"));
        let widest = lines
            .by_ref()
            .take(3)
            .map(|line| line.trim_end().chars().count());
        let widest = widest.max().expect("a table");
        assert_eq!(widest, usize::from(columns), "{shown}");
    }
}

#[test]
fn the_object_has_all_calls_in_nanoseconds_and_what_is_known_of_the_losses() {
    let lab = Lab::new();
    let path = made(&lab);
    let object = object(&lab, &path);
    let expected = json!({
        "path": path,
        "pid": 4321,
        "command": null,
        "agent_version": "",
        "capture": 1,
        "state": "complete",
        "captured_seconds": 2.5,
        "captured_until": "stop",
        "bytes": object["bytes"],
        "threads": 1,
        "records": {
            "total": 3, "runtime-api": 1, "model-execution": 2, "aicpu": 0, "acl": 0, "task": 0
        },
        "lost": {
            "total": 5, "runtime-api": 5, "model-execution": 0, "aicpu": 0, "acl": 0, "task": 0
        },
        "lost_known": true,
        "aged_out": {
            "total": 0, "runtime-api": 0, "model-execution": 0, "aicpu": 0, "acl": 0, "task": 0
        },
        "unreadable": 0,
        "notes": ["a note"],
        "not_read": [],
        "calls": [
            {
                "level": "model", "name": "ModelExecute", "count": 1, "total_ns": 100_000,
                "mean_ns": 100_000.0, "min_ns": 100_000, "p50_ns": 100_000, "p99_ns": 100_000,
                "max_ns": 100_000
            },
            {
                "level": "runtime", "name": LONG, "count": 1, "total_ns": 2_500, "mean_ns": 2_500.0,
                "min_ns": 2_500, "p50_ns": 2_500, "p99_ns": 2_500, "max_ns": 2_500
            },
        ],
        "model_runs": { "count": 1, "per_second": 0.4 },
        "models": [{
            "model": 0, "name": null, "per_second": 0.4, "count": 1, "total_ns": 100_000,
            "mean_ns": 100_000.0, "min_ns": 100_000, "p50_ns": 100_000, "p99_ns": 100_000,
            "max_ns": 100_000
        }],
        "devices": [],
        "left_out": {
            "events_without_partner": 0, "calls_in_part": 0, "calls_at_time_0": 0, "no_records": 0
        },
        "refused_by_parser": [],
    });
    let mut object = object;
    // Whatever the test runner is called on this host.
    object["command"] = Value::Null;
    assert_eq!(object, expected);
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(keys(&object), keys(&expected));
}

#[test]
fn what_is_not_known_is_null_in_the_object() {
    let lab = Lab::new();
    let mut killed = Capture::new(&lab);
    killed.call(level::RUNTIME, 1, 0, 500_000_000);
    killed.write_ledger();
    let path = killed.dir.path().to_owned();
    let object = object(&lab, &path);
    assert_eq!(object["state"], "capturing");
    assert_eq!(object["lost_known"], false);
    assert_eq!(object["captured_seconds"], 0.5);
    assert_eq!(object["captured_until"], "last-call");

    let mut stock = Capture::new(&lab);
    stock.call(level::RUNTIME, 1, 0, 1_000);
    let object = self::object(&lab, &stock.finish_without_ledger());
    for key in [
        "agent_version",
        "capture",
        "state",
        "records",
        "lost",
        "aged_out",
        "notes",
    ] {
        assert_eq!(object[key], Value::Null, "{key}");
    }
    assert_eq!(object["lost_known"], false);
    assert_eq!(object["captured_seconds"], 2.5);
    assert_eq!(
        object["model_runs"],
        json!({ "count": 0, "per_second": 0.0 })
    );
}

fn object(lab: &Lab, path: &Path) -> Value {
    let mut command = lab.msprof();
    command.arg("summary").arg("--json").arg(path);
    let ended = Run::start(command).ended();
    ended.exits(0);
    assert_eq!((ended.err.as_str(), ended.out.lines().count()), ("", 1));
    serde_json::from_str(&ended.out).expect("an object")
}
