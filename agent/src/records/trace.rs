//! What records count as: the traces of the ledger, and records counted by them.

#![forbid(unsafe_code)]

use super::{ApiRecord, RecordSize, level};
use serde::{Deserialize, Serialize};

/// What a record counts as in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Trace {
    /// Api records of level runtime.
    RuntimeApi = 0,
    /// Api and event records of level model.
    ModelExecution = 1,
    /// Records of level aicpu.
    Aicpu = 2,
    /// Api records of level acl.
    Acl = 3,
    /// Everything else, which is taken whenever it is sent: api records of nodes, communication, marks
    /// and frameworks; compact, additional and variable families.
    Task = 4,
}

impl Trace {
    /// All traces, in the order of their numbers.
    pub const ALL: [Trace; 5] = [
        Trace::RuntimeApi,
        Trace::ModelExecution,
        Trace::Aicpu,
        Trace::Acl,
        Trace::Task,
    ];

    /// Name as in options, ledger and result lines.
    pub fn name(self) -> &'static str {
        match self {
            Trace::RuntimeApi => "runtime-api",
            Trace::ModelExecution => "model-execution",
            Trace::Aicpu => "aicpu",
            Trace::Acl => "acl",
            Trace::Task => "task",
        }
    }

    /// The trace that a record of a readable level belongs to; `None` for a level that the parser
    /// cannot read. `is_api` tells api and event records from the 64- and 256-byte families.
    #[inline]
    pub fn of(level: u16, is_api: bool) -> Option<Trace> {
        let known = &LEVELS[level_slot(level)];
        if known.level != level {
            return None;
        }
        known.traces[is_api as usize]
    }
}

/// A level and the traces of its records: of the 64- and 256-byte families, of api and event records.
#[derive(Clone, Copy)]
struct KnownLevel {
    level: u16,
    traces: [Option<Trace>; 2],
}

const LEVEL_SLOTS: usize = 16;

/// Where a level lies in [`LEVELS`]. The factor is one that gives each readable level a slot of its own, so
/// that a report finds its trace with one comparison.
#[inline]
const fn level_slot(level: u16) -> usize {
    const FACTOR: u16 = 17;
    (level.wrapping_mul(FACTOR) >> (u16::BITS - LEVEL_SLOTS.ilog2())) as usize
}

static LEVELS: [KnownLevel; LEVEL_SLOTS] = {
    let none = KnownLevel {
        level: 0,
        traces: [None; 2],
    };
    let mut table = [none; LEVEL_SLOTS];
    let mut i = 0;
    while i < level::READABLE.len() {
        let lvl = level::READABLE[i];
        let slot = &mut table[level_slot(lvl)];
        assert!(slot.level == 0, "two levels share a slot");
        *slot = KnownLevel {
            level: lvl,
            traces: [
                Some(match lvl {
                    level::AICPU => Trace::Aicpu,
                    _ => Trace::Task,
                }),
                Some(match lvl {
                    level::RUNTIME => Trace::RuntimeApi,
                    level::MODEL => Trace::ModelExecution,
                    level::AICPU => Trace::Aicpu,
                    level::ACL => Trace::Acl,
                    _ => Trace::Task,
                }),
            ],
        };
        i += 1;
    }
    table
};

/// Records counted per trace, indexed by [`Trace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NamedCounts", into = "NamedCounts")]
pub struct TraceCounts(pub [u64; Trace::ALL.len()]);

impl TraceCounts {
    /// Sum over all traces. Counts can come from a file that somebody else wrote: sums stay at the largest
    /// number.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Adds `n` records of one trace.
    #[inline]
    pub fn add(&mut self, trace: Trace, n: u64) {
        self.0[trace as usize] += n;
    }

    /// Count of one trace.
    pub fn get(&self, trace: Trace) -> u64 {
        self.0[trace as usize]
    }

    /// Counts whole records of one size by trace; the level is in the third and fourth byte of every
    /// record. Records of a level that the parser cannot read are in no count.
    pub fn of_records(bytes: &[u8], record_size: usize) -> TraceCounts {
        let is_api = record_size == RecordSize::Api.bytes();
        let mut counts = TraceCounts::default();
        // One comparison a record and one look-up a run of equal levels: neighbours mostly share theirs.
        let (mut level, mut run) = (0, 0);
        for record in bytes.chunks_exact(record_size) {
            let this = match record {
                [_, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
                _ => 0,
            };
            if this != level {
                counts.add_run(level, is_api, run);
                (level, run) = (this, 0);
            }
            run += 1;
        }
        counts.add_run(level, is_api, run);
        counts
    }

    /// The same of whole api and event records; and whether there are events, or api records of level model,
    /// among them.
    pub fn of_apis(bytes: &[u8]) -> (TraceCounts, bool) {
        const END: usize = std::mem::offset_of!(ApiRecord, end);
        let mut counts = TraceCounts::default();
        let (mut level, mut run) = (0, 0);
        let mut events = false;
        for record in bytes.as_chunks::<{ RecordSize::Api.bytes() }>().0 {
            let this = u16::from_le_bytes([record[2], record[3]]);
            events |= record[END..].starts_with(&ApiRecord::EVENT_END.to_le_bytes());
            if this != level {
                counts.add_run(level, true, run);
                (level, run) = (this, 0);
            }
            run += 1;
        }
        counts.add_run(level, true, run);
        (counts, events || counts.get(Trace::ModelExecution) > 0)
    }

    fn add_run(&mut self, level: u16, is_api: bool, records: u64) {
        if let Some(trace) = Trace::of(level, is_api) {
            self.add(trace, records);
        }
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &TraceCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// [`TraceCounts`] as it appears in JSON: one key per trace.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[derive(Default)]
struct NamedCounts {
    runtime_api: u64,
    model_execution: u64,
    aicpu: u64,
    acl: u64,
    task: u64,
}

impl From<NamedCounts> for TraceCounts {
    fn from(n: NamedCounts) -> Self {
        TraceCounts([n.runtime_api, n.model_execution, n.aicpu, n.acl, n.task])
    }
}

impl From<TraceCounts> for NamedCounts {
    fn from(c: TraceCounts) -> Self {
        let [runtime_api, model_execution, aicpu, acl, task] = c.0;
        NamedCounts {
            runtime_api,
            model_execution,
            aicpu,
            acl,
            task,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counting_by_runs_finds_what_counting_one_by_one_finds(
            runs in prop::collection::vec(
                (prop_oneof![4 => prop::sample::select(&level::READABLE[..]), 1 => any::<u16>()], 1usize..5),
                0..40,
            ),
            size in prop::sample::select(vec![40usize, 64, 256]),
        ) {
            let mut bytes = Vec::new();
            let mut expected = TraceCounts::default();
            for level in runs.iter().flat_map(|(level, run)| std::iter::repeat_n(*level, *run)) {
                let mut record = vec![0xA5; size];
                record[2..4].copy_from_slice(&level.to_le_bytes());
                bytes.extend(record);
                if let Some(trace) = Trace::of(level, size == 40) {
                    expected.add(trace, 1);
                }
            }
            prop_assert_eq!(TraceCounts::of_records(&bytes, size), expected);
            if size == 40 {
                let (counts, notable) = TraceCounts::of_apis(&bytes);
                prop_assert_eq!(counts, expected);
                prop_assert_eq!(notable, expected.get(Trace::ModelExecution) > 0);
                if let Some(last) = bytes.last_chunk_mut::<16>() {
                    last[..8].fill(0xFF);
                    prop_assert_eq!(TraceCounts::of_apis(&bytes), (expected, true));
                }
            }
        }
    }

    #[test]
    fn each_readable_level_has_a_trace_and_no_other_level_has() {
        for lvl in 0..=u16::MAX {
            let readable = level::READABLE.contains(&lvl);
            assert_eq!(Trace::of(lvl, true).is_some(), readable, "api level {lvl}");
            assert_eq!(Trace::of(lvl, false).is_some(), readable, "level {lvl}");
        }
        assert_eq!(Trace::of(level::RUNTIME, true), Some(Trace::RuntimeApi));
        assert_eq!(Trace::of(level::RUNTIME, false), Some(Trace::Task));
        assert_eq!(Trace::of(level::AICPU, false), Some(Trace::Aicpu));
    }

    #[test]
    fn counts_are_named_by_trace_in_json() {
        let mut counts = TraceCounts::default();
        counts.add(Trace::RuntimeApi, 3);
        let text = serde_json::to_string(&counts).expect("counts serialise");
        assert!(text.contains("\"runtime-api\":3"), "{text}");
        let back: TraceCounts = serde_json::from_str(&text).expect("counts parse");
        assert_eq!(back, counts);
    }
}
