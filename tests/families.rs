//! Every kind of record that readers of captures know: reported through the C interface, it is in the file in which
//! they look for it, as it was.

mod support;

use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{Kind, Profile};
use msprof_export::calls::Skipped;
use msprof_export::source::Source;
use msprof_export::statistics::Statistics;
use std::collections::{BTreeMap, BTreeSet};
use support::home::Home;
use support::prof::Prof;
use support::reported::{Reported, capture};

/// The kinds of the host's records that the stock parser has a pattern for, without the half that they are in.
const HOST_FAMILIES: [&str; 29] = [
    "api_event.data",
    "compact.task_track",
    "compact.node_basic_info",
    "compact.node_attr_info",
    "compact.memcpy_info",
    "compact.hccl_op_info",
    "compact.capture_stream_info",
    "compact.expand_stream_spec",
    "additional.tensor_info",
    "additional.graph_id_map",
    "additional.fusion_op_info",
    "additional.context_id_info",
    "additional.hccl_info",
    "additional.Multi_Thread",
    "additional.task_memory_info",
    "additional.static_op_mem",
    "additional.logic_stream_info",
    "additional.mc2_comm_info",
    "additional.ccu_task_info",
    "additional.ccu_wait_signal_info",
    "additional.ccu_group_info",
    "additional.dpu_hccl_info",
    "additional.memory_application",
    "additional.capture_op_info",
    "variable.capture_op_info",
    "additional.msproftx",
    "additional.model_exeom",
    "additional.hash_dic",
    "additional.type_info_dic",
];

fn captured(home: &Home) -> (Prof, Reported) {
    capture(home, "tests/c/families.c")
}

#[test]
fn each_kind_of_record_is_in_the_file_that_its_reader_looks_for_as_it_was_reported() {
    let home = Home::new();
    let (prof, reported) = captured(&home);
    reported.assert_written(&prof);
    let whole = |family: &str| {
        let (half, name) = family.split_once('.').expect("a half");
        ["aging", "unaging"]
            .contains(&half)
            .then(|| name.to_owned())
    };
    let kinds: BTreeSet<String> = prof
        .host
        .keys()
        .filter_map(|family| whole(family))
        .collect();
    assert_eq!(kinds, HOST_FAMILIES.map(str::to_owned).into());
    let of_device = |device: u32| prof.devices[&device].keys().cloned().collect::<Vec<_>>();
    assert_eq!(of_device(0), ["aicpu.data.0"]);
    let old = ["AICPU", "AICPUMI", "AICPU_MODEL", "DP"];
    assert_eq!(
        of_device(1),
        old.map(|tag| format!("DATA_PREPROCESS.{tag}.1"))
    );
    assert_eq!(prof.ledger()["unreadable"], 0);
}

#[test]
fn half_by_half_the_kinds_that_mean_different_things_there_are_kept_apart() {
    let home = Home::new();
    let (prof, reported) = captured(&home);
    let names = |family: &str| -> Vec<&str> {
        let bytes = &prof.host[family][&0];
        let ids = bytes.chunks(64).map(id_of_name);
        ids.map(|id| reported.text(id)).collect()
    };
    // Static operators and dynamic ones.
    assert_eq!(names("unaging.compact.node_basic_info"), ["conv1"]);
    assert_eq!(
        names("aging.compact.node_basic_info"),
        ["concat1", "cast1", "ffts1", "hcom_allReduce_1"]
    );
}

/// The id of the operator's name.
fn id_of_name(record: &[u8]) -> u64 {
    support::prof::u64_at(record, 24)
}

#[test]
fn our_own_reader_finds_each_kind_and_sums_up_the_calls() {
    let home = Home::new();
    let (prof, reported) = captured(&home);
    let profile = Profile::open(&prof.path).expect("a profile");
    for ((place, family), bytes) in &reported.records {
        let place = match place.as_str() {
            "host" => Place::Host,
            device => Place::Device(
                device
                    .trim_start_matches("device_")
                    .parse()
                    .expect("a number"),
            ),
        };
        let found = profile.families().iter();
        let found: Vec<_> = found
            .filter(|f| f.place == place && f.name == *family)
            .collect();
        assert_eq!(found.len(), 1, "{family}");
        assert_eq!(found[0].bytes(), bytes.len() as u64, "{family}");
        let known = found[0].kind != Kind::Other;
        assert_eq!(known, !family.starts_with("DATA_PREPROCESS"), "{family}");
    }
    assert_eq!(profile.variable("capture_op_info").count(), 1);
    assert_eq!(profile.aicpu(0).count(), 4);

    let source = Source::open(&prof.path).expect("a directory");
    let statistics = Statistics::of(&source).expect("numbers");
    assert_eq!(statistics.skipped, Skipped::default());
    let rows: BTreeMap<(String, &str), (u64, u64)> = statistics
        .calls
        .iter()
        .map(|row| {
            (
                (row.level_name(), &*row.name),
                (row.times.count, row.times.total_ns / 1000),
            )
        })
        .collect();
    let expected = [
        (("acl", "aclmdlExecute"), (1, 690)),
        (("acl", "aclmdlLoadFromFile"), (1, 190)),
        (("communication", "Memcpy"), (1, 90)),
        (("communication", "Notify_Wait"), (1, 5)),
        (("model", "InputCopy"), (1, 20)),
        (("model", "ModelExecute"), (1, 430)),
        (("model", "ModelLoad"), (1, 160)),
        (("model", "OutputCopy"), (1, 50)),
        (("node", "launch"), (5, 510)),
        (("runtime", "DevMalloc"), (1, 10)),
        (("runtime", "KernelLaunch"), (3, 70)),
        (("runtime", "MemcpyAsync"), (2, 46)),
    ];
    let expected = expected.map(|((level, name), times)| ((level.to_owned(), name), times));
    assert_eq!(rows, BTreeMap::from(expected));
}
