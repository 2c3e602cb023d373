//! What the AICPU of each device did: its records by type, and how long what they tell of took.
//!
//! Times are the parser's (spec 3 section 6.3): a node's task time in ticks of the device, a wait for data in us.

use super::Captured;
use super::durations::{Durations, Times};
use super::histogram::Pages;
use crate::decode::aicpu::Aicpu;
use crate::source::Source;
use msprof_agent_core::profdir::reader::ReadError;
use std::collections::BTreeMap;

/// Types of one device that are told apart; no file of an agent's has as many.
const KINDS_MAX: usize = 64;
/// How many records are read before it is asked whether to go on.
const ASK_EVERY: u64 = 4096;

/// What the AICPU of a device did.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRow {
    /// Device id.
    pub device: u32,
    /// Sum of the times of all tasks, ns. Tasks that ran at the same time count each.
    pub busy_ns: u64,
    /// The same as a part of the captured time; above 1.0 where several tasks ran at a time.
    pub busy_share: Option<f64>,
    /// Sum of all waits for a data queue, ns.
    pub data_wait_ns: u64,
    /// The same as a part of the captured time.
    pub data_wait_share: Option<f64>,
    /// Its records by type.
    pub records: Vec<AicpuRow>,
}

/// All aicpu records of one device and type.
#[derive(Clone, Debug, PartialEq)]
pub struct AicpuRow {
    /// Type of the records; `None` for all types beyond a bound.
    pub kind: Option<u32>,
    /// Number of records.
    pub count: u64,
    /// Those of them that tell of something that took time, and how long.
    pub timed: Times,
}

impl AicpuRow {
    /// What records of this type are about.
    pub fn name(&self) -> String {
        match self.kind {
            Some(Aicpu::NODE) => "node".to_owned(),
            Some(Aicpu::DATA) => "data preprocessing".to_owned(),
            Some(Aicpu::MODEL) => "model".to_owned(),
            Some(Aicpu::WAIT) => "data queue".to_owned(),
            Some(other) => format!("type {other}"),
            None => "others".to_owned(),
        }
    }
}

/// Devices with aicpu records, by device; `None` when it was not to go on. Adds to `foreign` what was no record.
pub(super) fn rows(
    source: &Source,
    captured: Option<Captured>,
    pages: &mut Pages,
    foreign: &mut u64,
    go_on: &impl Fn() -> bool,
) -> Result<Option<Vec<DeviceRow>>, ReadError> {
    let mut rows = Vec::new();
    for device in source.profile().devices() {
        let clock = source.device_clock(device);
        let mut kinds: BTreeMap<Option<u32>, (u64, Durations)> = BTreeMap::new();
        let mut records = source.aicpu(device);
        for (read, record) in (0u64..).zip(records.by_ref()) {
            let record = record?;
            if read.is_multiple_of(ASK_EVERY) && !go_on() {
                return Ok(None);
            }
            let mut kind = Some(record.kind());
            if kinds.len() >= KINDS_MAX && !kinds.contains_key(&kind) {
                kind = None;
            }
            let (count, durations) = kinds.entry(kind).or_default();
            *count += 1;
            if let Some(span) = record.span() {
                durations.add(span.duration_ns(&clock), pages);
            }
        }
        *foreign += records.foreign();
        if !kinds.is_empty() {
            rows.push(row(device, kinds, captured));
        }
    }
    Ok(Some(rows))
}

fn row(
    device: u32,
    mut kinds: BTreeMap<Option<u32>, (u64, Durations)>,
    captured: Option<Captured>,
) -> DeviceRow {
    // The others come last.
    let others = kinds.remove_entry(&None);
    let kinds = kinds.into_iter().chain(others);
    let records: Vec<AicpuRow> = kinds
        .map(|(kind, (count, durations))| AicpuRow {
            kind,
            count,
            timed: durations.times(1.0),
        })
        .collect();
    let total = |kind| {
        let of_kind = records.iter().find(|row| row.kind == Some(kind));
        of_kind.map_or(0, |row| row.timed.total_ns)
    };
    let (busy_ns, data_wait_ns) = (total(Aicpu::NODE), total(Aicpu::WAIT));
    DeviceRow {
        device,
        busy_ns,
        busy_share: captured.map(|captured| captured.share(busy_ns)),
        data_wait_ns,
        data_wait_share: captured.map(|captured| captured.share(data_wait_ns)),
        records,
    }
}
