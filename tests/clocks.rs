//! Time stamps out of the CPU's counter, where the kernel takes its own time from it.

mod support;

use serde_json::json;
use std::time::{Duration, Instant};
use support::artifacts::artifacts;
use support::client::{ByteClient, params};
use support::home::{Home, prof_dirs};
use support::namespace::Namespace;
use support::process::is_foreign;
use support::prof::Api;
use support::puppet::{self, Puppet};
use support::rules::open_complete;

/// Where the kernel says what it counts with.
const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// How far a time may be from the kernel's, ns: a microsecond, and what a machine without a CPU to spare adds to the
/// samples that the conversion goes by.
const NEAR_NS: u64 = 100_000;
const ROUNDS: usize = 20;
const RECORDS: usize = 50;

/// CLOCK_MONOTONIC_RAW, ns.
fn raw_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to that local only.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    assert_eq!(result, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// On a machine of another kind, whose kernel counts with something else, the file says what that of an aarch64 would.
#[test]
fn times_out_of_the_counter_are_the_kernels() {
    let home = Home::new();
    let is_aarch64 = is_foreign(&artifacts().library) != cfg!(target_arch = "aarch64");
    let counter = match is_aarch64 {
        true => "arch_sys_counter",
        false => "tsc",
    };
    let file = home.path().join("clocksource");
    std::fs::write(&file, counter).expect("written");
    let Some(namespace) = Namespace::new(&format!("mount --bind '{}' {CURRENT}", file.display()))
    else {
        return;
    };
    let mut puppet = Puppet::start_armed(&home, namespace.armed(&home, puppet::path()));
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_invariant = is_aarch64 || cpu.split_whitespace().any(|flag| flag == "nonstop_tsc");
    // The counter's rate is known to the agent a second after its load.
    let until = Instant::now() + Duration::from_secs(if is_invariant { 60 } else { 5 });
    loop {
        client.start();
        let mut windows = Vec::new();
        for _ in 0..ROUNDS {
            let before = raw_ns();
            assert_eq!(puppet.tell(&format!("api {RECORDS} 1")), "0");
            windows.push((before, raw_ns()));
        }
        client.stop();
        let dirs = prof_dirs(&home.output());
        let prof = open_complete(dirs.last().expect("a capture"));
        assert_within(&prof.api(), &windows);
        let clocks = prof.ledger()["clocks"].clone();
        if clocks == json!(["cpu-counter"]) {
            break;
        }
        if Instant::now() > until {
            assert!(!is_invariant, "{clocks}");
            support::skip::skipped(format_args!(
                "this CPU does not say that its counter is invariant"
            ));
            break;
        }
    }
    client.quit();
}

/// Each window of the kernel's clock holds its records, in order.
#[track_caller]
fn assert_within(records: &[Api], windows: &[(u64, u64)]) {
    assert_eq!(records.len(), windows.len() * RECORDS);
    let mut last = 0;
    for (records, (before, after)) in records.chunks(RECORDS).zip(windows) {
        for Api { begin, end, .. } in records {
            assert!(last <= *begin && begin <= end);
            last = *end;
            assert!(
                *before <= begin + NEAR_NS && *end <= after + NEAR_NS,
                "{begin}..{end} not in {before}..{after}"
            );
        }
    }
}
