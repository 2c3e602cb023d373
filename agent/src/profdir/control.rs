//! Texts of the control files: info.json, sample.json, start_info, end_info, the clock logs and
//! `.done` (spec 3 section 4).
//!
//! JSON is one object on one line: the parser reads no more than the first.

#![forbid(unsafe_code)]

use super::error::ProfDirError;
use super::facts::HostFacts;
use super::names::LocalTime;
use super::setup::{DeviceClock, Setup};
use crate::ledger::Anchor;
use serde_json::{Map, Value, json};

/// Device number that stands for the host in every file of the host directory.
const HOST_DEVICE: u32 = 64;

/// Text keys without which one of the parser's variants loads nothing, or nothing of a device, and
/// what stands there if the caller has no wish (spec 3 sections 4.2 and 9).
const SAMPLE_TEXTS: [(&str, &str); 9] = [
    ("ai_core_profiling_mode", "task-based"),
    ("llc_profiling", ""),
    ("ai_core_profiling", "on"),
    ("ai_core_metrics", "PipeUtilization"),
    ("ai_core_profiling_events", ""),
    ("aiv_profiling", "on"),
    ("aiv_metrics", "PipeUtilization"),
    ("aiv_profiling_events", ""),
    ("aiv_profiling_mode", "task-based"),
];
/// The same for numbers, in ms.
const SAMPLE_NUMBERS: [(&str, i64); 2] = [
    ("aicore_sampling_interval", 10),
    ("aiv_sampling_interval", 10),
];

/// `info.json` of the host, or `info.json.X` of a device.
pub(super) fn info(
    setup: &Setup,
    facts: &HostFacts,
    device: Option<(u32, &DeviceClock)>,
) -> String {
    let number = device.map_or(HOST_DEVICE, |(id, _)| id);
    let device_info: Vec<Value> = device
        .iter()
        .map(|(id, clock)| device_info(*id, clock))
        .collect();
    json!({
        "version": "1.0",
        "jobInfo": "NA",
        "OS": facts.os,
        "hostname": facts.hostname,
        "hwtype": facts.hardware,
        "devices": number.to_string(),
        "platform": "",
        "platform_version": setup.platform_version,
        // A number here makes the C++ exporter write a broken json.
        "pid": setup.pid.to_string(),
        "pid_name": facts.process_name,
        "upTime": facts.up_time,
        "memoryTotal": facts.memory_kb,
        "cpuNums": facts.cpus,
        "sysClockFreq": facts.clock_ticks,
        "cpuCores": facts.cores,
        "netCardNums": 0,
        "rank_id": setup.rank_id,
        "drvVersion": setup.driver_version,
        "cannVersion": setup.cann_version,
        "DeviceInfo": device_info,
        "netCard": [],
        // No frequency: times are nanoseconds of CLOCK_MONOTONIC_RAW already (spec 3 section 7).
        "CPU": [{
            "Id": 0,
            "Name": facts.cpu_vendor,
            "Frequency": "",
            "Logical_CPU_Count": facts.cpus.to_string(),
            "Type": facts.cpu_model,
        }],
    })
    .to_string()
}

/// The parser wants all of these; only the tick rate matters for what an agent on the host collects.
fn device_info(device: u32, clock: &DeviceClock) -> Value {
    json!({
        "id": device,
        "env_type": 3,
        "ctrl_cpu_core_num": 1,
        "ctrl_cpu_endian_little": 1,
        "ts_cpu_core_num": 0,
        "ai_cpu_core_num": 6,
        "ai_core_num": 24,
        "ai_cpu_core_id": 2,
        "ai_core_id": 0,
        "aicpu_occupy_bitmap": 252,
        "aiv_num": 48,
        "ctrl_cpu_id": "",
        "ctrl_cpu": "0",
        "ai_cpu": "2,3,4,5,6,7",
        "hwts_frequency": clock.megahertz,
        "aic_frequency": "1800",
        "aiv_frequency": "1800",
    })
}

/// `sample.json`: the caller's object on one line, for the host or a device, with every key that the
/// parser cannot do without.
pub(super) fn sample(text: &str, device: Option<u32>) -> Result<String, ProfDirError> {
    let mut map: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| ProfDirError::Sample {
            cause: error.to_string(),
        })?;
    for (key, default) in SAMPLE_TEXTS {
        if !map.get(key).is_some_and(Value::is_string) {
            map.insert(key.to_owned(), Value::from(default));
        }
    }
    for (key, default) in SAMPLE_NUMBERS {
        if !map.get(key).is_some_and(Value::is_i64) {
            map.insert(key.to_owned(), Value::from(default));
        }
    }
    let number = device.unwrap_or(HOST_DEVICE).to_string();
    map.insert("devices".to_owned(), Value::from(number));
    Ok(Value::Object(map).to_string())
}

/// `start_info` with the clocks at the start.
pub(super) fn start_info(start: Anchor) -> String {
    json!({
        "collectionDateBegin": LocalTime::of(start.realtime_ns).readable(),
        "collectionDateEnd": "",
        "collectionTimeBegin": (start.realtime_ns / 1_000).to_string(),
        "collectionTimeEnd": "",
        "clockMonotonicRaw": start.monotonic_raw_ns.to_string(),
    })
    .to_string()
}

/// `end_info` with the clocks at the stop.
pub(super) fn end_info(stop: Anchor) -> String {
    json!({
        "collectionDateBegin": "",
        "collectionDateEnd": LocalTime::of(stop.realtime_ns).readable(),
        "collectionTimeBegin": "",
        "collectionTimeEnd": (stop.realtime_ns / 1_000).to_string(),
        "clockMonotonicRaw": stop.monotonic_raw_ns.to_string(),
    })
    .to_string()
}

/// `host_start.log`, or its copy in a device directory. The counter is given as the clock itself,
/// since the C++ exporter converts some times by it even where ticks are nanoseconds (spec 3
/// section 12 item 1).
pub(super) fn host_start_log(device: Option<u32>, host_ns: u64) -> String {
    let section = device.map_or("Host".to_owned(), |id| format!("Device{id}"));
    format!("[{section}]\nclock_monotonic_raw: {host_ns}\ncntvct: {host_ns}\ncntvct_diff: 0\n")
}

/// `dev_start.log.X`.
pub(super) fn dev_start_log(clock: &DeviceClock) -> String {
    format!(
        "clock_monotonic_raw: {}\ncntvct: {}\n",
        clock.device_ns, clock.device_ticks
    )
}

/// `.done` of a control file.
pub(super) fn done(bytes: u64) -> String {
    format!("filesize:{bytes}\n")
}

/// `.done` of a data slice; the stock collector writes 0 for both times.
pub(super) fn slice_done(bytes: u64) -> String {
    format!("filesize:{bytes}\nstarttime:0\nendtime  :0\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_text_becomes_one_line_with_every_needed_key() {
        let text = sample(
            "{\n \"devices\": 3,\n \"profLevel\": \"l1\", \"x\": \"a\\nb\"\n}",
            None,
        )
        .expect("an object");
        assert!(!text.contains('\n'));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["devices"], "64");
        assert_eq!(value["profLevel"], "l1");
        assert_eq!(value["x"], "a\nb");
        for (key, default) in SAMPLE_TEXTS {
            assert_eq!(value[key], default, "{key}");
        }
        for (key, default) in SAMPLE_NUMBERS {
            assert_eq!(value[key], default, "{key}");
        }
        let device =
            sample(r#"{"ai_core_profiling_mode":"sample-based"}"#, Some(3)).expect("an object");
        let value: Value = serde_json::from_str(&device).expect("JSON");
        assert_eq!(value["devices"], "3");
        assert_eq!(
            value["ai_core_profiling_mode"], "sample-based",
            "the caller's wish stands"
        );
    }

    #[test]
    fn a_sample_text_that_is_no_object_is_refused() {
        for text in ["", "[]", "{", "\"x\""] {
            assert!(
                matches!(sample(text, None), Err(ProfDirError::Sample { .. })),
                "{text}"
            );
        }
    }
}
