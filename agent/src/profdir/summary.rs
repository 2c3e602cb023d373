//! Which calls took the time: every (level, name) with count and durations.
//!
//! Counts what the parser's timeline holds: api records, and events paired by (level, type, thread,
//! request, item) with the first as begin and the second as end (spec 3 section 6.1).

use super::reader::{Profile, ReadError};
use crate::records::{ApiRecord, level};
use std::collections::HashMap;

/// Events waiting for their partner; beyond this number, more are counted as unpaired at once.
const WAITING_MAX: usize = 1 << 20;

/// All calls of one (level, name).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiRow {
    /// One of [`level`].
    pub level: u16,
    /// Name of the call; the type's number where it has none.
    pub name: String,
    /// Number of calls.
    pub count: u64,
    /// Sum of durations, ns.
    pub total_ns: u64,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

impl ApiRow {
    /// Mean duration, ns.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.total_ns as f64 / self.count as f64
    }

    /// The level as the parser's tables call it.
    pub fn level_name(&self) -> &'static str {
        level_name(self.level)
    }
}

/// The whole table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows by total time, the largest first.
    pub rows: Vec<ApiRow>,
    /// Events without a partner.
    pub unpaired_events: u64,
    /// Api records with begin 0, which the parser drops.
    pub dropped: u64,
}

/// The level as the parser's tables call it.
pub fn level_name(lvl: u16) -> &'static str {
    match lvl {
        level::PYTORCH => "pytorch",
        level::PTA => "pta",
        level::TX => "msproftx",
        level::ACL => "acl",
        level::MODEL => "model",
        level::NODE => "node",
        level::AICPU => "aicpu",
        level::HCCL => "communication",
        level::RUNTIME => "runtime",
        _ => "unknown",
    }
}

/// Reads all api and event records of a directory. Memory grows with the number of names, not of
/// records.
pub fn summarize(profile: &Profile) -> Result<Summary, ReadError> {
    let types = profile.type_names()?;
    let hashes = profile.hash_names()?;
    let ticks_per_us = profile.ticks_per_us();
    let mut calls: HashMap<Call, Durations> = HashMap::new();
    let mut waiting = HashMap::new();
    let mut summary = Summary::default();
    for record in profile.api() {
        let record = record?;
        let ticks = if record.is_event() {
            let key = EventKey::of(&record);
            match waiting.remove(&key) {
                Some(begin) => record.begin.saturating_sub(begin),
                None => {
                    // A time of 0 is as good as none to the parser.
                    if record.begin != 0 && waiting.len() < WAITING_MAX {
                        waiting.insert(key, record.begin);
                    } else {
                        summary.unpaired_events += 1;
                    }
                    continue;
                }
            }
        } else if record.begin == 0 {
            summary.dropped += 1;
            continue;
        } else {
            record.end.saturating_sub(record.begin)
        };
        calls.entry(Call::of(&record)).or_default().add(ticks);
    }
    summary.unpaired_events += waiting.len() as u64;

    let mut named: HashMap<(u16, String), Durations> = HashMap::new();
    for (call, durations) in calls {
        let name = match call {
            Call::Type(lvl, kind) => types
                .get(lvl, kind)
                .filter(|name| !name.is_empty())
                .map_or_else(|| kind.to_string(), str::to_owned),
            Call::Item(_, item) => hashes
                .get(item)
                .map_or_else(|| item.to_string(), str::to_owned),
        };
        named
            .entry((call.level(), name))
            .or_default()
            .merge(&durations);
    }
    let ns = |ticks: u128| (ticks as f64 * 1000.0 / ticks_per_us) as u64;
    let exact = ticks_per_us == 1000.0;
    let convert = |ticks: u128| match exact {
        true => u64::try_from(ticks).unwrap_or(u64::MAX),
        false => ns(ticks),
    };
    summary.rows = named
        .into_iter()
        .map(|((lvl, name), durations)| ApiRow {
            level: lvl,
            name,
            count: durations.count,
            total_ns: convert(durations.total),
            min_ns: convert(durations.min.into()),
            max_ns: convert(durations.max.into()),
        })
        .collect();
    summary
        .rows
        .sort_by(|a, b| (b.total_ns, a.level, &a.name).cmp(&(a.total_ns, b.level, &b.name)));
    Ok(summary)
}

/// What gives a call its name: the type, or at level hccl the item.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Call {
    Type(u16, u32),
    Item(u16, u64),
}

impl Call {
    fn of(record: &ApiRecord) -> Call {
        match record.level {
            level::HCCL => Call::Item(record.level, record.item_id),
            lvl => Call::Type(lvl, record.kind),
        }
    }

    fn level(self) -> u16 {
        match self {
            Call::Type(lvl, _) | Call::Item(lvl, _) => lvl,
        }
    }
}

/// What two events of one request have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EventKey {
    level: u16,
    kind: u32,
    thread_id: u32,
    request_id: u32,
    item_id: u64,
}

impl EventKey {
    pub(super) fn of(record: &ApiRecord) -> EventKey {
        EventKey {
            level: record.level,
            kind: record.kind,
            thread_id: record.thread_id,
            request_id: record.request_id,
            item_id: record.item_id,
        }
    }
}

/// Durations in ticks.
#[derive(Clone, Copy)]
struct Durations {
    count: u64,
    total: u128,
    min: u64,
    max: u64,
}

impl Default for Durations {
    fn default() -> Durations {
        Durations {
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Durations {
    fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.total += u128::from(ticks);
        self.min = self.min.min(ticks);
        self.max = self.max.max(ticks);
    }

    fn merge(&mut self, other: &Durations) {
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}
