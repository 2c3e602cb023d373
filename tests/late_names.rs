//! Types that get their names before, in or after a capture, or never: their records are where a reader looks for them
//! by the name that they had, and none is lost.

mod support;

use support::home::{Home, only_prof_dir};
use support::prof::u64_at;
use support::reported::{capture, run};
use support::rules::{lost, open_complete};

const PROGRAM: &str = "tests/c/late_names.c";

#[test]
fn records_are_filed_by_the_name_that_their_type_had_and_by_known_ones_before() {
    let home = Home::new();
    let (prof, reported) = capture(&home, PROGRAM);
    reported.assert_written(&prof);
    // What no name was known of is kept, under one that no reader takes for another.
    assert_eq!(prof.compact("invalid").len(), 2);
    assert_eq!(prof.additional("invalid").len(), 2);
    assert!(!prof.types.values().any(|name| name == "named_after"));
}

#[test]
fn a_record_that_is_reported_right_after_its_type_was_named_is_filed_by_that_name() {
    let home = Home::new();
    run(&home, PROGRAM);
    let prof = open_complete(&only_prof_dir(&home.output().join("second")));
    assert_eq!(lost(&prof.ledger()), 0);
    assert_eq!(prof.additional("named_after").len(), 1);
    let mut found = Vec::new();
    for (family, slices) in &prof.host {
        let Some(name) = family.strip_prefix("unaging.compact.raced_") else {
            continue;
        };
        let name: u64 = name.parse().expect("a number");
        for record in slices.values().flat_map(|bytes| bytes.chunks(64)) {
            let number = u64_at(record, 24);
            // Only while it waits to be written may a later name come.
            assert!(number <= name, "record {number} is filed as {name}");
            found.push(number);
        }
    }
    found.sort_unstable();
    assert!(found.iter().copied().eq(0..2000), "{} records", found.len());
}
