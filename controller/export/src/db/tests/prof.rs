//! A PROF directory for the tests: its control files and the records that a test puts in.

use crate::directory::{self, Session};
use msprof_agent_core::records::{AdditionalRecord, ApiRecord, CompactRecord, MAGIC, RecordHead};
use std::path::Path;
use tempfile::TempDir;
use zerocopy::IntoBytes;

/// Wall clock at the start, ns.
pub(super) const START: i64 = 1_700_000_000_000_000_000;
/// CLOCK_MONOTONIC_RAW at the start, ns.
pub(super) const BASE: u64 = 1_000_000_000_000;
/// All captures made here.
const SESSION: Session = Session {
    wall_us: START as u64 / 1000,
    monotonic_ns: BASE,
    seconds: 20,
};

/// The directory; removed when dropped.
pub(super) struct Prof {
    home: TempDir,
}

impl Prof {
    /// A host without records.
    pub(super) fn new() -> Prof {
        let prof = Prof {
            home: tempfile::tempdir().expect("a directory"),
        };
        let info = r#"{"platform_version":"5","pid":"4321","pid_name":"puppet","hostname":"node","drvVersion":467734,"DeviceInfo":[],"CPU":[{"Frequency":""}]}"#;
        prof.controls("host", info, "64");
        prof
    }

    /// Adds a device of a platform.
    pub(super) fn with_device(self, device: u32, platform: &str) -> Prof {
        let place = format!("device_{device}");
        let info = format!(
            r#"{{"platform_version":"{platform}","pid":"4321","hostname":"node","drvVersion":467734,"DeviceInfo":[{{"id":{device},"hwts_frequency":"50","aic_frequency":"1800"}}],"CPU":[{{"Frequency":""}}]}}"#
        );
        self.controls(&place, &info, &device.to_string());
        let clock = format!("clock_monotonic_raw: {BASE}\ncntvct: 1000\n");
        self.write(
            &format!("{place}/host_start.log.{device}"),
            format!("[Device{device}]\nclock_monotonic_raw: {BASE}\ncntvct: {BASE}\n").as_bytes(),
        );
        self.write(&format!("{place}/dev_start.log.{device}"), clock.as_bytes());
        self
    }

    fn controls(&self, place: &str, info: &str, devices: &str) {
        directory::controls(self.path(), place, info, SESSION);
        let sample = format!(r#"{{"devices":"{devices}"}}"#);
        self.write(&format!("{place}/sample.json"), sample.as_bytes());
    }

    pub(super) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file anew.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        directory::put(self.path(), name, bytes);
    }

    /// Adds to a file.
    fn append(&self, name: &str, bytes: &[u8]) {
        directory::append(self.path(), name, bytes);
    }

    /// Names a type.
    pub(super) fn kind(&self, level: u16, kind: u64, name: &str) -> &Prof {
        let line = format!("{level}_{kind}:{name}\n");
        self.append(
            "host/data/unaging.additional.type_info_dic.slice_0",
            line.as_bytes(),
        );
        self
    }

    /// Names an id.
    pub(super) fn string(&self, id: u64, text: &str) -> &Prof {
        let line = format!("{id}:{text}\n");
        self.append(
            "host/data/unaging.additional.hash_dic.slice_0",
            line.as_bytes(),
        );
        self
    }

    /// Adds a call, its times in ns since the start.
    pub(super) fn call(&self, call: Call) -> &Prof {
        let record = ApiRecord {
            magic: MAGIC,
            level: call.level,
            kind: call.kind,
            thread_id: call.thread,
            request_id: call.request,
            begin: tick(call.begin),
            end: match call.end {
                Call::EVENT => ApiRecord::EVENT_END,
                end => tick(end),
            },
            item_id: call.item,
        };
        self.append("host/data/aging.api_event.data.slice_0", record.as_bytes());
        self
    }

    /// Adds a record of 64 bytes to a family.
    pub(super) fn compact(&self, family: &str, head: Head, payload: &[u8]) -> &Prof {
        let mut record = CompactRecord {
            head: head.record(payload.len()),
            payload: [0; 40],
        };
        record.payload[..payload.len()].copy_from_slice(payload);
        self.append(&format!("host/data/{family}.slice_0"), record.as_bytes());
        self
    }

    /// Adds a start or an end of a task to the log of device 0, at ns since the start.
    pub(super) fn ran(&self, stream: u16, task: u16, kind: u16, time: i64, is_end: bool) -> &Prof {
        let log = Payload::default()
            .u16(u16::from(is_end) | kind << 10)
            .u16(0x6BD3)
            .u16(stream)
            .u16(task)
            .u64(device_tick(time));
        let mut record = log.0;
        record.resize(64, 0);
        self.append("device_0/data/stars_soc.data.0.slice_0", &record);
        self
    }

    /// Adds bytes to a file of device 0.
    pub(super) fn device_data(&self, file: &str, bytes: &[u8]) -> &Prof {
        self.append(&format!("device_0/data/{file}"), bytes);
        self
    }

    /// Adds a record of 256 bytes to a family.
    pub(super) fn additional(&self, family: &str, head: Head, payload: &[u8]) -> &Prof {
        let mut record = AdditionalRecord {
            head: head.record(payload.len()),
            payload: [0; 232],
        };
        record.payload[..payload.len()].copy_from_slice(payload);
        self.append(&format!("host/data/{family}.slice_0"), record.as_bytes());
        self
    }
}

/// A tick by ns since the start.
pub(super) fn tick(ns: i64) -> u64 {
    BASE.wrapping_add_signed(ns)
}

/// A tick of a device by ns since the start: 50 of them are a us, and 1,000 have been before.
pub(super) fn device_tick(ns: i64) -> u64 {
    1_000u64.wrapping_add_signed(ns / 20)
}

/// A call or an event.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) level: u16,
    pub(super) kind: u32,
    pub(super) thread: u32,
    pub(super) request: u32,
    pub(super) item: u64,
    pub(super) begin: i64,
    pub(super) end: i64,
}

impl Call {
    /// End of what is an event.
    pub(super) const EVENT: i64 = i64::MIN;

    /// A call of thread 7.
    pub(super) fn new(level: u16, kind: u32, begin: i64, end: i64) -> Call {
        Call {
            level,
            kind,
            thread: 7,
            request: 0,
            item: 0,
            begin,
            end,
        }
    }
}

/// Head of a record of thread 7.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) level: u16,
    pub(super) kind: u32,
    pub(super) thread: u32,
    /// In ns since the start.
    pub(super) time: i64,
}

impl Head {
    pub(super) fn new(level: u16, kind: u32, time: i64) -> Head {
        Head {
            level,
            kind,
            thread: 7,
            time,
        }
    }

    fn record(self, length: usize) -> RecordHead {
        RecordHead {
            magic: MAGIC,
            level: self.level,
            kind: self.kind,
            thread_id: self.thread,
            data_len: length as u32,
            time: tick(self.time),
        }
    }
}

/// Bytes of a payload, put together field by field.
#[derive(Default)]
pub(super) struct Payload(pub(super) Vec<u8>);

impl Payload {
    pub(super) fn u16(mut self, value: u16) -> Payload {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Payload {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Payload {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn text(mut self, text: &str) -> Payload {
        self.0.extend_from_slice(text.as_bytes());
        self
    }
}
