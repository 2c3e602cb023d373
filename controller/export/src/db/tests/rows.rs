//! The rows of each table.

use super::made;
use super::prof::{Call, Head, Payload, Prof, START};

const ACL: u16 = 20000;
const MODEL: u16 = 15000;
const NODE: u16 = 10000;
const HCCL: u16 = 5500;
const RUNTIME: u16 = 5000;
/// Process 4321 and thread 7 in one number.
const THREAD: i64 = (4321 << 32) | 7;

#[test]
fn calls_have_wall_ns_the_parsers_name_and_the_number_of_the_timeline() {
    let prof = Prof::new();
    prof.kind(ACL, 196_609, "aclrtMalloc")
        .kind(NODE, 5, "launch")
        .kind(MODEL, 1, "ModelExecute")
        .string(77, "hcom_allReduce_")
        .call(Call::new(ACL, 196_609, 1_001, 2_003))
        .call(Call::new(RUNTIME, 1071, 1_100, 1_200))
        .call(Call {
            request: 3,
            item: 9,
            ..Call::new(MODEL, 1, 3_000, Call::EVENT)
        })
        .call(Call {
            item: 77,
            ..Call::new(HCCL, 1, 3_100, 3_200)
        })
        .call(Call {
            request: 3,
            item: 9,
            ..Call::new(MODEL, 1, 4_000, Call::EVENT)
        })
        .call(Call {
            thread: 8,
            ..Call::new(ACL, 196_609, 5_000, 4_999)
        });
    let made = made(&prof);
    let rows = made.rows(
        "SELECT startNs, endNs, type, globalTid, connectionId, value FROM CANN_API \
         JOIN STRING_IDS ON name = id ORDER BY connectionId",
    );
    let row =
        |begin: i64, end: i64, rest: &str| format!("{}|{}|{rest}", START + begin, START + end);
    assert_eq!(
        rows,
        [
            row(1_001, 2_003, &format!("20000|{THREAD}|0|aclrtMalloc")),
            row(1_100, 1_200, &format!("5000|{THREAD}|1|1071")),
            row(3_100, 3_200, &format!("5500|{THREAD}|3|hcom_allReduce_")),
            row(3_000, 4_000, &format!("15000|{THREAD}|4|ModelExecute")),
            row(5_000, 4_999, &format!("20000|{}|5|aclrtMalloc", THREAD + 1)),
        ]
    );
    assert_eq!(made.report.rows("CANN_API"), Some(5));
}

#[test]
fn what_was_over_before_the_start_is_left_out_unless_a_model_was_loaded_meanwhile() {
    let prof = Prof::new();
    prof.kind(ACL, 1, "early")
        .kind(MODEL, 2, "ModelLoad")
        .call(Call::new(ACL, 1, -900, -800))
        .call(Call::new(ACL, 1, -700, -600))
        .call(Call {
            thread: 8,
            ..Call::new(ACL, 1, -700, -600)
        })
        .call(Call::new(ACL, 1, -50, 0))
        .call(Call::new(MODEL, 2, -700, -500))
        .call(Call::new(MODEL, 2, -690, -650));
    let made = made(&prof);
    assert_eq!(made.report.early, 2);
    assert_eq!(
        made.rows("SELECT connectionId FROM CANN_API ORDER BY 1"),
        ["1", "3", "4", "5"]
    );
}

#[test]
fn more_loads_of_models_than_are_remembered_are_told() {
    let mut report = crate::db::DbReport::default();
    assert_eq!(report.notes(), [] as [&str; 0]);
    report.loads_overflow = true;
    let notes = report.notes();
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].starts_with("there are too many loads of models to remember"),
        "{notes:?}"
    );
}

#[test]
fn frameworks_above_the_calls_of_cann_have_no_number_of_their_own() {
    let prof = Prof::new();
    for level in [30000, 25000, 20500, 6000] {
        prof.call(Call::new(level, 1, 10, 20));
    }
    let types = made(&prof).rows("SELECT type FROM CANN_API ORDER BY connectionId");
    assert_eq!(types, ["65535", "65535", "65535", "6000"]);
}

#[test]
fn a_string_has_one_number_in_all_tables() {
    let prof = Prof::new();
    prof.kind(ACL, 1, "same")
        .kind(RUNTIME, 1, "same")
        .kind(NODE, 1, "other");
    for level in [ACL, RUNTIME, NODE, ACL] {
        prof.call(Call::new(level, 1, 10, 20));
    }
    let made = made(&prof);
    assert_eq!(
        made.rows("SELECT id, value FROM STRING_IDS ORDER BY id"),
        ["0|same", "1|other"]
    );
    assert_eq!(
        made.rows("SELECT name FROM CANN_API ORDER BY connectionId"),
        ["0", "0", "1", "0"]
    );
}

/// A mark: its kind, number, times and message, in segment 0 of infoType `numbered`.
fn mark(numbered: u16, event: u32, id: u64, times: (i64, i64), message: &str) -> Vec<u8> {
    let tick = super::prof::tick;
    Payload::default()
        .u16(numbered)
        .u16(0)
        .u32(0)
        .u16(0)
        .u16(0)
        .u32(4321)
        .u32(7)
        .u32(3)
        .u32(event)
        .u32(0)
        .u64(0)
        .u64(tick(times.0))
        .u64(tick(times.1))
        .u64(id)
        .u64(500)
        .u32(0)
        .text(message)
        .0
}

#[test]
fn marks_say_their_kind_and_message_and_numbered_ones_their_domain_and_connection() {
    let prof = Prof::new();
    let head = Head::new(20500, 0, 0);
    let family = "aging.additional.msproftx";
    prof.string(500, "default")
        .additional(family, head, &mark(0, 1, 0, (100, 200), "push/pop: a"))
        .additional(family, head, &mark(1, 2, 41, (300, 400), "b"))
        .additional(family, head, &mark(0, 0, 0, (-2, -1), "before"))
        .additional(family, head, &mark(0, 9, 0, (500, 500), "c"));
    let made = made(&prof);
    let rows = made.rows(
        "SELECT startNs, endNs, eventType, rangeId, category, m.value, globalTid, endGlobalTid, d.value, connectionId \
         FROM MSTX_EVENTS JOIN STRING_IDS m ON message = m.id JOIN STRING_IDS d ON domainId = d.id ORDER BY startNs",
    );
    let at = |ns: i64| START + ns;
    assert_eq!(
        rows,
        [
            format!(
                "{}|{}|1|4294967295|3|push/pop: a|{THREAD}|{THREAD}||4000000000",
                at(100),
                at(200)
            ),
            format!(
                "{}|{}|2|4294967295|4294967295|b|{THREAD}|{THREAD}|default|4000000042",
                at(300),
                at(400)
            ),
            format!(
                "{}|{}|65535|4294967295|3|c|{THREAD}|{THREAD}||4000000000",
                at(500),
                at(500)
            ),
        ]
    );
    assert_eq!(made.report.early, 1);
}

#[test]
fn a_domain_without_a_name_is_invalid() {
    let prof = Prof::new();
    let head = Head::new(20500, 0, 0);
    prof.additional(
        "aging.additional.msproftx",
        head,
        &mark(1, 3, 0, (1, 1), "m"),
    );
    let made = made(&prof);
    let domain = "SELECT value FROM MSTX_EVENTS JOIN STRING_IDS ON domainId = id";
    assert_eq!(made.rows(domain), ["invalid"]);
}

#[test]
fn memory_is_allocated_or_released_with_its_size_below_nothing_never() {
    let prof = Prof::new();
    let memory = |address: u64, size: i64, device: u32| {
        Payload::default()
            .u64(address)
            .u64(size as u64)
            .u64(900)
            .u64(4096)
            .u64(65536)
            .u32(device)
            .u32(20)
            .0
    };
    let family = "aging.additional.task_memory_info";
    prof.string(900, "Add_1")
        .additional(family, Head::new(NODE, 6, 10), &memory(1 << 40, 512, 0))
        .additional(family, Head::new(NODE, 6, 20), &memory(1 << 40, -512, 3))
        .additional(
            family,
            Head::new(NODE, 6, 30),
            &memory(u64::MAX, i64::MIN, 65_535),
        )
        .additional(family, Head::new(NODE, 6, -1), &memory(1, 1, 0));
    let made = made(&prof);
    let rows = made.rows(
        "SELECT o.value, addr, t.value, size, timestampNs, globalTid, totalAllocate, totalReserve, c.value, deviceId \
         FROM NPU_OP_MEM JOIN STRING_IDS o ON operatorName = o.id JOIN STRING_IDS t ON type = t.id \
         JOIN STRING_IDS c ON component = c.id ORDER BY timestampNs",
    );
    let at = |ns: i64| START + ns;
    let rest = format!("{THREAD}|4096|65536|GE");
    assert_eq!(
        rows,
        [
            format!("Add_1|1099511627776|allocate|512|{}|{rest}|0", at(10)),
            format!("Add_1|1099511627776|release|512|{}|{rest}|3", at(20)),
            format!("Add_1|-1|release|{}|{}|{rest}|65535", i64::MAX, at(30)),
        ]
    );
}

#[test]
fn the_session_the_host_and_the_devices_are_those_of_the_control_files() {
    let prof = Prof::new().with_device(0, "5").with_device(3, "6");
    let made = made(&prof);
    let session = made.rows("SELECT * FROM SESSION_TIME_INFO");
    assert_eq!(session, [format!("{START}|{}", START + 20_000_000_000)]);
    let devices = made.rows("SELECT * FROM NPU_INFO ORDER BY id");
    assert_eq!(devices, ["0|Ascend910B", "3|UNKNOWN"]);
    let ranks = made.rows("SELECT * FROM RANK_DEVICE_MAP ORDER BY deviceId");
    assert_eq!(ranks, ["-1|0", "-1|3"]);
    assert_eq!(made.rows("SELECT * FROM HOST_INFO"), ["0|node"]);
}

#[test]
fn a_capture_without_an_end_lasts_half_an_hour_and_one_without_a_device_has_device_minus_one() {
    let prof = Prof::new();
    std::fs::remove_file(prof.path().join("host/end_info")).expect("removed");
    let made = made(&prof);
    let session = made.rows("SELECT * FROM SESSION_TIME_INFO");
    assert_eq!(session, [format!("{START}|{}", START + 1_800_000_000_000)]);
    assert_eq!(made.rows("SELECT * FROM NPU_INFO"), ["-1|UNKNOWN"]);
    assert_eq!(made.rows("SELECT * FROM RANK_DEVICE_MAP"), ["-1|-1"]);
}

#[test]
fn a_device_runs_at_the_frequency_of_its_info_from_its_start_to_its_end() {
    let prof = Prof::new().with_device(0, "5").with_device(3, "5");
    std::fs::remove_file(prof.path().join("device_3/end_info.3")).expect("removed");
    let rows = made(&prof).rows("SELECT * FROM AICORE_FREQ ORDER BY deviceId, timestampNs");
    assert_eq!(
        rows,
        [
            format!("0|{START}|1800|-1"),
            format!("0|{}|1800|-1", START + 20_000_000_000),
            format!("3|{START}|1800|-1"),
        ]
    );
    // How it changed is not read: no rows are better than wrong ones.
    prof.write("device_3/data/lpmFreqConv.data.3.slice_0", &[0; 16]);
    let _ = std::fs::remove_file(prof.path().join(super::NAME));
    let rows = made(&prof).rows("SELECT DISTINCT deviceId FROM AICORE_FREQ");
    assert_eq!(rows, ["0"]);
}

#[test]
fn every_enumeration_has_the_rows_of_the_parsers() {
    let made = made(&Prof::new());
    let rows = |table: &str| made.rows(&format!("SELECT * FROM {table} ORDER BY id"));
    assert_eq!(
        rows("ENUM_API_TYPE"),
        [
            "5000|runtime",
            "5500|communication",
            "10000|node",
            "15000|model",
            "20000|acl"
        ]
    );
    assert_eq!(
        rows("ENUM_MSTX_EVENT_TYPE"),
        ["0|marker", "1|push/pop", "2|start/end", "3|marker_ex"]
    );
    assert_eq!(rows("ENUM_MODULE").len(), 65);
    assert_eq!(rows("ENUM_MEMCPY_OPERATION")[8], "65535|other");
    assert_eq!(rows("ENUM_HCCL_DATA_TYPE")[12], "12|INT128");
    assert_eq!(rows("ENUM_HCCL_LINK_TYPE")[8], "8|UBoE");
    assert_eq!(rows("ENUM_HCCL_TRANSPORT_TYPE")[6], "65534|N/A");
    assert_eq!(rows("ENUM_HCCL_RDMA_TYPE")[1], "1|RDMA_SEND_PAYLOAD");
    assert_eq!(rows("ENUM_OVERLAP_ANALYSIS_TYPE")[3], "3|FREE");
    assert_eq!(
        made.rows("SELECT * FROM META_DATA ORDER BY name"),
        [
            "SCHEMA_VERSION|1.2.0",
            "SCHEMA_VERSION_MAJOR|1",
            "SCHEMA_VERSION_MICRO|0",
            "SCHEMA_VERSION_MINOR|2"
        ]
    );
}
