//! What people ask such a database, against the records.

use super::made;
use super::prof::{Call, Prof, START};
use std::collections::BTreeMap;

const ACL: u16 = 20000;

/// Calls of three threads and seven names, 1,000 in all.
fn calls() -> Vec<Call> {
    let calls = (0..1000i64).map(|number| Call {
        thread: 10 + (number % 3) as u32,
        ..Call::new(
            ACL,
            (number % 7) as u32,
            number * 100,
            number * 100 + 10 + number * number % 89,
        )
    });
    calls.collect()
}

fn captured() -> Prof {
    let prof = Prof::new();
    for kind in 0..7 {
        prof.kind(ACL, kind, &format!("api_{kind}"));
    }
    for call in calls() {
        prof.call(call);
    }
    prof
}

#[test]
fn top_apis_are_those_of_the_records() {
    let mut sums: BTreeMap<String, (i64, i64, i64)> = BTreeMap::new();
    for call in calls() {
        let sum = sums.entry(format!("api_{}", call.kind)).or_default();
        let duration = call.end - call.begin;
        *sum = (sum.0 + duration, sum.1 + 1, sum.2.max(duration));
    }
    let mut expected: Vec<_> = sums.into_iter().collect();
    expected.sort_by_key(|(name, (total, ..))| (-total, name.clone()));
    let expected: Vec<String> = expected
        .iter()
        .map(|(name, (total, count, max))| format!("{name}|{total}|{count}|{max}"))
        .collect();
    let rows = made(&captured()).rows(
        "SELECT value, SUM(endNs - startNs) AS total, COUNT(*), MAX(endNs - startNs) FROM CANN_API \
         JOIN STRING_IDS ON CANN_API.name = STRING_IDS.id JOIN ENUM_API_TYPE ON type = ENUM_API_TYPE.id \
         WHERE ENUM_API_TYPE.name = 'acl' GROUP BY value ORDER BY total DESC, value",
    );
    assert_eq!(rows, expected);
}

#[test]
fn the_calls_of_a_thread_in_a_window_are_those_of_the_records() {
    let (from, to) = (20_000, 30_000);
    let expected: Vec<String> = calls()
        .iter()
        .filter(|call| call.thread == 11 && call.begin < to && call.end > from)
        .map(|call| format!("api_{}|{}|{}", call.kind, call.begin, call.end))
        .collect();
    assert!(expected.len() > 30, "{expected:?}");
    let rows = made(&captured()).rows(&format!(
        "SELECT value, startNs - {START}, endNs - {START} FROM CANN_API JOIN STRING_IDS ON name = id \
         WHERE globalTid >> 32 = 4321 AND (globalTid & 0xFFFFFFFF) = 11 \
         AND startNs < {START} + {to} AND endNs > {START} + {from} ORDER BY startNs",
    ));
    assert_eq!(rows, expected);
}
