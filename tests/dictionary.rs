//! The dictionaries of a capture: names that come at any time, very many of them, and two with one hash.

mod support;

use serde_json::Value;
use std::path::Path;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::parser::{export, exported, stock_parser};
use support::prof::{NODE, Prof, RUNTIME};
use support::puppet::Puppet;
use support::rules::{assert_named, lost, open_complete};

/// Type 0 of the program (tests/c/namer.c).
const FIRST_TYPE: u64 = 50_000;
const MANY: u64 = 100_000;
const TWINS: [&str; 2] = ["nnmnllnknkolnllloono", "lmmlonmomololoonlllk"];
/// A slice of text is cut at this size, after what was written last.
const TEXT_SLICE: usize = (2 << 20) + (2 << 20);

struct Namer(Puppet);

impl Namer {
    fn start(home: &Home) -> Namer {
        let program = home.armed(build("tests/c/namer.c", Linkage::Shared));
        Namer(Puppet::start_armed(home, program))
    }

    fn capture(&self, home: &Home) -> ByteClient {
        let mut client = ByteClient::open(self.0.socket(), &params(&home.output()));
        client.start();
        client
    }

    fn ask(&mut self, order: &str) -> u64 {
        let answer = self.0.tell(order);
        answer
            .parse()
            .unwrap_or_else(|_| panic!("{order}: {answer}"))
    }
}

fn finish(mut client: ByteClient) {
    client.stop();
    client.quit();
}

/// Names of the program's types that a capture has.
fn types_of(prof: &Prof) -> Vec<String> {
    let numbers = (0..9).map(|number| (RUNTIME, FIRST_TYPE + number));
    numbers
        .filter_map(|key| prof.types.get(&key).cloned())
        .collect()
}

#[test]
fn types_are_named_whenever_they_are_registered() {
    let home = Home::new();
    let mut namer = Namer::start(&home);
    namer.ask("type 0");
    let client = namer.capture(&home);
    // Of the second one the calls come first.
    for order in ["call 0", "call 1", "type 1", "call 1", "type 2", "call 2"] {
        assert_eq!(namer.ask(order), 0, "{order}");
    }
    finish(client);
    namer.ask("type 3");
    finish(namer.capture(&home));
    let dirs = prof_dirs(&home.output());
    let first = open_complete(&dirs[0]);
    assert_eq!(types_of(&first), ["Api_0", "Api_1", "Api_2"]);
    assert_named(&first);
    assert_eq!(first.calls()[&(RUNTIME, "Api_1".to_owned())], (2, 0));
    let second = open_complete(&dirs[1]);
    assert_eq!(types_of(&second), ["Api_0", "Api_1", "Api_2", "Api_3"]);
}

#[track_caller]
fn assert_strings(prof: &Prof, count: u64) {
    let ours = prof.hashes.values().filter(|text| text.starts_with("op_"));
    let mut numbers: Vec<u64> = ours
        .map(|text| text["op_".len()..].parse().expect("a number"))
        .collect();
    numbers.sort_unstable();
    assert!(
        numbers.iter().copied().eq(0..count),
        "{} strings",
        numbers.len()
    );
    let slices = &prof.host["unaging.additional.hash_dic"];
    assert!(
        slices
            .values()
            .all(|bytes| bytes.len() <= TEXT_SLICE && bytes.ends_with(b"\n"))
    );
}

#[test]
fn a_hundred_thousand_strings_cost_each_what_the_first_ones_do_and_reports_go_on_meanwhile() {
    const PART: u64 = 10_000;
    let home = Home::new();
    let mut namer = Namer::start(&home);
    let mut client = namer.capture(&home);
    let first = namer.ask(&format!("strings 0 {PART}"));
    let order = format!("busy {PART} {}", MANY - 2 * PART);
    let reports = namer.ask(&order);
    let last = namer.ask(&format!("strings {} {PART}", MANY - PART));
    // CPU time, not that of a wall clock; a growing cost would be nearly ten times as large.
    assert!(last < 6 * first, "{last} ns against {first} ns");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_strings(&prof, MANY);
    assert!(reports > 0);
    assert_eq!(
        (lost(&prof.ledger()), prof.api().len() as u64),
        (0, reports)
    );
}

#[test]
fn a_capture_that_begins_with_a_hundred_thousand_strings_has_them_before_the_start_is_answered() {
    let home = Home::new();
    let mut namer = Namer::start(&home);
    namer.ask(&format!("strings 0 {MANY}"));
    let client = namer.capture(&home);
    assert_strings(&Prof::open(&only_prof_dir(&home.output())), MANY);
    finish(client);
    assert_strings(&open_complete(&only_prof_dir(&home.output())), MANY);
}

fn capture_of_twins(home: &Home) -> Prof {
    let mut namer = Namer::start(home);
    let client = namer.capture(home);
    assert_eq!(namer.ask("twins"), 1);
    finish(client);
    open_complete(&only_prof_dir(&home.output()))
}

#[test]
fn two_strings_with_one_hash_keep_their_names() {
    let home = Home::new();
    let prof = capture_of_twins(&home);
    let launches = prof.api().into_iter().filter(|record| record.level == NODE);
    let names: Vec<&str> = launches
        .map(|launch| prof.hashes[&launch.item].as_str())
        .collect();
    assert_eq!(names, TWINS);
}

#[test]
fn the_stock_parser_shows_both_of_two_strings_with_one_hash() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let home = Home::new();
    let prof = capture_of_twins(&home);
    export(&parser, &prof.path);
    assert_eq!(launched(&prof.path), TWINS);
}

/// Items of the launches in the timeline, in the order of their times.
fn launched(prof: &Path) -> Vec<String> {
    let text = exported(prof, "msprof_", ".json").expect("msprof json");
    let timeline: Value = serde_json::from_str(&text).expect("JSON");
    let rows = timeline.as_array().expect("rows").iter();
    let mut launches: Vec<(String, String)> = rows
        .filter(|row| row["name"] == "Node@launch")
        .map(|row| {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            (text(&row["ts"]), text(&row["args"]["item_id"]))
        })
        .collect();
    launches.sort();
    launches.into_iter().map(|(_, item)| item).collect()
}
