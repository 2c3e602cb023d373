//! What the stock parser makes of a capture. Without it (see MSPROF_PARSER) only our own reading is
//! tested.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::captured::{Capture, RUNS, event_pairs};
use support::parser::{export, exported, rows, stock_parser};
use support::prof::Prof;
use support::rules::assert_named;

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
