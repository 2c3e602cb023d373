//! Names of models that were loaded before a capture.

mod support;

use support::home::Home;
use support::parser::{export, exported, rows, stock_parser};
use support::prof::{Described, Prof, u32_at, u64_at};
use support::runner::Runner;

/// Model of worker 0 (tests/c/runs.c).
const MODEL: u32 = 7;

/// Model id and name of a graph_id_map record.
fn said(prof: &Prof, record: &Described) -> (u32, String) {
    let name = prof.hashes[&u64_at(&record.payload, 0)].clone();
    (u32_at(&record.payload, 12), name)
}

fn said_again(prof: &Prof) -> Vec<(u32, String)> {
    let records = prof.repeated_names();
    records.iter().map(|record| said(prof, record)).collect()
}

const LOADED: (u32, &str) = (MODEL, "model_7");

#[test]
fn a_model_of_an_earlier_capture_has_its_name_in_a_later_one() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    let thread = runner.tid(0);
    let first = runner.capture(&home, &["load 0 7", "event 0 1", "event 0 1"]);
    assert_eq!(first.additional("graph_id_map").len(), 1);
    // The load lies in this capture, so that there is nothing to be added.
    assert_eq!(first.repeated_names(), []);

    let second = runner.capture(&home, &["event 0 2", "event 0 2", "event 0 3", "event 0 3"]);
    assert_eq!(second.additional("graph_id_map").len(), 0);
    let loaded = (LOADED.0, LOADED.1.to_owned());
    assert_eq!(said_again(&second), [loaded.clone(), loaded.clone()]);
    let again = second.repeated_names();
    let runs: Vec<_> = second
        .api()
        .into_iter()
        .filter(|record| record.is_event())
        .collect();
    // Once for the capture, and once within its first run.
    assert!(again[0].time < runs[0].begin);
    assert_eq!((again[1].thread, runs[0].thread), (thread, thread));
    assert!(runs[0].begin < again[1].time && again[1].time <= runs[1].begin);
    // They were reported by nobody.
    let ledger = second.ledger();
    assert_eq!(
        (&ledger["reported"]["task"], &ledger["written"]["task"]),
        (&0.into(), &0.into())
    );
    assert_eq!(ledger["repeated_names"], 2);

    // A capture without a run has it too.
    let third = runner.capture(&home, &[]);
    assert_eq!(said_again(&third), [loaded]);
}

#[test]
fn the_last_name_of_a_model_counts_and_one_that_is_said_outside_its_runs_is_said_within_one() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    runner.capture(&home, &["load 0 40", "load 0 41", "load 0 7", "load 1 40"]);
    let second = runner.capture(&home, &["say 2 7", "event 0 1", "event 0 1"]);
    let names = |of: &[u32]| -> Vec<(u32, String)> {
        of.iter().map(|id| (*id, format!("model_{id}"))).collect()
    };
    assert_eq!(said_again(&second), names(&[41, 7, 40, 7]));
    assert_eq!(second.additional("graph_id_map").len(), 1);
    assert_eq!(second.ledger()["written"]["task"], 1);
}

#[test]
fn a_partial_run_is_told_of_with_the_models_name() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    runner.capture(&home, &["load 0 7"]);
    let second = runner.capture(&home, &["event 0 1", "event 0 1", "event 0 2"]);
    let ledger = second.ledger();
    assert_eq!(ledger["partial_calls"][0]["item_name"], "model_7");
    let notes = ledger["notes"].to_string();
    assert!(
        notes.contains("ModelExecute of model 7 (model_7), run 2"),
        "{notes}"
    );
}

#[test]
fn the_stock_parser_names_the_model_of_a_later_capture() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let home = Home::new();
    let mut runner = Runner::start(&home);
    runner.capture(&home, &["load 0 7"]);
    // What is fused is said within a load that has no name of its own.
    let second = runner.capture(&home, &["fuse 0 7", "event 0 1", "event 0 1"]);
    assert_eq!(second.additional("graph_id_map"), []);
    export(&parser, &second.path);
    let csv = exported(&second.path, "fusion_op_", ".csv").expect("fusion_op csv");
    let rows = rows(&csv);
    let of = |column: &str| -> Vec<&str> { rows.iter().map(|row| row[column].as_str()).collect() };
    assert_eq!(of("Model Name"), ["model_7"]);
    assert_eq!(
        (of("Model ID"), of("Fusion Op")),
        (vec!["7"], vec!["fused_conv"])
    );
    assert_eq!(of("Original Ops"), ["conv1;relu1"]);
}
