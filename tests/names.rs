//! Names with everything in them that a name can break: what is written can be read, and says what they said.

mod support;

use std::collections::BTreeSet;
use support::builder::{Linkage, build};
use support::home::{Home, only_prof_dir};
use support::parser::{export, exported, stock_parser};
use support::process::Program;
use support::prof::{Prof, RUNTIME};
use support::rules::{lost, open_complete};

/// Type of the first name in the program, and bytes of its longest one.
const FIRST_TYPE: u64 = 40_000;
const LONGEST: usize = 64 * 1024;

/// A capture by the program, and how many names it had.
fn capture(home: &Home) -> (Prof, u64) {
    let program = home.plain(build("tests/c/odd_names.c", Linkage::Shared));
    let finished = program.arg(home.output()).run();
    finished.expect_code(0);
    finished.line_with("start 0");
    finished.line_with("stop 0");
    let named = finished.line_with("named ").trim_start_matches("named ");
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    (prof, named.parse().expect("a number"))
}

#[test]
fn odd_names_of_types_and_items_are_read_back() {
    let home = Home::new();
    let (prof, named) = capture(&home);
    assert_eq!(prof.api().len() as u64, named);
    // Types without a name worth it are shown as their numbers: the empty name, the blank, and the line end.
    let unnamed: Vec<u64> = (0..named)
        .filter(|number| !prof.types.contains_key(&(RUNTIME, FIRST_TYPE + number)))
        .collect();
    assert_eq!(unnamed, [0, 1, 9]);
    let types: BTreeSet<&str> = prof.types.values().map(String::as_str).collect();
    for name in [
        "comma-in-it",
        "-quoted-",
        "line feed",
        "tab in it",
        "back\\slash\\n",
        "größe 家 🚀",
        "not \u{FFFD}\u{FFFD} utf-8 \u{FFFD}",
        "5000_1:spoofed",
        "=1+2",
        "{-json-: true}",
    ] {
        assert!(types.contains(name), "{name:?} in {types:?}");
    }
    // Items keep commas and quotes, which the parser quotes itself.
    let items: BTreeSet<&str> = prof.hashes.values().map(String::as_str).collect();
    for name in [
        "comma,in,it",
        "\"quoted\"",
        "line feed",
        "größe 家 🚀",
        "12345:spoofed",
    ] {
        assert!(items.contains(name), "{name:?} in {items:?}");
    }
    for names in [&types, &items] {
        let long = names.iter().filter(|name| name.len() == LONGEST).count();
        assert_eq!(long, 2, "the long ones are whole");
    }
    for record in prof.api().iter().skip(1) {
        assert!(prof.hashes.contains_key(&record.item), "{record:?}");
    }
}

#[test]
fn a_family_by_an_odd_name_is_a_file_of_its_own_in_the_data_directory() {
    let home = Home::new();
    let (prof, _) = capture(&home);
    let odd: Vec<&String> = prof
        .host
        .keys()
        .filter(|family| family.contains("odd"))
        .collect();
    assert_eq!(odd.len(), 1, "{odd:?}");
    assert!(odd[0].starts_with("unaging.compact.") || odd[0].starts_with("aging.compact."));
    assert!(!odd[0].contains([',', '"', '\n', '/']), "{odd:?}");
    let above = std::fs::read_dir(home.output()).expect("the output");
    assert_eq!(above.count(), 1, "nothing beside the capture");
}

/// Reads a csv as programs do: the number of rows, and of those that have not as many fields as the first.
const READ_CSV: &str = "
import csv, sys
csv.field_size_limit(1 << 20)
rows = list(csv.reader(sys.stdin))
print(len(rows) - 1, sum(len(row) != len(rows[0]) for row in rows))
";

#[test]
fn the_stock_parser_makes_whole_tables_of_odd_names() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let home = Home::new();
    let (prof, _) = capture(&home);
    let expected: BTreeSet<String> = prof
        .api()
        .iter()
        .map(|record| prof.name_of(record))
        .collect();
    export(&parser, &prof.path);
    let csv = exported(&prof.path, "api_statistic_", ".csv").expect("api_statistic");
    let file = home.path().join("table.csv");
    std::fs::write(&file, csv).expect("written");
    let read = Program::new("sh")
        .args(["-c", "exec python3 -c \"$1\" < \"$2\"", "sh", READ_CSV])
        .arg(&file)
        .run();
    read.expect_code(0);
    assert_eq!(read.stdout, [format!("{} 0", expected.len())]);
}
