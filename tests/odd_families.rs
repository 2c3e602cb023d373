//! Records that no file of a capture has a place for: of levels and types that readers do not know, with counts that
//! lie, of types whose names mean something as file names. They stand in the way of no other, and nothing is outside.

mod support;

use std::collections::BTreeMap;
use support::builder::{Linkage, build};
use support::home::{Home, only_prof_dir};
use support::parser::{export, exported, rows, stock_parser};
use support::prof::{Prof, u64_at};
use support::rules::{lost, open_complete};

/// Records of each good kind in the program.
const GOOD: usize = 2;
/// Types of aicpu records that the parser knows.
const AICPU_TYPES: usize = 10;

/// The names of the program's types as parts of file names, in its order.
const NAMES: [&str; 14] = [
    "a-b",
    "-etc-passwd",
    "--",
    "---------outside",
    "-",
    "hash_dic-",
    "type_info_dic-",
    "api_event-data",
    "task_track-slice_0",
    "task_track-slice_0-done",
    "cut",
    "gr----e",
    "tensor_info-",
    "invalid",
];

fn capture(home: &Home) -> Prof {
    let program = home.plain(build("tests/c/odd_families.c", Linkage::Shared));
    let finished = program.arg(home.output()).run();
    finished.line_with("wrong 0");
    finished.expect_code(0);
    let prof = open_complete(&only_prof_dir(&home.output()));
    let ledger = prof.ledger();
    let unreadable = finished.line_with("unreadable ");
    assert_eq!(unreadable, format!("unreadable {}", ledger["unreadable"]));
    assert_eq!(lost(&ledger), 0);
    let named = finished.line_with("named ");
    assert_eq!(named, format!("named {}", NAMES.len() + 1));
    prof
}

#[test]
fn records_of_unknown_levels_and_types_are_counted_and_in_no_file() {
    let home = Home::new();
    let prof = capture(&home);
    assert_eq!(prof.api().len(), GOOD);
    assert_eq!(prof.compact("node_basic_info").len(), GOOD);
    assert_eq!(prof.additional("context_id_info").len(), GOOD);
    assert_eq!(prof.aicpu().len(), GOOD * AICPU_TYPES);
    for family in [
        "tensor_info",
        "fusion_op_info",
        "logic_stream_info",
        "capture_op_info",
    ] {
        assert_eq!(prof.additional(family), [], "{family}");
    }
    assert!(!prof.host.keys().any(|family| family.contains("variable")));
    assert_eq!(prof.devices.len(), 1);
}

#[test]
fn a_type_that_is_called_like_another_file_has_one_of_its_own() {
    let home = Home::new();
    let prof = capture(&home);
    let long = "x".repeat(300);
    let mut found: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (family, slices) in &prof.host {
        let size = match family.split('.').collect::<Vec<_>>()[..] {
            ["unaging", "compact", _] => 64,
            ["aging", "additional", _] => 256,
            _ => continue,
        };
        let named = |record: &&[u8]| {
            u32::from_le_bytes([record[4], record[5], record[6], record[7]]) >= 50_000
        };
        for record in slices
            .values()
            .flat_map(|bytes| bytes.chunks(size))
            .filter(named)
        {
            found
                .entry(u64_at(record, 24))
                .or_default()
                .push(family.clone());
        }
    }
    for (number, families) in &found {
        let name = NAMES.get(*number as usize).copied();
        // As much of a long name as fits a file's.
        let name = name.unwrap_or_else(|| &long[..160]);
        let expected = [
            format!("aging.additional.{name}"),
            format!("unaging.compact.{name}"),
        ];
        assert_eq!(*families, expected);
    }
    assert_eq!(found.len(), NAMES.len() + 1);
    let above = std::fs::read_dir(home.output()).expect("the output");
    assert_eq!(above.count(), 1, "nothing beside the capture");
}

#[test]
fn the_stock_parser_exports_what_is_between_them() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let home = Home::new();
    let prof = capture(&home);
    export(&parser, &prof.path);
    let csv = exported(&prof.path, "api_statistic_", ".csv").expect("api_statistic csv");
    let rows_of = rows(&csv);
    assert_eq!(rows_of.len(), 1);
    assert_eq!(rows_of[0]["Count"], GOOD.to_string());
    // One of these among records of types that it does not know would cost it all of them.
    for name in ["aicpu_", "dp_", "aicpu_mi_"] {
        let csv = exported(&prof.path, name, ".csv").unwrap_or_else(|| panic!("no {name} csv"));
        assert_eq!(rows(&csv).len(), GOOD, "{name}");
    }
}
