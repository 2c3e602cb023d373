//! The stand-in driver as a test steers and watches it; tests/cann/hal.h says what it can do.

use super::artifacts::artifacts;
use super::client::{ByteClient, params};
use super::home::Home;
use super::process::Program;
use super::prof::{Prof, u32_at, u64_at};
use super::puppet::{self, Puppet};
use super::wait::{PATIENCE, wait_for, wait_until};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Bytes of a record.
pub const RECORD: usize = 256;
pub const AICPU: u32 = 143;
pub const CUSTOM_AICPU: u32 = 144;
/// What every record begins with: magic and level 6000.
const HEAD: [u8; 4] = [0x5A, 0x5A, 0x70, 0x17];
/// Offset of a record's number.
const NUMBER: usize = 248;

/// Which library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    New,
    /// Without halProfDataFlush.
    Old,
}

/// The driver of one test.
#[derive(Debug)]
pub struct Hal {
    dir: PathBuf,
}

/// What one start of a channel has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    pub records: u64,
    /// Of these records, in their order.
    pub digest: u64,
    /// What the driver had no room for.
    pub lost: u64,
}

/// Device, channel, and which start of it, from 1.
pub type Start = (u32, u32, u32);

impl Hal {
    pub fn new(home: &Home) -> Hal {
        let dir = home.path().join("driver");
        fs::create_dir(&dir).expect("a new directory");
        Hal { dir }
    }

    /// Names in the environment without their prefix: `"DEVICES=0,1 RATE=2000"`.
    pub fn set(&self, program: Program, settings: &str) -> Program {
        let mut program = program.env("STANDIN_HAL_DIR", &self.dir);
        for setting in settings.split_whitespace() {
            let (name, value) = setting.split_once('=').expect("NAME=value");
            program = program.env(&format!("STANDIN_HAL_{name}"), value);
        }
        program
    }

    /// An armed puppet for which the loader finds the driver by its name; nobody has loaded it.
    pub fn program(&self, home: &Home, edition: Edition, settings: &str) -> Program {
        let file = match edition {
            Edition::New => &artifacts().driver,
            Edition::Old => &artifacts().driver_old,
        };
        let lib = home.path().join("lib");
        if !lib.exists() {
            fs::create_dir(&lib).expect("a new directory");
            symlink(file, lib.join("libascend_hal.so")).expect("a link");
        }
        let program = home.armed(puppet::path()).env("LD_LIBRARY_PATH", lib);
        self.set(program, settings)
    }

    /// Starts such a puppet and opens its devices.
    pub fn puppet(&self, home: &Home, settings: &str, devices: &[u32]) -> Puppet {
        let program = self.program(home, Edition::New, settings);
        let mut puppet = Puppet::start_armed(home, program);
        for device in devices {
            assert_eq!(puppet.tell(&format!("device {device} 1")), "0");
        }
        puppet
    }

    // ---- what the driver is to do ----

    /// Calls of that name hang from now on.
    pub fn hang(&self, call: &str) {
        fs::write(self.dir.join(format!("hang.{call}")), "").expect("a file");
    }

    /// They return.
    pub fn let_go(&self, call: &str) {
        fs::remove_file(self.dir.join(format!("hang.{call}"))).expect("a file");
    }

    pub fn vanish(&self, device: u32) {
        fs::write(self.dir.join(format!("gone.{device}")), "").expect("a file");
    }

    pub fn come_back(&self, device: u32) {
        fs::remove_file(self.dir.join(format!("gone.{device}"))).expect("a file");
    }

    // ---- what it did ----

    /// Its calls in a process; none if it was not called at all.
    pub fn calls(&self, pid: u32) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join(format!("calls.{pid}"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How many of its lines begin so.
    pub fn count_calls(&self, pid: u32, begin: &str) -> usize {
        let calls = self.calls(pid);
        calls.iter().filter(|line| line.starts_with(begin)).count()
    }

    /// Waits until a call of that name hangs, as often as it did already and once more.
    pub fn wait_hangs(&self, pid: u32, call: &str, before: usize) {
        let begin = format!("hangs {call} ");
        wait_until("a call that hangs", || {
            self.count_calls(pid, &begin) > before
        });
    }

    /// Processes in which it was called.
    pub fn processes(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.dir).expect("the directory");
        let names = entries.map(|entry| entry.expect("entry").file_name());
        let mut pids: Vec<u32> = names
            .filter_map(|name| name.to_str()?.strip_prefix("calls.")?.parse().ok())
            .collect();
        pids.sort_unstable();
        pids
    }

    /// What each start of a channel has served so far.
    pub fn served(&self, pid: u32) -> BTreeMap<Start, Served> {
        let prefix = format!("count.{pid}.");
        let entries = fs::read_dir(&self.dir).expect("the directory");
        let names = entries.map(|entry| entry.expect("entry").file_name());
        names
            .filter_map(|name| {
                let name = name.to_str()?;
                let numbers = name.strip_prefix(&prefix)?.split('.');
                let numbers: Vec<u32> = numbers.map(|n| n.parse().expect("a number")).collect();
                let text = fs::read_to_string(self.dir.join(name)).expect("a file");
                Some(((numbers[0], numbers[1], numbers[2]), served_in(&text)))
            })
            .collect()
    }

    /// The bytes that the reads of one start returned; with SERVED=bytes.
    pub fn bytes(&self, pid: u32, (device, channel, start): Start) -> Vec<u8> {
        let name = format!("bytes.{pid}.{device}.{channel}.{start}");
        fs::read(self.dir.join(name)).unwrap_or_default()
    }

    /// Waits until each of these starts has served so many records.
    pub fn wait_served(&self, pid: u32, starts: &[Start], records: u64) {
        wait_for("the driver to have served", PATIENCE, || {
            let served = self.served(pid);
            let of = |start| served.get(start).map_or(0, |s: &Served| s.records);
            starts
                .iter()
                .all(|start| of(start) >= records)
                .then_some(())
        });
    }
}

/// `records R digest H lost L`; nothing yet in a file that is new.
fn served_in(text: &str) -> Served {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, records, _, digest, _, lost] = words.as_slice() else {
        return Served::default();
    };
    Served {
        records: records.parse().expect("a number"),
        digest: u64::from_str_radix(digest, 16).expect("hexadecimal"),
        lost: lost.parse().expect("a number"),
    }
}

/// A capture of the three traces by a stock client.
pub fn start(puppet: &Puppet, home: &Home) -> ByteClient {
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    client
}

/// Everything in a device's aicpu slices, in the order of the slices.
pub fn device_bytes(prof: &Prof, device: u32) -> Vec<u8> {
    let families = prof.devices.get(&device);
    let slices = families.and_then(|families| families.get(&format!("aicpu.data.{device}")));
    let slices = slices.into_iter().flat_map(BTreeMap::values);
    slices.flatten().copied().collect()
}

/// The records of one channel among them: each channel's thread has a number of its own.
pub fn channel_bytes(prof: &Prof, device: u32, channel: u32) -> Vec<u8> {
    let bytes = device_bytes(prof, device);
    let thread = 1000 * channel + device;
    let records = bytes.chunks(RECORD);
    let ours = records.filter(|record| u32_at(record, 8) == thread);
    ours.flatten().copied().collect()
}

/// What can be written of what was served: whole records that are ones.
pub fn good_records(served: &[u8]) -> Vec<u8> {
    let records = served.chunks_exact(RECORD);
    let good = records.filter(|record| record[..4] == HEAD);
    good.flatten().copied().collect()
}

/// Numbers of records, in their order.
pub fn numbers(records: &[u8]) -> Vec<u64> {
    let records = records.chunks_exact(RECORD);
    records.map(|record| u64_at(record, NUMBER)).collect()
}

/// Count and sum of a device's records, as the driver makes the sum of what it serves (tests/cann/hal_records.c).
/// Reads one slice at a time.
pub fn sum_of_slices(prof: &Path, device: u32) -> (u64, u64) {
    let data = prof.join(format!("device_{device}/data"));
    let prefix = format!("aicpu.data.{device}.slice_");
    let entries = fs::read_dir(&data).expect("a directory");
    let names = entries.map(|entry| entry.expect("entry").file_name());
    let number = |name: &OsStr| name.to_str()?.strip_prefix(&prefix)?.parse::<u32>().ok();
    let mut slices: Vec<u32> = names.filter_map(|name| number(&name)).collect();
    slices.sort_unstable();
    slices.into_iter().fold((0, 0), |(count, digest), slice| {
        let bytes = fs::read(data.join(format!("{prefix}{slice}"))).expect("a slice");
        assert_eq!(bytes.len() % RECORD, 0, "whole records");
        let words = bytes.chunks_exact(8);
        let digest = words.fold(digest, |digest: u64, word| {
            let word = u64::from_le_bytes(word.try_into().expect("eight"));
            (digest ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        (count + (bytes.len() / RECORD) as u64, digest)
    })
}

/// A count of the trace aicpu in a capture's ledger.
pub fn aicpu_count(prof: &Prof, column: &str) -> u64 {
    prof.ledger()[column]["aicpu"].as_u64().unwrap_or(0)
}
