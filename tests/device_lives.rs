//! Devices and the life of a process: many captures, forks, exits and kills, and a load that is as heavy as it gets.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use support::artifacts::artifacts;
use support::client::ByteClient;
use support::hal::{
    AICPU, CUSTOM_AICPU, Hal, RECORD, Start, channel_bytes, device_bytes, numbers, start,
    sum_of_slices,
};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::Proc;
use support::prof::Prof;
use support::rules::{lost, open_complete, open_recovered};
use support::wait::{wait_for, wait_until};

#[test]
fn twenty_captures_hold_exactly_their_own_records_and_leave_nothing_behind() {
    const CAPTURES: u32 = 20;
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1 CHANNELS=143,144 RATE=2000 SERVED=bytes CLOCK=50";
    let puppet = hal.puppet(&home, settings, &[0, 1]);
    let pid = puppet.pid();
    let proc = Proc::of(pid);
    let all = [(0, AICPU), (0, CUSTOM_AICPU), (1, AICPU), (1, CUSTOM_AICPU)];
    let of = |number| all.map(|(device, channel)| (device, channel, number));
    let mut before = None;
    for number in 1..=CAPTURES {
        let mut client = start(&puppet, &home);
        hal.wait_served(pid, &of(number), 20);
        client.stop();
        client.quit();
        // The first one has made the rings' memory and loaded the driver.
        match &before {
            None => before = Some(proc.idle_resources()),
            Some(before) => proc.wait_for_resources(before),
        }
    }
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len() as u32, CAPTURES);
    let mut seen = BTreeSet::new();
    for (dir, number) in dirs.iter().zip(1..) {
        let prof = open_complete(dir);
        for at in of(number) {
            let (device, channel, _) = at;
            let written = channel_bytes(&prof, device, channel);
            assert!(written == hal.bytes(pid, at), "capture {number}: {at:?}");
            for record in numbers(&written) {
                assert!(seen.insert((device, channel, record)), "in two captures");
            }
        }
        assert_eq!(lost(&prof.ledger()), 0);
    }
}

#[test]
fn forks_in_mid_capture_leave_the_driver_to_the_parent() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1 RATE=5000 SERVED=bytes";
    let mut puppet = hal.puppet(&home, settings, &[0, 1]);
    let pid = puppet.pid();
    let mut client = start(&puppet, &home);
    let starts = [(0, AICPU, 1), (1, AICPU, 1)];
    for round in 1..=5 {
        for order in ["fork exit", "fork _exit", "vfork", "double"] {
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
        hal.wait_served(pid, &starts, 100 * round);
    }
    // A child that becomes an agent of its own has no device open.
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    let socket = home.wait_socket(child);
    let child_output = home.path().join("child");
    let mut second = ByteClient::open(&socket, &support::client::params(&child_output));
    second.start();
    second.stop();
    second.quit();
    assert_eq!(puppet.tell("let"), "0");
    client.stop();
    let prof = open_complete(&only_prof_dir(&home.output()));
    for at in starts {
        assert!(channel_bytes(&prof, at.0, AICPU) == hal.bytes(pid, at));
    }
    assert_eq!(hal.processes(), [pid]);
    let of_child = open_complete(&only_prof_dir(&child_output));
    assert_eq!(of_child.aicpu(), []);
    assert_eq!(of_child.notes_with("channel"), [] as [String; 0]);
}

#[test]
fn exit_in_mid_capture_writes_what_was_read_and_calls_a_torn_down_driver_no_more() {
    for attempt in 0..5 {
        let home = Home::new();
        let hal = Hal::new(&home);
        let settings = "DEVICES=0,1 RATE=50000 SERVED=bytes CLOCK=50";
        let mut puppet = hal.puppet(&home, settings, &[0, 1]);
        let pid = puppet.pid();
        let _client = start(&puppet, &home);
        let starts = [(0, AICPU, 1), (1, AICPU, 1)];
        hal.wait_served(pid, &starts, 500 + 77 * attempt);
        assert_eq!(puppet.tell("api 100 1"), "0");
        puppet.order("exit 7");
        assert_eq!(puppet.wait_end().code(), Some(7), "{:#?}", hal.calls(pid));
        assert_eq!(hal.count_calls(pid, "late"), 0);
        let prof = open_complete(&only_prof_dir(&home.output()));
        assert_eq!(prof.api().len(), 100);
        for at in starts {
            assert!(channel_bytes(&prof, at.0, AICPU) == hal.bytes(pid, at));
        }
        assert_eq!(lost(&prof.ledger()), 0);
    }
}

#[test]
fn a_kill_under_load_leaves_whole_records_of_what_was_served() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1 RATE=50000 SERVED=bytes";
    let puppet = hal.puppet(&home, settings, &[0, 1]);
    let pid = puppet.pid();
    let _client = start(&puppet, &home);
    let starts = [(0, AICPU, 1), (1, AICPU, 1)];
    hal.wait_served(pid, &starts, 10_000);
    let dir = only_prof_dir(&home.output());
    wait_until("slices of both", || {
        let slices = [0, 1].map(|d| format!("device_{d}/data/aicpu.data.{d}.slice_0"));
        slices.iter().all(|slice| {
            let meta = dir.join(slice).metadata();
            meta.is_ok_and(|meta| meta.len() >= 1_000 * RECORD as u64)
        })
    });
    puppet.kill();
    for at in starts {
        let written = device_bytes(&Prof::open(&dir), at.0);
        assert!(hal.bytes(pid, at).starts_with(&written), "before recover");
    }
    let recovered = home.plain(&artifacts().msprof).arg("recover").arg(&dir);
    recovered.run().expect_code(0);
    let prof = open_recovered(&dir);
    for at in starts {
        let written = device_bytes(&prof, at.0);
        assert!(written.len() >= 1_000 * RECORD && written.len().is_multiple_of(RECORD));
        assert!(hal.bytes(pid, at).starts_with(&written));
    }
}

/// Seconds of the heavy load; `MSPROF_TEST_DEVICE_SECONDS=10` for the whole of it.
fn seconds() -> u64 {
    let text = std::env::var("MSPROF_TEST_DEVICE_SECONDS").unwrap_or_default();
    text.parse().unwrap_or(3)
}

#[test]
fn two_devices_at_200_000_records_a_second_lose_nothing_that_the_driver_handed_over() {
    const RATE: u64 = 200_000;
    let home = Home::new();
    let hal = Hal::new(&home);
    // A loaded machine may leave the reader without a CPU for a while, and the driver with what comes meanwhile.
    let settings = format!(
        "DEVICES=0,1 RATE={RATE} BUFFER=2000000 TOTAL={}",
        RATE * seconds()
    );
    let puppet = hal.puppet(&home, &settings, &[0, 1]);
    let pid = puppet.pid();
    let mut client = start(&puppet, &home);
    let starts: [Start; 2] = [(0, AICPU, 1), (1, AICPU, 1)];
    wait_for("all of it", std::time::Duration::from_secs(120), || {
        let served = hal.served(pid);
        let all = |at| {
            served
                .get(at)
                .is_some_and(|s| s.records >= RATE * seconds())
        };
        starts.iter().all(all).then_some(())
    });
    client.stop();
    let dir = only_prof_dir(&home.output());
    let text = std::fs::read_to_string(dir.join("msprof_agent.json")).expect("a ledger");
    let ledger: Value = serde_json::from_str(&text).expect("JSON");
    for at in starts {
        let served = hal.served(pid)[&at];
        assert_eq!(served.lost, 0, "the stand-in's own loss");
        let written = sum_of_slices(&dir, at.0);
        assert_eq!(written, (served.records, served.digest), "device {}", at.0);
    }
    for column in ["reported", "written"] {
        assert_eq!(ledger[column]["aicpu"], 2 * RATE * seconds(), "{column}");
    }
    eprintln!(
        "{} s: reported {}, written {}, lost {}",
        seconds(),
        ledger["reported"],
        ledger["written"],
        ledger["lost"]
    );
    assert_eq!(lost(&ledger), 0, "{ledger}");
    assert_eq!(ledger["state"], "complete");
    assert!(!ledger["notes"].to_string().contains("device "), "{ledger}");
}

/// The driver's buffer is small there, and whatever it lost is said.
#[test]
fn a_driver_that_overflows_under_heavy_load_loses_nothing_that_it_handed_over() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1 RATE=200000 BUFFER=1000";
    let puppet = hal.puppet(&home, settings, &[0, 1]);
    let pid = puppet.pid();
    let mut client = start(&puppet, &home);
    let starts = [(0, AICPU, 1), (1, AICPU, 1)];
    hal.wait_served(pid, &starts, 50_000);
    client.stop();
    let dir = only_prof_dir(&home.output());
    let prof = open_complete(&dir);
    for at in starts {
        let served = hal.served(pid)[&at];
        assert_eq!(sum_of_slices(&dir, at.0), (served.records, served.digest));
        assert!(served.lost > 0);
        prof.the_note(&format!("device {}: the driver lost", at.0));
    }
    assert_eq!(lost(&prof.ledger()), 0);
}
