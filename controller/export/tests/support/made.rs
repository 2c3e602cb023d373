//! Captures that tests make with the agent's own writer.
//!
//! Of the tests inside the crate and of those of the controller, which take in this file by its path.

// Nobody needs all of it.
#![allow(dead_code)]

use msprof_agent_core::ledger::{Anchor, CaptureState, Ledger};
use msprof_agent_core::profdir::{DeviceClock, Place, ProfDir, Setup, hash_line, type_line};
use msprof_agent_core::records::{
    AdditionalRecord, ApiRecord, GraphIdMap, MAGIC, RecordHead, Trace, TraceCounts, level,
};
use std::path::PathBuf;
use zerocopy::IntoBytes;

/// CLOCK_MONOTONIC_RAW at the start of every capture made here, ns.
pub const START_NS: u64 = 1_000_000_000_000;
/// The same on the wall.
pub const START_WALL_NS: u64 = 1_700_000_000_000_000_000;

/// The clocks so many ns after the start.
pub fn anchor(after: u64) -> Anchor {
    Anchor {
        ticks: START_NS + after,
        monotonic_raw_ns: START_NS + after,
        realtime_ns: START_WALL_NS + after,
        cpu_counter: 7,
    }
}

/// Type of a device's record of a node that ran on its AICPU; its end is elsewhere than that of others.
const AICPU_NODE: u32 = 0;

/// A capture in the making.
pub struct Made {
    /// Where it is; `None` where the caller has made that.
    _home: Option<tempfile::TempDir>,
    /// The directory.
    pub dir: ProfDir,
    /// Written by [`Made::finish`].
    pub ledger: Ledger,
    thread: u32,
}

impl Made {
    /// One in a directory of its own, which goes away with it.
    pub fn new() -> Made {
        let home = tempfile::tempdir().expect("a directory");
        let made = Made::within(home.path().to_owned());
        Made {
            _home: Some(home),
            ..made
        }
    }

    /// One in a directory of the caller's.
    pub fn within(parent: PathBuf) -> Made {
        let setup = Setup {
            parent,
            pid: 4321,
            start: anchor(0),
            ..Setup::default()
        };
        Made {
            dir: ProfDir::create(setup).expect("made"),
            _home: None,
            ledger: Ledger {
                pid: 4321,
                capture: 1,
                start: anchor(0),
                ..Ledger::default()
            },
            thread: 4321,
        }
    }

    /// Whose calls come next.
    pub fn thread(&mut self, thread: u32) -> &mut Made {
        self.thread = thread;
        self
    }

    /// A call that begins and ends so many ns after the start.
    pub fn call(&mut self, lvl: u16, kind: u32, begin: u64, end: u64) {
        self.item(lvl, kind, 0, begin, end);
    }

    /// The same of an item.
    pub fn item(&mut self, lvl: u16, kind: u32, item: u64, begin: u64, end: u64) {
        self.record(ApiRecord {
            begin: START_NS + begin,
            end: START_NS + end,
            ..self.blank(lvl, kind, item)
        });
    }

    /// A run of a model as a pair of events.
    pub fn run(&mut self, kind: u32, model: u64, run: u32, begin: u64, end: u64) {
        for at in [begin, end] {
            self.record(ApiRecord {
                request_id: run,
                begin: START_NS + at,
                end: ApiRecord::EVENT_END,
                ..self.blank(level::MODEL, kind, model)
            });
        }
    }

    fn blank(&self, lvl: u16, kind: u32, item: u64) -> ApiRecord {
        ApiRecord {
            magic: MAGIC,
            level: lvl,
            kind,
            thread_id: self.thread,
            request_id: 0,
            begin: 0,
            end: 0,
            item_id: item,
        }
    }

    /// One half of a pair of events.
    pub fn event(&mut self, lvl: u16, kind: u32, at: u64) {
        self.record(ApiRecord {
            begin: START_NS + at,
            end: ApiRecord::EVENT_END,
            ..self.blank(lvl, kind, 0)
        });
    }

    /// Any api record.
    pub fn record(&mut self, record: ApiRecord) {
        if let Some(trace) = Trace::of(record.level, true) {
            self.ledger.written.add(trace, 1);
        }
        self.append(
            Place::Host,
            "unaging.api_event.data",
            Some(40),
            record.as_bytes(),
        );
    }

    /// The name of a type.
    pub fn name(&mut self, lvl: u16, kind: u32, name: &str) {
        let mut line = Vec::new();
        assert!(type_line(&mut line, lvl, kind, name.as_bytes()));
        let family = "unaging.additional.type_info_dic";
        self.append(Place::Host, family, None, &line);
    }

    /// A line of the type dictionary as it is.
    pub fn line(&mut self, line: &str) {
        let family = "unaging.additional.type_info_dic";
        self.append(Place::Host, family, None, line.as_bytes());
    }

    /// The string of an id.
    pub fn string(&mut self, id: u64, text: &str) {
        let mut line = Vec::new();
        hash_line(&mut line, id, text.as_bytes());
        let family = "unaging.additional.hash_dic";
        self.append(Place::Host, family, None, &line);
    }

    /// What a model is called.
    pub fn model(&mut self, model: u32, name: u64) {
        let map = GraphIdMap {
            model_name: name,
            graph_id: 1,
            model_id: model,
        };
        let record = AdditionalRecord::repeated(map, self.thread, START_NS);
        let family = "unaging.additional.graph_id_map";
        self.append(Place::Host, family, Some(256), record.as_bytes());
    }

    /// A range that the program named, or a part of its message.
    pub fn mark(&mut self, part: u16, message: &str, begin: u64, end: u64) {
        let mut payload = [0; 232];
        payload[2..4].copy_from_slice(&part.to_le_bytes());
        payload[16..20].copy_from_slice(&self.thread.to_le_bytes());
        payload[40..48].copy_from_slice(&(START_NS + begin).to_le_bytes());
        payload[48..56].copy_from_slice(&(START_NS + end).to_le_bytes());
        payload[76..76 + message.len()].copy_from_slice(message.as_bytes());
        let record = AdditionalRecord {
            head: RecordHead {
                magic: MAGIC,
                level: level::TX,
                kind: 0,
                thread_id: self.thread,
                data_len: 232,
                time: START_NS + end,
            },
            payload,
        };
        let family = "aging.additional.msproftx";
        self.append(Place::Host, family, Some(256), record.as_bytes());
    }

    /// A record of a device's AICPU with two times: of a node ticks, of a wait us.
    pub fn aicpu(&mut self, device: u32, kind: u32, begin: u64, end: u64) {
        let mut record = AdditionalRecord {
            head: RecordHead {
                magic: MAGIC,
                level: level::AICPU,
                kind,
                thread_id: 0,
                data_len: 232,
                time: START_NS + begin,
            },
            payload: [0; 232],
        };
        let ends = if kind == AICPU_NODE { 56 } else { 24 };
        record.payload[16..24].copy_from_slice(&begin.to_le_bytes());
        record.payload[ends..ends + 8].copy_from_slice(&end.to_le_bytes());
        let family = format!("aicpu.data.{device}");
        self.append(Place::Device(device), &family, Some(256), record.as_bytes());
    }

    /// A device whose counter counts so many in a us, and stood so at the start.
    pub fn device(&mut self, device: u32, megahertz: u32, ticks: u64) {
        let clock = DeviceClock {
            megahertz: megahertz.to_string(),
            device_ticks: ticks,
            ..DeviceClock::of_host(anchor(0))
        };
        let added = self.dir.add_device(device, "{}", anchor(0), Some(clock));
        added.expect("added");
    }

    fn append(&mut self, place: Place, family: &str, size: Option<usize>, bytes: &[u8]) {
        let family = self.dir.family(place, family, size);
        let appended = self.dir.append(family, bytes, &TraceCounts::default());
        appended.expect("appended");
    }

    /// Ends it after two and a half seconds, with a ledger.
    pub fn finish(&mut self) -> PathBuf {
        self.ledger.stop = Some(anchor(2_500_000_000));
        self.ledger.state = CaptureState::Complete;
        self.ledger.bytes = self.dir.bytes();
        self.finish_as_it_is()
    }

    /// Writes the ledger as it is, as a capture does now and then.
    pub fn write_ledger(&mut self) {
        self.dir.write_ledger(&self.ledger).expect("written");
    }

    /// Ends it with the ledger as it is.
    pub fn finish_as_it_is(&mut self) -> PathBuf {
        self.write_ledger();
        self.finish_without_ledger()
    }

    /// Ends it as the stock collector does.
    pub fn finish_without_ledger(&mut self) -> PathBuf {
        self.dir.finish(anchor(2_500_000_000)).expect("finished");
        self.dir.path().to_owned()
    }
}
