//! Where the drain writes to: the PROF directory with its families, names and devices.
//!
//! The first error on writing closes the gate and is kept; from then on everything counts as lost.

use super::Stopped;
use super::account::Account;
use super::gathered::Gathered;
use super::router::{RouteKey, Router};
use crate::dictionary::Dictionary;
use crate::gate;
use crate::lanes::RingKey;
use crate::ledger::{Anchor, CaptureState, Ledger};
use crate::long::{LongKind, LongReport};
use crate::params::{Params, SampleFill};
use crate::process;
use crate::profdir::{self, FamilyId, Place, ProfDir, ProfDirError};
use crate::records::{RecordSize, Trace, TraceCounts};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Most sentences in a ledger.
const NOTES_MAX: usize = 50;

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
    gathered: Gathered,
    notes: Vec<String>,
    error: Option<String>,
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
            gathered: Gathered::default(),
            notes: Vec::new(),
            error: None,
        }
    }

    /// Writes records of one ring, contiguous and whole; `account` says what became of them.
    pub fn write_records(&mut self, ring: RingKey, records: &[u8], account: &mut Account) {
        if ring.size == RecordSize::Api {
            let family = self.api_families[ring.aging as usize];
            self.write(
                family,
                records,
                &TraceCounts::of_records(records, ring.size.bytes()),
                account,
            );
        } else {
            self.write_runs(ring, records, account);
        }
    }

    /// Writes compact or additional records. Types alternate in practice (a task track beside each node
    /// info), so the records of each family are gathered first: one append per family.
    fn write_runs(&mut self, ring: RingKey, mut records: &[u8], account: &mut Account) {
        let size = ring.size.bytes();
        let only_device = match self.devices.len() {
            1 => self.devices.first().copied(),
            _ => None,
        };
        let mut gathered = std::mem::take(&mut self.gathered);
        while records.len() >= size {
            let key = RouteKey::of(ring, records, only_device);
            let run = records
                .chunks_exact(size)
                .take_while(|record| RouteKey::of(ring, record, only_device) == key)
                .count();
            let (part, rest) = records.split_at(run * size);
            let alone = gathered.is_empty() && rest.is_empty();
            records = rest;
            if let Some(device) = key.device() {
                self.add_device(device);
            }
            let family = self.router.family(key, &self.dictionary, &mut self.dir);
            let mut counts = TraceCounts::default();
            if let Some(trace) = Trace::of(key.level, false) {
                counts.add(trace, run as u64);
            }
            if alone {
                self.write(family, part, &counts, account);
                break;
            }
            gathered.add(family, part, &counts);
        }
        gathered.drain(|family, bytes, counts| self.write(family, bytes, counts, account));
        self.gathered = gathered;
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

    /// Adds a sentence to the ledger, once.
    pub fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Writes names that were registered since the last time.
    pub fn write_names(&mut self) {
        let mut lines = Vec::new();
        let types = self.dictionary.types_from(self.types.1);
        if !types.is_empty() {
            for entry in &types {
                profdir::type_line(&mut lines, entry.level, entry.kind, &entry.name);
            }
            self.types.1 += types.len();
            self.router.forget();
            self.write_text(self.types.0, &lines);
        }
        let strings = self.dictionary.strings_from(self.strings.1);
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

    /// Makes the directory of a device that is open, once.
    pub fn add_device(&mut self, device: u32) {
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
        if let Err(error) = self.dir.add_device(device, &sample, self.start, None) {
            self.write_failed(&error);
        }
    }

    /// Files a long or legacy report.
    pub fn write_long(&mut self, long: &LongReport, account: &mut Account) {
        let mut counts = TraceCounts::default();
        counts.add(long.trace, long.records());
        let family = match &long.kind {
            LongKind::Record(ring) => {
                self.write_records(*ring, &long.bytes, account);
                return;
            }
            LongKind::Variable => {
                let name = "unaging.variable.capture_op_info";
                self.dir.family(Place::Host, name, None)
            }
            LongKind::DataPreprocess { tag, device } => self.legacy_family(tag, *device),
        };
        self.write(family, &long.bytes, &counts, account);
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

    /// Lets the kernel begin to write back what it holds of the slices, so that the page cache does not
    /// fill with dirty pages. May wait for the disk.
    pub fn start_write_back(&mut self) {
        self.dir.start_write_back();
    }

    /// Why the capture has ended early, if it has.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Fills in what the directory knows of the account.
    pub fn complete(&self, ledger: &mut Ledger) {
        ledger.notes.extend_from_slice(&self.notes);
        ledger.devices = self.devices.iter().copied().collect();
        // `written` is what is in the directory: aged out records are no longer.
        ledger.aged_out = self.dir.aged_out();
        for (written, aged) in ledger.written.0.iter_mut().zip(ledger.aged_out.0) {
            *written -= aged.min(*written);
        }
        ledger.bytes = self.dir.bytes();
        if self.error.is_some() {
            ledger.state = CaptureState::Failed;
        }
    }

    /// Writes the ledger into the directory.
    pub fn write_ledger(&mut self, ledger: &Ledger) {
        if let Err(error) = self.dir.write_ledger(ledger) {
            self.write_failed(&error);
        }
    }

    /// Writes what the end of a capture adds.
    pub fn finish(&mut self, stop: Anchor) {
        if let Err(error) = self.dir.finish(stop) {
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
