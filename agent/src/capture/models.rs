//! Names of models, for captures in which nobody reports them.
//!
//! GE says what a model is called when it loads it (graph_id_map), and many a capture begins later. So what was
//! said in one capture is remembered for the next ones of the process, and written into each of them twice:
//!
//! - At its beginning, so that it is there whatever comes.
//! - Where the parser looks for it: its Python part takes a model's name only from a record that lies within a load
//!   or run of the model, by the same thread (spec 3 section 8). So behind the first whole run there follows a copy
//!   that says so, unless the program's own report lies in it.
//!
//! Such a copy bears a mark (`records`) and is in none of the ledger's counts: nobody has reported it here.

#![forbid(unsafe_code)]

use super::pairs::Pair;
use crate::process::reserve::{grow_map, grow_vec};
use crate::records::{AdditionalRecord, ApiRecord, EventKey, GraphIdMap, level};
use std::collections::{HashMap, VecDeque};

/// Models that are remembered, those that were named last.
const KNOWN_MAX: usize = 4096;
/// The same of one capture's runs and reports.
const SEEN_MAX: usize = 4096;
/// Reports of one model that are looked at.
const REPORTS_MAX: usize = 8;
/// Types of level model in which the parser looks for a name.
const NAMED_KINDS: [u32; 2] = [MODEL_EXECUTE, MODEL_LOAD];
const MODEL_EXECUTE: u32 = 1;
const MODEL_LOAD: u32 = 2;

/// What was said of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub map: GraphIdMap,
    /// Thread that said it.
    pub thread_id: u32,
}

/// The models of a process.
#[derive(Debug, Default)]
pub struct Models {
    known: HashMap<u32, Model>,
    /// By when they were named, the oldest first.
    order: VecDeque<u32>,
}

impl Models {
    /// Remembers what a record says; the last one counts.
    pub fn take(&mut self, record: &AdditionalRecord) {
        let map = record.graph_id_map();
        let model = Model {
            map,
            thread_id: record.head.thread_id,
        };
        if self.known.contains_key(&map.model_id) {
            if self.order.back() != Some(&map.model_id) {
                self.order.retain(|id| *id != map.model_id);
                self.order.push_back(map.model_id);
            }
        } else {
            if self.known.len() >= KNOWN_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
            if !grow_map(&mut self.known) || self.order.try_reserve(1).is_err() {
                return;
            }
            self.order.push_back(map.model_id);
        }
        self.known.insert(map.model_id, model);
    }

    /// What is known of a model.
    pub fn get(&self, id: u32) -> Option<Model> {
        self.known.get(&id).copied()
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Model> {
        self.order.iter().filter_map(|id| self.get(*id))
    }
}

/// What one capture has seen of models and their names.
#[derive(Debug, Default)]
pub struct Naming {
    /// Threads and times of the program's own reports.
    reports: HashMap<u32, Vec<(u32, u64)>>,
    /// The first whole run and load of each model.
    runs: HashMap<u32, Run>,
    round: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// By [`NAMED_KINDS`], at least one.
    pairs: [Option<Pair>; NAMED_KINDS.len()],
    /// When it was seen, in rounds.
    round: u64,
    is_named: bool,
}

/// A record to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    pub model: Model,
    pub thread_id: u32,
    /// Ns.
    pub time: u64,
}

impl Repeat {
    /// For the beginning of a capture, `time`.
    pub fn at_start(model: Model, time: u64) -> Repeat {
        Repeat {
            model,
            thread_id: model.thread_id,
            time,
        }
    }

    /// As a record.
    pub fn record(&self) -> AdditionalRecord {
        AdditionalRecord::repeated(self.model.map, self.thread_id, self.time)
    }
}

impl Naming {
    /// The program has reported a model.
    pub fn take_report(&mut self, record: &AdditionalRecord) {
        let id = record.graph_id_map().model_id;
        let known = self.reports.contains_key(&id);
        if !known && (self.reports.len() >= SEEN_MAX || !grow_map(&mut self.reports)) {
            return;
        }
        let reports = self.reports.entry(id).or_default();
        if reports.len() < REPORTS_MAX && grow_vec(reports) {
            reports.push((record.head.thread_id, record.head.time));
        }
    }

    /// A call was written as an api record.
    pub fn take_call(&mut self, record: &ApiRecord) {
        self.take_run(&Pair {
            key: EventKey::of(record),
            begin: record.begin,
            end: record.end,
        });
    }

    /// A run is whole.
    pub fn take_run(&mut self, pair: &Pair) {
        let kind = NAMED_KINDS.iter().position(|kind| *kind == pair.key.kind);
        let is_run = pair.key.level == level::MODEL && pair.begin != 0 && pair.begin < pair.end;
        let (Some(kind), Ok(id), true) = (kind, u32::try_from(pair.key.item_id), is_run) else {
            return;
        };
        if let Some(run) = self.runs.get_mut(&id) {
            run.pairs[kind].get_or_insert(*pair);
        } else if self.runs.len() < SEEN_MAX && grow_map(&mut self.runs) {
            let mut run = Run {
                pairs: [None; NAMED_KINDS.len()],
                round: self.round,
                is_named: false,
            };
            run.pairs[kind] = Some(*pair);
            self.runs.insert(id, run);
        }
    }

    /// Which copies are to be written now. A run's own report comes through another ring, so that runs of the
    /// last round wait for one more; not at the end, when everything has been seen.
    pub fn due(&mut self, models: &Models, is_end: bool) -> Vec<Repeat> {
        let mut copies = Vec::new();
        for (id, run) in &mut self.runs {
            if run.is_named || (run.round == self.round && !is_end) {
                continue;
            }
            let pairs = || run.pairs.iter().flatten();
            let within = |(thread, time): &(u32, u64)| {
                pairs().any(|Pair { key, begin, end }| {
                    *thread == key.thread_id && begin < time && time <= end
                })
            };
            let reports = self.reports.get(id);
            let is_reported = reports.is_some_and(|reports| reports.iter().any(within));
            let first = pairs().min_by_key(|pair| pair.begin).copied();
            if is_reported {
                run.is_named = true;
            } else if let (Some(model), Some(first)) = (models.get(*id), first)
                && grow_vec(&mut copies)
            {
                run.is_named = true;
                copies.push(Repeat {
                    model,
                    thread_id: first.key.thread_id,
                    time: first.begin + 1,
                });
            }
        }
        self.round += 1;
        copies
    }
}
