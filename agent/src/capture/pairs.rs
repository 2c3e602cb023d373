//! Which events of a capture are without their partner, and where they lie.
//!
//! A model run is two events of one [`EventKey`]. The start of a capture cuts off the first of a run that is under
//! way, the stop the second. The parser would take the one that is left for half of a pair, so that of a key
//! that is used again each later run turned into the time between two; and it logs an error for each.
//!
//! Events are paired here as the parser does it, in the order in which they are written. What is left over at the
//! end is made neutral where it lies (`runs`); that a kill leaves it as it is does no harm.

#![forbid(unsafe_code)]

use crate::ledger::Cut;
use crate::process::reserve::{grow_map, grow_vec};
use crate::profdir::{FamilyId, ProfDir};
use crate::records::{ApiRecord, EventKey};
use std::collections::HashMap;

/// Events that wait for their partner at a time; those of more stay as they are.
const OPEN_MAX: usize = 16_384;
/// Threads and kinds of call whose events are counted, to tell which edge has cut one.
const SERIES_MAX: usize = 16_384;
/// Pairs that lie in two slices, beyond which those are forgotten whose slices are gone.
const SPLIT_SOFT_MAX: usize = 1024;

/// Where an event was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub family: FamilyId,
    pub slice: u32,
    /// Bytes from the beginning of the slice.
    pub offset: u64,
}

impl Position {
    fn is_there(&self, dir: &ProfDir) -> bool {
        dir.has_slice(self.family, self.slice)
    }

    fn same_slice(&self, other: &Position) -> bool {
        (self.family, self.slice) == (other.family, other.slice)
    }
}

/// An event that has no partner in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    pub key: EventKey,
    /// Its time, ns.
    pub time: u64,
    pub at: Position,
    pub cut: Cut,
}

/// Two events that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub key: EventKey,
    /// Time of the first one, ns.
    pub begin: u64,
    /// Time of the second one, ns.
    pub end: u64,
}

/// The events of one capture.
#[derive(Debug, Default)]
pub struct Pairs {
    open: HashMap<EventKey, Open>,
    series: HashMap<SeriesKey, Series>,
    /// Under a storage limit, which may delete one half.
    split: Vec<Split>,
    /// Events for which there was no room.
    unseen: u64,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    time: u64,
    at: Position,
    /// Which event of its series it is, from 1.
    number: u64,
}

/// Calls of a kind of one thread: they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SeriesKey {
    thread_id: u32,
    level: u16,
    kind: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Series {
    events: u64,
    /// Key of its last pair.
    last: Option<EventKey>,
}

#[derive(Clone, Copy, Debug)]
struct Split {
    key: EventKey,
    times: [u64; 2],
    at: [Position; 2],
}

impl SeriesKey {
    fn of(key: &EventKey) -> SeriesKey {
        SeriesKey {
            thread_id: key.thread_id,
            level: key.level,
            kind: key.kind,
        }
    }
}

impl Pairs {
    /// Takes note of an event that was written; a pair if it is the second one.
    pub fn take(&mut self, event: &ApiRecord, at: Position, dir: &ProfDir) -> Option<Pair> {
        let key = EventKey::of(event);
        // No time is no begin to the parser.
        if key.is_single() || event.begin == 0 {
            return None;
        }
        let series = SeriesKey::of(&key);
        let has_room = self.series.len() < SERIES_MAX && grow_map(&mut self.series);
        let series = match self.series.get_mut(&series) {
            None if has_room => Some(self.series.entry(series).or_default()),
            known => known,
        };
        let mut number = 0;
        if let Some(series) = series {
            series.events += 1;
            number = series.events;
            if self.open.contains_key(&key) {
                series.last = Some(key);
            }
        }
        let Some(first) = self.open.remove(&key) else {
            // Once some were not seen, what looks like a begin may be the end of one of them.
            if self.unseen > 0 || self.open.len() >= OPEN_MAX || !grow_map(&mut self.open) {
                self.unseen += 1;
                return None;
            }
            let time = event.begin;
            self.open.insert(key, Open { time, at, number });
            return None;
        };
        if dir.is_limited() && !first.at.same_slice(&at) {
            self.remember_split(
                Split {
                    key,
                    times: [first.time, event.begin],
                    at: [first.at, at],
                },
                dir,
            );
        }
        Some(Pair {
            key,
            begin: first.time,
            end: event.begin,
        })
    }

    fn remember_split(&mut self, split: Split, dir: &ProfDir) {
        if self.split.len() >= SPLIT_SOFT_MAX && self.split.len().is_power_of_two() {
            self.split
                .retain(|split| split.at.iter().any(|at| at.is_there(dir)));
        }
        if grow_vec(&mut self.split) {
            self.split.push(split);
        }
    }

    /// Events that were not looked at because too many others waited.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// At the end: what is left over and still there, in the order of slices.
    pub fn left_over(&mut self, dir: &ProfDir) -> Vec<Alone> {
        let mut alone = Vec::new();
        let mut add = |found: Alone| {
            if found.at.is_there(dir) && grow_vec(&mut alone) {
                alone.push(found);
            }
        };
        for (key, open) in self.open.drain() {
            let series = self.series.get(&SeriesKey::of(&key)).copied();
            add(Alone {
                key,
                time: open.time,
                at: open.at,
                cut: cut_of(&key, open.number, series.unwrap_or_default()),
            });
        }
        for Split { key, times, at } in self.split.drain(..) {
            for (mine, other) in [(0, 1), (1, 0)] {
                if !at[other].is_there(dir) {
                    add(Alone {
                        key,
                        time: times[mine],
                        at: at[mine],
                        cut: Cut::Limit,
                    });
                }
            }
        }
        alone.sort_by_key(|found| (found.at.family.index(), found.at.slice, found.at.offset));
        alone
    }
}

/// What has taken the partner of event `number` of a series: a thread's calls of one kind follow each other, so
/// that only its first event can be the end of a call from before, and only its last one a begin.
fn cut_of(key: &EventKey, number: u64, series: Series) -> Cut {
    // Of a key that is used again it may as well be the first event that had no begin.
    if number == 0 || series.last == Some(*key) {
        return Cut::Edge;
    }
    match (number == 1, number == series.events) {
        (true, true) => Cut::Edge,
        (true, false) => Cut::Start,
        (false, true) => Cut::Stop,
        (false, false) => Cut::Lost,
    }
}
