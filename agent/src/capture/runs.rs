//! Model runs as the drain sees them: pairs of events, and the names of models.
//!
//! At the end an event without a partner is made neutral: its record stays in its place and in all counts, without
//! its times, and the parser passes over it. As it was it goes into a family that no parser reads, and the ledger
//! says which call it was part of.
//!
//! So a kill finds nothing but whole records at any moment, each once: nothing is held back for a partner that
//! may never come.

#![forbid(unsafe_code)]

use super::models::{Models, Naming, Repeat};
use super::pairs::{Alone, Pairs, Position};
use crate::dictionary::Dictionary;
use crate::ledger::{Cut, Ledger, PARTIAL_MAX, PartialCall};
use crate::profdir::{FamilyId, Kept, Place, ProfDir, ProfDirError};
use crate::records::{AdditionalRecord, ApiRecord, MAGIC, RecordSize, TraceCounts, level};
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// Events without a partner as they were reported, 40 bytes each. The parser knows no such name.
pub const PARTIAL_FAMILY: &str = "partial.api_event.data";
/// Calls that the sentence about them names.
const TOLD_MAX: usize = 4;

/// Where records of one family were written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub family: FamilyId,
    pub slice: u32,
    /// Bytes that were in it before.
    pub offset: u64,
    /// Bytes that were written.
    pub bytes: usize,
}

/// What one capture knows of runs.
#[derive(Debug, Default)]
pub struct Runs {
    pairs: Pairs,
    naming: Naming,
    models: Arc<Mutex<Models>>,
    /// Copies of names that were written.
    repeated: u64,
    partial: Vec<PartialCall>,
    partial_events: u64,
    /// Why events are not neutral.
    left: Option<String>,
}

impl Runs {
    /// For a capture of a process with these models.
    pub fn new(models: Arc<Mutex<Models>>) -> Runs {
        Runs {
            models,
            ..Runs::default()
        }
    }

    /// Api and event records were written.
    pub fn take_apis(&mut self, records: &[u8], written: Written, dir: &ProfDir) {
        let records = &records[..written.bytes];
        let mut offset = written.offset;
        for bytes in records.chunks_exact(RecordSize::Api.bytes()) {
            let at = Position {
                family: written.family,
                slice: written.slice,
                offset,
            };
            offset += bytes.len() as u64;
            let Ok(record) = ApiRecord::read_from_bytes(bytes) else {
                continue;
            };
            if !record.is_event() {
                self.naming.take_call(&record);
            } else if let Some(pair) = self.pairs.take(&record, at, dir) {
                self.naming.take_run(&pair);
            }
        }
    }

    /// Records that say what models are called were reported.
    pub fn take_names(&mut self, records: &[u8]) {
        let mut models = self.models.lock();
        for bytes in records.chunks_exact(RecordSize::Additional.bytes()) {
            if let Ok(record) = AdditionalRecord::read_from_bytes(bytes)
                && record.is_graph_id_map()
            {
                self.naming.take_report(&record);
                models.take(&record);
            }
        }
    }

    /// Copies for the beginning of the capture, ns.
    pub fn known_models(&self, start: u64) -> Vec<Repeat> {
        let models = self.models.lock();
        models
            .iter()
            .map(|model| Repeat::at_start(model, start))
            .collect()
    }

    /// Copies that are due.
    pub fn due_names(&mut self, is_end: bool) -> Vec<Repeat> {
        self.naming.due(&self.models.lock(), is_end)
    }

    /// So many copies were written.
    pub fn count_repeated(&mut self, count: usize) {
        self.repeated += count as u64;
    }

    /// At the end: finds the events that have no partner. With `has_losses` it may be among what was lost.
    pub fn left_over(
        &mut self,
        dictionary: &Dictionary,
        has_losses: bool,
        dir: &ProfDir,
    ) -> Vec<Alone> {
        let mut alone = self.pairs.left_over(dir);
        for found in &mut alone {
            if has_losses && found.cut != Cut::Limit {
                found.cut = Cut::Lost;
            }
        }
        self.partial_events = alone.len() as u64;
        let mut first: Vec<&Alone> = alone.iter().collect();
        first.sort_by_key(|found| found.time);
        let models = self.models.lock();
        let told = first.into_iter().take(PARTIAL_MAX);
        self.partial = told
            .map(|found| describe(found, dictionary, &models))
            .collect();
        drop(models);
        alone
    }

    /// Events stay as they are, for this reason.
    pub fn leave(&mut self, reason: String) {
        tracing::warn!("events without their partners stay as they are: {reason}");
        self.left = Some(reason);
    }

    /// Fills in what the ledger says of them.
    pub fn complete(&self, ledger: &mut Ledger) {
        ledger.partial_events = self.partial_events;
        ledger.partial_calls.clone_from(&self.partial);
        ledger.repeated_names = self.repeated;
        ledger.notes.extend(self.note());
        if self.pairs.unseen() > 0 {
            ledger.notes.push(format!(
                "{} events came while too many others waited for their partners: of those among them that have \
                 none nothing is said",
                self.pairs.unseen()
            ));
        }
    }

    fn note(&self) -> Option<String> {
        let count = self.partial_events;
        let (calls, have) = match count {
            0 => return None,
            1 => ("call is", "its only event is"),
            _ => ("calls are", "their only events are"),
        };
        let mut note = format!("{count} {calls} here in part, and in no export: ");
        for (index, call) in self.partial.iter().take(TOLD_MAX).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let _ = write!(note, "{separator}{}", told(call));
        }
        let more = count.saturating_sub(TOLD_MAX as u64);
        if more > 0 {
            let _ = write!(note, "; and {more} more");
        }
        match &self.left {
            Some(reason) => {
                let _ = write!(note, " ({have} among the others: {reason})");
            }
            None => {
                let _ = write!(note, " ({have} in {PARTIAL_FAMILY})");
            }
        }
        Some(note)
    }
}

fn describe(alone: &Alone, dictionary: &Dictionary, models: &Models) -> PartialCall {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let key = alone.key;
    let name = dictionary.type_name(key.level, key.kind);
    let item = match key.level {
        level::MODEL => u32::try_from(key.item_id)
            .ok()
            .and_then(|id| models.get(id))
            .map(|model| model.map.model_name),
        _ => Some(key.item_id),
    };
    let item_name = item.and_then(|id| dictionary.text_of(id));
    PartialCall {
        level: key.level,
        name: name.map_or_else(|| key.kind.to_string(), |name| text(&name)),
        item: key.item_id,
        item_name: item_name.map(|name| text(name.to_bytes())),
        run: key.request_id,
        thread: key.thread_id,
        time_ns: alone.time,
        cut: alone.cut,
    }
}

fn told(call: &PartialCall) -> String {
    let what = if call.level == level::MODEL {
        "model"
    } else {
        "item"
    };
    let item = match &call.item_name {
        Some(name) => format!("{} ({name})", call.item),
        None => call.item.to_string(),
    };
    let cut = match call.cut {
        Cut::Start => "cut by the start",
        Cut::Stop => "cut by the stop",
        Cut::Edge => "cut by the start or the stop",
        Cut::Lost => "whose other event is missing",
        Cut::Limit => "whose other event was deleted for the storage limit",
    };
    let PartialCall {
        name, run, thread, ..
    } = call;
    format!("{name} of {what} {item}, run {run} of thread {thread}, {cut}")
}

/// Writes events as they were reported to where the parser does not look.
pub fn keep_aside(alone: &[Alone], dir: &mut ProfDir) -> Result<(), ProfDirError> {
    let mut bytes = Vec::new();
    // Without memory they stay where they are.
    if bytes.try_reserve_exact(size_of_val(alone).max(1)).is_err() {
        let source = io::ErrorKind::OutOfMemory.into();
        return Err(not_written(dir, source));
    }
    for Alone { key, time, .. } in alone {
        let record = ApiRecord {
            magic: MAGIC,
            level: key.level,
            kind: key.kind,
            thread_id: key.thread_id,
            request_id: key.request_id,
            begin: *time,
            end: ApiRecord::EVENT_END,
            item_id: key.item_id,
        };
        bytes.extend_from_slice(record.as_bytes());
    }
    let size = Some(RecordSize::Api.bytes());
    let family = dir.family(Place::Host, PARTIAL_FAMILY, size);
    dir.append(family, &bytes, &TraceCounts::default())
}

fn not_written(dir: &ProfDir, source: io::Error) -> ProfDirError {
    ProfDirError::Write {
        path: dir.path().to_owned(),
        source,
        kept: Kept::default(),
    }
}

/// Takes the times from events where they lie; can be repeated.
pub fn make_neutral(alone: &[Alone], dir: &ProfDir) -> Result<(), ProfDirError> {
    const TIMES: usize = std::mem::offset_of!(ApiRecord, begin);
    const TIMES_BYTES: usize = std::mem::offset_of!(ApiRecord, item_id) - TIMES;
    let slice_of = |found: &Alone| (found.at.family, found.at.slice);
    for group in alone.chunk_by(|a, b| slice_of(a) == slice_of(b)) {
        let (family, slice) = slice_of(&group[0]);
        // The storage limit may have made room for what was kept aside.
        if !dir.has_slice(family, slice) {
            continue;
        }
        let offsets = group.iter().map(|found| found.at.offset + TIMES as u64);
        dir.overwrite(family, slice, offsets, &[0; TIMES_BYTES])
            .map_err(|source| not_written(dir, source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
