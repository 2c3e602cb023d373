//! A directory with a record of every family of the host.

use super::{Prof, Record, START_NS, at, call, event, mark};

const RUNTIME: u16 = 5000;
const NODE: u16 = 10000;
const MODEL: u16 = 15000;
const ACL: u16 = 20000;
const HCCL: u16 = 5500;

const TYPES: &str = "20000_196609:aclrtMalloc\n5000_1005:DevMalloc\n10000_5:launch\n15000_1:ModelExecute\n15000_2:ModelLoad\n5500_65537:master\n";
const NAMES: &str =
    "101:Add_1\n104:resnet50\n105:fused_conv\n106:conv1\n107:relu1\n111:Memcpy\n113:default\n";

/// A directory with every family of the host.
pub fn prof() -> Prof {
    let prof = Prof::new();
    prof.host("unaging.additional.type_info_dic", &[TYPES.into()]);
    prof.host("unaging.additional.hash_dic", &[NAMES.into()]);
    prof.host(
        "unaging.api_event.data",
        &[
            // Before the start: one in a load of a model on its thread, one not.
            call(MODEL, 2, 4321, START_NS - 9_000, START_NS - 1_000, 1),
            call(NODE, 5, 4321, START_NS - 8_000, START_NS - 7_000, 101),
            call(NODE, 5, 4400, START_NS - 8_000, START_NS - 6_999, 101),
            call(MODEL, 2, 4321, at(100), at(2_000), 1),
        ],
    );
    prof.host(
        "aging.api_event.data",
        &[
            call(ACL, 0x30001, 4321, at(10), at(25), 0),
            call(ACL, 0x30001, 4321, at(30), at(50), 0),
            call(RUNTIME, 1005, 4321, at(11), at(11) + 31, 0),
            call(RUNTIME, 1071, 4400, at(12), at(12) + 100, 0),
            event(MODEL, 1, 4400, at(3_000), 3, 1),
            call(HCCL, 65537, 4400, at(3_100), at(3_200), 111),
            event(MODEL, 1, 4400, at(3_990), 3, 1),
            event(MODEL, 1, 4400, at(4_000), 4, 1),
        ],
    );
    prof.host(
        "aging.additional.msproftx",
        &[
            mark(Some((2, 0)), 2, at(850), at(1_200), &"x".repeat(155)),
            mark(None, 0, at(500), at(500), "mark: hello"),
            mark(Some((2, 1)), 2, at(850), at(1_200), "end"),
            mark(None, 1, at(400), at(900), "=push/pop"),
        ],
    );
    let memory = |time, size: i64, total| {
        Record::headed(256, NODE, 6, 4321, time)
            .u64(24, 0x1000)
            .u64(32, size as u64)
            .u64(40, 101)
            .u64(48, total)
            .u64(56, 65_536)
            .u32(64, 1)
    };
    prof.host(
        "aging.additional.task_memory_info",
        &[
            memory(at(8_110), 4_096, 4_096).0,
            memory(at(8_200), 512, 4_608).u64(40, 999).u32(64, 0).0,
            memory(at(8_320), -4_096, 513).0,
        ],
    );
    let plan = |size: u64, operator: u64, end: u64| {
        Record::headed(256, NODE, 11, 4321, 0)
            .u64(24, size)
            .u64(32, operator)
            .u64(48, end)
            .u32(72, 2)
            .0
    };
    prof.host(
        "unaging.additional.static_op_mem",
        &[plan(2_048, 106, 1), plan(512, 0, 4_294_967_294)],
    );
    let fused = |time| {
        Record::headed(256, NODE, 2, 4321, time)
            .u64(24, 105)
            .u32(32, 2)
            .u64(36, 100)
            .u64(44, 200)
            .u64(52, 300)
            .u64(60, 400)
            .u64(68, 1_000)
            .u64(76, 106)
            .u64(84, 107)
            .0
    };
    // The second one is in no load of a model.
    prof.host(
        "unaging.additional.fusion_op_info",
        &[fused(at(500)), fused(at(5_000))],
    );
    let map = Record::headed(256, MODEL, 0, 4321, at(120))
        .u64(24, 104)
        .u32(36, 1);
    prof.host("unaging.additional.graph_id_map", &[map.0]);
    prof
}
