//! A reader of PROF directories, written from the description of the format alone.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// Levels of api records.
pub const RUNTIME: u16 = 5000;
pub const AICPU: u16 = 6000;
pub const NODE: u16 = 10000;
pub const MODEL: u16 = 15000;
pub const ACL: u16 = 20000;

/// A 40-byte record: an api call or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    pub magic: u16,
    pub level: u16,
    pub kind: u32,
    pub thread: u32,
    pub request: u32,
    pub begin: u64,
    pub end: u64,
    pub item: u64,
}

impl Api {
    /// An event, with or without its partner.
    pub fn is_event(&self) -> bool {
        self.end == u64::MAX || self.is_partial()
    }

    /// Stands for an event whose partner is not in the capture.
    pub fn is_partial(&self) -> bool {
        self.begin == 0 && self.end == 0
    }
}

/// A record with the common head: compact or additional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub magic: u16,
    pub level: u16,
    pub kind: u32,
    pub thread: u32,
    pub len: u32,
    pub time: u64,
    pub payload: Vec<u8>,
}

impl Described {
    /// A name of a model that the agent repeats from an earlier report.
    pub fn is_repeated(&self) -> bool {
        (self.level, self.kind) == (MODEL, 0)
            && self.payload.len() == 232
            && self.payload[16..].starts_with(b"repeated by msprof_agent")
    }
}

/// Record families of one directory: slices by number.
pub type Families = BTreeMap<String, BTreeMap<u32, Vec<u8>>>;

/// An opened PROF directory.
#[derive(Debug)]
pub struct Prof {
    pub path: PathBuf,
    pub host: Families,
    /// By device id.
    pub devices: BTreeMap<u32, Families>,
    /// By level and type.
    pub types: HashMap<(u16, u64), String>,
    pub hashes: HashMap<u64, String>,
}

impl Prof {
    pub fn open(path: &Path) -> Prof {
        let mut prof = Prof {
            path: path.to_owned(),
            host: families(&path.join("host/data")),
            devices: BTreeMap::new(),
            types: HashMap::new(),
            hashes: HashMap::new(),
        };
        for entry in fs::read_dir(path).expect("a directory") {
            let entry = entry.expect("entry").path();
            let name = entry.file_name().expect("named").to_string_lossy();
            if let Some(id) = name.strip_prefix("device_") {
                let id = id.parse().expect("a device id");
                prof.devices.insert(id, families(&entry.join("data")));
            }
        }
        for line in prof.text("unaging.additional.type_info_dic").lines() {
            let (key, name) = line.split_once(':').expect("key:name");
            let (level, kind) = key.split_once('_').expect("level_type");
            let key = (level.parse().expect("level"), kind.parse().expect("type"));
            prof.types.insert(key, name.to_owned());
        }
        for line in prof.text("unaging.additional.hash_dic").lines() {
            let (id, name) = line.split_once(':').expect("id:name");
            let id = id.parse().expect("a number");
            prof.hashes.insert(id, name.to_owned());
        }
        prof
    }

    fn text(&self, family: &str) -> String {
        let slices = self.host.get(family).cloned().unwrap_or_default();
        let bytes: Vec<u8> = slices.into_values().flatten().collect();
        String::from_utf8(bytes).expect("a dictionary is text")
    }

    /// Bytes of a host family, both of its aging and its unaging half.
    fn both(&self, name: &str) -> Vec<u8> {
        ["unaging.", "aging."]
            .iter()
            .filter_map(|half| self.host.get(&format!("{half}{name}")))
            .flat_map(|slices| slices.values().flatten().copied())
            .collect()
    }

    /// Every api and event record.
    pub fn api(&self) -> Vec<Api> {
        let bytes = self.both("api_event.data");
        bytes.chunks(40).map(api).collect()
    }

    /// Records of a compact family.
    pub fn compact(&self, name: &str) -> Vec<Described> {
        let bytes = self.both(&format!("compact.{name}"));
        bytes.chunks(64).map(described).collect()
    }

    /// Reported records of an additional family.
    pub fn additional(&self, name: &str) -> Vec<Described> {
        let bytes = self.both(&format!("additional.{name}"));
        let records = bytes.chunks(256).map(described);
        records.filter(|record| !record.is_repeated()).collect()
    }

    /// What the agent says again of models.
    pub fn repeated_names(&self) -> Vec<Described> {
        let bytes = self.both("additional.graph_id_map");
        let records = bytes.chunks(256).map(described);
        records.filter(Described::is_repeated).collect()
    }

    /// Events whose partner is not in the capture, as they were reported.
    pub fn partial_events(&self) -> Vec<Api> {
        let slices = self.host.get("partial.api_event.data");
        let bytes = slices.into_iter().flat_map(BTreeMap::values).flatten();
        let bytes: Vec<u8> = bytes.copied().collect();
        bytes.chunks(40).map(api).collect()
    }

    /// Aicpu records of all devices.
    pub fn aicpu(&self) -> Vec<Described> {
        let mut records = Vec::new();
        for (device, families) in &self.devices {
            let slices = families.get(&format!("aicpu.data.{device}"));
            for slice in slices.into_iter().flat_map(BTreeMap::values) {
                records.extend(slice.chunks(256).map(described));
            }
        }
        records
    }

    /// Records of the old reporter interface: 128 bytes each, or a text.
    fn legacy_records(&self) -> u64 {
        let places = self.devices.values().chain([&self.host]);
        let slices = places
            .flatten()
            .filter(|(family, _)| family.starts_with("DATA_PREPROCESS."))
            .flat_map(|(_, slices)| slices.values());
        slices
            .map(|bytes| match bytes.len() % 128 {
                0 => bytes.len() as u64 / 128,
                _ => 1,
            })
            .sum()
    }

    /// Records that are as long as their head says.
    fn variable_records(&self) -> u64 {
        let slices = self.host.get("unaging.variable.capture_op_info");
        let mut count = 0;
        for bytes in slices.into_iter().flat_map(BTreeMap::values) {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                rest = &rest[24 + u32_at(rest, 12) as usize..];
                count += 1;
            }
        }
        count
    }

    /// Name of an api record's type as the parser shows it: the number when there is no name.
    pub fn name_of(&self, record: &Api) -> String {
        let key = (record.level, u64::from(record.kind));
        let name = self.types.get(&key).cloned();
        name.unwrap_or_else(|| record.kind.to_string())
    }

    /// Api records, and event records, by level and name.
    pub fn calls(&self) -> BTreeMap<(u16, String), (u64, u64)> {
        let mut calls = BTreeMap::new();
        for record in self.api() {
            let key = (record.level, self.name_of(&record));
            let (apis, events) = calls.entry(key).or_insert((0, 0));
            *if record.is_event() { events } else { apis } += 1;
        }
        calls
    }

    /// The account that the agent has left.
    pub fn ledger(&self) -> Value {
        let text = fs::read_to_string(self.path.join("msprof_agent.json")).expect("the ledger");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Sentences of its account that have this in them.
    pub fn notes_with(&self, text: &str) -> Vec<String> {
        let ledger = self.ledger();
        let notes = ledger["notes"].as_array().expect("notes").iter();
        let notes = notes.map(|note| note.as_str().expect("text").to_owned());
        notes.filter(|note| note.contains(text)).collect()
    }

    /// The only such sentence.
    #[track_caller]
    pub fn the_note(&self, text: &str) -> String {
        let mut notes = self.notes_with(text);
        let all = &self.ledger()["notes"];
        assert_eq!(notes.len(), 1, "one note with {text:?}: {all}");
        notes.remove(0)
    }

    /// Records in the files by the names that the ledger has for traces.
    pub fn counts_by_trace(&self) -> BTreeMap<&'static str, u64> {
        let mut counts: BTreeMap<&str, u64> = TRACES.iter().map(|name| (*name, 0)).collect();
        let mut add = |trace, n| *counts.get_mut(trace).expect("known") += n;
        for record in self.api() {
            add(api_trace(record.level), 1);
        }
        for (family, slices) in &self.host {
            let Some(size) = record_size(family).filter(|size| *size != 40) else {
                continue;
            };
            let records = slices.values().flat_map(|bytes| bytes.chunks(size));
            for record in records
                .map(described)
                .filter(|record| !record.is_repeated())
            {
                let aicpu = record.level == AICPU;
                add(if aicpu { "aicpu" } else { "task" }, 1);
            }
        }
        add("aicpu", self.aicpu().len() as u64 + self.legacy_records());
        add("task", self.variable_records());
        counts
    }
}

/// Names of traces in the ledger.
pub const TRACES: [&str; 5] = ["runtime-api", "model-execution", "aicpu", "acl", "task"];

fn api_trace(level: u16) -> &'static str {
    match level {
        RUNTIME => "runtime-api",
        MODEL => "model-execution",
        AICPU => "aicpu",
        NODE | 5500 => "task",
        _ => "acl",
    }
}

/// Bytes of a record of a family; `None` for text.
pub fn record_size(family: &str) -> Option<usize> {
    let name = family.strip_prefix("un").unwrap_or(family);
    let name = name.strip_prefix("aging.").unwrap_or(name);
    match name.split_once('.')? {
        ("api_event", "data") => Some(40),
        ("compact", _) => Some(64),
        ("additional", "hash_dic" | "type_info_dic") => None,
        ("additional", _) | ("aicpu", _) => Some(256),
        _ => None,
    }
}

/// Slices in a data directory by family.
fn families(dir: &Path) -> Families {
    let mut found = Families::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return found;
    };
    for entry in entries {
        let path = entry.expect("entry").path();
        let name = path.file_name().expect("named").to_string_lossy();
        if let Some((family, number)) = name.split_once(".slice_")
            && let Ok(number) = number.parse()
        {
            let bytes = fs::read(&path).expect("a slice");
            let slices = found.entry(family.to_owned()).or_default();
            slices.insert(number, bytes);
        }
    }
    found
}

fn api(bytes: &[u8]) -> Api {
    Api {
        magic: u16_at(bytes, 0),
        level: u16_at(bytes, 2),
        kind: u32_at(bytes, 4),
        thread: u32_at(bytes, 8),
        request: u32_at(bytes, 12),
        begin: u64_at(bytes, 16),
        end: u64_at(bytes, 24),
        item: u64_at(bytes, 32),
    }
}

fn described(bytes: &[u8]) -> Described {
    Described {
        magic: u16_at(bytes, 0),
        level: u16_at(bytes, 2),
        kind: u32_at(bytes, 4),
        thread: u32_at(bytes, 8),
        len: u32_at(bytes, 12),
        time: u64_at(bytes, 16),
        payload: bytes[24..].to_vec(),
    }
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two"))
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"))
}
