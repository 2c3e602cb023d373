//! The bound on one PROF_XXX: kept while more comes than fits, and what went for it is said.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use support::artifacts::artifacts;
use support::home::{Home, only_prof_dir};
use support::msprof::dynamic;
use support::puppet::Puppet;
use support::wait::wait_for;

/// The smallest limit there is, and what it means in bytes; it is kept within a twentieth.
const OPTION: &str = "--storage-limit=200MB";
const LIMIT: u64 = 200 << 20;
const SLACK: u64 = LIMIT / 20;
/// Bytes of an api record, and records of one order to the puppet.
const RECORD: u64 = 40;
const ORDER: u64 = 400_000;
/// What the whole may take on a slow disk.
const PATIENCE: Duration = Duration::from_secs(90);

/// Bytes of all files below a directory. Files may go meanwhile.
fn size_of(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_of(&entry.path()),
            // A reserve for the last words of a full disk is no data; it is gone at the end.
            Ok(_) if entry.file_name() == ".msprof_agent.reserve" => 0,
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

#[test]
fn a_capture_of_more_than_the_limit_keeps_it_and_says_what_went() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut msprof = dynamic(&home, &home.output())
        .arg(OPTION)
        .arg(format!("--pid={}", puppet.pid()))
        .spawn();
    msprof.say("start");
    msprof.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    let dir = only_prof_dir(&home.output());
    let first = dir.join("host/data/aging.api_event.data.slice_0");
    let mut reported = 0;
    let mut largest = 0;
    wait_for("the first slice to go", PATIENCE, || {
        assert_eq!(
            puppet.tell(&format!("api {ORDER} {}", 1 + reported / ORDER)),
            "0"
        );
        reported += ORDER;
        largest = largest.max(size_of(&dir));
        assert!(largest <= LIMIT + SLACK, "{largest} bytes");
        let full = largest > LIMIT * 3 / 4;
        (full && !first.exists()).then_some(())
    });
    // And on from there.
    for _ in 0..5 {
        assert_eq!(
            puppet.tell(&format!("api {ORDER} {}", 1 + reported / ORDER)),
            "0"
        );
        reported += ORDER;
        largest = largest.max(size_of(&dir));
        assert!(largest <= LIMIT + SLACK, "{largest} bytes");
    }
    msprof.say("stop");
    let finished = msprof.finish();
    finished.expect_code(0);
    assert!(size_of(&dir) <= LIMIT + SLACK);
    assert!(largest > LIMIT - LIMIT / 10, "the limit is used: {largest}");

    let text = fs::read_to_string(dir.join("msprof_agent.json")).expect("the ledger");
    let ledger: Value = serde_json::from_str(&text).expect("JSON");
    let count = |column: &str| ledger[column]["runtime-api"].as_u64().expect("a count");
    assert_eq!(count("reported"), reported);
    let aged_out = count("aged_out");
    assert!(aged_out > 0);
    assert_eq!(count("written") + count("lost") + aged_out, reported);
    let said = finished.text();
    assert!(said.contains(&format!("aged out {aged_out}")), "{said}");
    // The oldest went, and what is left has no gap.
    let slices = api_slices(&dir);
    let bytes: u64 = slices.values().sum();
    assert_eq!(bytes, count("written") * RECORD);
    let numbers: Vec<u64> = slices.into_keys().collect();
    assert!(numbers[0] > 0, "{numbers:?}");
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );
    let summary = home
        .plain(&artifacts().msprof)
        .arg("summary")
        .arg(&dir)
        .run();
    summary.expect_code(0);
    assert!(
        summary.text().contains(&aged_out.to_string()),
        "{summary:#?}"
    );
}

/// Bytes of the slices of api records, by their numbers. Read in a debug build, the records themselves would take
/// a minute.
fn api_slices(dir: &Path) -> BTreeMap<u64, u64> {
    let entries = fs::read_dir(dir.join("host/data")).expect("data");
    entries
        .filter_map(|entry| {
            let entry = entry.expect("entry");
            let name = entry.file_name().into_string().expect("UTF-8");
            let number = name
                .strip_prefix("aging.api_event.data.slice_")?
                .parse()
                .ok()?;
            Some((number, entry.metadata().expect("there").len()))
        })
        .collect()
}
