//! The stock parser as judge: what we write, it exports.
//!
//! Needs the environment variable MSPROF_PARSER, the path of a copy of its `msprof.py`. Its exit code
//! is 0 whatever happens; only the exported files tell.

use super::*;
use std::process::{Command, Stdio};

fn parser() -> Option<PathBuf> {
    from_environment("MSPROF_PARSER", "path of the stock parser's msprof.py")
}

/// Exports and returns the files of mindstudio_profiler_output by the stem of their name.
fn export(parser: &Path, dir: &Path) -> std::collections::BTreeMap<String, String> {
    for what in ["timeline", "summary"] {
        let output = Command::new("python3")
            .arg(parser)
            .args(["export", what, "-dir"])
            .arg(dir)
            .stdin(Stdio::null())
            .output()
            .expect("the parser runs");
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stdout));
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let out = dir.join("mindstudio_profiler_output");
    let Ok(entries) = std::fs::read_dir(&out) else {
        return Default::default();
    };
    entries
        .filter_map(|entry| {
            let path = entry.expect("entry").path();
            let name = path.file_name()?.to_str()?.to_owned();
            let (stem, _) = name.rsplit_once('_')?;
            let extension = path.extension()?.to_str()?;
            let text = std::fs::read_to_string(&path).ok()?;
            Some((format!("{stem}.{extension}"), text))
        })
        .collect()
}

/// A line of a csv file that begins with this, without trailing tabs in its fields.
fn row(exported: &std::collections::BTreeMap<String, String>, file: &str, start: &str) -> String {
    let text = exported.get(file).unwrap_or_else(|| {
        panic!(
            "{file} was not exported, only {:?}",
            exported.keys().collect::<Vec<_>>()
        )
    });
    let found = text.lines().find(|line| line.starts_with(start));
    found
        .unwrap_or_else(|| panic!("no row of {file} begins with {start}:\n{text}"))
        .replace('\t', "")
}

#[test]
fn the_stock_parser_exports_every_family_that_we_write() {
    let Some(parser) = parser() else { return };
    let temp = tempfile::tempdir().expect("temporary directory");
    let (dir, _) = scenario::write(temp.path());
    assert_eq!(check::check(&dir), [], "our own rules agree");
    let exported = export(&parser, &dir);
    let row = |file: &str, start: &str| row(&exported, file, start);

    let statistic = [
        "0,acl,aclrtMalloc,15.0,1,15.0,15.0,15.0,0.0",
        "0,acl,aclmdlLoadFromFile,1900.0,1,1900.0,1900.0,1900.0,0.0",
        "0,acl,aclnnAdd,410.0,1,410.0,410.0,410.0,0.0",
        "0,runtime,DevMalloc--odd- name,12.0,1,12.0,12.0,12.0,0.0",
        "0,runtime,KernelLaunch,80.0,1,80.0,80.0,80.0,0.0",
        "0,model,ModelLoad,1880.0,1,1880.0,1880.0,1880.0,0.0",
        "0,model,ModelExecute,1960.0,2,980.0,980.0,980.0,0.0",
        "0,model,InputCopy,20.0,1,20.0,20.0,20.0,0.0",
        "0,node,launch,600.0,2,300.0,300.0,300.0,0.0",
        "0,communication,Memcpy,100.0,1,100.0,100.0,100.0,0.0",
    ];
    for expected in statistic {
        let name = expected.split(',').take(3).collect::<Vec<_>>().join(",");
        assert_eq!(row("api_statistic.csv", &format!("{name},")), expected);
    }
    assert_eq!(
        exported["api_statistic.csv"].lines().count(),
        statistic.len() + 1
    );

    assert_eq!(
        row("aicpu.csv", "0,"),
        "0,1700000000010260.000,Cast_aicpu,500.0,200.0,120.0,2500.0,141.0,3,7"
    );
    assert_eq!(
        row("dp.csv", "0,"),
        "0,1700000000010600.000,Last queue deque,iterator_default,131"
    );
    assert_eq!(
        row("aicpu_mi.csv", "0,"),
        "0,GetNext_dequeue_wait,1000010800.0,1000010900.0,4"
    );
    assert_eq!(
        row("msprof_tx.csv", "host,4321,4321,7,push/pop"),
        "host,4321,4321,7,push/pop,0,0,1700000000000600.000,1700000000000900.000,0,push/pop: preprocess,N/A,N/A,N/A"
    );
    assert_eq!(
        row("fusion_op.csv", "0,"),
        "0,resnet50,1,fused_conv,conv1;relu1,0.09765625,0.1953125,0.29296875,0.390625,0.9765625"
    );
    assert_eq!(
        row("operator_memory.csv", "0,"),
        "0,Add_1,4.0,1700000000008110.000,210.0,4.0,64.0,0.0,64.0,NPU:0"
    );
    assert!(row("static_op_mem.csv", "host,").starts_with("host,conv1,"));
    assert_eq!(
        row("task_time.csv", "0,Add_1_kernel0"),
        "0,Add_1_kernel0,AI_CORE,2,10,40.0,1700000000008260.000,1700000000008300.000"
    );
    let op = row(
        "op_summary.csv",
        "0,4294967295,10,2,Add_1,Add,dynamic,AI_CORE",
    );
    assert!(op.contains("16,32"), "shapes of the tensor record: {op}");

    let timeline: Vec<serde_json::Value> =
        serde_json::from_str(&exported["msprof.json"]).expect("JSON");
    let runs = timeline
        .iter()
        .filter(|event| event["name"] == "Model@ModelExecute");
    assert_eq!(runs.count(), 3, "two api records and one event pair");
    assert!(timeline.iter().any(|event| event["name"] == "mark: hello"));
    let start = timeline
        .iter()
        .find(|event| event["name"] == "AscendCL@aclrtMalloc")
        .expect("the call is in the timeline");
    assert_eq!(start["ts"], "1700000000000010.000");
}

#[test]
fn the_stock_parser_accepts_an_empty_capture_and_one_without_an_end() {
    let Some(parser) = parser() else { return };
    let temp = tempfile::tempdir().expect("temporary directory");
    // A millisecond without a record, with a device.
    let mut empty = create(temp.path());
    empty
        .add_device(0, "{}", anchor(0), None)
        .expect("device is added");
    empty.finish(anchor(1_000_000)).expect("finished");
    let exported = export(&parser, empty.path());
    let json = exported.get("msprof.json").map_or("[]", String::as_str);
    assert!(serde_json::from_str::<serde_json::Value>(json).is_ok());

    // A killed process: data, no end, an unfinished device beside.
    let mut dir = create(temp.path());
    let family = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let (bytes, counts) = api_batch(100, 50);
    dir.append(family, &bytes, &counts).expect("appended");
    dir.add_device(0, "{}", anchor(0), None)
        .expect("device is added");
    let path = dir.path().to_owned();
    drop(dir);
    std::fs::create_dir_all(path.join(".profiler/device_1/data")).expect("made");
    let exported = export(&parser, &path);
    let text = row(&exported, "api_statistic.csv", "0,runtime,1001,");
    assert!(text.contains(",50,"), "{text}");
}

#[test]
fn the_stock_parser_keeps_all_slices_and_what_the_storage_limit_left() {
    let Some(parser) = parser() else { return };
    let temp = tempfile::tempdir().expect("temporary directory");
    let setup = Setup {
        storage_limit: Some(256 * 1024),
        ..setup(temp.path())
    };
    let mut dir = ProfDir::create(setup).expect("directory is created");
    let aging = dir.family(Place::Host, "aging.api_event.data", Some(40));
    for number in 0..100 {
        let (bytes, counts) = api_batch(number * 100, 100);
        dir.append(aging, &bytes, &counts).expect("appended");
    }
    dir.finish(anchor(1_000_000)).expect("finished");
    let left = 10_000 - dir.aged_out().total();
    assert!(left > 4_000 && left < 10_000, "{left}");
    let exported = export(&parser, dir.path());
    let text = exported.get("api_statistic.csv").expect("exported");
    let count: u64 = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("host,runtime,1001,")?
                .split(',')
                .nth(1)?
                .parse::<u64>()
                .ok()
        })
        .sum();
    assert_eq!(count, left, "{text}");
}
