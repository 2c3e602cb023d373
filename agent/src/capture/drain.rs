//! The thread that takes records out of the rings and writes them.
//!
//! It exists while something is captured. Each pass writes the names that are new, then what waits in
//! every thread's rings, as contiguous ring memory. After an error on writing it closes the gate and
//! goes on emptying the rings, so that everything that was reported is counted as lost.

use super::account::{self, Account};
use super::handle::{DrainHandle, Order, Progress};
use super::ledger::{Anchor, CaptureState, Ledger};
use super::output::Output;
use super::{Parts, Stopped};
use crate::lanes::{Lane, RingKey};
use crate::process;
use crate::ring::Consumer;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, unbounded};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
#[derive(Debug)]
pub struct Drain {
    number: u64,
    output: Output,
    ledger: Ledger,
    parts: Parts,
    lanes: Vec<LaneDrain>,
    lanes_version: Option<u64>,
    /// Accounts of threads whose lanes were retired.
    closed: Vec<Account>,
    /// Account of reports that went through no lane.
    owned: Account,
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
            closed: Vec::new(),
            owned: Account::default(),
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
            self.output.add_device(device);
        }
        self.output.write_names();
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
                Ok(Order::AddDevice(device)) => self.output.add_device(device),
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
        self.output.write_names();
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
            self.output.note(format!(
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
            self.output.write_records(source.key, part, account);
        }
        source.consumer.release(count as u64);
    }

    /// Files long and legacy reports.
    fn take_owned(&mut self) {
        while let Some(owned) = self.parts.owned.pop() {
            // A report that came too late for the capture in which it was made.
            if owned.capture == self.number {
                self.output.write_owned(&owned, &mut self.owned);
            }
        }
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
        ledger.unreadable = self.parts.unreadable.load(Ordering::Relaxed);
        self.output.complete(&mut ledger);
        ledger
    }

    fn publish_snapshot(&self) {
        *self.progress.ledger.lock() = self.sum_up();
    }

    /// Writes the ledger of a capture that has just begun: what a killed process leaves behind.
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
        // Once more: the first pass may have taken long, and names may have come with the last records.
        self.pass(true);
        for lane in std::mem::take(&mut self.lanes) {
            self.close(&lane);
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
