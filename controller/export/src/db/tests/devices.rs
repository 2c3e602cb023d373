//! Rows of tasks as devices ran them.

use super::made;
use super::prof::{Call, Head, Payload, Prof, START};

const ACL: u16 = 20000;
const MODEL: u16 = 15000;
const NODE: u16 = 10000;
const HCCL: u16 = 5500;
const RUNTIME: u16 = 5000;

const TRACK: &str = "aging.compact.task_track";
const WHOLE: u32 = u32::MAX;

const TASK: &str = "SELECT startNs, endNs, deviceId, connectionId, globalPid, value, contextId, streamId, taskId, modelId \
     FROM TASK JOIN STRING_IDS ON taskType = id ORDER BY startNs";
const OVERLAP: &str = "SELECT OVERLAP_ANALYSIS.id, deviceId, startNs, endNs, name FROM OVERLAP_ANALYSIS \
     JOIN ENUM_OVERLAP_ANALYSIS_TYPE ON type = ENUM_OVERLAP_ANALYSIS_TYPE.id ORDER BY 1";

fn prof() -> Prof {
    let prof = Prof::new().with_device(0, "5");
    prof.kind(RUNTIME, 0, "KERNEL_AICORE")
        .kind(RUNTIME, 7, "MEMCPY_ASYNC")
        .kind(NODE, 5, "launch")
        .string(1, "Add_1")
        .string(2, "Add");
    prof
}

/// A task of stream 2 on device 0.
fn track(number: u16, kind: u64) -> Vec<u8> {
    let place = Payload::default().u16(0).u16(2).u16(number).u16(0);
    place.u64(kind).u64(1).0
}

fn at(time: i64) -> Head {
    Head::new(RUNTIME, 802, time)
}

/// An operator in a run of model 9, and a copy in a call of its own; both ran.
fn computed() -> Prof {
    let prof = prof();
    let info = Payload::default().u64(1).u32(0).u64(2).u32(8).u32(0);
    prof.call(Call {
        item: 9,
        ..Call::new(MODEL, 1, 50, 400)
    })
    .call(Call {
        item: 1,
        ..Call::new(NODE, 5, 100, 300)
    })
    .call(Call::new(ACL, 1, 500, 700))
    .compact(
        "aging.compact.node_basic_info",
        Head::new(NODE, 0, 150),
        &info.0,
    )
    .compact(TRACK, at(200), &track(10, 0))
    .compact(TRACK, at(600), &track(11, 7))
    .ran(2, 10, 0, 1_000, false)
    .ran(2, 10, 0, 3_000, true)
    .ran(2, 11, 11, 4_000, false)
    .ran(2, 11, 11, 9_000, true);
    prof
}

fn row(start: i64, end: i64, rest: &str) -> String {
    format!("{}|{}|0|{rest}", START + start, START + end)
}

#[test]
fn a_task_has_the_devices_times_and_the_hosts_type_call_and_model() {
    let made = made(&computed());
    assert_eq!(
        made.rows(TASK),
        [
            row(
                1_000,
                3_000,
                &format!("1|4321|KERNEL_AICORE|{WHOLE}|2|10|9")
            ),
            row(
                4_000,
                9_000,
                &format!("2|4321|MEMCPY_ASYNC|{WHOLE}|2|11|{WHOLE}")
            ),
        ]
    );
    let operators = "SELECT value, startNs FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId) JOIN STRING_IDS ON id = name";
    assert_eq!(made.rows(operators), [format!("Add_1|{}", START + 1_000)]);
    let calls = "SELECT CANN_API.startNs FROM TASK JOIN CANN_API USING (connectionId) ORDER BY 1";
    assert_eq!(
        made.rows(calls),
        [(START + 100).to_string(), (START + 500).to_string()]
    );
}

#[test]
fn a_device_computes_and_is_free_between() {
    assert_eq!(
        made(&computed()).rows(OVERLAP),
        [
            format!("0|0|{}|{}|COMPUTE", START + 1_000, START + 3_000),
            format!("1|0|{}|{}|FREE", START + 3_000, START + 9_000),
        ]
    );
}

#[test]
fn a_task_that_only_the_device_knows_is_called_as_the_device_calls_it() {
    let prof = computed();
    prof.ran(7, 1, 1, 10_000, false)
        .ran(7, 1, 1, 11_000, true)
        // No name.
        .ran(7, 2, 30, 12_000, false)
        .ran(7, 2, 30, 13_000, true)
        // Over before the start.
        .ran(7, 3, 1, -2_000, false)
        .ran(7, 3, 1, -1_000, true)
        // No end.
        .ran(7, 4, 1, 14_000, false);
    let rows = made(&prof).rows(TASK);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(
        rows[2],
        row(
            10_000,
            11_000,
            &format!("-1|4321|AI_CPU|{WHOLE}|7|1|{WHOLE}")
        )
    );
}

#[test]
fn parts_of_a_task_are_called_as_the_device_calls_them() {
    let prof = prof();
    prof.kind(RUNTIME, 8, "FFTS_PLUS")
        .compact(TRACK, at(200), &track(10, 8));
    for (kind, time) in [(0b10_0010u16, 1_000), (0b10_0011, 2_000)] {
        let mut log = Payload::default().u16(kind).u16(0x6BD3).u16(2).u16(10);
        log = log.u64(super::prof::device_tick(time)).u16(6).u16(3);
        log.0.resize(64, 0);
        prof.device_data("stars_soc.data.0.slice_0", &log.0);
    }
    // The host said nothing of parts: it is one that only the device knows.
    let rows = made(&prof).rows(TASK);
    assert_eq!(
        rows,
        [row(
            1_000,
            2_000,
            &format!("-1|4321|MIX_AIC|3|2|10|{WHOLE}")
        )]
    );
}

#[test]
fn numbers_that_begin_anew_are_told_apart_on_both_sides() {
    let prof = prof();
    let mut flip = Payload::default().u16(0x0E00).u16(0).u32(0);
    flip = flip
        .u64(super::prof::device_tick(3_000))
        .u16(2)
        .u16(1)
        .u16(0)
        .u16(0);
    flip.0.resize(40, 0);
    prof.kind(RUNTIME, 1, "KERNEL_AICPU")
        .compact(TRACK, at(100), &track(5, 0))
        .compact(TRACK, at(200), &track(0, 98))
        .compact(TRACK, at(300), &track(5, 1))
        .device_data("ts_track.data.0.slice_0", &flip.0)
        .ran(2, 5, 0, 1_000, false)
        .ran(2, 5, 0, 2_000, true)
        .ran(2, 5, 1, 4_000, false)
        .ran(2, 5, 1, 5_000, true);
    let made = made(&prof);
    let types =
        made.rows("SELECT value FROM TASK JOIN STRING_IDS ON id = taskType ORDER BY startNs");
    assert_eq!(types, ["KERNEL_AICORE", "KERNEL_AICPU"]);
    assert_eq!(
        made.rows("SELECT COUNT(DISTINCT globalTaskId) FROM TASK"),
        ["2"]
    );
}

#[test]
fn a_device_that_communicates_is_not_said_to_be_free_meanwhile() {
    let prof = computed();
    prof.call(Call::new(NODE, 5, 1_000, 2_000))
        .call(Call::new(HCCL, 1, 1_100, 1_900))
        .compact(TRACK, at(1_500), &track(12, 7))
        .ran(2, 12, 11, 10_000, false)
        .ran(2, 12, 11, 11_000, true);
    let made = made(&prof);
    assert_eq!(made.report.rows("TASK"), Some(3));
    assert!(made.report.without_communication);
    assert!(!made.has("OVERLAP_ANALYSIS"));
}

#[test]
fn logs_of_other_kinds_of_devices_are_not_read() {
    let prof = Prof::new().with_device(0, "15");
    prof.compact(TRACK, at(100), &track(5, 0))
        .ran(2, 5, 0, 1_000, false)
        .ran(2, 5, 0, 2_000, true);
    assert!(!made(&prof).has("TASK"));
}

#[test]
fn a_log_without_tasks_of_the_host_has_no_table() {
    let prof = prof();
    prof.ran(2, 5, 0, 1_000, false).ran(2, 5, 0, 2_000, true);
    assert!(!made(&prof).has("TASK"));
}
