//! Where the drain writes to: the PROF directory with its families, names and devices.
//!
//! A want of descriptors or memory is waited out for a while. The first other error on writing closes the gate
//! and is kept; from then on everything counts as lost. The account in mid capture is nothing to end one for, unless it
//! shows that the directory has been removed.

#![forbid(unsafe_code)]

mod devices;
mod events;
mod names;

use super::account::Account;
use super::gathered::Gathered;
use super::models::{Models, Repeat};
use super::router::{self, RouteKey, Router};
use super::runs::{self, Runs, Written};
use super::{Failure, Stopped};
use crate::board::Stretch;
use crate::clock;
use crate::clock::Moment;
use crate::device::{Batch, Clocks};
use crate::dictionary::Dictionary;
use crate::gate;
use crate::lanes::RingKey;
use crate::ledger::{Anchor, CaptureState, Ledger, NOTES_MAX};
use crate::long::{LongKind, LongReport};
use crate::params::{Params, SampleFill};
use crate::process;
use crate::profdir::{self, FamilyId, Place, ProfDir, ProfDirError};
use crate::records::{AdditionalRecord, RecordSize, Trace, TraceCounts, level};
use crate::waiting;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The PROF directory of one capture, as the drain thread uses it.
#[derive(Debug)]
pub struct Output {
    number: u64,
    dir: ProfDir,
    dictionary: Arc<Dictionary>,
    params: Params,
    start: Anchor,
    router: Router,
    api_families: [FamilyId; 2],
    /// Families of the two dictionaries, and how many of their entries are written.
    strings: (FamilyId, usize),
    types: (FamilyId, usize),
    devices: BTreeSet<u32>,
    /// What the ticks in the devices' data are, where a driver may say so.
    clocks: Option<Clocks>,
    gathered: Gathered,
    runs: Runs,
    notes: Vec<String>,
    error: Option<Failure>,
    /// How often the account could not be renewed, and why not the last time.
    unrenewed: Option<(u64, String)>,
}

/// How long a want of descriptors or memory may last. Meanwhile the rings fill, and what does not fit is
/// counted as lost; less than an exit waits for the end of a capture.
const WANT_LIMIT: Duration = Duration::from_millis(1500);
/// How long until the next attempt.
const WANT_PAUSE: Duration = Duration::from_millis(10);

/// Whether records say what models are called.
fn names_models(ring: RingKey, key: RouteKey) -> bool {
    ring.size == RecordSize::Additional
        && key.level == level::MODEL
        && key.kind == AdditionalRecord::GRAPH_ID_MAP
}

impl Output {
    /// Takes over a directory that was just made, for capture `number` that began at `start`.
    pub fn new(
        number: u64,
        mut dir: ProfDir,
        dictionary: Arc<Dictionary>,
        params: Params,
        start: Anchor,
    ) -> Output {
        let mut host = |name: &str, size| dir.family(Place::Host, name, size);
        let api = Some(RecordSize::Api.bytes());
        let api_families = [
            host("unaging.api_event.data", api),
            host("aging.api_event.data", api),
        ];
        let strings = host("unaging.additional.hash_dic", None);
        let types = host("unaging.additional.type_info_dic", None);
        Output {
            number,
            dir,
            dictionary,
            params,
            start,
            router: Router::default(),
            api_families,
            strings: (strings, 0),
            types: (types, 0),
            devices: BTreeSet::new(),
            clocks: None,
            gathered: Gathered::default(),
            runs: Runs::default(),
            notes: Vec::new(),
            error: None,
            unrenewed: None,
        }
    }

    /// Lets it know the models of earlier captures, before the first record.
    pub fn know_models(&mut self, models: Arc<Mutex<Models>>) {
        self.runs = Runs::new(models);
    }

    /// Writes records of one ring, contiguous and whole; `account` says what became of them. Returns how many
    /// are done with, from the first on: not all where they are of many families. `stretch` is where they lie in
    /// the rings, if they do.
    pub fn write_records(
        &mut self,
        ring: RingKey,
        records: &[u8],
        account: &mut Account,
        stretch: Option<Stretch<'_>>,
    ) -> u64 {
        if ring.size != RecordSize::Api {
            return self.write_runs(ring, records, account, stretch);
        }
        let count = (records.len() / ring.size.bytes()) as u64;
        if let Some(stretch) = stretch {
            stretch.begin(count);
        }
        let family = self.api_families[ring.aging as usize];
        let (counts, has_runs) = TraceCounts::of_apis(records);
        let written = self.write(family, records, &counts, account, stretch);
        if let Some(written) = written.filter(|_| has_runs) {
            self.runs.take_apis(records, written, &self.dir);
        }
        count
    }

    /// Writes compact or additional records. Types alternate in practice (a task track beside each node
    /// info), so the records of each family are gathered first: one append per family.
    fn write_runs(
        &mut self,
        ring: RingKey,
        records: &[u8],
        account: &mut Account,
        stretch: Option<Stretch<'_>>,
    ) -> u64 {
        let size = ring.size.bytes();
        let mut rest = records;
        let only_device = self.only_device();
        // A type may have got its name since the pass began, just before a record that is here.
        self.write_names();
        let mut gathered = std::mem::take(&mut self.gathered);
        while rest.len() >= size {
            let (key, run) = RouteKey::of_run(ring, rest, only_device);
            let (part, behind) = rest.split_at(run * size);
            if let Some(device) = key.device() {
                self.add_device(device);
            }
            let family = self.router.family(key, &self.dictionary, &mut self.dir);
            let mut counts = TraceCounts::default();
            if let Some(trace) = Trace::of(key.level, false) {
                counts.add(trace, run as u64);
            }
            let names_models = names_models(ring, key);
            if gathered.is_empty() && behind.is_empty() {
                if names_models {
                    self.runs.take_names(part);
                }
                rest = behind;
                if let Some(stretch) = stretch {
                    stretch.begin(run as u64);
                }
                self.write(family, part, &counts, account, stretch);
                break;
            }
            if !gathered.add(family, part, &counts) {
                break;
            }
            if names_models {
                self.runs.take_names(part);
            }
            rest = behind;
        }
        let done = ((records.len() - rest.len()) / size) as u64;
        if let Some(stretch) = stretch.filter(|_| !gathered.is_empty()) {
            stretch.begin(done);
        }
        gathered.drain(|family, bytes, counts| {
            self.write(family, bytes, counts, account, stretch);
        });
        self.gathered = gathered;
        done
    }

    /// Says where they went, if they were written or some of them.
    fn write(
        &mut self,
        family: FamilyId,
        bytes: &[u8],
        counts: &TraceCounts,
        account: &mut Account,
        stretch: Option<Stretch<'_>>,
    ) -> Option<Written> {
        if bytes.is_empty() {
            return None;
        }
        if self.error.is_some() {
            account.unwritten.merge(counts);
            return None;
        }
        let mut place = None;
        let appended = self.with_patience(|dir| {
            dir.append_noting(family, bytes, counts, |target| {
                // The intent has room for each slice once.
                if let (None, Some(stretch)) = (place, stretch) {
                    stretch.note(target);
                }
                place = Some((target.slice, target.length));
            })
        });
        let written = match &appended {
            Ok(()) => {
                account.written.merge(counts);
                bytes.len()
            }
            Err(error) => {
                let kept = error.kept();
                account.written.merge(&kept.counts);
                let kept_counts = kept.counts.0;
                for ((lost, all), kept) in account
                    .unwritten
                    .0
                    .iter_mut()
                    .zip(counts.0)
                    .zip(kept_counts)
                {
                    *lost += all - kept;
                }
                kept.bytes as usize
            }
        };
        if let Err(error) = &appended {
            self.write_failed(error);
        }
        place.map(|(slice, offset)| Written {
            family,
            slice,
            offset,
            bytes: written,
        })
    }

    /// Does something to the directory, again and again while there is no descriptor or no memory for it.
    fn with_patience(
        &mut self,
        mut attempt: impl FnMut(&mut ProfDir) -> Result<(), ProfDirError>,
    ) -> Result<(), ProfDirError> {
        let mut since = None;
        loop {
            let error = match attempt(&mut self.dir) {
                Err(error) if error.is_passing() => error,
                done => return done,
            };
            if since.is_none() {
                tracing::warn!("tried again for a while: {error}");
            }
            if since.get_or_insert_with(Moment::now).elapsed() >= WANT_LIMIT {
                return Err(error);
            }
            waiting::sleep(WANT_PAUSE);
        }
    }

    fn write_failed(&mut self, error: &ProfDirError) {
        if error.is_limit() {
            self.note(error.to_string());
            return;
        }
        self.end_capture(error.to_string());
    }

    /// Ends the capture for this reason, if it has not ended: nothing more is taken or written.
    pub fn end_capture(&mut self, reason: String) {
        if self.error.is_none() {
            tracing::error!("capture ended: {reason}");
            self.note(format!("capture ended: {reason}"));
            self.error = Some(Failure {
                reason,
                since_unix_ns: clock::anchor().realtime_ns,
            });
            gate::close(self.number);
        }
    }

    /// Adds a sentence to the ledger, once.
    pub fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Files a long or legacy report.
    pub fn write_long(&mut self, long: &LongReport, account: &mut Account) {
        let mut counts = TraceCounts::default();
        counts.add(long.trace, long.records());
        let family = match &long.kind {
            LongKind::Record(ring) => {
                let mut rest = &long.bytes[..];
                while rest.len() >= ring.size.bytes() {
                    let done = self.write_records(*ring, rest, account, None) as usize;
                    rest = &rest[done * ring.size.bytes()..];
                }
                return;
            }
            LongKind::Variable => {
                let name = "unaging.variable.capture_op_info";
                self.dir.family(Place::Host, name, None)
            }
            LongKind::DataPreprocess { tag, device } => self.legacy_family(tag, *device),
        };
        self.write(family, &long.bytes, &counts, account, None);
    }

    /// Lets the kernel begin to write back what it holds of the slices, so that the page cache does not
    /// fill with dirty pages. Never waits for the disk.
    pub fn start_write_back(&mut self) {
        self.dir.start_write_back();
    }

    /// Why the capture has ended early, if it has.
    pub fn error(&self) -> Option<&Failure> {
        self.error.as_ref()
    }

    /// Fills in what the directory knows of the account.
    pub fn complete(&self, ledger: &mut Ledger) {
        ledger.notes.extend_from_slice(&self.notes);
        if let Some((times, reason)) = &self.unrenewed {
            ledger.notes.push(format!(
                "the account in the directory could not be renewed {times} times in mid capture: {reason}"
            ));
        }
        ledger.devices = self.devices.iter().copied().collect();
        // `written` is what is in the directory: aged out records are no longer.
        ledger.aged_out = self.dir.aged_out();
        for (written, aged) in ledger.written.0.iter_mut().zip(ledger.aged_out.0) {
            *written -= aged.min(*written);
        }
        ledger.bytes = self.dir.bytes();
        self.runs.complete(ledger);
        if self.error.is_some() {
            ledger.state = CaptureState::Failed;
        }
    }

    /// Writes the ledger into the directory, the first and the last one.
    pub fn write_ledger(&mut self, ledger: &Ledger) {
        if let Err(error) = self.with_patience(|dir| dir.write_ledger(ledger)) {
            self.write_failed(&error);
        }
    }

    /// Writes the account so far into the directory. If that fails, the next one may do better.
    pub fn renew_ledger(&mut self, ledger: &Ledger) {
        if self.error.is_some() {
            // What ended the capture is to be read there, and nothing else needs the room that was kept.
            let _ = self.dir.write_ledger(ledger);
            return;
        }
        let Err(error) = self.dir.renew_ledger(ledger) else {
            return;
        };
        if self.dir.is_removed() {
            // Files that are open would take records on, and nobody would ever see them.
            self.end_capture(error.to_string());
            return;
        }
        let (times, reason) = self.unrenewed.get_or_insert_with(|| {
            tracing::warn!("the account in the directory is not renewed: {error}");
            (0, String::new())
        });
        *times += 1;
        *reason = error.to_string();
    }

    /// Writes what the end of a capture adds.
    pub fn finish(&mut self, stop: Anchor) {
        if let Err(error) = self.with_patience(|dir| dir.finish(stop)) {
            self.write_failed(&error);
        }
    }

    /// The result of a capture whose final account this is.
    pub fn into_stopped(self, ledger: Ledger) -> Stopped {
        let path: PathBuf = self.dir.path().to_owned();
        Stopped {
            path,
            ledger,
            error: self.error,
        }
    }
}
