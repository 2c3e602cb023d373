//! The thread that takes records out of the rings and writes them.
//!
//! It exists while something is captured. Each pass writes the names that are new, then what waits in
//! every thread's rings, as contiguous ring memory. After an error on writing it closes the gate and
//! goes on emptying the rings, so that everything that was reported is counted as lost.

use super::account::{self, Account};
use super::ledger::{Anchor, CaptureState, Ledger};
use super::router::{RouteKey, Router};
use super::{Parts, Stopped};
use crate::control::params::{Params, SampleFill};
use crate::gate;
use crate::lanes::{Lane, RingKey};
use crate::process;
use crate::profdir::{self, FamilyId, Place, ProfDir, ProfDirError};
use crate::records::{RecordSize, Trace, TraceCounts};
use crate::ring::Consumer;
use crate::variable::{Owned, OwnedKind};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two passes when little comes in, when something does, and when a ring fills up.
const SLEEP_IDLE: Duration = Duration::from_millis(5);
const SLEEP_BUSY: Duration = Duration::from_millis(2);
const SLEEP_FULL: Duration = Duration::from_micros(200);
/// A ring is written when this many bytes wait, or the oldest of them has waited for `MAX_AGE`.
const WRITE_BYTES: u64 = 64 * 1024;
const MAX_AGE: Duration = Duration::from_millis(10);
/// How often the account is made visible to `status`, and the dictionary is looked at.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(100);
/// Most sentences in a ledger.
const NOTES_MAX: usize = 50;
/// Legacy binary records have this size (spec 3 section 6.3).
const LEGACY_RECORD: usize = 128;

enum Order {
    AddDevice(u32),
    Finish { stop: Anchor, note: Option<String> },
}

/// What is shared with whoever watches.
#[derive(Debug, Default)]
struct Progress {
    remaining: AtomicU64,
    ledger: Mutex<Ledger>,
}

/// The controlling end of a drain thread.
#[derive(Debug)]
pub struct DrainHandle {
    orders: Sender<Order>,
    progress: Arc<Progress>,
    thread: std::thread::JoinHandle<()>,
    /// Receives the result when everything is written.
    pub outcome: Receiver<Stopped>,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Order::AddDevice(_) => "AddDevice",
            Order::Finish { .. } => "Finish",
        })
    }
}

impl DrainHandle {
    /// A device was opened.
    pub fn add_device(&self, device: u32) {
        let _ = self.orders.send(Order::AddDevice(device));
    }

    /// Nothing more is reported: write the rest and end. `note` goes into the ledger.
    pub fn finish(&self, stop: Anchor, note: Option<String>) {
        let _ = self.orders.send(Order::Finish { stop, note });
    }

    /// Whether the thread has ended without a result, which only a panic can bring about.
    pub fn is_gone(&self) -> bool {
        self.thread.is_finished() && self.outcome.is_empty()
    }

    /// Bytes that wait in the rings.
    pub fn remaining(&self) -> u64 {
        self.progress.remaining.load(Ordering::Relaxed)
    }

    /// The account as of the last tenth of a second.
    pub fn snapshot(&self) -> Ledger {
        self.progress.ledger.lock().clone()
    }
}

/// One ring being drained.
#[derive(Debug)]
struct Source {
    key: RingKey,
    consumer: Consumer,
    written_at: Instant,
}

/// One thread's rings being drained.
#[derive(Debug)]
struct LaneDrain {
    lane: Arc<Lane>,
    sources: Vec<Source>,
    account: Account,
}

/// Everything that the drain thread owns.
pub struct Drain {
    number: u64,
    dir: ProfDir,
    ledger: Ledger,
    params: Params,
    parts: Parts,
    lanes: Vec<LaneDrain>,
    lanes_version: Option<u64>,
    /// Accounts of threads whose lanes were retired, and of reports without a lane.
    closed: Vec<Account>,
    owned: Account,
    router: Router,
    api_families: [FamilyId; 2],
    strings: (FamilyId, usize),
    types: (FamilyId, usize),
    devices: BTreeSet<u32>,
    error: Option<String>,
    progress: Arc<Progress>,
}

impl Drain {
    /// Prepares the drain of capture `number` into `dir`; `ledger` holds what is known at the start.
    pub fn new(
        number: u64,
        mut dir: ProfDir,
        ledger: Ledger,
        params: Params,
        parts: Parts,
    ) -> Drain {
        let mut host = |name: &str, size| dir.family(Place::Host, name, size);
        let api = Some(RecordSize::Api.bytes());
        let api_families = [
            host("unaging.api_event.data", api),
            host("aging.api_event.data", api),
        ];
        let strings = host("unaging.additional.hash_dic", None);
        let types = host("unaging.additional.type_info_dic", None);
        Drain {
            number,
            dir,
            ledger,
            params,
            parts,
            lanes: Vec::new(),
            lanes_version: None,
            closed: Vec::new(),
            owned: Account::default(),
            router: Router::default(),
            api_families,
            strings: (strings, 0),
            types: (types, 0),
            devices: BTreeSet::new(),
            error: None,
            progress: Arc::default(),
        }
    }

    /// Starts the thread; directories of `devices` are made first.
    pub fn spawn(mut self, devices: &[u32]) -> io::Result<DrainHandle> {
        let (orders, received) = unbounded();
        let (sender, outcome) = bounded(1);
        let progress = self.progress.clone();
        for &device in devices {
            // Before the capture is said to run, so that a killed process leaves them complete.
            self.add_device(device);
        }
        self.write_names();
        self.publish_ledger();
        let thread = process::spawn("msprof-drain", move || {
            let stopped = self.run(&received);
            // Nobody may be waiting any more: then the directory alone tells.
            let _ = sender.send(stopped);
        })?;
        Ok(DrainHandle {
            orders,
            progress,
            thread,
            outcome,
        })
    }

    fn run(mut self, orders: &Receiver<Order>) -> Stopped {
        let mut sleep = SLEEP_BUSY;
        let mut snapshot_at = Instant::now();
        loop {
            match orders.recv_timeout(sleep) {
                Ok(Order::AddDevice(device)) => self.add_device(device),
                Ok(Order::Finish { stop, note }) => return self.finish(stop, note),
                Err(RecvTimeoutError::Timeout) => {}
                // The agent object is gone, which happens in no live process.
                Err(RecvTimeoutError::Disconnected) => {
                    return self.finish(crate::clock::anchor(), None);
                }
            }
            sleep = self.pass(false);
            if snapshot_at.elapsed() >= SNAPSHOT_INTERVAL {
                snapshot_at = Instant::now();
                self.publish_snapshot();
            }
        }
    }

    /// Takes what waits; returns how long to sleep. `all`: small and young pieces too.
    fn pass(&mut self, all: bool) -> Duration {
        // Names first: a killed process then leaves no record whose name is missing.
        self.write_names();
        self.refresh_lanes();
        self.take_owned();
        let mut lanes = std::mem::take(&mut self.lanes);
        let mut sleep = SLEEP_IDLE;
        let mut remaining = 0;
        for lane in &mut lanes {
            lane.find_new_rings();
            for source in &mut lane.sources {
                let waiting = source.consumer.waiting(self.number);
                let bytes = waiting * source.key.size.bytes() as u64;
                remaining += bytes;
                let filling = waiting * 4 > source.consumer.slots();
                if filling {
                    sleep = SLEEP_FULL;
                } else if waiting > 0 {
                    sleep = sleep.min(SLEEP_BUSY);
                }
                let due = bytes >= WRITE_BYTES || source.written_at.elapsed() >= MAX_AGE;
                if waiting > 0 && (all || filling || due) {
                    self.progress.remaining.store(remaining, Ordering::Relaxed);
                    self.drain_source(source, &mut lane.account);
                }
            }
        }
        lanes.retain_mut(|lane| !self.retire_ended(lane));
        self.lanes = lanes;
        if all {
            self.progress.remaining.store(0, Ordering::Relaxed);
        }
        sleep
    }

    fn refresh_lanes(&mut self) {
        let version = self.parts.lanes.version();
        if self.lanes_version == Some(version) {
            return;
        }
        self.lanes_version = Some(version);
        for lane in self.parts.lanes.snapshot() {
            if self
                .lanes
                .iter()
                .any(|known| Arc::ptr_eq(&known.lane, &lane))
            {
                continue;
            }
            self.lanes.push(LaneDrain {
                account: Account {
                    tid: lane.tid,
                    ..Account::default()
                },
                lane,
                sources: Vec::new(),
            });
        }
    }

    /// Closes the account of a thread that has ended, once its rings are empty.
    fn retire_ended(&mut self, lane: &mut LaneDrain) -> bool {
        // The order matters: what the thread published before it ended is seen by `waiting`.
        if !lane.lane.ended() {
            return false;
        }
        lane.find_new_rings();
        for source in &mut lane.sources {
            while source.consumer.waiting(self.number) > 0 {
                self.drain_source(source, &mut lane.account);
            }
        }
        self.close(lane);
        self.parts.lanes.retire(&lane.lane);
        true
    }

    fn close(&mut self, lane: &LaneDrain) {
        let mut account = lane.account;
        account.dropped = lane.lane.lost(self.number);
        account.published = lane
            .sources
            .iter()
            .map(|source| source.consumer.published(self.number))
            .sum();
        if !account.balances() {
            self.note(format!(
                "thread {}: {} records were published but {} taken; please report this",
                account.tid,
                account.published,
                account.written.total() + account.unwritten.total()
            ));
        }
        self.closed.push(account);
    }

    /// Writes what waits in one ring and gives the room back.
    fn drain_source(&mut self, source: &mut Source, account: &mut Account) {
        source.written_at = Instant::now();
        let size = source.key.size.bytes();
        let readable = source.consumer.readable(self.number);
        let count = (readable.first.len() + readable.second.len()) / size;
        for part in [readable.first, readable.second] {
            if source.key.size == RecordSize::Api {
                let family = self.api_families[source.key.aging as usize];
                self.write(family, part, &count_api(part), account);
            } else {
                self.write_runs(source.key, part, account);
            }
        }
        source.consumer.release(count as u64);
    }

    /// Writes compact or additional records, one append for each run of records of one family.
    fn write_runs(&mut self, ring: RingKey, mut records: &[u8], account: &mut Account) {
        let size = ring.size.bytes();
        let only_device = match self.devices.len() {
            1 => self.devices.first().copied(),
            _ => None,
        };
        while records.len() >= size {
            let key = RouteKey::of(ring, records, only_device);
            let run = records
                .chunks_exact(size)
                .take_while(|record| RouteKey::of(ring, record, only_device) == key)
                .count();
            let (part, rest) = records.split_at(run * size);
            if let Some(device) = key.device() {
                self.add_device(device);
            }
            let family = self
                .router
                .family(key, &self.parts.dictionary, &mut self.dir);
            let mut counts = TraceCounts::default();
            if let Some(trace) = Trace::of(key.level, false) {
                counts.add(trace, run as u64);
            }
            self.write(family, part, &counts, account);
            records = rest;
        }
    }

    fn write(
        &mut self,
        family: FamilyId,
        bytes: &[u8],
        counts: &TraceCounts,
        account: &mut Account,
    ) {
        if bytes.is_empty() {
            return;
        }
        if self.error.is_some() {
            account.unwritten.merge(counts);
            return;
        }
        match self.dir.append(family, bytes, counts) {
            Ok(()) => account.written.merge(counts),
            Err(error) => {
                let kept = error.kept().counts;
                account.written.merge(&kept);
                for ((lost, all), kept) in account.unwritten.0.iter_mut().zip(counts.0).zip(kept.0)
                {
                    *lost += all - kept;
                }
                self.write_failed(&error);
            }
        }
    }

    fn write_failed(&mut self, error: &ProfDirError) {
        if error.is_limit() {
            self.note(error.to_string());
            return;
        }
        if self.error.is_none() {
            tracing::error!("capture ended: {error}");
            self.note(format!("capture ended: {error}"));
            self.error = Some(error.to_string());
            gate::close(self.number);
        }
    }

    fn note(&mut self, note: String) {
        let notes = &mut self.ledger.notes;
        if notes.len() < NOTES_MAX && !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Writes names that were registered since the last time.
    fn write_names(&mut self) {
        let mut lines = Vec::new();
        let types = self.parts.dictionary.types_from(self.types.1);
        if !types.is_empty() {
            for entry in &types {
                profdir::type_line(&mut lines, entry.level, entry.kind, &entry.name);
            }
            self.types.1 += types.len();
            self.router.forget();
            self.write_text(self.types.0, &lines);
        }
        let strings = self.parts.dictionary.strings_from(self.strings.1);
        if !strings.is_empty() {
            lines.clear();
            for entry in &strings {
                profdir::hash_line(&mut lines, entry.id, entry.text.to_bytes());
            }
            self.strings.1 += strings.len();
            self.write_text(self.strings.0, &lines);
        }
    }

    fn write_text(&mut self, family: FamilyId, lines: &[u8]) {
        let mut account = Account::default();
        self.write(family, lines, &TraceCounts::default(), &mut account);
    }

    fn add_device(&mut self, device: u32) {
        if !self.devices.insert(device) || self.error.is_some() {
            return;
        }
        let sample = self.params.sample_json(&SampleFill {
            devices: &device.to_string(),
            host: false,
            result_dir: &self.dir.path().to_string_lossy(),
            pid: process::current_pid(),
        });
        // The capture's own start: the parser drops aicpu records that are older than the device's.
        let start = self.ledger.start;
        if let Err(error) = self.dir.add_device(device, &sample, start, None) {
            self.write_failed(&error);
        }
    }

    /// Files long and legacy reports.
    fn take_owned(&mut self) {
        while let Some(owned) = self.parts.owned.pop() {
            // A report that came too late for the capture in which it was made.
            if owned.capture == self.number {
                self.write_owned(&owned);
            }
        }
    }

    fn write_owned(&mut self, owned: &Owned) {
        let mut account = self.owned;
        let mut counts = TraceCounts::default();
        let family = match &owned.kind {
            OwnedKind::Variable => {
                counts.add(owned.trace, 1);
                let name = "unaging.variable.capture_op_info";
                self.dir.family(Place::Host, name, None)
            }
            OwnedKind::DataPreprocess { tag, device } => {
                let binary = owned.bytes.len().is_multiple_of(LEGACY_RECORD);
                let records = if binary {
                    owned.bytes.len() / LEGACY_RECORD
                } else {
                    1
                };
                counts.add(owned.trace, records as u64);
                self.legacy_family(tag, *device)
            }
        };
        account.published += counts.total();
        self.write(family, &owned.bytes, &counts, &mut account);
        self.owned = account;
    }

    /// Family of a DATA_PREPROCESS report; device 64 stands for the host (spec 3 section 3).
    fn legacy_family(&mut self, tag: &[u8], device: Option<u32>) -> FamilyId {
        const HOST: u32 = 64;
        let tag = profdir::family_file_name(tag);
        let device = device.filter(|&device| device < HOST);
        if let Some(device) = device {
            self.add_device(device);
        }
        let place = device.map_or(Place::Host, Place::Device);
        let name = format!("DATA_PREPROCESS.{tag}.{}", device.unwrap_or(HOST));
        self.dir.family(place, &name, None)
    }

    /// The account so far.
    fn sum_up(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        for account in &self.closed {
            account::add(&mut ledger, account);
        }
        for lane in &self.lanes {
            let mut account = lane.account;
            account.dropped = lane.lane.lost(self.number);
            account::add(&mut ledger, &account);
        }
        let mut owned = self.owned;
        owned.dropped = self.parts.lanes.homeless();
        account::add(&mut ledger, &owned);
        ledger.devices = self.devices.iter().copied().collect();
        ledger.unreadable = self.parts.unreadable.load(Ordering::Relaxed);
        // `written` is what is in the directory: aged out records are no longer.
        ledger.aged_out = self.dir.aged_out();
        for (written, aged) in ledger.written.0.iter_mut().zip(ledger.aged_out.0) {
            *written -= aged.min(*written);
        }
        ledger.bytes = self.dir.bytes();
        if self.error.is_some() {
            ledger.state = CaptureState::Failed;
        }
        ledger
    }

    fn publish_snapshot(&self) {
        *self.progress.ledger.lock() = self.sum_up();
    }

    /// Writes the ledger of a capture that has just begun: what a killed process leaves behind.
    fn publish_ledger(&mut self) {
        let ledger = self.sum_up();
        if let Err(error) = self.dir.write_ledger(&ledger) {
            self.write_failed(&error);
        }
        *self.progress.ledger.lock() = ledger;
    }

    fn finish(mut self, stop: Anchor, note: Option<String>) -> Stopped {
        if let Some(note) = note {
            self.note(note);
        }
        self.pass(true);
        // Once more: the first pass may have taken long, and names may have come with the last records.
        self.pass(true);
        for lane in std::mem::take(&mut self.lanes) {
            self.close(&lane);
        }
        self.ledger.stop = Some(stop);
        self.ledger.state = CaptureState::Complete;
        if let Err(error) = self.dir.finish(stop) {
            self.write_failed(&error);
        }
        let mut ledger = self.sum_up();
        if let Err(error) = self.dir.write_ledger(&ledger) {
            self.write_failed(&error);
            ledger = self.sum_up();
        }
        *self.progress.ledger.lock() = ledger.clone();
        let path: PathBuf = self.dir.path().to_owned();
        Stopped {
            path,
            ledger,
            error: self.error,
        }
    }
}

/// Api records by trace.
fn count_api(records: &[u8]) -> TraceCounts {
    let mut counts = TraceCounts::default();
    for record in records.chunks_exact(RecordSize::Api.bytes()) {
        let level = u16::from_le_bytes([record[2], record[3]]);
        if let Some(trace) = Trace::of(level, true) {
            counts.add(trace, 1);
        }
    }
    counts
}

impl LaneDrain {
    fn find_new_rings(&mut self) {
        while self.sources.len() < self.lane.rings() {
            let Some((key, place)) = self.lane.ring(self.sources.len()) else {
                return;
            };
            self.sources.push(Source {
                key,
                // SAFETY: captures are drained one after the other (`Captures` starts none before the
                // last one's drain has ended), and within one each ring is taken up once, here.
                consumer: unsafe { Consumer::new(place) },
                written_at: Instant::now(),
            });
        }
    }
}
