//! One capture with a record of every family, as components would report them.
//!
//! A model is loaded and run three times (twice reported as api records, once as an event pair), an
//! operator is launched, memory is copied and allocated, a collective runs, marks are set, and an
//! aicpu kernel and a data queue report from the device.

mod records;

use super::*;
use crate::records::Trace;
use records::*;

/// Ids of the strings of this capture.
const STRINGS: [(u64, &str); 16] = [
    (101, "Add_1"),
    (102, "Add"),
    (103, "Add_1_kernel0"),
    (104, "resnet50"),
    (105, "fused_conv"),
    (106, "conv1"),
    (107, "relu1"),
    (108, "Cast_aicpu"),
    (109, "Cast"),
    (110, "RunCpuKernel"),
    (111, "Memcpy"),
    (112, "hccl_world_group"),
    (113, "default"),
    (114, "tag:with,\"odd\ncharacters"),
    (115, "RING-NA"),
    (116, "relu1_k"),
];

const TYPES: [(u16, u32, &str); 24] = [
    (level::NODE, 0, "node_basic_info"),
    (level::NODE, 1, "tensor_info"),
    (level::NODE, 2, "fusion_op_info"),
    (level::NODE, 4, "context_id_info"),
    (level::NODE, 5, "launch"),
    (level::NODE, 6, "task_memory_info"),
    (level::NODE, 9, "node_attr_info"),
    (level::NODE, 10, "hccl_op_info"),
    (level::NODE, 11, "static_op_mem"),
    (level::MODEL, 0, "graph_id_map"),
    (level::MODEL, 1, "ModelExecute"),
    (level::MODEL, 2, "ModelLoad"),
    (level::MODEL, 3, "InputCopy"),
    (level::HCCL, 0x10001, "master"),
    (level::TX, 0, "msproftx"),
    (level::RUNTIME, 0, "KERNEL_AICORE"),
    (level::RUNTIME, 1, "KERNEL_AICPU"),
    (level::RUNTIME, 801, "memcpy_info"),
    (level::RUNTIME, 802, "task_track"),
    (level::RUNTIME, 1001, "KernelLaunch"),
    (level::RUNTIME, 1005, "DevMalloc,\"odd\"\nname"),
    (level::ACL, 0x20001, "aclmdlLoadFromFile"),
    (level::ACL, 0x30001, "aclrtMalloc"),
    (level::ACL, 0x50001, "aclnnAdd"),
];

/// Name, record size, records.
type FamilyOfRecords = (&'static str, Option<usize>, Vec<Vec<u8>>);

/// Families of the host.
fn host_families() -> Vec<FamilyOfRecords> {
    let launch = |from, name| api_call(level::NODE, 5, from, from + 300, name);
    vec![
        (
            "unaging.api_event.data",
            Some(40),
            vec![
                api_call(level::ACL, 0x20001, 100, 2_000, 0),
                api_call(level::MODEL, 2, 110, 1_990, 1),
            ],
        ),
        (
            "aging.api_event.data",
            Some(40),
            vec![
                api_call(level::ACL, 0x30001, 10, 25, 0),
                api_call(level::RUNTIME, 1005, 11, 23, 0),
                api_call(level::MODEL, 1, 3_010, 3_990, 1),
                api_call(level::MODEL, 3, 3_020, 3_040, 1),
                api_call(level::MODEL, 1, 5_010, 5_990, 1),
                event(level::MODEL, 1, 6_010, 3, 1),
                event(level::MODEL, 1, 6_990, 3, 1),
                api_call(level::ACL, 0x50001, 7_990, 8_400, 0),
                launch(8_000, 101),
                api_call(level::RUNTIME, 1001, 8_200, 8_280, 0),
                launch(10_000, 108),
                api_call(level::HCCL, 0x10001, 9_000, 9_100, 111),
            ],
        ),
        (
            "aging.compact.node_basic_info",
            Some(64),
            vec![
                Record::compact(level::NODE, 0, 8_290)
                    .u64(24, 101)
                    .u64(36, 102)
                    .u32(44, 8)
                    .0,
                Record::compact(level::NODE, 0, 10_290)
                    .u64(24, 108)
                    .u32(32, 1)
                    .u64(36, 109)
                    .u32(44, 1)
                    .0,
            ],
        ),
        (
            "unaging.compact.task_track",
            Some(64),
            vec![
                Record::compact(level::RUNTIME, 802, 8_250)
                    .u16(26, 2)
                    .u16(28, 10)
                    .u64(40, 103)
                    .u16(48, 8)
                    .0,
                Record::compact(level::RUNTIME, 802, 10_250)
                    .u16(26, 3)
                    .u16(28, 7)
                    .u64(32, 1)
                    .u64(40, 110)
                    .0,
            ],
        ),
        (
            "aging.compact.memcpy_info",
            Some(64),
            vec![
                Record::compact(level::RUNTIME, 801, 8_201)
                    .u64(24, 4096)
                    .u64(32, 4096)
                    .u16(40, 1)
                    .0,
            ],
        ),
        (
            "aging.compact.hccl_op_info",
            Some(64),
            vec![
                Record::compact(level::NODE, 10, 9_050)
                    .u64(26, 115)
                    .u64(34, 4)
                    .u64(42, 112)
                    .0,
            ],
        ),
        (
            "aging.additional.tensor_info",
            Some(256),
            vec![
                Record::additional(level::NODE, 1, 8_290)
                    .u64(24, 101)
                    .u32(32, 2)
                    .u32(40, 2)
                    .u32(44, 1)
                    .u32(48, 16)
                    .u32(52, 32)
                    .u32(80, 1)
                    .u32(84, 2)
                    .u32(88, 1)
                    .u32(92, 16)
                    .u32(96, 32)
                    .0,
            ],
        ),
        (
            "unaging.additional.graph_id_map",
            Some(256),
            vec![
                Record::additional(level::MODEL, 0, 120)
                    .u64(24, 104)
                    .u32(36, 1)
                    .0,
            ],
        ),
        (
            "unaging.additional.fusion_op_info",
            Some(256),
            vec![
                Record::additional(level::NODE, 2, 500)
                    .u64(24, 105)
                    .u32(32, 2)
                    .u64(36, 100)
                    .u64(44, 200)
                    .u64(52, 300)
                    .u64(60, 400)
                    .u64(68, 1_000)
                    .u64(76, 106)
                    .u64(84, 107)
                    .0,
            ],
        ),
        (
            "aging.additional.hccl_info",
            Some(256),
            vec![
                Record::additional(level::HCCL, 0x10001, 9_100)
                    .u64(24, 111)
                    .u64(40, 112)
                    .0,
            ],
        ),
        (
            "aging.additional.task_memory_info",
            Some(256),
            vec![memory(8_110, 4_096, 4_096), memory(8_320, -4_096, 0)],
        ),
        (
            "unaging.additional.static_op_mem",
            Some(256),
            vec![
                Record::additional(level::NODE, 11, 600)
                    .u64(24, 2_048)
                    .u64(32, 106)
                    .u64(48, 1)
                    .0,
            ],
        ),
        (
            "aging.additional.msproftx",
            Some(256),
            vec![
                mark(500, 500, 0, "mark: hello"),
                mark(600, 900, 1, "push/pop: preprocess"),
            ],
        ),
        (
            "unaging.variable.capture_op_info",
            None,
            vec![variable(2), variable(7)],
        ),
        // Not read by the parser, and no harm.
        (
            "aging.compact.invalid",
            Some(64),
            vec![Record::compact(level::RUNTIME, 4, 8_000).0],
        ),
    ]
}

/// Families of device 0.
fn device_families() -> Vec<FamilyOfRecords> {
    vec![
        (
            "aicpu.data.0",
            Some(256),
            vec![
                aicpu(0, 10_260)
                    .u16(24, 3)
                    .u16(26, 7)
                    .u64(32, at(10_260))
                    .u64(40, at(10_260))
                    .u64(48, 1_000)
                    .u64(56, 1_500)
                    .u64(64, 1_700)
                    .u64(80, at(10_380))
                    .u64(96, at(10_250))
                    .u64(120, at(10_391))
                    .u32(132, 2_500)
                    .0,
                aicpu(1, 10_600)
                    .text(24, "Last queue deque")
                    .text(40, "iterator_default")
                    .u64(104, 1)
                    .u64(112, 131)
                    .0,
                aicpu(3, 10_900)
                    .u32(24, 1)
                    .u64(32, 4)
                    .u64(40, 1_000_010_800)
                    .u64(48, 1_000_010_900)
                    .0,
            ],
        ),
        (
            "stars_soc.data.0",
            Some(64),
            vec![
                task_log(0, 0, 2, 10, 8_260),
                task_log(1, 0, 2, 10, 8_300),
                task_log(0, 1, 3, 7, 10_250),
                task_log(1, 1, 3, 7, 10_390),
            ],
        ),
    ]
}

/// Writes the whole capture and returns its directory and what was appended, by trace.
pub(super) fn write(parent: &Path) -> (PathBuf, TraceCounts) {
    let mut dir = create(parent);
    dir.add_device(0, "{}", anchor(0), None)
        .expect("device is added");
    let mut total = TraceCounts::default();
    let host = host_families()
        .into_iter()
        .map(|family| (Place::Host, family));
    let device = device_families()
        .into_iter()
        .map(|family| (Place::Device(0), family));
    for (place, (name, size, records)) in host.chain(device) {
        let family = dir.family(place, name, size);
        let mut counts = TraceCounts::default();
        for record in &records {
            let lvl = u16::from_le_bytes([record[2], record[3]]);
            if let Some(trace) = Trace::of(lvl, size == Some(40)) {
                counts.add(trace, 1);
            }
        }
        dir.append(family, &records.concat(), &counts)
            .expect("appended");
        total.merge(&counts);
    }
    let none = TraceCounts::default();
    let mut lines = Vec::new();
    for (id, text) in STRINGS {
        hash_line(&mut lines, id, text.as_bytes());
    }
    let family = dir.family(Place::Host, "unaging.additional.hash_dic", None);
    dir.append(family, &lines, &none).expect("appended");
    lines.clear();
    for (lvl, kind, name) in TYPES {
        assert!(type_line(&mut lines, lvl, kind, name.as_bytes()));
    }
    let family = dir.family(Place::Host, "unaging.additional.type_info_dic", None);
    dir.append(family, &lines, &none).expect("appended");
    dir.finish(anchor(1_000_000_000)).expect("finished");
    let ledger = crate::ledger::Ledger {
        pid: 4321,
        capture: 1,
        state: crate::ledger::CaptureState::Complete,
        start: anchor(0),
        stop: Some(anchor(1_000_000_000)),
        devices: vec![0],
        reported: total,
        written: total,
        bytes: dir.bytes(),
        ..Default::default()
    };
    dir.write_ledger(&ledger).expect("written");
    (dir.path().to_owned(), total)
}
