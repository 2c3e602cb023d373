//! What the stock parser makes of a capture. Without it (see MSPROF_PARSER) only our own reading is
//! tested.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::client::{ByteClient, params};
use support::counting::Window;
use support::home::{Home, only_prof_dir};
use support::parser::{export, exported, rows, stock_parser};
use support::prof::Prof;
use support::rules::{assert_named, open_complete};
use support::task::{Task, Way};
use support::wait::wait_until;

/// Enough records of every kind; exporting them takes the parser seconds.
const RUNS: u64 = 40;

/// A capture of the demo with the three traces.
struct Capture {
    home: Home,
    window: Window,
}

impl Capture {
    fn make(options: &str) -> Capture {
        let home = Home::new();
        let mut task = Task::start(&home, Way::Preload, options);
        let mut client = ByteClient::open(task.socket(), &params(&home.output()));
        client.start();
        let output = home.output();
        wait_until("some runs of the model", || {
            let dirs = support::home::prof_dirs(&output);
            let slice = dirs
                .first()
                .map(|dir| dir.join("device_0/data/aicpu.data.0.slice_0"));
            // One aicpu record of 256 bytes in each run.
            slice.is_some_and(|slice| slice.metadata().is_ok_and(|meta| meta.len() >= RUNS * 256))
        });
        client.stop();
        client.quit();
        let window = task.window(1);
        task.terminate();
        Capture { home, window }
    }

    fn open(&self) -> Prof {
        open_complete(&only_prof_dir(&self.home.output()))
    }
}

const OPTIONS: &str = "--seconds=-1 --streams=2 --pause-us=5000";

/// Levels as the parser names them.
fn level_name(level: u16) -> &'static str {
    match level {
        5000 => "runtime",
        10000 => "node",
        15000 => "model",
        20000 => "acl",
        other => panic!("level {other}"),
    }
}

/// Rows that api_statistic must have: level and name with their counts. Event pairs are no rows of it.
fn expected_rows(prof: &Prof) -> BTreeMap<(String, String), u64> {
    prof.calls()
        .into_iter()
        .filter(|(_, (apis, _))| *apis > 0)
        .map(|((level, name), (apis, _))| ((level_name(level).to_owned(), name), apis))
        .collect()
}

/// Pairs of events by (type, thread, request, item).
fn event_pairs(prof: &Prof, wanted: &str) -> u64 {
    let mut open: BTreeMap<_, u64> = BTreeMap::new();
    for record in prof.api().iter().filter(|record| record.is_event()) {
        if prof.name_of(record) == wanted {
            *open
                .entry((record.thread, record.request, record.item))
                .or_default() += 1;
        }
    }
    open.values().map(|events| events / 2).sum()
}

fn is_bare_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn our_own_reading_of_a_capture_agrees_with_the_task() {
    let capture = Capture::make(OPTIONS);
    let prof = capture.open();
    assert_named(&prof);
    capture.window.assert_matches(&prof);
    assert!(event_pairs(&prof, "ModelExecute") >= RUNS / 2);
}

#[test]
fn the_stock_parser_exports_every_call_that_was_captured() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let capture = Capture::make(OPTIONS);
    let prof = capture.open();
    capture.window.assert_matches(&prof);
    export(&parser, &prof.path);
    check_statistic(&prof);
    check_timeline(&prof);
    check_aicpu(&prof);
}

fn check_statistic(prof: &Prof) {
    let csv = exported(&prof.path, "api_statistic_", ".csv").expect("api_statistic csv");
    let mut exported = BTreeMap::new();
    for row in rows(&csv) {
        assert!(!is_bare_number(&row["API Name"]), "{row:?}");
        let count: u64 = row["Count"].parse().expect("a number");
        exported.insert((row["Level"].clone(), row["API Name"].clone()), count);
    }
    assert_eq!(exported, expected_rows(prof));
}

fn check_timeline(prof: &Prof) {
    let text = exported(&prof.path, "msprof_", ".json").expect("msprof json");
    let timeline: Value = serde_json::from_str(&text).expect("JSON");
    let events = timeline.as_array().expect("an array");
    let mut calls: BTreeMap<(String, String), u64> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let name = event["name"].as_str().expect("a name");
        let Some((layer, call)) = name.split_once('@') else {
            continue;
        };
        assert!(!is_bare_number(call), "{event}");
        *calls
            .entry((layer.to_owned(), call.to_owned()))
            .or_default() += 1;
    }
    let runs = calls.get(&("Model".to_owned(), "ModelExecute".to_owned()));
    assert_eq!(runs.copied(), Some(event_pairs(prof, "ModelExecute")));
    for ((level, name), count) in expected_rows(prof) {
        let layer = match level.as_str() {
            "acl" => "AscendCL",
            "runtime" => "Runtime",
            "node" => "Node",
            _ => "Model",
        };
        let found = calls.get(&(layer.to_owned(), name.clone())).copied();
        assert_eq!(found, Some(count), "{layer}@{name}");
    }
}

fn check_aicpu(prof: &Prof) {
    let csv = exported(&prof.path, "aicpu_", ".csv").expect("aicpu csv");
    let rows = rows(&csv);
    assert_eq!(rows.len(), prof.aicpu().len());
    for row in rows {
        assert!(!is_bare_number(&row["Node"]), "{row:?}");
    }
}

#[test]
fn the_stock_parser_reads_captures_of_two_devices() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let capture = Capture::make("--seconds=-1 --streams=2 --pause-us=5000 --device=0,1");
    let prof = capture.open();
    capture.window.assert_matches(&prof);
    assert_eq!(prof.devices.keys().copied().collect::<Vec<_>>(), [0, 1]);
    export(&parser, &prof.path);
    let csv = exported(&prof.path, "aicpu_", ".csv").expect("aicpu csv");
    let rows = rows(&csv);
    assert_eq!(rows.len(), prof.aicpu().len());
    for device in ["0", "1"] {
        assert!(
            rows.iter().any(|row| row["Device_id"] == device),
            "device {device}"
        );
    }
}
