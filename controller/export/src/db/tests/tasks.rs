//! Rows of tasks: what they compute and copy.

use super::prof::{Call, Head, Payload, Prof};
use super::{Made, made};

const ACL: u16 = 20000;
const NODE: u16 = 10000;
const HCCL: u16 = 5500;
const RUNTIME: u16 = 5000;

const AI_CORE: u64 = 0;
const AI_CPU: u64 = 1;
const SIMT: u64 = 5;
const MEMCPY: u64 = 7;
const FLIP: u64 = 98;

const TRACK: &str = "aging.compact.task_track";
const MEMCPY_INFO: &str = "aging.compact.memcpy_info";
const STATIC_INFO: &str = "unaging.compact.node_basic_info";
const DYNAMIC_INFO: &str = "aging.compact.node_basic_info";

/// Words of a row of COMPUTE_TASK_INFO, its task last.
const COMPUTE: &str = "SELECT n.value, t.value, o.value, blockNum, mixBlockNum, f.value, d.value, s.value, g.value, \
     e.value, r.value, a.value, c.value, h.value, x.value, y.value, globalTaskId FROM COMPUTE_TASK_INFO \
     JOIN STRING_IDS n ON n.id = name JOIN STRING_IDS t ON t.id = taskType JOIN STRING_IDS o ON o.id = opType \
     JOIN STRING_IDS f ON f.id = inputFormats JOIN STRING_IDS d ON d.id = inputDataTypes \
     JOIN STRING_IDS s ON s.id = inputShapes JOIN STRING_IDS g ON g.id = outputFormats \
     JOIN STRING_IDS e ON e.id = outputDataTypes JOIN STRING_IDS r ON r.id = outputShapes \
     JOIN STRING_IDS a ON a.id = attrInfo JOIN STRING_IDS c ON c.id = opState JOIN STRING_IDS h ON h.id = hf32Eligible \
     JOIN STRING_IDS x ON x.id = gridDim JOIN STRING_IDS y ON y.id = blockDim ORDER BY globalTaskId";

/// A host that names what these tests use.
fn named() -> Prof {
    let prof = Prof::new();
    for (kind, name) in [
        (AI_CORE, "KERNEL_AICORE"),
        (AI_CPU, "KERNEL_AICPU"),
        (SIMT, "KERNEL_SIMT"),
        (MEMCPY, "MEMCPY_ASYNC"),
    ] {
        prof.kind(RUNTIME, kind, name);
    }
    prof.kind(NODE, 5, "launch").kind(NODE, 7, "step_info");
    let strings = [
        "",
        "Add_1",
        "Add",
        "kernel",
        "hcom_allReduce_",
        "Memcpy",
        "axis=1",
        "LcclSend",
        "XAicpuKernel",
    ];
    for (id, text) in strings.iter().enumerate().skip(1) {
        prof.string(id as u64, text);
    }
    prof
}

fn node(item: u64, begin: i64, end: i64) -> Call {
    Call {
        item,
        ..Call::new(NODE, 5, begin, end)
    }
}

fn at(time: i64) -> Head {
    Head::new(NODE, 0, time)
}

/// A task of stream 2 on device 0.
fn track(number: u16, kind: u64, kernel: u64) -> Vec<u8> {
    let place = Payload::default().u16(0).u16(2).u16(number).u16(0);
    place.u64(kind).u64(kernel).0
}

/// The same with what it runs on.
fn full_track(number: u16, kind: u64, kernel: u64, extent: [u16; 8]) -> Vec<u8> {
    let start = Payload(track(number, kind, kernel));
    extent.into_iter().fold(start, Payload::u16).0
}

fn info(name: u64, task_kind: u32, op_kind: u64, block_dim: u32, flags: u32) -> Vec<u8> {
    let start = Payload::default().u64(name).u32(task_kind).u64(op_kind);
    start.u32(block_dim).u32(flags).0
}

/// Tensors of a role and a shape, all ND and FLOAT16.
fn tensors(name: u64, tensors: &[(u32, &[u32])]) -> Vec<u8> {
    let mut payload = Payload::default().u64(name).u32(tensors.len() as u32);
    for (role, shape) in tensors {
        payload = payload.u32(*role).u32(2).u32(1);
        for at in 0..8 {
            payload = payload.u32(shape.get(at).copied().unwrap_or(0));
        }
    }
    payload.0
}

fn names(made: &Made) -> Vec<String> {
    made.rows(
        "SELECT value FROM COMPUTE_TASK_INFO JOIN STRING_IDS ON id = name ORDER BY globalTaskId",
    )
}

#[test]
fn an_operator_has_its_name_its_blocks_and_its_tensors() {
    let prof = named();
    prof.call(node(1, 100, 200))
        .compact(DYNAMIC_INFO, at(150), &info(1, 0, 2, 8 | 2 << 16, 1))
        .additional(
            "aging.additional.tensor_info",
            at(151),
            &tensors(1, &[(0, &[16, 32]), (0, &[4]), (1, &[16])]),
        )
        .compact(
            "aging.compact.node_attr_info",
            at(152),
            &Payload::default().u64(1).u32(0).u64(6).0,
        )
        .compact(TRACK, at(160), &track(10, AI_CORE, 3));
    assert_eq!(
        made(&prof).rows(COMPUTE),
        [
            "Add_1|AI_CORE|Add|8|16|ND;ND|FLOAT16;FLOAT16|\"16,32;4\"|ND|FLOAT16|\"16\"|axis=1|dynamic|YES|N/A|N/A|0"
        ]
    );
}

#[test]
fn what_a_task_says_it_runs_on_comes_before_what_its_operator_says() {
    let prof = named();
    // Blocks, bytes of arguments, and a ratio of three bits with others above.
    prof.call(node(1, 100, 200))
        .compact(STATIC_INFO, at(150), &info(1, 0, 2, 8, 0))
        .compact(
            TRACK,
            at(160),
            &full_track(10, AI_CORE, 3, [20, 77, 0b11010, 0, 0, 0, 0, 0]),
        )
        .compact(
            TRACK,
            at(170),
            &full_track(11, SIMT, 3, [1, 2, 3, 4, 5, 6, 0, 0]),
        );
    assert_eq!(
        made(&prof).rows(COMPUTE),
        [
            "Add_1|AI_CORE|Add|20|40|N/A|N/A|N/A|N/A|N/A|N/A||static|NO|N/A|N/A|0",
            "Add_1|AI_CORE|Add|8|0|N/A|N/A|N/A|N/A|N/A|N/A||static|NO|1,2,3|4,5,6|1",
        ]
    );
}

#[test]
fn more_tensors_than_a_record_has_room_for_are_joined_and_an_older_word_is_forgotten() {
    let prof = named();
    let family = "aging.additional.tensor_info";
    prof.call(node(1, 100, 200))
        .compact(DYNAMIC_INFO, at(150), &info(1, 0, 2, 8, 0))
        .additional(family, at(151), &tensors(1, &[(0, &[9])]))
        .additional(
            family,
            at(152),
            &tensors(1, &[(0, &[1]), (0, &[2]), (0, &[3]), (0, &[4]), (0, &[5])]),
        )
        .additional(family, at(152), &tensors(1, &[(0, &[6]), (1, &[7])]))
        .compact(TRACK, at(160), &track(10, AI_CORE, 3));
    let shapes = "SELECT i.value, o.value FROM COMPUTE_TASK_INFO \
         JOIN STRING_IDS i ON i.id = inputShapes JOIN STRING_IDS o ON o.id = outputShapes";
    assert_eq!(made(&prof).rows(shapes), ["\"1;2;3;4;5;6\"|\"7\""]);
}

#[test]
fn an_operator_in_another_one_has_its_own_task() {
    let prof = named();
    prof.call(node(2, 200, 300))
        .call(node(1, 100, 400))
        .compact(STATIC_INFO, at(150), &info(1, 0, 2, 1, 0))
        .compact(STATIC_INFO, at(250), &info(2, 1, 2, 1, 0))
        .compact(TRACK, at(260), &track(10, AI_CPU, 3))
        .compact(TRACK, at(350), &track(11, AI_CORE, 3));
    assert_eq!(names(&made(&prof)), ["Add", "Add_1"]);
}

#[test]
fn a_kernel_of_a_communication_is_called_as_the_communication_is() {
    let prof = named();
    prof.call(node(4, 100, 400))
        .compact(STATIC_INFO, at(150), &info(4, 9, 4, 1, 0))
        .call(Call {
            item: 5,
            ..Call::new(HCCL, 1, 200, 300)
        })
        .compact(TRACK, at(250), &track(10, AI_CORE, 3))
        .compact(TRACK, at(260), &track(11, AI_CPU, 3))
        .compact(TRACK, at(350), &track(12, AI_CPU, 3));
    let rows = made(&prof).rows(COMPUTE);
    let rows: Vec<_> = rows
        .iter()
        .map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|"))
        .collect();
    assert_eq!(
        rows,
        [
            "Memcpy|COMMUNICATION|hcom_allReduce_",
            "Memcpy|HCCL_AI_CPU|hcom_allReduce_",
            // Outside of it, it is the operator's on the device's own processors.
            "hcom_allReduce_|AI_CPU|hcom_allReduce_",
        ]
    );
}

#[test]
fn a_kernel_outside_operators_is_called_as_it_is_itself_if_it_has_a_name() {
    let prof = named();
    prof.call(Call::new(ACL, 1, 100, 400))
        .compact(TRACK, at(150), &track(10, AI_CORE, 3))
        .compact(TRACK, at(160), &track(11, AI_CORE, 0))
        .compact(TRACK, at(170), &track(12, MEMCPY, 3));
    assert_eq!(
        made(&prof).rows(COMPUTE),
        ["kernel|AI_CORE|kernel|0|0|N/A|N/A|N/A|N/A|N/A|N/A||N/A|N/A|N/A|N/A|0"]
    );
}

#[test]
fn steps_and_operators_that_nothing_is_known_of_have_no_rows() {
    let prof = named();
    prof.call(Call {
        kind: 7,
        ..node(1, 100, 200)
    })
    .compact(TRACK, at(150), &track(10, AI_CPU, 0))
    .call(node(7, 300, 400))
    .compact(TRACK, at(350), &track(11, AI_CPU, 0))
    .call(node(1, 500, 600))
    .compact(TRACK, at(550), &track(12, AI_CORE, 3));
    assert!(!made(&prof).has("COMPUTE_TASK_INFO"));
}

#[test]
fn a_capture_that_says_little_has_names_and_nothing_else() {
    let prof = named();
    prof.write("host/sample.json", br#"{"devices":"64","profLevel":"l0"}"#);
    prof.call(node(1, 100, 200))
        .compact(
            TRACK,
            at(150),
            &full_track(10, AI_CORE, 3, [20, 0, 2, 0, 0, 0, 0, 0]),
        )
        .compact(TRACK, at(250), &full_track(11, SIMT, 3, [1; 8]));
    let nothing = "N/A|N/A|N/A|N/A|N/A|N/A||N/A|N/A|N/A|N/A";
    assert_eq!(
        made(&prof).rows(COMPUTE),
        [
            format!("Add_1|N/A|N/A|20|40|{nothing}|0"),
            format!("kernel|N/A|N/A|0|0|{nothing}|1")
        ]
    );
}

#[test]
fn kernels_that_lead_a_communication_have_a_table_of_their_own() {
    let prof = named();
    let streams = Payload::default().u64(1).u32(2).u32(0).u32(0).u32(9);
    let other_stream = Payload::default()
        .u16(0)
        .u16(9)
        .u16(1)
        .u16(0)
        .u64(AI_CPU)
        .u64(3);
    prof.additional("unaging.additional.mc2_comm_info", at(1), &streams.0)
        .compact(TRACK, at(150), &track(10, AI_CPU, 8))
        .compact(TRACK, at(160), &other_stream.0)
        .compact(TRACK, at(170), &track(11, AI_CPU, 3));
    let made = made(&prof);
    let query = "SELECT n.value, t.value, o.value FROM COMMUNICATION_SCHEDULE_TASK_INFO JOIN STRING_IDS n ON n.id = name \
         JOIN STRING_IDS t ON t.id = taskType JOIN STRING_IDS o ON o.id = opType ORDER BY globalTaskId";
    assert_eq!(
        made.rows(query),
        ["XAicpuKernel|AI_CPU|XAicpuKernel", "kernel|AI_CPU|kernel"]
    );
    assert_eq!(names(&made), ["kernel"]);
}

#[test]
fn parts_of_a_task_have_rows_of_their_own() {
    let prof = named();
    let parts = Payload::default().u64(1).u32(2).u32(0).u32(20);
    prof.call(node(1, 100, 200))
        .compact(STATIC_INFO, at(150), &info(1, 0, 2, 8, 0))
        .additional(
            "unaging.additional.context_id_info",
            Head::new(NODE, 4, 151),
            &parts.0,
        )
        .compact(TRACK, at(160), &track(10, AI_CORE, 3));
    assert_eq!(names(&made(&prof)), ["Add_1", "Add_1"]);
}

#[test]
fn of_two_tasks_with_one_key_the_first_has_the_row_and_the_other_is_counted() {
    let prof = named();
    prof.compact(TRACK, at(150), &track(10, AI_CORE, 3))
        .compact(TRACK, at(160), &track(10, AI_CORE, 1))
        .compact(TRACK, at(165), &track(0, FLIP, 0))
        .compact(TRACK, at(170), &track(10, AI_CORE, 3));
    let made = made(&prof);
    // The third one is of the next batch.
    assert_eq!(names(&made), ["kernel", "kernel"]);
    assert_eq!(made.report.doubled, 1);
}

#[test]
fn tasks_of_a_copy_share_its_bytes_in_their_order() {
    let prof = named();
    let copy = |size: u64, piece: u64, direction: u16| {
        Payload::default().u64(size).u64(piece).u16(direction).0
    };
    prof.compact(MEMCPY_INFO, at(100), &copy(5000, 4000, 1))
        .compact(MEMCPY_INFO, at(200), &copy(16, 4000, 9))
        .compact(TRACK, at(100), &track(12, MEMCPY, 0))
        .compact(TRACK, at(100), &track(11, MEMCPY, 0))
        .compact(TRACK, at(100), &track(13, MEMCPY, 0))
        .compact(TRACK, at(200), &track(14, MEMCPY, 0))
        .compact(TRACK, at(300), &track(15, MEMCPY, 0));
    let rows =
        made(&prof).rows("SELECT size, memcpyOperation FROM MEMCPY_INFO ORDER BY globalTaskId");
    assert_eq!(rows, ["4000|1", "1000|1", "0|65535", "16|65535", "0|65535"]);
}

#[test]
fn the_operation_of_a_copy_has_a_name() {
    let prof = named();
    let copy = Payload::default().u64(1 << 40).u64(1 << 40).u16(2);
    prof.compact(MEMCPY_INFO, at(100), &copy.0)
        .compact(TRACK, at(100), &track(12, MEMCPY, 0));
    let query =
        "SELECT name, size FROM MEMCPY_INFO JOIN ENUM_MEMCPY_OPERATION ON id = memcpyOperation";
    assert_eq!(made(&prof).rows(query), ["device to host|1099511627776"]);
}

#[test]
fn a_host_that_copies_without_tasks_has_an_empty_table() {
    let prof = named();
    prof.compact(MEMCPY_INFO, at(100), &Payload::default().u64(1).0);
    let made = made(&prof);
    assert_eq!(made.report.rows("MEMCPY_INFO"), Some(0));
    assert!(made.has("MEMCPY_INFO"));
}
