//! A PROF_XXX directory that the input has changed.
//!
//! The input is a sequence of changes to the directory of a capture that was killed: three bytes that say
//! which file, what is done to it and with how many of the bytes that follow.

use msprof_agent_core::ledger::{Anchor, Ledger};
use msprof_agent_core::profdir::{LEDGER_FILE, Place, ProfDir, Setup};
use msprof_agent_core::records::{MAGIC, TraceCounts, level};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Files that the input can change.
const FILES: [&str; 32] = [
    "host/data/unaging.api_event.data.slice_0",
    "host/data/aging.api_event.data.slice_0",
    "host/data/aging.api_event.data.slice_1",
    "host/data/unaging.compact.task_track.slice_0",
    "host/data/aging.additional.tensor_info.slice_0",
    "host/data/unaging.variable.capture_op_info.slice_0",
    "host/data/unaging.additional.hash_dic.slice_0",
    "host/data/unaging.additional.type_info_dic.slice_0",
    "host/data/DATA_PREPROCESS.DP.64.slice_0",
    "host/data/DATA_PREPROCESS.AICPU_MODEL.64.slice_0",
    "host/data/other.data.slice_0",
    "host/data/..slice_3",
    "device_0/data/aicpu.data.0.slice_0",
    "device_0/data/stars_soc.data.0.slice_0",
    LEDGER_FILE,
    "host/info.json",
    "host/sample.json",
    "host/start_info",
    "host/end_info",
    "host/host_start.log",
    "device_0/info.json.0",
    "device_0/sample.json",
    "device_0/start_info.0",
    "device_0/end_info.0",
    "device_0/host_start.log.0",
    "device_0/dev_start.log.0",
    "host/info.json.done",
    "host/data/unaging.api_event.data.slice_0.done",
    ".profiler/device_1/info.json.1",
    "device_7/data/aicpu.data.7.slice_2",
    "host/info.json.bak",
    "msprof_agent.json.tmp",
];

/// Most changes of one input, and the most bytes in one of them times 256.
const CHANGES_MAX: usize = 24;

/// A directory in memory where there is one, removed when it is dropped.
pub struct Fuzzed {
    _temp: tempfile::TempDir,
    pub path: PathBuf,
}

/// The directory that the input describes.
pub fn make(mut data: &[u8]) -> Fuzzed {
    let mut files = killed().clone();
    for _ in 0..CHANGES_MAX {
        let [file, action, length, rest @ ..] = data else {
            break;
        };
        let length = match action >> 4 {
            0..8 => usize::from(*length),
            // Records come in larger pieces.
            _ => usize::from(*length) * 64,
        };
        let (bytes, after) = rest.split_at(length.min(rest.len()));
        data = after;
        let name = FILES[usize::from(*file) % FILES.len()];
        let content = files.entry(name.to_owned()).or_default();
        match action % 8 {
            0 => *content = bytes.to_vec(),
            1 | 2 => content.extend_from_slice(bytes),
            3 => content.truncate(length),
            4 => content.truncate(content.len().saturating_sub(length)),
            5 => {
                let at = content.len() / 2;
                content.splice(at..at, bytes.iter().copied());
            }
            6 => {
                for (old, new) in content.iter_mut().zip(bytes) {
                    *old ^= new;
                }
            }
            _ => {
                files.remove(name);
            }
        }
    }
    write(&files)
}

fn write(files: &BTreeMap<String, Vec<u8>>) -> Fuzzed {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("PROF_");
    let temp = match memory.is_dir() {
        true => builder.tempdir_in(memory).or_else(|_| builder.tempdir()),
        false => builder.tempdir(),
    };
    let temp = temp.expect("a temporary directory");
    let path = temp.path().join("PROF_000001_x");
    for dir in ["host/data", "device_0/data"] {
        std::fs::create_dir_all(path.join(dir)).expect("made");
    }
    for (name, bytes) in files {
        let file = path.join(name);
        if let Some(parent) = file.parent().filter(|dir| !dir.is_dir()) {
            std::fs::create_dir_all(parent).expect("made");
        }
        std::fs::write(file, bytes).expect("written");
    }
    Fuzzed { _temp: temp, path }
}

/// The files of a capture that was killed, one family of each kind.
fn killed() -> &'static BTreeMap<String, Vec<u8>> {
    static FILES: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let start = Anchor {
            ticks: 1_000_000_000_000,
            monotonic_raw_ns: 1_000_000_000_000,
            realtime_ns: 1_700_000_000_000_000_000,
            cpu_counter: 0,
        };
        let setup = Setup {
            parent: temp.path().to_owned(),
            pid: 4321,
            start,
            ..Setup::default()
        };
        let mut dir = ProfDir::create(setup).expect("made");
        dir.add_device(0, "{}", start, None).expect("a device");
        let mut put = |place, name: &str, size, bytes: &[u8]| {
            let family = dir.family(place, name, size);
            dir.append(family, bytes, &TraceCounts::default())
                .expect("appended");
        };
        let host = Place::Host;
        let api = record(level::RUNTIME, 40);
        put(host, "unaging.api_event.data", Some(40), &api.repeat(3));
        let compact = record(level::NODE, 64);
        put(host, "unaging.compact.task_track", Some(64), &compact);
        let variable = record(level::NODE, 24 + 72);
        put(host, "unaging.variable.capture_op_info", None, &variable);
        let aicpu = record(level::AICPU, 256);
        put(Place::Device(0), "aicpu.data.0", Some(256), &aicpu);
        put(host, "unaging.additional.hash_dic", None, b"7:Add_1\n");
        put(
            host,
            "unaging.additional.type_info_dic",
            None,
            b"5000_1:Launch\n",
        );
        put(host, "DATA_PREPROCESS.DP.64", None, &[0x5A; 256]);
        let ledger = Ledger {
            pid: 4321,
            capture: 1,
            start,
            accounted: Some(start),
            ..Ledger::default()
        };
        dir.write_ledger(&ledger).expect("written");
        let root = dir.path().to_owned();
        let mut files = BTreeMap::new();
        read(&root, &root, &mut files);
        files
    })
}

/// A record that holds nothing but its head: 72 is the used length of every one of them.
fn record(lvl: u16, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes[..2].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[2..4].copy_from_slice(&lvl.to_le_bytes());
    bytes[4] = 1;
    bytes[8] = 9;
    if size != 40 {
        bytes[12] = 72;
    }
    bytes[16..24].copy_from_slice(&1_000_000_001_000u64.to_le_bytes());
    if size == 40 {
        bytes[24..32].copy_from_slice(&1_000_000_002_000u64.to_le_bytes());
    }
    bytes
}

fn read(dir: &Path, root: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, root, into);
        } else {
            let name = path.strip_prefix(root).expect("inside");
            let name = name.to_str().expect("UTF-8").to_owned();
            into.insert(name, std::fs::read(&path).expect("a file"));
        }
    }
}
