//! The exact text of every exported file of a directory made byte by byte.

mod support;

use msprof_export::text::{Format, Layers, Options};
use support::full::prof;
use support::{Prof, Record, START_NS, at};

#[test]
fn a_directory_of_the_host_becomes_these_files() {
    let prof = prof();
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(
        (report.calls, report.early, report.skipped.unpaired),
        (10, 1, 1)
    );
    let notes = report.notes.join("\n");
    assert!(
        notes.contains("1 calls began before the capture"),
        "{notes}"
    );
    assert!(notes.contains("1 events have no partner"), "{notes}");
    let kinds: Vec<(&str, u64)> = report
        .files
        .iter()
        .map(|file| (file.kind, file.rows))
        .collect();
    assert_eq!(
        kinds,
        [
            ("msprof", 13),
            ("msprof_tx", 4),
            ("api_statistic", 6),
            ("msprof_tx", 3),
            ("fusion_op", 1),
            ("operator_memory", 2),
            ("memory_record", 3),
            ("static_op_mem", 2),
        ]
    );
    assert_eq!(
        prof.exported("api_statistic", ".csv"),
        "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n\
         host,runtime,1071,0.1,1,0.1,0.1,0.1,0.0\n\
         host,runtime,DevMalloc,0.031,1,0.031,0.031,0.031,0.0\n\
         host,communication,Memcpy,100.0,1,100.0,100.0,100.0,0.0\n\
         host,model,ModelLoad,1908.0,2,954.0,8.0,1900.0,894916.0\n\
         host,acl,aclrtMalloc,35.0,2,17.5,15.0,20.0,6.25\n\
         host,node,launch,2.001,2,1.0,1.0,1.001,0.0\n"
    );
    let long = format!("{}end", "x".repeat(155));
    assert_eq!(
        prof.exported("msprof_tx", ".csv"),
        format!(
            "Device_id,pid,tid,category,event_type,payload_type,payload_value,Start_time(us),End_time(us),message_type,message,domain,Device Start_time(us),Device End_time(us)\n\
             host,4321,4321,7,push/pop,0,0,1700000000000400.000\t,1700000000000900.000\t,0,'=push/pop,N/A,N/A,N/A\n\
             host,4321,4321,7,marker,0,0,1700000000000500.000\t,1700000000000500.000\t,0,mark: hello,N/A,N/A,N/A\n\
             host,4321,4321,N/A,start/end,N/A,N/A,1700000000000850.000\t,1700000000001200.000\t,N/A,{long},default,N/A,N/A\n"
        )
    );
    assert_eq!(
        prof.exported("operator_memory", ".csv"),
        "Device_id,Name,Size(KB),Allocation Time(us),Duration(us),Allocation Total Allocated(KB),Allocation Total Reserved(KB),Release Total Allocated(KB),Release Total Reserved(KB),Device\n\
         host,Add_1,4.0,1700000000008110.000\t,210.0,4.0,64.0,0.501,64.0,NPU:1\n\
         host,,0.5,1700000000008200.000\t,0.0,4.5,64.0,0.0,0.0,NPU:0\n"
    );
    assert_eq!(
        prof.exported("memory_record", ".csv"),
        "Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device\n\
         host,GE,1700000000008110.000\t,4.0,64.0,NPU:1\n\
         host,GE,1700000000008200.000\t,4.5,64.0,NPU:0\n\
         host,GE,1700000000008320.000\t,0.501,64.0,NPU:1\n"
    );
    assert_eq!(
        prof.exported("static_op_mem", ".csv"),
        "Device_id,Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)\n\
         host,conv1,0,2,0,1,2\nhost,TOTAL,0,2,0,4294967295,0.5\n"
    );
    assert_eq!(
        prof.exported("fusion_op", ".csv"),
        "Device_id,Model Name,Model ID,Fusion Op,Original Ops,Memory Input(KB),Memory Output(KB),Memory Weight(KB),Memory Workspace(KB),Memory Total(KB)\n\
         host,resnet50,1,fused_conv,conv1;relu1,0.09765625,0.1953125,0.29296875,0.390625,0.9765625\n"
    );
}

#[test]
fn the_timelines_hold_these_events() {
    let prof = prof();
    prof.export(&Options::default());
    let long = format!("{}end", "x".repeat(155));
    assert_eq!(
        prof.exported("msprof", ".json"),
        include_str!("expected/msprof.json").replace("LONG", &long)
    );
    assert_eq!(
        prof.exported("msprof_tx", ".json"),
        include_str!("expected/msprof_tx.json").replace("LONG", &long)
    );
}

#[test]
fn layers_can_be_left_out_of_the_timeline() {
    let prof = prof().device();
    let options = |layers| Options {
        layers,
        ..Options::default()
    };
    let all = Layers::default();
    let layers = Layers {
        cann: false,
        marks: false,
        ..all
    };
    let report = prof.export(&options(layers));
    let kinds: Vec<_> = report
        .files
        .iter()
        .map(|file| (file.kind, file.rows))
        .collect();
    assert_eq!(kinds[..2], [("msprof", 2), ("api_statistic", 6)]);
    assert_eq!(
        prof.exported("msprof", ".json"),
        r#"[{"name":"process_name","pid":4425184,"tid":0,"ph":"M","args":{"name":"AI Core Freq"}},
{"name":"process_labels","pid":4425184,"tid":0,"ph":"M","args":{"labels":"NPU 0"}},
{"name":"process_sort_index","pid":4425184,"tid":0,"ph":"M","args":{"sort_index":15}},
{"name":"AI Core Freq","ts":"1700000000000000.000","pid":4425184,"tid":0,"ph":"C","args":{"MHz":1800.0}},
{"name":"AI Core Freq","ts":"1700000001000000.000","pid":4425184,"tid":0,"ph":"C","args":{"MHz":1800.0}}]
"#
    );
}

#[test]
fn what_a_device_reports_becomes_these_files() {
    let prof = prof().device();
    let node = |begin, end, stream| {
        Record::headed(256, 6000, 0, 0, 0)
            .u16(24, stream)
            .u16(26, 7)
            .u64(40, begin)
            .u64(48, 1_000)
            .u64(56, 1_500)
            .u64(64, 1_700)
            .u64(80, end)
            .u64(96, at(10_250))
            .u64(120, at(10_391))
            .u32(132, 2_500)
            .0
    };
    let data = Record::headed(256, 6000, 1, 0, at(10_600))
        .bytes(24, b"Last queue dequeue"[..16].as_ref())
        .bytes(40, b"=iterator,default")
        .u64(112, 131);
    let wait = Record::headed(256, 6000, 3, 0, 0)
        .u32(24, 1)
        .u64(32, 4)
        .u64(40, 1_000_010_800)
        .u64(48, 1_000_010_900);
    let records = [
        node(at(10_500), at(10_580), 3),
        node(at(10_260), at(10_380), 3 | 0x0800),
        node(START_NS - 5_000, at(1), 3),
        node(0, at(1), 3),
        data.0,
        wait.0,
    ];
    prof.put("device_0/data/aicpu.data.0.slice_0", &records.concat());
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(
        prof.exported("aicpu", ".csv"),
        "Device_id,Timestamp(us),Node,Compute_time(us),Memcpy_time(us),Task_time(us),Dispatch_time(us),Total_time(us),Stream ID,Task ID\n\
         0,1700000000010260.000\t,N/A,500.0,200.0,120.0,2500.0,141.0,3,7\n\
         0,1700000000010500.000\t,N/A,500.0,200.0,80.0,2500.0,141.0,3,7\n"
    );
    assert_eq!(
        prof.exported("dp", ".csv"),
        "Device_id,Timestamp(us),Action,Source,Cached Buffer Size\n\
         0,1700000000010600.000,Last queue deque,\"'=iterator,default\",131\n"
    );
    assert_eq!(
        prof.exported("aicpu_mi", ".csv"),
        "Device_id,Node Name,Start Time(us),End Time(us),Queue Size\n\
         0,GetNext_dequeue_wait,1000010800.0,1000010900.0,4\n"
    );
    // The host's tables are of the device then, as the stock parser has it.
    let statistic = prof.exported("api_statistic", ".csv");
    assert!(
        statistic.lines().skip(1).all(|line| line.starts_with("0,")),
        "{statistic}"
    );
    assert!(prof.exported("msprof_tx", ".csv").contains("\nhost,"));
    assert!(prof.exported("static_op_mem", ".csv").contains("\nhost,"));
}

#[test]
fn what_the_old_interface_reported_is_exported_from_records_and_from_text() {
    let prof = Prof::new().device();
    let text = b"[1000600000] Last queue dequeue, source:iterator_default, index:1, size:131\n\0[5] other, a:b\n\0";
    prof.put("host/data/DATA_PREPROCESS.DP.64.slice_0", text);
    let record = Record::zeros(128)
        .u16(0, 0x5A5A)
        .u16(2, 100)
        .u64(8, at(700))
        .bytes(16, b"dequeue")
        .bytes(32, b"queue")
        .u64(104, 9);
    prof.put("device_0/data/DATA_PREPROCESS.dev.DP.0.slice_0", &record.0);
    let node = Record::zeros(128)
        .u16(0, 0x5A5A)
        .u16(2, 60)
        .u16(4, 3)
        .u16(6, 8)
        .u64(16, at(10))
        .u64(56, at(20));
    prof.put("device_0/data/DATA_PREPROCESS.AICPU.0.slice_0", &node.0);
    let text = b"node:GetNext, queue size:6, run start:1001000, run end:1001100\n\0broken:x\0";
    prof.put("device_0/data/DATA_PREPROCESS.AICPUMI.0.slice_0", text);
    let report = prof.export(&Options::default());
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(
        prof.exported("dp", ".csv"),
        "Device_id,Timestamp(us),Action,Source,Cached Buffer Size\n\
         0,1700000000000700.0,dequeue,queue,9\n\
         host,1700000000000600.0,Last queue dequeue,iterator_default,131\n"
    );
    assert_eq!(
        prof.exported("aicpu_mi", ".csv"),
        "Device_id,Node Name,Start Time(us),End Time(us),Queue Size\n\
         0,GetNext,1001000.0,1001100.0,6\n"
    );
    let aicpu = prof.exported("aicpu", ".csv");
    assert!(
        aicpu.ends_with("\n0,1700000000000010.000\t,N/A,0.0,0.0,10.0,0.0,0.0,3,8\n"),
        "{aicpu}"
    );
}

#[test]
fn tables_as_json_have_numbers_and_the_names_as_they_are() {
    let prof = prof();
    let options = Options {
        format: Format::Json,
        ..Options::default()
    };
    let report = prof.export(&options);
    assert!(report.is_complete(), "{report:?}");
    let statistic = prof.exported("api_statistic", ".json");
    assert!(
        statistic.starts_with(r#"[{"Level": "runtime", "API Name": "1071", "Time(us)": 0.1, "Count": 1, "Avg(us)": 0.1, "#),
        "{statistic}"
    );
    let marks = prof.exported("msprof_tx_summary", ".json");
    assert!(
        marks.starts_with(r#"[{"pid": 4321, "tid": 4321, "category": 7, "event_type": "push/pop", "payload_type": 0, "payload_value": 0, "Start_time(us)": "1700000000000400.000\t", "End_time(us)": "1700000000000900.000\t", "message_type": 0, "message": "=push/pop", "domain": "N/A", "mark_id": "N/A"}, "#),
        "{marks}"
    );
    assert!(
        marks.ends_with(r#""domain": "default", "mark_id": 2}]"#),
        "{marks}"
    );
    for file in &report.files {
        let text = std::fs::read_to_string(prof.output().join(&file.file)).expect("read");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    }
}

#[test]
fn with_two_devices_every_table_of_the_host_is_of_both() {
    let prof = prof().device();
    prof.put("device_10/start_info.10", b"{}");
    let report = prof.export(&Options::default());
    assert!(
        report
            .problems
            .iter()
            .any(|problem| problem.contains("device_10 has no clock")),
        "{report:?}"
    );
    let records = prof.exported("memory_record", ".csv");
    let labels: Vec<_> = records
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    assert_eq!(labels, ["0", "0", "0", "10", "10", "10"]);
}
