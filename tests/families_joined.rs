//! What the stock parser joins: tasks of the device with the operators, shapes, models and communication that the
//! host has reported of them.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::families::{Exported, TASKS, Task, assert_row, row_with};
use support::parser::stock_parser;

#[test]
fn the_stock_parser_joins_tasks_with_what_the_host_reported_of_them() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let exported = Exported::make(&parser);
    check_operators(&exported);
    check_flows(&exported);
    check_communication(&exported);
    check_tasks(&exported);
}

/// Records about an operator are joined by thread and time, with a task by device, stream and number.
fn check_operators(exported: &Exported) {
    let rows = exported.rows("op_summary_");
    let tensors = |count: usize, text: &str| vec![text; count].join(";");
    let shapes = |rows: u32, count: u32| -> String {
        let shapes: Vec<String> = (1..=count).map(|i| format!("{rows},{i}")).collect();
        format!("\"{}\"", shapes.join(";"))
    };
    // Name, type, state, task type, model, stream, task, blocks, mix blocks, HF32, rows and number of inputs.
    let operators = [
        (
            "conv1", "Conv2D", "static", "AI_CORE", "1", "2", "10", "8", "16", "NO", 16, 2,
        ),
        (
            "concat1",
            "ConcatD",
            "dynamic",
            "AI_VECTOR_CORE",
            "1",
            "2",
            "11",
            "4",
            "0",
            "YES",
            16,
            6,
        ),
        (
            "cast1", "Cast", "dynamic", "AI_CPU", "1", "2", "12", "1", "0", "YES", 0, 0,
        ),
        (
            "graph_add_1",
            "GraphAdd",
            "static",
            "AI_VECTOR_CORE",
            "500",
            "6",
            "30",
            "12",
            "12",
            "YES",
            32,
            2,
        ),
        (
            "graph_add_2",
            "GraphAdd",
            "dynamic",
            "AI_VECTOR_CORE",
            "500",
            "6",
            "31",
            "12",
            "12",
            "YES",
            32,
            2,
        ),
        (
            "graph_add_3",
            "GraphAdd",
            "static",
            "AI_VECTOR_CORE",
            "500",
            "6",
            "32",
            "12",
            "12",
            "YES",
            32,
            6,
        ),
    ];
    for (name, kind, state, task, model, stream, number, blocks, mixed, hf32, side, inputs) in
        operators
    {
        let row = row_with(&rows, "Op Name", name);
        let expected = [
            ("Device_id", "0"),
            ("OP Type", kind),
            ("OP State", state),
            ("Task Type", task),
            ("Model ID", model),
            ("Stream ID", stream),
            ("Task ID", number),
            ("Block Num", blocks),
            ("Mix Block Num", mixed),
            ("HF32 Eligible", hf32),
        ];
        assert_row(row, &expected);
        if inputs == 0 {
            assert_row(row, &[("Input Shapes", "N/A"), ("Output Shapes", "N/A")]);
            continue;
        }
        let inputs_of = |text: &str| tensors(inputs as usize, text);
        let output = format!("\"{side},{}\"", inputs + 1);
        let expected = [
            ("Input Shapes", &*shapes(side, inputs)),
            ("Input Data Types", &*inputs_of("FLOAT16")),
            ("Input Formats", &*inputs_of("ND")),
            ("Output Shapes", &*output),
            ("Output Data Types", "FLOAT16"),
            ("Output Formats", "ND"),
        ];
        assert_row(row, &expected);
    }
    let mut kinds = BTreeMap::new();
    for row in exported.rows("op_statistic_") {
        kinds.insert(row["OP Type"].clone(), row["Count"].clone());
    }
    let expected = [
        ("Conv2D", "1"),
        ("ConcatD", "1"),
        ("Cast", "1"),
        ("GraphAdd", "3"),
    ];
    let expected = expected.map(|(kind, count)| (kind.to_owned(), count.to_owned()));
    assert_eq!(kinds, expected.into());
}

/// An operator on the device has the connection of the launch that it is of, and an arrow leads from the one to the
/// other.
fn check_flows(exported: &Exported) {
    let ends = |phase: &str| -> BTreeMap<String, Vec<&Value>> {
        let mut ends: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        let of_phase = |event: &&Value| event["ph"] == phase && event["cat"] == "HostToDevice";
        for event in exported.timeline.iter().filter(of_phase) {
            let id = event["id"].as_str().expect("an id").to_owned();
            ends.entry(id).or_default().push(event);
        }
        ends
    };
    let (begins, arrivals) = (ends("s"), ends("f"));
    for (name, launched, ran) in [
        ("conv1", 400..=500, 440),
        ("concat1", 520..=600, 560),
        ("cast1", 620..=700, 635),
    ] {
        let spans = exported.spans(name);
        assert_eq!(spans.len(), 1, "{name}");
        let launches = exported.spans("Node@launch");
        let launch = launches
            .iter()
            .find(|launch| launch["args"]["item_id"] == name);
        let connection = &launch.expect("a launch")["args"]["connection_id"];
        assert_eq!(spans[0]["args"]["connection_id"], *connection, "{name}");
        assert_eq!(spans[0]["args"]["Model Id"], 1, "{name}");
        exported.assert_time(spans[0]["ts"].as_str().expect("text"), ran);
        let arrows = arrivals
            .iter()
            .filter(|(_, ends)| ends.iter().any(|end| end["ts"] == spans[0]["ts"]));
        let arrows: Vec<&String> = arrows.map(|(id, _)| id).collect();
        assert_eq!(arrows.len(), 1, "{name}");
        for begin in &begins[arrows[0]] {
            assert_eq!(begin["tid"], exported.reported.thread, "{name}");
            let begun: f64 = begin["ts"]
                .as_str()
                .and_then(|ts| ts.parse().ok())
                .expect("a time");
            let span =
                exported.wall(*launched.start()) - 1.0..=exported.wall(*launched.end()) + 1.0;
            assert!(span.contains(&begun), "{name}: from {begun}");
        }
    }
}

fn check_communication(exported: &Exported) {
    let rows = exported.rows("communication_statistic_");
    assert_eq!(rows.len(), 1);
    let expected = [
        ("OP Type", "hcom_allReduce_"),
        ("Count", "1"),
        ("Total Time(us)", "30.0"),
    ];
    assert_row(&rows[0], &expected);
    let copies = exported.spans("Memcpy");
    assert_eq!(copies.len(), 1);
    let expected: Value = serde_json::json!({
        "notify_id": "77", "duration estimated(us)": 12.5, "stream id": 4, "task id": 20, "task type": "Memcpy",
        "src rank": 0, "dst rank": 1, "transport type": "SDMA", "size(Byte)": 65536, "data type": "FP32",
        "link type": "HCCS",
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(copies[0]["args"][key], *value, "{key}");
    }
    let named = |event: &&Value| {
        let name = event["name"].as_str().unwrap_or_default();
        event["ph"] == "X" && name.starts_with("hcom_allReduce_1_")
    };
    let operator = exported.timeline.iter().find(named).expect("the operator");
    let expected = [("data_type", "FP32"), ("alg_type", "MESH-RING")];
    for (key, value) in expected {
        assert_eq!(operator["args"][key], value);
    }
    assert_eq!(operator["args"]["count"], 16384);
    assert_eq!(operator["args"]["rank_size"], 8);
}

fn check_tasks(exported: &Exported) {
    let rows = exported.rows("task_time_");
    assert_eq!(rows.len(), TASKS.len());
    let kernels = [
        ("9", "N/A", "MEMCPY_ASYNC"),
        ("10", "conv1_kernel", "AI_CORE"),
        ("11", "concat1_kernel", "AI_VECTOR_CORE"),
        ("12", "cast1_kernel", "AI_CPU"),
        ("13", "N/A", "MEMCPY_ASYNC"),
        ("20", "N/A", "MEMCPY_ASYNC"),
        ("30", "graph_add_kernel", "AI_VECTOR_CORE"),
        ("31", "graph_add_kernel", "AI_VECTOR_CORE"),
        ("32", "graph_add_kernel", "AI_VECTOR_CORE"),
    ];
    for ((number, kernel, kind), Task(stream, _, _, from, to)) in kernels.into_iter().zip(TASKS) {
        let row = row_with(&rows, "task_id", number);
        let stream = stream.to_string();
        assert_row(
            row,
            &[
                ("kernel_name", kernel),
                ("kernel_type", kind),
                ("stream_id", &stream),
            ],
        );
        exported.assert_time(&row["task_start(us)"], from);
        exported.assert_time(&row["task_stop(us)"], to);
    }
}
