//! Slices in which there are no records: garbage, zeros, and holes of any length.

use super::check::check;
use super::killed::{API, killed, recovered};
use super::*;
use crate::clock::Moment;
use std::fs::File;
use std::time::Duration;

/// A hole that takes hours to be read, byte by byte.
const HOLE: u64 = 1 << 44;
/// Nothing here takes longer.
const SOON: Duration = Duration::from_secs(20);

fn rules(dir: &Path) -> Vec<(&'static str, String)> {
    let found = check(dir).into_iter();
    let mut found: Vec<_> = found
        .map(|violation| (violation.rule, violation.message))
        .collect();
    found.sort();
    found
}

#[test]
fn garbage_is_counted() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    let mut random = 0x1234_5678_9ABC_DEF1_u64;
    let mut garbage = Vec::new();
    while garbage.len() < 40 * 1_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // No byte is the magic number's.
        garbage.push((random >> 56) as u8 | 0x80);
    }
    std::fs::write(dir.join("host/data/aging.api_event.data.slice_1"), &garbage).expect("written");
    let rules = rules(&dir);
    assert!(
        rules.contains(&(
            "record-magic",
            "1000 records without the magic number: the family is lost".to_owned()
        )),
        "{rules:?}"
    );
    assert!(!rules.iter().any(|(rule, _)| *rule == "ledger-count"));
}

#[test]
fn a_hole_is_counted_without_being_read() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    let slice = File::options().append(true).open(dir.join(API));
    let slice = slice.expect("opens");
    let length = slice.metadata().expect("there").len();
    if let Err(error) = slice.set_len(length + HOLE / 40 * 40) {
        crate::skip::skipped(format_args!(
            "no file of that length can be made here ({error})"
        ));
        return;
    }
    for family in [
        "aging.compact.memcpy_info",
        "aging.variable.x",
        "aging.additional.hash_dic",
    ] {
        let file = File::create(dir.join(format!("host/data/{family}.slice_1"))).expect("made");
        file.set_len(HOLE).expect("a hole");
    }
    let began = Moment::now();
    let rules = rules(&dir);
    for message in [HOLE / 40, HOLE / 64]
        .map(|count| format!("{count} records without the magic number: the family is lost"))
    {
        assert!(rules.contains(&("record-magic", message)), "{rules:?}");
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn holes_in_slices_of_a_killed_process_are_cut_off_without_being_read() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, total) = killed(temp.path());
    let slices = [
        "aging.api_event.data",
        "aging.compact.memcpy_info",
        "aging.additional.x",
        "aging.variable.x",
        "unaging.additional.type_info_dic",
        "unaging.additional.hash_dic",
    ];
    let gigabyte = 1 << 30;
    for number in 10..40 {
        for family in slices {
            let path = dir.join(format!("host/data/{family}.slice_{number}"));
            let file = File::create(path).expect("made");
            file.set_len(gigabyte).expect("a hole");
        }
    }
    let began = Moment::now();
    let recovery = recovered(&dir);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!((recovery.kept, recovery.left.len()), (total, 0));
    let cut: Vec<u64> = recovery.cut.iter().map(|cut| cut.bytes).collect();
    assert_eq!(cut, [gigabyte; 180]);
}
