//! What the stock parser makes of every kind of record: the rows that show it, with the values that were reported.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use support::families::{Exported, assert_row, row_with};
use support::parser::stock_parser;

#[test]
fn the_stock_parser_shows_each_kind_of_record_with_its_values() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let exported = Exported::make(&parser);
    check_calls(&exported);
    check_statistic(&exported);
    check_model(&exported);
    check_memory(&exported);
    check_marks(&exported);
    check_aicpu(&exported);
}

/// A call of the timeline: layer and name, mode, item, and when, us.
type Call = (&'static str, &'static str, &'static str, u64, u64);

const CALLS: [Call; 19] = [
    ("AscendCL@aclmdlLoadFromFile", "ACL_MODEL", "0", 10, 200),
    ("Model@ModelLoad", "ModelLoad", "1", 20, 180),
    ("Runtime@DevMalloc", "DevMalloc", "0", 100, 110),
    ("AscendCL@aclmdlExecute", "ACL_MODEL", "0", 300, 990),
    ("Model@InputCopy", "InputCopy", "1", 320, 340),
    ("Runtime@MemcpyAsync", "MemcpyAsync", "0", 322, 338),
    ("Model@ModelExecute", "ModelExecute", "1", 350, 780),
    ("Node@launch", "launch", "conv1", 400, 500),
    ("Runtime@KernelLaunch", "KernelLaunch", "0", 410, 450),
    ("Node@launch", "launch", "concat1", 520, 600),
    ("Runtime@KernelLaunch", "KernelLaunch", "0", 530, 550),
    ("Node@launch", "launch", "cast1", 620, 700),
    ("Runtime@KernelLaunch", "KernelLaunch", "0", 630, 640),
    ("Node@launch", "launch", "ffts1", 710, 760),
    ("Model@OutputCopy", "OutputCopy", "1", 800, 850),
    ("Runtime@MemcpyAsync", "MemcpyAsync", "0", 810, 840),
    ("Node@launch", "launch", "hcom_allReduce_1", 1000, 1200),
    ("Communication@Memcpy", "master", "Memcpy", 1010, 1100),
    (
        "Communication@Notify_Wait",
        "master",
        "Notify_Wait",
        1210,
        1215,
    ),
];

/// Every call is there once, with the thread that made it, and no other.
fn check_calls(exported: &Exported) {
    let is_call = |event: &&Value| {
        let name = event["name"].as_str().unwrap_or_default();
        event["ph"] == "X" && name.contains('@')
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut shown = BTreeSet::new();
    for event in exported.timeline.iter().filter(is_call) {
        let args = &event["args"];
        assert_eq!(event["tid"], exported.reported.thread);
        assert_eq!(args["Thread Id"], exported.reported.thread);
        let duration = event["dur"].as_f64().expect("a number").round() as u64;
        // The parser shows a call twice that has the first connection id, when there are two devices.
        let what = [
            &event["name"],
            &args["Mode"],
            &args["item_id"],
            &event["ts"],
        ]
        .map(text);
        shown.insert((what, duration));
    }
    assert_eq!(shown.len(), CALLS.len(), "{shown:#?}");
    for (name, mode, item, from, to) in CALLS {
        let begin = exported.wall(from);
        let found = shown.iter().any(|([n, m, i, ts], duration)| {
            let ts: f64 = ts.parse().expect("a time");
            (&**n, &**m, &**i, *duration) == (name, mode, item, to - from)
                && (ts - begin).abs() <= 1.0
        });
        assert!(found, "{name} {item} at {begin} in {shown:#?}");
    }
}

fn check_statistic(exported: &Exported) {
    let expected = [
        ("acl", "aclmdlExecute", 1, 690.0),
        ("acl", "aclmdlLoadFromFile", 1, 190.0),
        ("communication", "Memcpy", 1, 90.0),
        ("communication", "Notify_Wait", 1, 5.0),
        ("model", "InputCopy", 1, 20.0),
        ("model", "OutputCopy", 1, 50.0),
        ("node", "launch", 5, 510.0),
        ("runtime", "DevMalloc", 1, 10.0),
        ("runtime", "KernelLaunch", 3, 70.0),
        ("runtime", "MemcpyAsync", 2, 46.0),
    ];
    // All calls are said to be of each device.
    for device in ["0", "1"] {
        let rows = exported.rows_of("api_statistic_", device);
        assert_eq!(rows.len(), expected.len());
        for (level, name, count, time) in expected {
            let row = row_with(&rows, "API Name", name);
            assert_row(row, &[("Level", level), ("Count", &format!("{count}"))]);
            assert_eq!(row["Time(us)"].parse(), Ok(time), "{name}");
        }
    }
}

fn check_model(exported: &Exported) {
    let rows = exported.rows_of("fusion_op_", "0");
    assert_eq!(rows.len(), 1);
    let expected = [
        ("Model Name", "resnet50"),
        ("Model ID", "1"),
        ("Fusion Op", "fused_conv"),
        ("Original Ops", "conv1;relu0"),
        ("Memory Input(KB)", "1.0"),
        ("Memory Output(KB)", "2.0"),
        ("Memory Weight(KB)", "3.0"),
        ("Memory Workspace(KB)", "4.0"),
        ("Memory Total(KB)", "5.0"),
    ];
    assert_row(&rows[0], &expected);
}

fn check_memory(exported: &Exported) {
    let rows = exported.rows_of("operator_memory_", "0");
    assert_eq!(rows.len(), 1);
    let expected = [
        ("Name", "conv1"),
        ("Size(KB)", "4.0"),
        ("Duration(us)", "50.0"),
        ("Allocation Total Allocated(KB)", "4.0"),
        ("Allocation Total Reserved(KB)", "64.0"),
        ("Release Total Allocated(KB)", "0.0"),
        ("Release Total Reserved(KB)", "64.0"),
        ("Device", "NPU:0"),
    ];
    assert_row(&rows[0], &expected);
    exported.assert_time(&rows[0]["Allocation Time(us)"], 1400);
    let rows = exported.rows_of("memory_record_", "0");
    assert_eq!(rows.len(), 2);
    for (row, (us, total)) in rows.iter().zip([(1400, "4.0"), (1450, "0.0")]) {
        let expected = [
            ("Component", "GE"),
            ("Total Allocated(KB)", total),
            ("Total Reserved(KB)", "64.0"),
        ];
        assert_row(row, &expected);
        exported.assert_time(&row["Timestamp(us)"], us);
    }
    let rows = exported.rows("static_op_mem_");
    assert_eq!(rows.len(), 1);
    let expected = [
        ("Op Name", "conv1"),
        ("Model Name", "dynamic_root"),
        ("Graph ID", "71"),
        ("Node Index Start", "1"),
        ("Node Index End", "5"),
    ];
    assert_row(&rows[0], &expected);
    assert_eq!(rows[0]["Size(KB)"].parse(), Ok(4.0));
}

fn check_marks(exported: &Exported) {
    let rows = exported.rows("msprof_tx_");
    assert_eq!(rows.len(), 2);
    let (pid, thread) = (
        exported.reported.pid.to_string(),
        exported.reported.thread.to_string(),
    );
    let push = row_with(&rows, "message", "a push");
    let expected = [
        ("pid", &*pid),
        ("tid", &*thread),
        ("category", "7"),
        ("event_type", "push/pop"),
    ];
    assert_row(push, &expected);
    assert_row(
        push,
        &[
            ("payload_type", "2"),
            ("payload_value", "5"),
            ("message_type", "0"),
        ],
    );
    exported.assert_time(&push["Start_time(us)"], 1500);
    exported.assert_time(&push["End_time(us)"], 1540);
    let range = row_with(&rows, "message", "a range");
    let expected = [
        ("pid", &*pid),
        ("tid", &*thread),
        ("event_type", "start/end"),
        ("domain", "a domain"),
    ];
    assert_row(range, &expected);
    exported.assert_time(&range["Start_time(us)"], 1510);
    exported.assert_time(&range["End_time(us)"], 1530);
}

fn check_aicpu(exported: &Exported) {
    let rows = exported.rows("aicpu_");
    assert_eq!(rows.len(), 2);
    // Device, operator, its times, stream and task; when it began.
    let expected = [
        (
            [
                "0", "cast1", "500.0", "200.0", "40.0", "25.0", "50.0", "2", "12",
            ],
            640,
        ),
        (
            [
                "1", "N/A", "300.0", "100.0", "30.0", "35.0", "50.0", "3", "14",
            ],
            1640,
        ),
    ];
    let columns = [
        "Device_id",
        "Node",
        "Compute_time(us)",
        "Memcpy_time(us)",
        "Task_time(us)",
        "Dispatch_time(us)",
        "Total_time(us)",
        "Stream ID",
        "Task ID",
    ];
    for (row, (values, us)) in rows.iter().zip(expected) {
        let expected: Vec<(&str, &str)> = columns.into_iter().zip(values).collect();
        assert_row(row, &expected);
        exported.assert_time(&row["Timestamp(us)"], us);
    }
    let rows = exported.rows("aicpu_mi_");
    assert_eq!(rows.len(), 2);
    for (row, values) in rows.iter().zip([
        ["0", "1000800.0", "1000900.0", "4"],
        ["1", "1001000.0", "1001100.0", "6"],
    ]) {
        let [device, from, to, size] = values;
        let times = [
            ("Start Time(us)", from),
            ("End Time(us)", to),
            ("Queue Size", size),
        ];
        assert_row(
            row,
            &[("Device_id", device), ("Node Name", "GetNext_dequeue_wait")],
        );
        assert_row(row, &times);
    }
    // Records of 256 bytes, the old ones of 128, and text.
    let rows = exported.rows("dp_");
    assert_eq!(rows.len(), 3);
    let expected = [
        ("0", "Last queue deque", "iterator_default", "131", 1600),
        ("1", "Last queue deque", "iterator_binary", "17", 1700),
        ("host", "Last queue dequeue", "iterator_text", "23", 1720),
    ];
    for (device, action, source, size, us) in expected {
        let row = row_with(&rows, "Source", source);
        assert_row(
            row,
            &[
                ("Device_id", device),
                ("Action", action),
                ("Cached Buffer Size", size),
            ],
        );
        exported.assert_time(&row["Timestamp(us)"], us);
    }
}
