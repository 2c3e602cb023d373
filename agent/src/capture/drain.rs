//! The thread that takes records out of the rings and writes them.
//!
//! It exists while something is captured. Each pass writes the names that are new, then what waits in
//! every thread's rings, as contiguous ring memory. After an error on writing it closes the gate and
//! goes on emptying the rings, so that everything that was reported is counted as lost.

mod lane;
mod sums;

use super::account::{self, Account};
use super::drain_handle::Progress;
use super::orders::{Order, Orders};
use super::output::Output;
use super::pacing::{self, PARTIAL_INTERVAL};
use super::{Parts, StartError, Stopped};
use crate::arena::{Arena, PAGE_BYTES};
use crate::clock;
use crate::clock::Moment;
use crate::device::Reading;
use crate::gate::{self, Word};
use crate::lanes::Lane;
use crate::ledger::{Anchor, CaptureState, Ledger};
use crate::process;
use crate::pulled::Fetcher;
use lane::{LaneDrain, Source};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pages of one ring's full segments that are written before the other rings have their turn: 2 MiB.
const PAGES_PER_TURN: usize = 512;
/// Bytes of the devices' records that are written before the rings have their turn.
const BATCH_BYTES_PER_TURN: usize = 4 << 20;
/// How often the account so far is written into the directory.
const LEDGER_INTERVAL: Duration = Duration::from_secs(1);
/// How often the account is made visible to `status`, and what was written is handed on to the disk.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(100);

/// How long records are fetched from another library's buffers after the stop, if threads go on filling them: times
/// what full ones take.
const FETCH_AT_STOP: Duration = Duration::from_secs(1);

/// What a pass takes of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    /// Full segments, as many as one turn may have.
    Full,
    /// What is in the last segment too.
    Waiting,
    /// Everything, until nothing waits.
    All,
}

/// Everything that the drain thread owns.
#[derive(Debug)]
pub struct Drain {
    number: u64,
    /// For records that wait in another library's buffers.
    fetcher: Fetcher,
    output: Output,
    /// The account of what has ended: threads that are gone.
    ledger: Ledger,
    parts: Parts,
    /// The devices' channels, where aicpu is captured.
    reading: Option<Reading>,
    lanes: Vec<LaneDrain>,
    lanes_version: Option<u64>,
    /// Account of reports that went through no lane.
    long: Account,
    /// Records of threads that are gone for which there was no room in the rings.
    dropped: u64,
    progress: Arc<Progress>,
}

impl Drain {
    /// Prepares the drain of the capture of `word`; `ledger` holds what is known at the start.
    pub fn new(word: Word, mut output: Output, ledger: Ledger, parts: Parts) -> Drain {
        output.know_models(parts.models.clone());
        Drain {
            number: word.number(),
            fetcher: Fetcher::new(word),
            output,
            ledger,
            parts,
            reading: None,
            lanes: Vec::new(),
            lanes_version: None,
            long: Account::default(),
            dropped: 0,
            progress: Arc::default(),
        }
    }

    /// Writes what is read of the devices' channels too.
    pub fn add_channels(&mut self, reading: Reading) {
        self.output.set_clocks(reading.clocks());
        self.reading = Some(reading);
    }

    /// Writes what a killed process would have to leave: directories of `devices`, names, an account with
    /// `note`. Before the capture is said to run.
    pub fn prepare(&mut self, devices: &[u32], note: Option<String>) -> Result<(), StartError> {
        if let Some(note) = note {
            self.output.note(note);
        }
        for &device in devices {
            self.output.add_device(device);
        }
        self.output.write_all_names();
        self.output.name_known_models();
        self.note_clock();
        let ledger = self.account_so_far();
        self.output.write_ledger(&ledger);
        *self.progress.ledger.lock() = ledger;
        if let Some(arena) = self.parts.lanes.arena() {
            arena.board().begin(self.number);
        }
        match self.output.error() {
            Some(failure) => Err(StartError::Output(failure.reason.clone())),
            None => Ok(()),
        }
    }

    /// What is shared with whoever watches.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Drains until an order ends it.
    pub fn run(mut self, orders: &Arc<Orders>) -> Stopped {
        let mut pause = pacing::FIRST;
        let begin = Moment::now();
        let (mut partial_at, mut anchored_at) = (begin, begin);
        let (mut snapshot_at, mut ledger_at) = (begin, begin);
        loop {
            match orders.take(pause) {
                Some(Order::AddDevice(device)) => {
                    if let Some(reading) = &mut self.reading {
                        reading.open(device);
                    }
                    self.output.add_device(device);
                }
                Some(Order::CloseDevice(device)) => {
                    if let Some(reading) = &mut self.reading {
                        reading.close(device);
                    }
                }
                Some(Order::Finish { stop, note, calls }) => return self.finish(stop, note, calls),
                None => {}
            }
            let now = Moment::now();
            let partial = now - partial_at >= PARTIAL_INTERVAL;
            if partial {
                partial_at = now;
            }
            let take = if partial { Take::Waiting } else { Take::Full };
            let more_waits = self.fetcher.fetch() | self.take_batches();
            pause = self.pass(take, pause, more_waits);
            // The next partial pass is not to be slept over.
            pause = pause.min(PARTIAL_INTERVAL.saturating_sub(partial_at.elapsed()));
            if process::reserve::is_low() {
                let reason = "the process has no memory left";
                self.output.end_capture(reason.to_owned());
            }
            if let Some(failure) = self.output.error() {
                // The error may have come before the gate was opened.
                gate::close(self.number);
                if self.progress.failed.set(failure.clone()).is_ok() {
                    self.parts.alarm.ring();
                }
            }
            if gate::load().number() != self.number && self.has_failed() {
                // Nobody wants them, and full buffers would cost the program's threads more.
                self.fetcher.end();
            }
            if now - anchored_at >= clock::REANCHOR_INTERVAL {
                anchored_at = now;
                clock::reanchor();
                self.note_clock();
            }
            if now - snapshot_at >= SNAPSHOT_INTERVAL {
                snapshot_at = now;
                self.output.name_models(false);
                self.publish_snapshot();
                if now - ledger_at >= LEDGER_INTERVAL {
                    // For whoever finds the directory of a killed process.
                    ledger_at = now;
                    self.publish_ledger();
                }
                self.output.start_write_back();
            }
        }
    }

    /// Whether nothing more is written of this capture.
    fn has_failed(&self) -> bool {
        self.output.error().is_some() || self.parts.disabled.lock().is_some()
    }

    /// Takes what waits after a sleep of `last`; returns how long to sleep next. `more_waits`: in another library's
    /// buffers.
    fn pass(&mut self, take: Take, last: Duration, more_waits: bool) -> Duration {
        // Names first: a killed process then leaves few records whose name is missing, those that came
        // with their name in the midst of the last pass.
        let more_names = self.output.write_names();
        self.refresh_lanes();
        self.take_long();
        let rings = self.parts.lanes.clone();
        let Some(arena) = rings.arena() else {
            return pacing::FIRST;
        };
        let mut lanes = std::mem::take(&mut self.lanes);
        let (mut taken, mut cut_short) = (0, more_waits || more_names);
        for lane in &mut lanes {
            lane.find_new_rings();
            for source in &mut lane.sources {
                let full = self.drain_source(arena, source, &mut lane.account, take);
                taken += full;
                cut_short |= full >= PAGES_PER_TURN;
            }
        }
        lanes.retain_mut(|lane| !self.retire_ended(arena, lane));
        self.lanes = lanes;
        arena.prefault_ahead();
        let waiting = self.waiting(arena);
        let bytes = (waiting * PAGE_BYTES) as u64;
        self.progress.remaining.store(bytes, Ordering::Relaxed);
        pacing::pause(last, taken, waiting, cut_short, arena.budget())
    }

    /// Pages that are held beyond those of the segment that each ring has anyway.
    fn waiting(&self, arena: &Arena) -> usize {
        let sources = self.lanes.iter().flat_map(|lane| &lane.sources);
        let held: usize = sources.map(|source| source.consumer.pages(arena)).sum();
        arena.charged().saturating_sub(held)
    }

    fn refresh_lanes(&mut self) {
        let version = self.parts.lanes.version();
        if self.lanes_version == Some(version) {
            return;
        }
        self.lanes_version = Some(version);
        let known = self.lanes.iter().map(|known| Arc::as_ptr(&known.lane));
        let known: HashSet<*const Lane> = known.collect();
        let mut all = self.parts.lanes.snapshot();
        all.retain(|lane| !known.contains(&Arc::as_ptr(lane)));
        self.lanes.extend(all.into_iter().map(|lane| LaneDrain {
            account: Account {
                tid: lane.tid,
                ..Account::default()
            },
            lane,
            sources: Vec::new(),
        }));
    }

    /// Closes the account of a thread that has ended, when its rings are empty.
    fn retire_ended(&mut self, arena: &Arena, lane: &mut LaneDrain) -> bool {
        // The order matters: what the thread published before it ended is seen from here on.
        if !lane.lane.ended() {
            return false;
        }
        lane.find_new_rings();
        self.close(arena, lane);
        lane.sources.clear();
        // SAFETY: the thread has ended, and its consumers, which this thread alone has, were dropped.
        unsafe { self.parts.lanes.retire(&lane.lane) };
        true
    }

    /// Takes what is left of a thread's records and closes its account.
    fn close(&mut self, arena: &Arena, lane: &mut LaneDrain) {
        // A thread that was in the midst of a report when the gate closed may publish it at any moment,
        // so that the number of published records is known as a range.
        let least = lane.published(arena, self.number);
        for source in &mut lane.sources {
            self.drain_source(arena, source, &mut lane.account, Take::All);
        }
        let most = lane.published(arena, self.number);
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
        self.dropped += account.dropped.total();
        account::add(&mut self.ledger, &account);
    }

    /// Writes what is due of one ring; returns the pages of full segments among it.
    fn drain_source(
        &mut self,
        arena: &Arena,
        source: &mut Source,
        account: &mut Account,
        take: Take,
    ) -> usize {
        let size = source.ring.key.size.bytes();
        let mut full = 0;
        while take == Take::All || full < PAGES_PER_TURN {
            let readable = source.consumer.readable(arena, self.number);
            if readable.bytes.is_empty() || !(readable.full || take != Take::Full) {
                break;
            }
            let count = readable.bytes.len() / size;
            let last = !readable.full;
            let mut rest = readable.bytes;
            while !rest.is_empty() {
                let (segment, tail) = (source.consumer.number(), source.consumer.tail());
                let stretch = arena.board().stretch(segment, tail);
                let key = source.ring.key;
                let done = self.output.write_records(key, rest, account, Some(stretch));
                source.consumer.release(arena, done);
                stretch.end();
                rest = &rest[done as usize * size..];
            }
            if last {
                break;
            }
            full += count.div_ceil(PAGE_BYTES / size);
        }
        full
    }

    /// Files what was read of the devices' channels, as much as one turn may have; returns whether more waits.
    fn take_batches(&mut self) -> bool {
        let Some(reading) = &self.reading else {
            return false;
        };
        write_batches(
            &mut self.output,
            &mut self.long,
            reading,
            BATCH_BYTES_PER_TURN,
        );
        reading.has_more()
    }

    /// Takes what the devices' channels still hold.
    fn end_reading(&mut self, calls: bool) {
        let Some(mut reading) = self.reading.take() else {
            return;
        };
        let mut renewed_at = Moment::now();
        reading.end(calls, |reading| {
            if renewed_at.elapsed() >= LEDGER_INTERVAL {
                // For whoever finds the directory of a process that is killed now.
                renewed_at = Moment::now();
                self.ledger.channels = reading.channels();
                self.publish_ledger();
            }
            write_batches(&mut self.output, &mut self.long, reading, usize::MAX) > 0
        });
        self.reading = Some(reading);
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

    fn finish(mut self, stop: Anchor, note: Option<String>, calls: bool) -> Stopped {
        if let Some(note) = note {
            self.output.note(note);
        }
        // Before the last pass, which finds this thread's own rings then.
        let deadline = Moment::now() + FETCH_AT_STOP;
        while self.fetcher.fetch() && !deadline.has_come() {
            self.pass(Take::Waiting, Duration::ZERO, true);
        }
        self.fetcher.end();
        self.pass(Take::All, Duration::ZERO, false);
        self.end_reading(calls);
        self.parts.marks.forget_open();
        let rings = self.parts.lanes.clone();
        for mut lane in std::mem::take(&mut self.lanes) {
            if let Some(arena) = rings.arena() {
                self.close(arena, &mut lane);
            }
        }
        let has_losses = self.sum_up().lost.total() > 0;
        self.output.name_models(true);
        self.output.settle_events(has_losses);
        // Before the account is final: from here on the directory is as it says.
        if let Some(arena) = rings.arena() {
            arena.board().end();
        }
        self.output.write_all_names();
        if self.parts.lanes.starved() {
            let note = "there was no memory left for some threads; raise MSPROF_AGENT_BUFFER_MB";
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

/// Files what was read of the devices' channels until so many bytes; returns how many.
fn write_batches(
    output: &mut Output,
    account: &mut Account,
    reading: &Reading,
    most: usize,
) -> usize {
    let mut bytes = 0;
    while bytes < most
        && let Some(batch) = reading.take()
    {
        bytes += batch.bytes.len();
        output.write_batch(&batch, account);
    }
    bytes
}
