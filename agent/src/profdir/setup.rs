//! What a PROF_XXX directory is made from.

#![forbid(unsafe_code)]

use crate::ledger::Anchor;
use std::path::PathBuf;

/// What a directory is made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Directory in which PROF_XXX is made; itself made with its parents (mode 0750) if missing.
    pub parent: PathBuf,
    /// Whether it may be made where other users could put something in its place.
    pub allow_shared: bool,
    /// Number of the capture in the process, from 1.
    pub index: u64,
    /// Process id as the process sees it.
    pub pid: u32,
    /// Clocks at the start.
    pub start: Anchor,
    /// Bytes that the directory may hold.
    pub storage_limit: Option<u64>,
    /// JSON object for host/sample.json; keys that the parser needs are added if missing.
    pub sample_host: String,
    /// Chip generation as the driver numbers it; "5" is the 910B class and what is known to unlock
    /// every export.
    pub platform_version: String,
    /// Driver API version; from 467473 on the parser offers all exports.
    pub driver_version: u64,
    /// CANN version such as "9.0.0", empty if unknown.
    pub cann_version: String,
    /// Rank of the process in its job, -1 if none.
    pub rank_id: i64,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            parent: PathBuf::from("."),
            allow_shared: false,
            index: 1,
            pid: std::process::id(),
            start: Anchor::default(),
            storage_limit: None,
            sample_host: "{}".to_owned(),
            platform_version: "5".to_owned(),
            driver_version: 467_734,
            cann_version: String::new(),
            rank_id: -1,
        }
    }
}

/// How the ticks in a device's data turn into host time:
/// `host_ns + (tick - device_ticks) * 1000 / megahertz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceClock {
    /// Device ticks per microsecond as a decimal number above 0.
    pub megahertz: String,
    /// CLOCK_MONOTONIC_RAW of the host, ns.
    pub host_ns: u64,
    /// The device's own monotonic clock at that instant, ns.
    pub device_ns: u64,
    /// The device's counter at that instant.
    pub device_ticks: u64,
}

impl DeviceClock {
    /// For device data made on the host: ticks are nanoseconds of the host (spec 3 section 12 item 8).
    pub fn of_host(anchor: Anchor) -> DeviceClock {
        DeviceClock {
            megahertz: "1000".to_owned(),
            host_ns: anchor.monotonic_raw_ns,
            device_ns: anchor.monotonic_raw_ns,
            device_ticks: anchor.monotonic_raw_ns,
        }
    }
}
