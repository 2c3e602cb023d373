//! Calls by level and name.

use super::durations::{Durations, Times};
use super::histogram::Pages;
use crate::calls::{Call, NameKey};
use crate::levels;
use crate::source::Source;
use std::collections::HashMap;

/// Types and items that are told apart, some 250 bytes each until they are rows; the calls of more are summed up by level.
const CALLS_MAX: usize = 1 << 18;
/// Their name then.
const OTHERS: &str = "others";

/// All calls of one level and name.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRow {
    /// One of [`level`](msprof_agent_core::records::level).
    pub level: u16,
    /// Name of the call; the type's number where it has none. Text of a file: may hold anything.
    pub name: String,
    /// How long they took.
    pub times: Times,
}

impl CallRow {
    /// The level as the parser's tables call it.
    pub fn level_name(&self) -> String {
        levels::name(self.level).into_owned()
    }
}

/// Calls that are summed up together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Name(NameKey),
    /// Those of a level beyond the bound.
    Others(u16),
}

/// Durations by what gives a call its name.
#[derive(Default)]
pub(super) struct ByName {
    calls: HashMap<Key, Durations>,
}

impl ByName {
    pub(super) fn add(&mut self, call: &Call, ticks: u64, pages: &mut Pages) {
        let mut key = Key::Name(call.name_key());
        if self.calls.len() >= CALLS_MAX && !self.calls.contains_key(&key) {
            key = Key::Others(call.level);
        }
        self.calls.entry(key).or_default().add(ticks, pages);
    }

    /// By total time, the largest first. Types of one name are one row.
    pub(super) fn rows(self, source: &Source, ns_per_tick: f64) -> Vec<CallRow> {
        let named = self.calls.into_iter().map(|(key, durations)| {
            let name = match key {
                Key::Name(key) => (key.level(), source.name(key).into_owned()),
                Key::Others(lvl) => (lvl, OTHERS.to_owned()),
            };
            (name, durations)
        });
        // Neighbours in a list, since a second map would take as much as the first.
        let mut named: Vec<((u16, String), Durations)> = named.collect();
        named.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        named.dedup_by(|(later, durations), (kept, sum)| {
            let is_same = later == kept;
            if is_same {
                sum.merge(std::mem::take(durations));
            }
            is_same
        });
        let rows = named.into_iter().map(|((level, name), durations)| CallRow {
            level,
            name,
            times: durations.times(ns_per_tick),
        });
        let mut rows: Vec<CallRow> = rows.collect();
        rows.sort_unstable_by(|a, b| {
            let totals = b.times.total_ns.cmp(&a.times.total_ns);
            totals.then_with(|| (a.level, &a.name).cmp(&(b.level, &b.name)))
        });
        rows
    }
}
