//! The account of one capture: what was reported, written, lost and aged out.
//!
//! For every trace `reported = written + lost + aged out`, and for every thread `reported = written + lost`,
//! where `written` includes what was deleted again for the storage limit. The ledger is the
//! body of `msprof_agent.json` in the PROF directory and travels to the controller after a stop.

#![forbid(unsafe_code)]

/// Part of a ledger, and so of what the controller reads.
pub use crate::clock::Anchor;

use crate::records::TraceCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a capture stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureState {
    /// Records are being taken; also what a killed process leaves behind.
    #[default]
    Capturing,
    /// Its process was killed, and `msprof recover` has finished the directory.
    Recovered,
    /// Stopped, everything written.
    Complete,
    /// Ended by an error on writing; what was whole is kept.
    Failed,
}

/// One thread's share of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLedger {
    /// Kernel thread id; 0 for the sum over threads beyond the bound.
    pub tid: u32,
    /// Records whose report returned while this capture ran.
    pub reported: TraceCounts,
    /// Records handed to the PROF directory (aged out ones included).
    pub written: TraceCounts,
    /// Records dropped: ring full, or an error on writing.
    pub lost: TraceCounts,
}

/// What is known of the end of a capture whose process was killed.
///
/// `reported` and `lost` of such a ledger are lower bounds: what was lost after the last account, and what
/// waited in memory at the kill, nobody has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recovered {
    /// When the last account was made, ns after the start; absent where there was none to be read.
    pub account_ns: Option<u64>,
    /// Time of the last record that was kept, ns after the start; absent where none was.
    pub last_record_ns: Option<u64>,
    /// Bytes of torn or unreadable records that were cut off.
    pub cut_bytes: u64,
    /// Records that were still in the process's memory, and were written by the controller.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rescued: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What came of a channel of a device's driver; its records are among those of the trace aicpu.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelLedger {
    /// Device id.
    pub device: u32,
    /// The driver's number: 143 for the AICPU, 144 for the custom AICPU.
    pub channel: u32,
    /// The driver had it at some time during the capture.
    pub offered: bool,
    /// Records that the driver handed over.
    pub records: u64,
    /// Bytes that the driver handed over and that were no records, or such as the parser cannot read.
    pub skipped_bytes: u64,
    /// The driver said that it had to drop records; it does not say how many.
    pub driver_lost: bool,
}

/// What has taken the other event of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The call was under way when the capture began: this is its end.
    Start,
    /// The call was under way when the capture ended: this is its begin.
    Stop,
    /// The start or the stop, which cannot be told.
    #[default]
    Edge,
    /// Neither: it was never reported, or lost.
    Lost,
    /// The storage limit.
    Limit,
}

/// A call, such as a model run, of which the capture has one event only. It is in no export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartialCall {
    /// Level of its records.
    pub level: u16,
    /// Name of its type, such as `ModelExecute`; the number where it has none.
    pub name: String,
    /// The item: of level model, the model's id.
    pub item: u64,
    /// What the item is called, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_name: Option<String>,
    /// Number of the run: the events' request id.
    pub run: u32,
    /// Kernel thread id.
    pub thread: u32,
    /// Time of its only event, ns.
    pub time_ns: u64,
    /// Where the other one went.
    pub cut: Cut,
}

/// Most [`PartialCall`]s in a ledger.
pub const PARTIAL_MAX: usize = 64;

/// Threads with a row of their own in a ledger.
pub const THREADS_MAX: usize = 512;
/// Most sentences in a ledger.
pub const NOTES_MAX: usize = 50;

/// The account of one capture; all counts are records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Version of the agent that wrote it.
    pub agent_version: String,
    /// Process id as the process sees it.
    pub pid: u32,
    /// Number of the capture within the process, from 1.
    pub capture: u64,
    /// Where the capture stands.
    pub state: CaptureState,
    /// Clocks at the start.
    pub start: Anchor,
    /// Clocks at the stop; absent while capturing. Of a recovered capture: the last that is known of it, with
    /// no counter.
    pub stop: Option<Anchor>,
    /// When this account was made, if that was in mid capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounted: Option<Anchor>,
    /// What is known of the end if the process was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Recovered>,
    /// Where time stamps came from, in the order of their use, as [`clock::Source`](crate::clock::Source) names
    /// them: the kernel's clock comes first where a capture began soon after load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<String>,
    /// Devices that were open at some time during the capture.
    pub devices: Vec<u32>,
    /// The drivers' channels that were looked for, by device and number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelLedger>,
    /// Devices that GE's model indices run on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_devices: BTreeMap<u32, u32>,
    /// Records of selected traces that were reported.
    pub reported: TraceCounts,
    /// Records in the PROF directory.
    pub written: TraceCounts,
    /// Records dropped: ring full, or an error on writing.
    pub lost: TraceCounts,
    /// Records deleted again to keep the storage limit.
    pub aged_out: TraceCounts,
    /// Reports refused because the parser cannot read their magic or level; in none of the above.
    pub unreadable: u64,
    /// Bytes of data slices in the directory.
    pub bytes: u64,
    /// Events whose partner is not in the capture; they are written, and count as such.
    #[serde(skip_serializing_if = "is_zero")]
    pub partial_events: u64,
    /// The calls that they belong to, the first [`PARTIAL_MAX`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial_calls: Vec<PartialCall>,
    /// Records that say again what models are called that were reported before or outside their runs; in none of the
    /// counts above.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_names: u64,
    /// Per thread, bounded; the rest is summed under tid 0.
    pub threads: Vec<ThreadLedger>,
    /// What went wrong or needs saying, one sentence each.
    pub notes: Vec<String>,
}

impl Ledger {
    /// Adds a thread's row, or, beyond [`THREADS_MAX`], its counts to the row of the rest.
    pub fn add_thread(&mut self, row: ThreadLedger) {
        if self.threads.len() < THREADS_MAX {
            self.threads.push(row);
            return;
        }
        if self.threads.last().is_none_or(|last| last.tid != 0) {
            self.threads.push(ThreadLedger::default());
        }
        if let Some(rest) = self.threads.last_mut() {
            rest.reported.merge(&row.reported);
            rest.written.merge(&row.written);
            rest.lost.merge(&row.lost);
        }
    }
}
