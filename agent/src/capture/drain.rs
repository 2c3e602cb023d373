//! The thread that takes records out of the rings and writes them.
//!
//! It exists while something is captured. Each pass writes the names that are new, then what waits in
//! every thread's rings, as contiguous ring memory. After an error on writing it closes the gate and
//! goes on emptying the rings, so that everything that was reported is counted as lost.

use super::account::{self, Account};
use super::drain_handle::{DrainHandle, Order, Progress};
use super::output::Output;
use super::{Parts, StartError, Stopped};
use crate::arena::SEGMENT_BYTES;
use crate::clock;
use crate::lanes::{Lane, MadeRing};
use crate::ledger::{Anchor, CaptureState, Ledger};
use crate::process;
use crate::ring::Consumer;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, unbounded};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two passes when little comes in, and when segments fill up.
const SLEEP_IDLE: Duration = Duration::from_millis(5);
const SLEEP_BUSY: Duration = Duration::from_millis(1);
/// A segment is written when it is full, or when this long after the last time.
const MAX_AGE: Duration = Duration::from_millis(10);
/// Full segments of one ring that are written before the other rings have their turn.
const SEGMENTS_PER_TURN: usize = 32;
/// How often the account so far is written into the directory.
const LEDGER_INTERVAL: Duration = Duration::from_secs(1);
/// How often the account is made visible to `status`, and the dictionary is looked at.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(100);

/// One ring being drained.
#[derive(Debug)]
struct Source {
    ring: Arc<MadeRing>,
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
#[derive(Debug)]
pub struct Drain {
    number: u64,
    output: Output,
    /// The account of what has ended: threads that are gone.
    ledger: Ledger,
    parts: Parts,
    lanes: Vec<LaneDrain>,
    lanes_version: Option<u64>,
    /// Account of reports that went through no lane.
    long: Account,
    progress: Arc<Progress>,
}

impl Drain {
    /// Prepares the drain of capture `number`; `ledger` holds what is known at the start.
    pub fn new(number: u64, output: Output, ledger: Ledger, parts: Parts) -> Drain {
        Drain {
            number,
            output,
            ledger,
            parts,
            lanes: Vec::new(),
            lanes_version: None,
            long: Account::default(),
            progress: Arc::default(),
        }
    }

    /// Starts the thread; directories of `devices` are made first.
    pub fn spawn(mut self, devices: &[u32]) -> Result<DrainHandle, StartError> {
        let (orders, received) = unbounded();
        let (sender, outcome) = bounded(1);
        let progress = self.progress.clone();
        for &device in devices {
            // Before the capture is said to run, so that a killed process leaves them complete.
            self.output.add_device(device);
        }
        self.output.write_names();
        self.publish_ledger();
        if let Some(error) = self.output.error() {
            return Err(StartError::Output(error.to_owned()));
        }
        let ended = self.progress.clone();
        let thread = process::spawn("msprof-drain", move || {
            let stopped = self.run(&received);
            ended.ended.store(true, Ordering::Release);
            // Nobody may be waiting any more: then the directory alone tells.
            let _ = sender.send(stopped);
        })
        .map_err(StartError::Thread)?;
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
        let mut anchored_at = Instant::now();
        let mut ledger_at = Instant::now();
        loop {
            match orders.recv_timeout(sleep) {
                Ok(Order::AddDevice(device)) => self.output.add_device(device),
                Ok(Order::Finish { stop, note }) => return self.finish(stop, note),
                Err(RecvTimeoutError::Timeout) => {}
                // The agent object is gone, which happens in no live process.
                Err(RecvTimeoutError::Disconnected) => {
                    return self.finish(clock::anchor(), None);
                }
            }
            sleep = self.pass(false);
            if anchored_at.elapsed() >= clock::REANCHOR_INTERVAL {
                anchored_at = Instant::now();
                clock::reanchor();
            }
            if snapshot_at.elapsed() >= SNAPSHOT_INTERVAL {
                snapshot_at = Instant::now();
                self.publish_snapshot();
                if ledger_at.elapsed() >= LEDGER_INTERVAL {
                    // For whoever finds the directory of a killed process.
                    ledger_at = Instant::now();
                    self.publish_ledger();
                }
                if self.has_leisure() {
                    self.output.start_write_back();
                }
            }
        }
    }

    /// Takes what waits; returns how long to sleep. `all`: what is young, too, and until nothing waits.
    fn pass(&mut self, all: bool) -> Duration {
        // Names first: a killed process then leaves no record whose name is missing.
        self.output.write_names();
        self.refresh_lanes();
        self.take_long();
        let mut lanes = std::mem::take(&mut self.lanes);
        let mut full = 0;
        for lane in &mut lanes {
            lane.find_new_rings();
            for source in &mut lane.sources {
                full += self.drain_source(source, &mut lane.account, all);
            }
        }
        lanes.retain_mut(|lane| !self.retire_ended(lane));
        self.lanes = lanes;
        self.pace(full)
    }

    /// How long to sleep after a pass that found `full` segments.
    fn pace(&self, full: usize) -> Duration {
        let Some(arena) = self.parts.lanes.arena() else {
            return SLEEP_IDLE;
        };
        arena.prefault_ahead();
        let taken = arena.segments().saturating_sub(arena.free());
        let rings: usize = self.lanes.iter().map(|lane| lane.sources.len()).sum();
        let waiting = taken.saturating_sub(rings) * SEGMENT_BYTES;
        self.progress
            .remaining
            .store(waiting as u64, Ordering::Relaxed);
        if waiting > arena.segments() * SEGMENT_BYTES / 2 {
            Duration::ZERO
        } else if full > 0 {
            SLEEP_BUSY
        } else {
            SLEEP_IDLE
        }
    }

    /// Whether so much memory is free that a slow call does no harm.
    fn has_leisure(&self) -> bool {
        let arena = self.parts.lanes.arena();
        arena.is_some_and(|arena| arena.free() * 4 > arena.segments() * 3)
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

    /// Closes the account of a thread that has ended, when its rings are empty.
    fn retire_ended(&mut self, lane: &mut LaneDrain) -> bool {
        // The order matters: what the thread published before it ended is seen from here on.
        if !lane.lane.ended() {
            return false;
        }
        lane.find_new_rings();
        self.close(lane);
        lane.sources.clear();
        // SAFETY: the thread has ended, and its consumers, which this thread alone has, were dropped.
        unsafe { self.parts.lanes.retire(&lane.lane) };
        true
    }

    /// Takes what is left of a thread's records and closes its account.
    fn close(&mut self, lane: &mut LaneDrain) {
        // A thread that was in the midst of a report when the gate closed may publish it at any moment,
        // so that the number of published records is known as a range.
        let least = self.published(lane);
        for source in &mut lane.sources {
            self.drain_source(source, &mut lane.account, true);
        }
        let most = self.published(lane);
        let mut account = lane.account;
        account.dropped = lane.lane.lost(self.number);
        if !(least..=most).contains(&account.taken()) {
            self.output.note(format!(
                "thread {}: {least} to {most} records were published but {} taken; please report this",
                account.tid,
                account.taken()
            ));
        }
        for source in &lane.sources {
            source.ring.put_back(&source.consumer);
        }
        account::add(&mut self.ledger, &account);
    }

    /// Records of a thread that were published so far, by the producers' own indices.
    fn published(&self, lane: &LaneDrain) -> u64 {
        let Some(arena) = self.parts.lanes.arena() else {
            return 0;
        };
        let of = |source: &Source| source.consumer.published(arena, self.number);
        lane.sources.iter().map(of).sum()
    }

    /// Writes what is due of one ring; returns the number of full segments among it.
    fn drain_source(&mut self, source: &mut Source, account: &mut Account, all: bool) -> usize {
        let lanes = self.parts.lanes.clone();
        let Some(arena) = lanes.arena() else {
            return 0;
        };
        let due = all || source.written_at.elapsed() >= MAX_AGE;
        let size = source.ring.key.size.bytes();
        let mut full = 0;
        while all || full < SEGMENTS_PER_TURN {
            let readable = source.consumer.readable(arena, self.number);
            if readable.bytes.is_empty() || !(readable.full || due) {
                break;
            }
            self.output
                .write_records(source.ring.key, readable.bytes, account);
            let count = readable.bytes.len() / size;
            let last = !readable.full;
            source.consumer.release(count as u64);
            source.written_at = Instant::now();
            if last {
                break;
            }
            full += 1;
        }
        full
    }

    /// Files long and legacy reports.
    fn take_long(&mut self) {
        while let Some(long) = self.parts.long.pop() {
            // A report that came too late for the capture in which it was made.
            if long.capture == self.number {
                self.output.write_long(&long, &mut self.long);
            }
        }
    }

    /// The account so far.
    fn sum_up(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        for lane in &self.lanes {
            let mut account = lane.account;
            account.dropped = lane.lane.lost(self.number);
            account::add(&mut ledger, &account);
        }
        let mut long = self.long;
        long.dropped = self.parts.lanes.homeless();
        account::add(&mut ledger, &long);
        ledger.unreadable = self.parts.unreadable.load(Ordering::Relaxed);
        ledger
            .model_devices
            .clone_from(&self.parts.model_devices.lock());
        self.output.complete(&mut ledger);
        ledger
    }

    fn publish_snapshot(&self) {
        *self.progress.ledger.lock() = self.sum_up();
    }

    /// Writes the account so far into the directory: what a killed process leaves behind.
    fn publish_ledger(&mut self) {
        let ledger = self.sum_up();
        self.output.write_ledger(&ledger);
        *self.progress.ledger.lock() = ledger;
    }

    fn finish(mut self, stop: Anchor, note: Option<String>) -> Stopped {
        if let Some(note) = note {
            self.output.note(note);
        }
        self.pass(true);
        for mut lane in std::mem::take(&mut self.lanes) {
            self.close(&mut lane);
        }
        self.output.write_names();
        if self.parts.lanes.starved() {
            let note = "some threads found no buffer at all; raise MSPROF_AGENT_BUFFER_MB";
            self.output.note(note.to_owned());
        }
        self.ledger.stop = Some(stop);
        self.ledger.state = CaptureState::Complete;
        self.output.finish(stop);
        let ledger = self.sum_up();
        self.output.write_ledger(&ledger);
        // Once more: the ledger itself may have failed to be written.
        let ledger = self.sum_up();
        *self.progress.ledger.lock() = ledger.clone();
        self.output.into_stopped(ledger)
    }
}

impl LaneDrain {
    fn find_new_rings(&mut self) {
        while self.sources.len() < self.lane.rings() {
            let Some(ring) = self.lane.ring(self.sources.len()) else {
                return;
            };
            // SAFETY: captures are drained one after the other (`Captures` starts none before the last
            // one's drain has ended, which put its consumers back), and within one each ring is taken up
            // once, here.
            let consumer = unsafe { ring.consumer() };
            self.sources.push(Source {
                ring,
                consumer,
                written_at: Instant::now(),
            });
        }
    }
}
