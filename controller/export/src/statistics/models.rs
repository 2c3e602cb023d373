//! Runs of models: GE's `ModelExecute` calls at level model, whose item is the model's id.

use super::Captured;
use super::durations::{Durations, Times};
use super::histogram::Pages;
use crate::calls::Call;
use crate::source::Source;
use msprof_agent_core::records::{AdditionalRecord, MAGIC, level};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// What a run is called.
const RUN: &str = "ModelExecute";
/// Its type, where no dictionary gives it a name (spec 5).
const RUN_KIND: u32 = 1;
/// Models that are told apart; the runs of more are summed up.
const MODELS_MAX: usize = 4096;
/// Family of the records that say what models are called.
const NAMES: &str = "graph_id_map";

/// All runs of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRow {
    /// Its id; `None` for all models beyond a bound.
    pub model: Option<u64>,
    /// What it is called, where the capture says so. Text of a file: may hold anything.
    pub name: Option<String>,
    /// How long its runs took.
    pub times: Times,
    /// Runs per second of the capture; `None` where it is not known how long that was.
    pub per_second: Option<f64>,
}

/// Whether a call is a run of a model.
pub(crate) fn is_run(source: &Source, call: &Call) -> bool {
    if call.level != level::MODEL {
        return false;
    }
    let name = source.type_name(call.level, call.kind);
    name == RUN || call.kind == RUN_KIND && name.parse() == Ok(RUN_KIND)
}

/// What the models of these ids are called.
pub(crate) fn names(source: &Source, wanted: impl Fn(u64) -> bool) -> HashMap<u64, String> {
    let mut names = HashMap::new();
    let records = source.profile().additional(NAMES);
    // What cannot be read has no name: the runs are there all the same.
    for record in records.flatten() {
        let record: AdditionalRecord = record;
        if record.head.magic != MAGIC || !record.is_graph_id_map() {
            continue;
        }
        let map = record.graph_id_map();
        let model = u64::from(map.model_id);
        if wanted(model) {
            names.insert(model, source.string(map.model_name).into_owned());
        }
    }
    names
}

/// Durations by model.
#[derive(Default)]
pub(super) struct ByModel {
    runs: BTreeMap<Option<u64>, Durations>,
}

impl ByModel {
    pub(super) fn add(&mut self, source: &Source, call: &Call, ticks: u64, pages: &mut Pages) {
        if !is_run(source, call) {
            return;
        }
        let mut model = Some(call.item);
        if self.runs.len() >= MODELS_MAX && !self.runs.contains_key(&model) {
            model = None;
        }
        self.runs.entry(model).or_default().add(ticks, pages);
    }

    /// By number of runs, the largest first.
    pub(super) fn rows(
        self,
        source: &Source,
        ns_per_tick: f64,
        captured: Option<Captured>,
    ) -> Vec<ModelRow> {
        if self.runs.is_empty() {
            return Vec::new();
        }
        let mut names = names(source, |model| self.runs.contains_key(&Some(model)));
        let rows = self.runs.into_iter().map(|(model, durations)| {
            let times = durations.times(ns_per_tick);
            ModelRow {
                model,
                name: model.and_then(|model| names.remove(&model)),
                per_second: captured.map(|captured| captured.per_second(times.count)),
                times,
            }
        });
        let mut rows: Vec<ModelRow> = rows.collect();
        rows.sort_by_key(|row| Reverse(row.times.count));
        rows
    }
}
