//! Rules for slices and the records in them (spec 3 sections 3, 5, 6 and 9), and the ledger.

use super::super::families::Place;
use super::super::listing::{LEGACY_PREFIX, LEGACY_RECORD};
use super::super::reader::{Family, Kind, Profile, ReadError, Records, VariableRecords, open_file};
use super::super::writer::LEDGER_FILE;
use super::Report;
use crate::ledger::CaptureState;
use crate::records::{
    AdditionalRecord, ApiRecord, CompactRecord, EventKey, MAGIC, Trace, TraceCounts, level,
};
use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;

/// Distinct unnamed types and ids that are remembered.
const UNNAMED_MAX: usize = 1000;
/// Events waiting for a partner that are remembered.
const WAITING_MAX: usize = 1 << 20;
/// Classes in the high half of an acl type.
const ACL_CLASSES: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11];
/// Fixed part of a captured operator's variable record, head included, bytes.
const VARIABLE_MIN: usize = 88;

pub(super) fn check(profile: &Profile, report: &mut Report) {
    let mut counts = TraceCounts::default();
    let mut texts = false;
    for family in profile.families() {
        check_slices(family, report);
        check_records(family, &mut counts, report);
        if family.name.starts_with(LEGACY_PREFIX) {
            texts |= !count_legacy(family, &mut counts);
        }
    }
    check_names(profile, report);
    check_ledger(profile, &counts, texts, report);
}

/// Counts the records of the old reporter interface; false when they are text, whose reports cannot be
/// told apart in the file.
fn count_legacy(family: &Family, counts: &mut TraceCounts) -> bool {
    let size = LEGACY_RECORD as u64;
    for slice in &family.slices {
        let mut magic = [0; 2];
        let read = open_file(&slice.path).map(|mut file| file.read_exact(&mut magic));
        if !matches!(read, Ok(Ok(())))
            || u16::from_le_bytes(magic) != MAGIC
            || slice.bytes % size != 0
        {
            return false;
        }
        counts.add(Trace::Aicpu, slice.bytes / size);
    }
    true
}

fn check_slices(family: &Family, report: &mut Report) {
    for slice in &family.slices {
        if slice.bytes == 0 {
            let message = "an empty slice makes the C++ exporters lose the family";
            report.fatal("slice-empty", &slice.path, message);
        }
        let size = family.kind.record_size().unwrap_or(1) as u64;
        let rest = slice.bytes % size;
        if rest != 0 {
            let message = format!("{rest} bytes beyond the last whole record: the family is lost");
            report.fatal("slice-torn", &slice.path, message);
        }
    }
    if !family.is_aging() {
        let gap = family
            .slices
            .windows(2)
            .find(|pair| pair[1].number != pair[0].number + 1);
        let first = family.slices.first().filter(|slice| slice.number != 0);
        if let Some(slice) = gap.map(|pair| &pair[1]).or(first) {
            report.note("slice-gap", &slice.path, "a slice before it is missing");
        }
    }
}

fn check_records(family: &Family, counts: &mut TraceCounts, report: &mut Report) {
    for slice in &family.slices {
        let path = slice.path.as_path();
        let paths = vec![slice.path.clone()];
        let mut heads = Heads::new(matches!(family.kind, Kind::Api));
        let result = match &family.kind {
            Kind::Api => heads.read(Records::<ApiRecord>::new(paths), |r| {
                Some((r.magic, r.level))
            }),
            Kind::Compact(_) => heads.read(Records::<CompactRecord>::new(paths), |r| {
                Some((r.head.magic, r.head.level))
            }),
            Kind::Additional(_) | Kind::Aicpu => {
                let records = Records::<AdditionalRecord>::new(paths);
                // In no count of the ledger.
                heads.read(records, |r| {
                    (!r.is_repeated()).then_some((r.head.magic, r.head.level))
                })
            }
            Kind::Variable(_) => check_variable(path, slice.bytes, &mut heads, report),
            Kind::Hashes | Kind::Types | Kind::Other => Ok(()),
        };
        if let Err(error) = result {
            report.unreadable(path, &error);
        }
        heads.report(path, report);
        counts.merge(&heads.counts);
    }
}

/// Follows the lengths through a slice: the parser does so without a way back.
fn check_variable(
    path: &Path,
    length: u64,
    heads: &mut Heads,
    report: &mut Report,
) -> Result<(), ReadError> {
    let mut bytes = 0;
    let mut short = 0u64;
    for record in VariableRecords::new(vec![path.to_owned()]) {
        let (head, record) = record?;
        heads.take(head.magic, head.level);
        bytes += record.len() as u64;
        short += u64::from(record.len() < VARIABLE_MIN);
    }
    if bytes != length {
        let message =
            format!("lengths lead to byte {bytes} of {length}: the family is lost from there");
        report.fatal("slice-torn", path, message);
    }
    if short > 0 {
        let message = format!("{short} records are shorter than {VARIABLE_MIN} bytes");
        report.warning("variable-short", path, message);
    }
    Ok(())
}

/// What was seen of the first four bytes of records.
struct Heads {
    is_api: bool,
    bad_magic: u64,
    bad_level: BTreeMap<u16, u64>,
    counts: TraceCounts,
}

impl Heads {
    fn new(is_api: bool) -> Heads {
        Heads {
            is_api,
            bad_magic: 0,
            bad_level: BTreeMap::new(),
            counts: TraceCounts::default(),
        }
    }

    fn read<T: zerocopy::FromBytes>(
        &mut self,
        mut records: Records<T>,
        head: impl Fn(&T) -> Option<(u16, u16)>,
    ) -> Result<(), ReadError> {
        while let Some(record) = records.next() {
            let Some((magic, lvl)) = head(&record?) else {
                continue;
            };
            self.take(magic, lvl);
            if magic != MAGIC {
                self.bad_magic += records.pass_hole();
            }
        }
        Ok(())
    }

    fn take(&mut self, magic: u16, lvl: u16) {
        if magic != MAGIC {
            self.bad_magic += 1;
            return;
        }
        match Trace::of(lvl, self.is_api) {
            Some(trace) => self.counts.add(trace, 1),
            None => *self.bad_level.entry(lvl).or_default() += 1,
        }
    }

    fn report(&self, path: &Path, report: &mut Report) {
        if self.bad_magic > 0 {
            let message = format!(
                "{} records without the magic number: the family is lost",
                self.bad_magic
            );
            report.fatal("record-magic", path, message);
        }
        for (lvl, count) in &self.bad_level {
            let message = format!(
                "{count} records of level {lvl}, which the parser cannot read: the family is lost"
            );
            report.fatal("record-level", path, message);
        }
    }
}

/// Names of api records, times, and pairs of events.
fn check_names(profile: &Profile, report: &mut Report) {
    let Some(host) = profile.section(Place::Host) else {
        return;
    };
    let data = host.path.join("data");
    let (types, hashes) = match (profile.type_names(), profile.hash_names()) {
        (Ok(types), Ok(hashes)) => (types, hashes),
        (Err(error), _) | (_, Err(error)) => return report.unreadable(&data, &error),
    };
    for (malformed, what) in [
        (types.malformed, "type_info_dic"),
        (hashes.malformed, "hash_dic"),
    ] {
        if malformed > 0 {
            let message = format!("{malformed} lines of {what} have no key and name");
            report.warning("dictionary-line", &data, message);
        }
    }
    let mut seen = Seen::default();
    // Records of before the start are dropped; ticks compare only where they are nanoseconds.
    let start = profile
        .start(Place::Host)
        .filter(|_| profile.ticks_per_us() == 1000.0);
    let start_ns = start.map_or(0, |times| times.monotonic_ns);
    let mut records = profile.api();
    while let Some(record) = records.next() {
        // Unreadable slices are reported with their records, and so is what is no record.
        let Ok(record) = record else { continue };
        if record.magic != MAGIC {
            records.pass_hole();
            continue;
        }
        seen.take(&record, start_ns, |record| match record.level {
            level::HCCL => hashes.get(record.item_id).is_some(),
            lvl => types
                .get(lvl, record.kind)
                .is_some_and(|name| !name.is_empty()),
        });
    }
    seen.report(&data, report);
}

#[derive(Default)]
struct Seen {
    begin_zero: u64,
    neutral: u64,
    backwards: u64,
    early: u64,
    odd_class: u64,
    unnamed: HashSet<(u16, u64)>,
    waiting: HashSet<EventKey>,
}

impl Seen {
    fn take(&mut self, record: &ApiRecord, start_ns: u64, named: impl Fn(&ApiRecord) -> bool) {
        if record.is_event() {
            let key = EventKey::of(record);
            if !self.waiting.remove(&key) && self.waiting.len() < WAITING_MAX {
                self.waiting.insert(key);
            }
        } else if record.is_neutral() {
            self.neutral += 1;
            return;
        } else {
            self.backwards += u64::from(record.end < record.begin);
            self.early += u64::from(record.end < start_ns);
        }
        self.begin_zero += u64::from(record.begin == 0);
        if record.level == level::ACL && !ACL_CLASSES.contains(&(record.kind >> 16)) {
            self.odd_class += 1;
        }
        if self.unnamed.len() < UNNAMED_MAX && !named(record) {
            let name = match record.level {
                level::HCCL => record.item_id,
                _ => record.kind.into(),
            };
            self.unnamed.insert((record.level, name));
        }
    }

    fn report(&self, data: &Path, report: &mut Report) {
        let mut note = |rule, count: u64, message: &str| {
            if count > 0 {
                report.note(rule, data, format!("{count} {message}"));
            }
        };
        note(
            "api-early",
            self.early,
            "api records end before the start and are dropped",
        );
        note(
            "acl-class",
            self.odd_class,
            "acl records have no known class in their type",
        );
        let unpaired = self.waiting.iter().filter(|key| !key.is_single());
        note(
            "event-unpaired",
            unpaired.count() as u64,
            "events have no partner and are dropped",
        );
        note(
            "event-neutral",
            self.neutral,
            "records stand for events without a partner and are dropped",
        );
        let mut warning = |rule, count: u64, message: &str| {
            if count > 0 {
                report.warning(rule, data, format!("{count} {message}"));
            }
        };
        warning(
            "api-begin-zero",
            self.begin_zero,
            "api records begin at 0 and are dropped",
        );
        warning(
            "api-backwards",
            self.backwards,
            "api records end before they begin",
        );
        if !self.unnamed.is_empty() {
            let mut names: Vec<_> = self
                .unnamed
                .iter()
                .map(|(l, k)| format!("{l}_{k}"))
                .collect();
            names.sort();
            names.truncate(5);
            let message = format!(
                "{} api types have no name and show as numbers, such as {}",
                self.unnamed.len(),
                names.join(" ")
            );
            report.warning("type-unnamed", data, message);
        }
    }
}

/// The ledger must add up, and agree with the records that are there.
/// With `texts`, there are reports of the aicpu trace that cannot be counted.
fn check_ledger(profile: &Profile, counts: &TraceCounts, texts: bool, report: &mut Report) {
    let path = profile.path().join(LEDGER_FILE);
    let ledger = match profile.ledger() {
        Ok(Some(ledger)) => ledger,
        Ok(None) => return,
        Err(error) => return report.unreadable(&path, &error),
    };
    if ledger.state == CaptureState::Capturing {
        let message = "the capture is still running, or its process was killed: then msprof recover finishes it";
        report.note("ledger-open", &path, message);
        return;
    }
    for trace in Trace::ALL {
        let parts = [&ledger.written, &ledger.lost, &ledger.aged_out].map(|part| part.get(trace));
        let sum = parts
            .iter()
            .fold(0u64, |sum, part| sum.saturating_add(*part));
        if ledger.reported.get(trace) != sum {
            let message = format!(
                "{}: {} reported, but written, lost and aged out are {parts:?}",
                trace.name(),
                ledger.reported.get(trace)
            );
            report.warning("ledger-sum", &path, message);
        }
        let (written, there) = (ledger.written.get(trace), counts.get(trace));
        let uncounted = texts && trace == Trace::Aicpu && written >= there;
        if written != there && !uncounted {
            let message = format!(
                "{}: the ledger says {} records, {} are there",
                trace.name(),
                written,
                there
            );
            report.warning("ledger-count", &path, message);
        }
    }
}
