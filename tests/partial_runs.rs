//! Model runs that the start or the stop of a capture cuts: none spoils the others, and each is told of.

mod support;

use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use support::home::{Home, only_prof_dir, prof_dirs};
use support::parser::{export, exported, stock_parser};
use support::prof::{Api, MODEL, Prof};
use support::rules::{lost, open_complete};
use support::runner::Runner;

/// Model of worker 0; each worker has the next one (tests/c/runs.c).
const FIRST_MODEL: u64 = 7;
const EXECUTE: u32 = 1;

type Key = (u16, u32, u32, u32, u64);

/// Events that have no partner by the parser's own rule; those that stand alone by their producer's word are none.
fn unpaired(prof: &Prof) -> Vec<Key> {
    let mut open: HashMap<Key, u64> = HashMap::new();
    for record in prof.api() {
        if record.is_event() && !record.is_partial() && record.request != 0xFFFF {
            *open.entry(key(&record)).or_default() += 1;
        }
    }
    open.retain(|_, events| *events % 2 == 1);
    open.into_keys().collect()
}

fn key(record: &Api) -> Key {
    let Api {
        level,
        kind,
        thread,
        request,
        item,
        ..
    } = *record;
    (level, kind, thread, request, item)
}

/// What the ledger tells of each call in part: model, run, thread, and what has cut it.
fn told(ledger: &Value) -> Vec<(u64, u64, u64, String)> {
    let calls = ledger["partial_calls"].as_array().cloned();
    let mut told: Vec<_> = calls
        .unwrap_or_default()
        .iter()
        .map(|call| {
            assert_eq!(
                (&call["level"], &call["name"]),
                (&MODEL.into(), &"ModelExecute".into())
            );
            let number = |name: &str| call[name].as_u64().expect("a number");
            let cut = call["cut"].as_str().expect("a word");
            (
                number("item"),
                number("run"),
                number("thread"),
                cut.to_owned(),
            )
        })
        .collect();
    told.sort();
    told
}

/// Runs 1 and 2 are cut by the start, 8 and 9 by the stop; 3 and 4 are whole, on two threads.
fn cut_on_both_sides(home: &Home) -> (Runner, [u64; 2], Prof) {
    let mut runner = Runner::start(home);
    let threads = [runner.tid(0), runner.tid(1)].map(u64::from);
    runner.tell(&["event 0 1", "event 1 2"]);
    let mut client = runner.begin(home);
    runner.tell(&["event 0 1", "event 1 2"]);
    runner.tell(&[
        "event 0 3",
        "copy 0 3",
        "event 1 4",
        "event 0 3",
        "launches 1 50",
        "event 1 4",
    ]);
    runner.tell(&["event 0 8", "launches 0 20", "event 1 9"]);
    client.stop();
    client.quit();
    runner.tell(&["event 0 8", "event 1 9"]);
    let prof = open_complete(&only_prof_dir(&home.output()));
    (runner, threads, prof)
}

#[test]
fn runs_that_start_and_stop_cut_are_told_of_and_no_event_is_without_a_partner() {
    let home = Home::new();
    let (_runner, [one, two], prof) = cut_on_both_sides(&home);
    assert_eq!(unpaired(&prof), []);
    let ledger = prof.ledger();
    let model = FIRST_MODEL;
    let told_of = |model, run, thread, cut: &str| (model, run, thread, cut.to_owned());
    assert_eq!(
        told(&ledger),
        [
            told_of(model, 1, one, "start"),
            told_of(model, 8, one, "stop"),
            told_of(model + 1, 2, two, "start"),
            told_of(model + 1, 9, two, "stop"),
        ]
    );
    assert_eq!(ledger["partial_events"], 4);
    let note = prof.the_note("in part");
    for part in [
        "4 calls are here in part".to_owned(),
        format!("ModelExecute of model 7, run 1 of thread {one}, cut by the start"),
        format!("ModelExecute of model 8, run 9 of thread {two}, cut by the stop"),
    ] {
        assert!(note.contains(&part), "{part:?} in {note:?}");
    }
    // Four events of whole runs, four neutral records and a copy, each counted once.
    assert_eq!(ledger["written"]["model-execution"], 9);
    assert_eq!(ledger["reported"]["model-execution"], 9);
    assert_eq!(
        (lost(&ledger), ledger["written"]["runtime-api"].as_u64()),
        (0, Some(70))
    );
    let neutral: Vec<Key> = prof
        .api()
        .iter()
        .filter(|r| r.is_partial())
        .map(key)
        .collect();
    let aside = prof.partial_events();
    let mut kept: Vec<Key> = aside.iter().map(key).collect();
    let mut of_slices = neutral;
    kept.sort();
    of_slices.sort();
    assert_eq!(kept, of_slices);
    assert_eq!(kept.len(), 4);
    assert!(
        aside
            .iter()
            .all(|event| event.begin > 0 && event.end == u64::MAX)
    );
}

#[test]
fn the_stock_parser_shows_whole_runs_alone() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let home = Home::new();
    let (_runner, [one, two], prof) = cut_on_both_sides(&home);
    export(&parser, &prof.path);
    let text = exported(&prof.path, "msprof_", ".json").expect("msprof json");
    let timeline: Value = serde_json::from_str(&text).expect("JSON");
    let rows = timeline.as_array().expect("rows").iter();
    let mut runs: Vec<(u64, String)> = rows
        .filter(|row| row["name"] == "Model@ModelExecute")
        .map(|row| {
            assert!(row["dur"].as_f64().expect("a time") > 0.0, "{row}");
            let thread = row["args"]["Thread Id"].as_u64().expect("a thread");
            (thread, row["args"]["item_id"].to_string())
        })
        .collect();
    runs.sort();
    let mut expected = vec![(one, "7".to_owned()), (two, "8".to_owned())];
    expected.sort();
    assert_eq!(runs, expected);
    let log = parser_log(&prof);
    assert!(!log.is_empty() && !log.contains("No matched event"));
}

fn parser_log(prof: &Prof) -> String {
    let mut text = String::new();
    let mut dirs = vec![prof.path.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "log") {
                text += &String::from_utf8_lossy(&std::fs::read(path).expect("a file"));
            }
        }
    }
    text
}

#[test]
fn a_run_that_lasts_longer_than_the_capture_is_not_in_it() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    runner.tell(&["event 0 1"]);
    let mut client = runner.begin(&home);
    runner.tell(&["launches 0 3"]);
    client.stop();
    client.quit();
    runner.tell(&["event 0 1"]);
    let prof = open_complete(&only_prof_dir(&home.output()));
    let ledger = prof.ledger();
    assert_eq!(
        (prof.api().len(), &ledger["partial_events"]),
        (3, &Value::Null)
    );
}

#[test]
fn the_only_event_of_a_thread_may_have_been_cut_at_either_edge() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    let thread = u64::from(runner.tid(3));
    let mut client = runner.begin(&home);
    runner.tell(&["event 3 5"]);
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    let ledger = prof.ledger();
    assert_eq!(
        told(&ledger),
        [(FIRST_MODEL + 3, 5, thread, "edge".to_owned())]
    );
    prof.the_note("cut by the start or the stop");
}

#[test]
fn events_that_stand_alone_stay_as_they_are_and_keys_may_come_again() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    let mut client = runner.begin(&home);
    runner.tell(&[
        "single 0",
        "load 0 40",
        "single 1",
        "load 0 40",
        "load 0 41",
        "event 2 0",
    ]);
    runner.tell(&["event 2 0", "event 2 0", "event 2 0"]);
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    let events = prof.api().into_iter().filter(|record| record.is_event());
    let singles = events.clone().filter(|event| event.request == 0xFFFF);
    assert_eq!((events.count(), singles.count()), (12, 2));
    assert!(prof.api().iter().all(|record| !record.is_partial()));
    assert_eq!(prof.ledger()["partial_events"], Value::Null);
    assert_eq!(prof.partial_events(), []);
}

#[test]
fn each_capture_of_a_process_pairs_its_own_events() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    for _ in 0..3 {
        let mut client = runner.begin(&home);
        runner.tell(&["event 0 1", "event 0 2", "event 0 2", "event 0 3"]);
        client.stop();
        client.quit();
    }
    for dir in prof_dirs(&home.output()) {
        let prof = open_complete(&dir);
        assert_eq!(unpaired(&prof), []);
        let cuts: Vec<String> = told(&prof.ledger())
            .into_iter()
            .map(|call| call.3)
            .collect();
        assert_eq!(cuts, ["start", "stop"]);
        let kinds = prof.api().into_iter().filter(|r| r.kind == EXECUTE);
        assert_eq!(kinds.filter(|r| r.is_partial()).count(), 2);
    }
}

/// Whatever a kill leaves, no event is doubled or gone: none was held back.
#[test]
fn a_killed_process_has_its_lone_events_among_the_others() {
    let home = Home::new();
    let mut runner = Runner::start(&home);
    let mut client = runner.begin(&home);
    runner.tell(&["event 0 1", "event 0 2", "event 0 2", "event 0 3"]);
    let dir = only_prof_dir(&home.output());
    support::wait::wait_for("the records", Duration::from_secs(60), || {
        (Prof::open(&dir).api().len() == 4).then_some(())
    });
    runner.puppet.kill();
    let _ = client.wait_closed(Duration::from_secs(60));
    let prof = Prof::open(&dir);
    assert_eq!(prof.api().iter().filter(|r| r.is_event()).count(), 4);
    assert_eq!(unpaired(&prof).len(), 2);
}
