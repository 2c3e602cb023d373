//! Directories of any calls, written without the agent.

use super::home::Home;
use serde_json::json;
use std::path::PathBuf;

/// CLOCK_MONOTONIC_RAW at the start, ns.
pub const START_NS: u64 = 1_000_000_000_000;
const HOUR_NS: u64 = 3_600_000_000_000;
pub const RUNTIME: u16 = 5000;
pub const NODE: u16 = 10_000;
pub const MODEL: u16 = 15_000;
pub const ACL: u16 = 20_000;

/// A directory with these calls (level, type, thread, begin and end after the start) and lines of the type dictionary.
pub fn written(
    home: &Home,
    calls: impl Iterator<Item = (u16, u32, u32, u64, u64)>,
    types: &str,
) -> PathBuf {
    let prof = home.path().join("PROF_000001_20261201120000000_ABC");
    let data = prof.join("host/data");
    std::fs::create_dir_all(&data).expect("made");
    let mut records = Vec::new();
    let mut last = 0;
    for (level, kind, thread, begin, end) in calls {
        records.extend(0x5A5Au16.to_le_bytes());
        records.extend(level.to_le_bytes());
        for word in [kind, thread, 0] {
            records.extend(word.to_le_bytes());
        }
        for word in [START_NS + begin, START_NS + end, 0] {
            records.extend(word.to_le_bytes());
        }
        // No capture lasts as long as absurd times say.
        last = last.max(end.min(HOUR_NS));
    }
    let write = |name: &str, bytes: &[u8]| std::fs::write(data.join(name), bytes).expect("written");
    write("unaging.api_event.data.slice_0", &records);
    write("unaging.additional.type_info_dic.slice_0", types.as_bytes());
    let clock = |after: u64| {
        json!({
            "ticks": START_NS + after, "monotonic_raw_ns": START_NS + after,
            "realtime_ns": START_NS + after, "cpu_counter": 0
        })
    };
    let ledger = json!({
        "agent_version": "0", "pid": 4321, "capture": 1, "state": "complete",
        "start": clock(0), "stop": clock(last + 1_000),
        "lost": { "runtime-api": 7 },
    });
    std::fs::write(prof.join("msprof_agent.json"), ledger.to_string()).expect("written");
    prof
}

/// So many calls of two threads: runs of a model with operators in them, of which each launches a kernel.
pub fn nested(count: usize) -> impl Iterator<Item = (u16, u32, u32, u64, u64)> {
    const RUN: u64 = 40_000;
    let run = |number: usize| {
        let (thread, at) = (4321 + number as u32 % 2, number as u64 / 2 * RUN);
        let operators = (0..3).flat_map(move |operator| {
            let from = at + 3_000 + operator * 10_000;
            [
                (RUNTIME, 1001, thread, from + 1_000, from + 6_000),
                (NODE, 5, thread, from, from + 8_000),
            ]
        });
        operators.chain([
            (MODEL, 1, thread, at + 2_000, at + 34_000),
            (ACL, 7, thread, at, at + 36_000),
        ])
    };
    (0..).flat_map(run).take(count)
}

/// Names of their types.
pub const TYPES: &str =
    "5000_1001:KernelLaunch\n10000_5:launch\n15000_1:ModelExecute\n20000_7:aclmdlExecute\n";
