//! Captures of several hosts, whose clocks began at different times: by their anchors they come into one order.

mod support;

use serde_json::Value;
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::namespace::Namespace;
use support::puppet::{self, Puppet};
use support::rules::open_complete;

/// How much later the other host was booted, s: no order by chance.
const SKEW_S: i64 = 1_000_000;
/// Records of each host, one after the other.
const ROUNDS: u64 = 50;

/// A host, and a capture under way on it.
struct Host {
    puppet: Puppet,
    client: ByteClient,
    /// Goes last: a program that lives puts its socket back.
    home: Home,
}

impl Host {
    fn new(booted_earlier_s: i64) -> Option<Host> {
        let home = Home::new();
        let seconds: &'static str = booted_earlier_s.to_string().leak();
        let flags = ["-T", "--monotonic", seconds, "--boottime", seconds];
        let namespace = Namespace::new("")?.with_flags(&flags)?;
        let puppet = Puppet::start_armed(&home, namespace.armed(&home, puppet::path()));
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        client.start();
        Some(Host {
            home,
            puppet,
            client,
        })
    }

    /// Ends the capture: its times as they are, and as of all hosts.
    fn times(mut self) -> (Vec<u64>, Vec<i128>) {
        self.client.stop();
        self.client.quit();
        let prof = open_complete(&only_prof_dir(&self.home.output()));
        let ledger = prof.ledger();
        let raw: Vec<u64> = prof.api().iter().map(|record| record.begin).collect();
        let real = raw.iter().map(|&raw| to_real(&ledger, raw)).collect();
        self.puppet.finish().expect_code(0);
        (raw, real)
    }
}

/// A time of a capture as one of all hosts, ns: by the anchors at both ends of the capture, since the clocks may go at different speeds.
fn to_real(ledger: &Value, raw: u64) -> i128 {
    let anchor = |end: &str| {
        let number = |name: &str| i128::from(ledger[end][name].as_i64().expect("a number"));
        (number("monotonic_raw_ns"), number("realtime_ns"))
    };
    let ((raw_0, real_0), (raw_1, real_1)) = (anchor("start"), anchor("stop"));
    real_0 + (i128::from(raw) - raw_0) * (real_1 - real_0) / (raw_1 - raw_0)
}

#[test]
fn captures_of_hosts_with_other_clocks_are_merged_into_the_order_in_which_it_happened() {
    let Some(mut first) = Host::new(0) else {
        return;
    };
    let mut second = Host::new(SKEW_S).expect("as the first");
    for round in 1..=ROUNDS {
        // Each answers before the other is told.
        assert_eq!(first.puppet.tell(&format!("api 1 {round}")), "0");
        assert_eq!(second.puppet.tell(&format!("api 1 {round}")), "0");
    }
    let (first_raw, first) = first.times();
    let (second_raw, second) = second.times();
    let apart = second_raw[0].abs_diff(first_raw[0]) / 1_000_000_000;
    assert!(apart.abs_diff(SKEW_S as u64) < 100, "{apart} s apart");
    assert_eq!(
        (first.len(), second.len()),
        (ROUNDS as usize, ROUNDS as usize)
    );
    let merged: Vec<i128> = first
        .iter()
        .zip(&second)
        .flat_map(|(one, other)| [*one, *other])
        .collect();
    for pair in merged.windows(2) {
        assert!(pair[0] < pair[1], "{} ns out of order", pair[0] - pair[1]);
    }
}
