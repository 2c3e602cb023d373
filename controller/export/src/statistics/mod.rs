//! What a capture comes to in numbers: calls by name, runs of models, what the devices' AICPU did.
//!
//! Counts what the parser's timeline holds: api records, and events in pairs. One pass over the records; memory grows with
//! the number of names, up to a bound, and not with that of records.

mod aicpu;
mod calls;
mod durations;
mod histogram;
mod models;

pub use aicpu::{AicpuRow, DeviceRow};
pub use calls::CallRow;
pub use durations::Times;
pub use models::ModelRow;

use crate::calls::{Call, Skipped};
use crate::source::Source;
use calls::ByName;
use histogram::Pages;
use models::ByModel;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::ReadError;
use serde::Serialize;

/// Pages of all histograms together: 32 MiB. A name with durations from 100 ns to 100 ms takes 20.
const PAGES_MAX: usize = 1 << 16;
/// How many calls are read before it is asked whether to go on.
const ASK_EVERY: u64 = 4096;

/// A capture in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// How long was captured; `None` where nothing tells.
    pub captured: Option<Captured>,
    /// Calls by total time, the largest first.
    pub calls: Vec<CallRow>,
    /// Models by number of runs, the largest first.
    pub models: Vec<ModelRow>,
    /// What the AICPU of each device did, by device.
    pub devices: Vec<DeviceRow>,
    /// What was met on the way and is no call; foreign records of the devices too.
    pub skipped: Skipped,
}

/// The time of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it began, ns of CLOCK_MONOTONIC_RAW.
    pub start_ns: u64,
    /// How long, ns.
    pub ns: u64,
    /// What its end is.
    pub until: Until,
}

/// What the end of a capture is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// The stop, by the ledger or end_info; of a process that was killed, the last that is known of it.
    Stop,
    /// The end of the last call: there was no stop.
    LastCall,
}

impl Statistics {
    /// Reads all calls and aicpu records of a directory.
    pub fn of(source: &Source) -> Result<Statistics, ReadError> {
        Ok(Statistics::of_while(source, |_| true, || true)?.unwrap_or_default())
    }

    /// The same as long as it is to go on, which is asked now and then; `None` when it was not. `each` sees every call, and
    /// is told by `false` that it does not count.
    pub fn of_while(
        source: &Source,
        mut each: impl FnMut(&Call) -> bool,
        go_on: impl Fn() -> bool,
    ) -> Result<Option<Statistics>, ReadError> {
        let mut pages = Pages::new(PAGES_MAX);
        let mut by_name = ByName::default();
        let mut by_model = ByModel::default();
        let (mut read, mut last) = (0, 0);
        let mut calls = source.calls();
        for call in calls.by_ref() {
            let call = call?;
            if read % ASK_EVERY == 0 && !go_on() {
                return Ok(None);
            }
            read += 1;
            if !each(&call) {
                continue;
            }
            last = call.end.max(last);
            // A record that is wrong ends before it begins.
            let ticks = call.end.saturating_sub(call.begin);
            by_name.add(&call, ticks, &mut pages);
            by_model.add(source, &call, ticks, &mut pages);
        }
        let last = (read > 0).then(|| source.clock().monotonic_ns(last));
        let captured = captured(source, last);
        let ns_per_tick = 1000.0 / source.clock().ticks_per_us;
        let mut skipped = calls.skipped();
        let devices = aicpu::rows(source, captured, &mut pages, &mut skipped.foreign, &go_on)?;
        let Some(devices) = devices else {
            return Ok(None);
        };
        Ok(Some(Statistics {
            captured,
            calls: by_name.rows(source, ns_per_tick),
            models: by_model.rows(source, ns_per_tick, captured),
            devices,
            skipped,
        }))
    }

    /// All runs of models.
    pub fn model_runs(&self) -> u64 {
        self.models.iter().map(|row| row.times.count).sum()
    }

    /// Runs of all models in a second; `None` where it is not known how long was captured.
    pub fn model_runs_per_second(&self) -> Option<f64> {
        Some(self.captured?.per_second(self.model_runs()))
    }
}

impl Captured {
    /// How often in a second something happened that happened so often.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.ns as f64
    }

    /// Which part of it a time is: 1.0 for all of it.
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.ns as f64
    }
}

/// From the start to the stop, by the ledger or else the control files. CLOCK_MONOTONIC_RAW, ns.
fn captured(source: &Source, last_call: Option<u64>) -> Option<Captured> {
    let ledger = source.ledger();
    let profile = source.profile();
    let control =
        |times: Option<msprof_agent_core::profdir::reader::Times>| Some(times?.monotonic_ns);
    let start = ledger.map(|ledger| ledger.start.monotonic_raw_ns);
    let start = start.or_else(|| control(profile.start(Place::Host)))?;
    let stop = match ledger {
        Some(ledger) => ledger.stop.map(|stop| stop.monotonic_raw_ns),
        None => control(profile.stop(Place::Host)),
    };
    let (end, until) = match stop {
        Some(stop) => (stop, Until::Stop),
        None => (last_call?, Until::LastCall),
    };
    let ns = end.checked_sub(start).filter(|ns| *ns > 0)?;
    Some(Captured {
        start_ns: start,
        ns,
        until,
    })
}

#[cfg(test)]
mod tests;
