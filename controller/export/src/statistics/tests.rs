//! Numbers of captures that are made here, of damaged ones, and of those that the stock parser has exported.

use super::*;
use crate::decode::aicpu::Aicpu;
use crate::levels;
use crate::made::{Made, START_NS, anchor};
use msprof_agent_core::records::level;
use std::borrow::Cow;
use std::path::Path;

const MS: u64 = 1_000_000;

fn statistics(path: &Path) -> Statistics {
    Statistics::of(&Source::open(path).expect("opens")).expect("readable")
}

/// (level, name, count, total)
fn rows(statistics: &Statistics) -> Vec<(&str, &str, u64, u64)> {
    let rows = statistics.calls.iter();
    rows.map(|row| {
        let Cow::Borrowed(level) = levels::name(row.level) else {
            panic!("level {}", row.level);
        };
        (level, &*row.name, row.times.count, row.times.total_ns)
    })
    .collect()
}

#[test]
fn calls_are_summed_by_level_and_name_with_event_pairs() {
    let mut made = Made::new();
    made.name(level::RUNTIME, 1001, "LaunchKernel");
    // Another type of the same name.
    made.name(level::RUNTIME, 1002, "LaunchKernel");
    made.name(level::MODEL, 1, "ModelExecute");
    made.string(77, "Memcpy");
    for n in 0..99 {
        made.call(level::RUNTIME, 1001 + n % 2, 0, 100);
    }
    made.call(level::RUNTIME, 1001, 0, 5_000);
    made.run(1, 3, 1, 1_000, 981_000);
    made.run(1, 3, 2, 1_000_000, 1_020_000);
    made.item(level::HCCL, 4, 77, 0, 300);
    made.item(level::HCCL, 5, 77, 0, 400);
    // Ends before it begins.
    made.call(level::NODE, 9, 500, 400);
    let statistics = statistics(&made.finish());
    assert_eq!(
        rows(&statistics),
        [
            ("model", "ModelExecute", 2, 1_000_000),
            ("runtime", "LaunchKernel", 100, 14_900),
            ("communication", "Memcpy", 2, 700),
            ("node", "9", 1, 0),
        ]
    );
    let launch = &statistics.calls[1].times;
    assert_eq!(
        (
            launch.mean_ns,
            launch.min_ns,
            launch.p50_ns,
            launch.p99_ns,
            launch.max_ns
        ),
        (149.0, 100, Some(100), Some(100), 5_000)
    );
    let model = &statistics.calls[0].times;
    let (p50, p99) = (
        model.p50_ns.expect("few names"),
        model.p99_ns.expect("few names"),
    );
    assert!(p50.abs_diff(20_000) <= 20_000 / 128, "{p50}");
    assert!(p99.abs_diff(980_000) <= 980_000 / 128, "{p99}");
    assert_eq!(statistics.skipped, Skipped::default());
}

#[test]
fn runs_of_models_are_told_apart_by_model_and_counted_per_second() {
    let mut made = Made::new();
    made.name(level::MODEL, 1, "ModelExecute");
    made.name(level::MODEL, 2, "ModelLoad");
    made.name(level::ACL, 1, "ModelExecute");
    made.string(500, "mlp");
    made.model(7, 500);
    made.model(9, 500);
    for run in 0..10 {
        made.run(1, 7, run, u64::from(run) * MS, u64::from(run) * MS + 2_000);
    }
    for n in 0..5 {
        made.item(level::MODEL, 1, 8, n, n + 100);
    }
    made.run(2, 7, 0, 0, MS);
    made.call(level::ACL, 1, 0, MS);
    let statistics = statistics(&made.finish());
    let captured = Captured {
        start_ns: START_NS,
        ns: 2_500 * MS,
        until: Until::Stop,
    };
    assert_eq!(statistics.captured, Some(captured));
    let models = statistics.models.iter();
    let models: Vec<_> = models
        .map(|row| {
            (
                row.model,
                row.name.as_deref(),
                row.times.count,
                row.per_second,
            )
        })
        .collect();
    assert_eq!(
        models,
        [
            (Some(7), Some("mlp"), 10, Some(4.0)),
            (Some(8), None, 5, Some(2.0))
        ]
    );
    assert_eq!(statistics.models[0].times.total_ns, 20_000);
    assert_eq!(statistics.model_runs(), 15);
    assert_eq!(statistics.model_runs_per_second(), Some(6.0));
}

#[test]
fn without_names_a_run_is_known_by_its_type() {
    let mut made = Made::new();
    made.run(1, 7, 1, 0, 1_000);
    made.run(2, 7, 1, 0, 1_000);
    let path = made.finish();
    assert_eq!(statistics(&path).model_runs(), 1);
    // A dictionary that gives it another one is right.
    let mut made = Made::new();
    made.name(level::MODEL, 1, "InputCopy");
    made.run(1, 7, 1, 0, 1_000);
    assert_eq!(statistics(&made.finish()).model_runs(), 0);
}

#[test]
fn aicpu_records_are_summed_by_device_and_type_in_the_devices_own_ticks() {
    for (megahertz, node_ns) in [(1000, 120_000), (50, 2_400_000)] {
        let mut made = Made::new();
        made.device(0, megahertz, 5_000);
        made.aicpu(0, Aicpu::NODE, 10_000, 130_000);
        made.aicpu(0, Aicpu::NODE, 0, 130_000);
        made.aicpu(0, Aicpu::DATA, 5, 0);
        made.aicpu(0, Aicpu::WAIT, 10_800, 10_900);
        made.aicpu(0, 200, 1, 2);
        let found = statistics(&made.finish());
        let [device] = &found.devices[..] else {
            panic!("one device: {found:#?}");
        };
        let records: Vec<_> = device
            .records
            .iter()
            .map(|row| (row.name(), row.count, row.timed.count, row.timed.total_ns))
            .collect();
        let expected = [
            ("node", 2, 1, node_ns),
            ("data preprocessing", 1, 0, 0),
            ("data queue", 1, 1, 100_000),
            ("type 200", 1, 0, 0),
        ];
        assert_eq!(
            records,
            expected.map(|(name, a, b, c)| (name.to_owned(), a, b, c))
        );
        assert_eq!((device.busy_ns, device.data_wait_ns), (node_ns, 100_000));
        let share = |ns: u64| Some(ns as f64 / 2.5e9);
        assert_eq!(device.busy_share, share(node_ns));
        assert_eq!(device.data_wait_share, share(100_000));
    }
}

#[test]
fn how_long_was_captured_is_told_by_the_ledger_else_by_the_control_files_else_by_the_last_call() {
    let made = || {
        let mut made = Made::new();
        made.run(1, 7, 1, 0, 500 * MS);
        made
    };
    let captured = |path: &Path| {
        let captured = statistics(path).captured;
        captured.map(|captured| (captured.ns / MS, captured.until))
    };
    assert_eq!(captured(&made().finish()), Some((2_500, Until::Stop)));
    let mut stock = made();
    let path = stock.finish_without_ledger();
    assert_eq!(captured(&path), Some((2_500, Until::Stop)));
    std::fs::remove_file(path.join("host/end_info")).expect("removed");
    assert_eq!(captured(&path), Some((500, Until::LastCall)));
    std::fs::remove_file(path.join("host/start_info")).expect("removed");
    let found = statistics(&path);
    assert_eq!(
        (found.captured, found.model_runs_per_second()),
        (None, None)
    );
    assert_eq!(found.models[0].per_second, None);
    // A stop before the start is none.
    let mut odd = made();
    odd.ledger.stop = Some(anchor(0));
    assert_eq!(captured(&odd.finish_as_it_is()), None);
}

#[test]
fn what_is_no_record_is_counted_and_makes_no_calls() {
    let mut made = Made::new();
    made.call(level::RUNTIME, 1, 0, 100);
    made.device(0, 1000, 0);
    made.aicpu(0, Aicpu::NODE, 1, 2);
    let path = made.finish();
    let before = statistics(&path);
    assert_eq!(before.skipped.foreign, 0);
    // No byte is the magic number's.
    let garbage: Vec<u8> = (0..40_000u32)
        .map(|n| (n * 31 % 119) as u8 | 0x80)
        .collect();
    std::fs::write(path.join("host/data/aging.api_event.data.slice_1"), garbage).expect("written");
    std::fs::write(path.join("device_0/data/aicpu.data.0.slice_1"), [0x80; 512]).expect("written");
    let after = statistics(&path);
    assert_eq!(after.skipped.foreign, 1_002);
    assert_eq!((after.calls, after.devices), (before.calls, before.devices));
}

#[test]
fn a_hole_of_hours_is_counted_without_being_read() {
    const HOLE: u64 = 1 << 43;
    let mut made = Made::new();
    made.call(level::RUNTIME, 1, 0, 100);
    let path = made.finish();
    let slice = std::fs::File::create(path.join("host/data/aging.api_event.data.slice_1"));
    let slice = slice.expect("made");
    if let Err(error) = slice.set_len(HOLE / 40 * 40) {
        return crate::skip::skipped(format_args!(
            "no file of that length can be made here ({error})"
        ));
    }
    let began = std::time::Instant::now();
    let found = statistics(&path);
    assert_eq!((found.skipped.foreign, found.calls.len()), (HOLE / 40, 1));
    assert!(began.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn it_ends_when_it_is_not_to_go_on() {
    let mut made = Made::new();
    for n in 0..10_000 {
        made.call(level::RUNTIME, 1, n, n + 1);
    }
    let source = Source::open(&made.finish()).expect("opens");
    let asked = std::cell::Cell::new(0);
    let found = Statistics::of_while(&source, |_| true, || asked.replace(asked.get() + 1) < 1);
    assert_eq!((found.expect("readable"), asked.get()), (None, 2));
}

#[test]
fn more_names_than_there_is_room_for_have_no_quantiles_but_all_else() {
    let mut made = Made::new();
    // Each duration has a page of its own.
    for kind in 0..2_000u32 {
        for power in 6..40 {
            made.call(level::RUNTIME, kind, 0, 1 << power);
        }
    }
    let statistics = statistics(&made.finish());
    assert_eq!(statistics.calls.len(), 2_000);
    let all: u64 = (6..40).map(|power| 1u64 << power).sum();
    let without = statistics
        .calls
        .iter()
        .filter(|row| row.times.p50_ns.is_none());
    assert_eq!(without.count(), 2_000 - PAGES_MAX / 34);
    for row in &statistics.calls {
        assert_eq!((row.times.count, row.times.total_ns), (34, all));
        assert_eq!(row.times.p50_ns.is_some(), row.times.p99_ns.is_some());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    #[test]
    fn arbitrary_files_never_panic_it(
        slices in proptest::collection::vec(proptest::collection::vec(0u8.., 0..400), 6),
        magic in proptest::bool::ANY,
        control in "[ -~\n]{0,80}",
    ) {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("PROF_1");
        let names = [
            ("host/data/aging.api_event.data.slice_0", 40),
            ("host/data/unaging.additional.hash_dic.slice_0", 400),
            ("host/data/unaging.additional.type_info_dic.slice_0", 400),
            ("host/data/unaging.additional.graph_id_map.slice_0", 256),
            ("device_0/data/aicpu.data.0.slice_0", 256),
        ];
        for ((name, size), mut content) in names.into_iter().zip(slices) {
            for record in content.chunks_mut(size).filter(|record| magic && record.len() > 1) {
                record[..2].copy_from_slice(&[0x5A, 0x5A]);
            }
            crate::directory::put(&dir, name, &content);
        }
        for name in ["host/info.json", "host/start_info", "device_0/dev_start.log.0", "msprof_agent.json"] {
            crate::directory::put(&dir, name, control.as_bytes());
        }
        let found = statistics(&dir);
        for row in &found.calls {
            assert!(row.times.count > 0 && row.times.min_ns <= row.times.max_ns, "{row:?}");
            assert!(row.times.mean_ns.is_finite());
            assert!(row.times.p50_ns <= row.times.p99_ns, "{row:?}");
        }
    }
}

/// Needs MSPROF_GOLDEN, the path of directories that the stock collector made.
#[test]
fn counts_and_times_agree_with_what_the_stock_parser_exported() {
    let Some(golden) = std::env::var_os("MSPROF_GOLDEN").filter(|path| !path.is_empty()) else {
        return crate::skip::skipped(
            "MSPROF_GOLDEN is not set (path of directories made by the stock collector)",
        );
    };
    for name in ["onnxruntime_session", "exported"] {
        let dir = Path::new(&golden).join(name);
        let found = statistics(&dir);
        let files = std::fs::read_dir(dir.join("mindstudio_profiler_output")).expect("exports");
        let mut files = files.map(|file| file.expect("an entry").path());
        let file = files.find(|path| path.to_string_lossy().contains("api_statistic"));
        let text = std::fs::read_to_string(file.expect("api_statistic")).expect("text");
        let mut lines = 0;
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let mut rows = found.calls.iter();
            let row = rows
                .find(|row| row.level_name() == fields[1] && row.name == fields[2])
                .unwrap_or_else(|| panic!("{name}: no row for {line}"));
            assert_eq!(row.times.count.to_string(), fields[4], "{line}");
            let us: f64 = fields[3].parse().expect("a number");
            assert!(
                (row.times.total_ns as f64 / 1_000.0 - us).abs() < 0.01,
                "{line} {row:?}"
            );
            lines += 1;
        }
        assert!(lines > 7, "{name}");
        assert!(found.model_runs() > 0 || name == "exported", "{name}");
    }
}
