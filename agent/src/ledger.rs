//! The account of one capture: what was reported, written, lost and aged out.
//!
//! For every trace `reported = written + lost + aged out`, and for every thread `reported = written + lost`,
//! where `written` includes what was deleted again for the storage limit. The ledger is the
//! body of `msprof_agent.json` in the PROF directory and travels to the controller after a stop.

use crate::records::TraceCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Three clocks read at one instant, so that captures of different hosts can be aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Ticks of `MsprofSysCycleTime`.
    pub ticks: u64,
    /// CLOCK_MONOTONIC_RAW, ns.
    pub monotonic_raw_ns: u64,
    /// CLOCK_REALTIME, ns since the epoch.
    pub realtime_ns: u64,
    /// The CPU's own counter (rdtsc, cntvct_el0).
    pub cpu_counter: u64,
}

/// Where a capture stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureState {
    /// Records are being taken; also what a killed process leaves behind.
    #[default]
    Capturing,
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
    /// Clocks at the stop; absent while capturing.
    pub stop: Option<Anchor>,
    /// Devices that were open at some time during the capture.
    pub devices: Vec<u32>,
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
    /// Per thread, bounded; the rest is summed under tid 0.
    pub threads: Vec<ThreadLedger>,
    /// What went wrong or needs saying, one sentence each.
    pub notes: Vec<String>,
}
