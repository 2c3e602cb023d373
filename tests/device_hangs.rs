//! A driver that does not return: start and stop keep their bounds, the call is named, the host's traces are
//! complete, and once it returns the channels are read again.

mod support;

use std::time::{Duration, Instant};
use support::client::ByteClient;
use support::hal::{AICPU, Edition, Hal, channel_bytes, start};
use support::home::{Home, prof_dirs};
use support::proc::Proc;
use support::prof::Prof;
use support::puppet::Puppet;
use support::rules::open_complete;
use support::wait::wait_until;

/// Starts and stops wait for the driver for some seconds together; this is for a loaded machine.
const BOUND: Duration = Duration::from_secs(10);
const RECORDS: usize = 100;
const SETTINGS: &str = "DEVICES=0,1 RATE=2000 SERVED=bytes CLOCK=50";

/// When a call begins to hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    BeforeStart,
    MidCapture,
    BeforeStop,
}

fn within_bound<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = act();
    assert!(begin.elapsed() < BOUND, "{what}: {:?}", begin.elapsed());
    result
}

fn bounded_start(puppet: &Puppet, home: &Home) -> ByteClient {
    within_bound("start", || start(puppet, home))
}

fn bounded_stop(mut client: ByteClient) {
    within_bound("stop", || client.stop());
    client.quit();
}

fn capture(home: &Home, number: usize) -> Prof {
    open_complete(&prof_dirs(&home.output())[number - 1])
}

/// Three captures: a call hangs in the first, still hangs in the second, and has returned before the third.
fn check_hang(file: &str, when: When) {
    // As the agent calls it, and as the driver notes it.
    let call = file.split('.').next().expect("a name");
    let noted = file.trim_end_matches(".0");
    let home = Home::new();
    let hal = Hal::new(&home);
    let program = hal.program(&home, Edition::New, SETTINGS);
    let mut puppet = Puppet::start_armed(&home, program);
    let pid = puppet.pid();
    for device in [0, 1] {
        assert_eq!(puppet.tell(&format!("device {device} 1")), "0");
    }
    if when == When::BeforeStart {
        hal.hang(file);
    }
    let client = bounded_start(&puppet, &home);
    if when != When::BeforeStart {
        hal.wait_served(pid, &[(0, AICPU, 1), (1, AICPU, 1)], 50);
        hal.hang(file);
        if when == When::MidCapture {
            hal.wait_hangs(pid, noted, 0);
        }
    }
    assert_eq!(puppet.tell(&format!("api {RECORDS} 1")), "0");
    bounded_stop(client);
    hal.wait_hangs(pid, noted, 0);

    let first = capture(&home, 1);
    assert_eq!(first.api().len(), RECORDS, "{file}");
    let note = first.the_note("has not returned from");
    let said = format!("the driver has not returned from {call}");
    assert!(note.contains(&said), "{note}");
    assert!(note.contains("(device 0"), "{note}");
    // What nobody could ask the driver is not said either.
    assert_eq!(first.notes_with("offered no"), [] as [String; 0], "{file}");
    if when != When::BeforeStart {
        for device in [0, 1] {
            let written = channel_bytes(&first, device, AICPU);
            let served = hal.bytes(pid, (device, AICPU, 1));
            assert!(served.starts_with(&written), "{file}, device {device}");
            assert!(written.len() >= 50 * 256, "{file}, device {device}");
        }
    }

    let client = bounded_start(&puppet, &home);
    assert_eq!(puppet.tell(&format!("api {RECORDS} 2")), "0");
    bounded_stop(client);
    let second = capture(&home, 2);
    assert_eq!(second.api().len(), RECORDS);
    assert_eq!(second.aicpu(), [], "{file}");
    let note = second.the_note("device channels are not read");
    assert!(note.contains(call), "{note}");

    hal.let_go(file);
    wait_until("the reader to end", || {
        let threads = Proc::of(pid).agent_threads();
        !threads.iter().any(|name| name == "msprof-device")
    });
    // A channel whose stop never came to its turn is stopped by then, too.
    let before = hal.served(pid);
    let next = |device| before.keys().filter(|(d, _, _)| *d == device).count() as u32 + 1;
    let starts = [0, 1].map(|device| (device, AICPU, next(device)));
    let client = bounded_start(&puppet, &home);
    hal.wait_served(pid, &starts, 100);
    bounded_stop(client);
    let third = capture(&home, 3);
    for at in starts {
        assert!(channel_bytes(&third, at.0, AICPU) == hal.bytes(pid, at));
    }
    assert_eq!(third.notes_with("driver"), [] as [String; 0], "{file}");
    puppet.finish().expect_code(0);
}

#[test]
fn the_list_of_channels_hangs_at_the_start() {
    check_hang("prof_drv_get_channels", When::BeforeStart);
}

#[test]
fn the_facts_of_a_device_hang_at_the_start() {
    check_hang("halGetDeviceInfo", When::BeforeStart);
}

#[test]
fn the_start_of_a_channel_hangs() {
    check_hang("prof_drv_start", When::BeforeStart);
}

#[test]
fn a_read_hangs_from_the_start_on() {
    check_hang("prof_channel_read", When::BeforeStart);
}

#[test]
fn a_read_hangs_in_mid_capture() {
    check_hang("prof_channel_read.0", When::MidCapture);
}

#[test]
fn the_list_of_channels_hangs_in_mid_capture() {
    // 144 is looked for as long as it is missing.
    check_hang("prof_drv_get_channels.0", When::MidCapture);
}

#[test]
fn the_flush_hangs_at_the_stop() {
    check_hang("halProfDataFlush", When::BeforeStop);
}

#[test]
fn a_read_hangs_at_the_stop() {
    check_hang("prof_channel_read.flushed", When::BeforeStop);
}

#[test]
fn the_stop_of_a_channel_hangs() {
    check_hang("prof_stop", When::BeforeStop);
}

#[test]
fn the_waits_for_a_driver_that_hangs_do_not_add_up_over_devices() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let devices: Vec<u32> = (0..64).collect();
    let mut puppet = hal.puppet(&home, "DEVICES=0,63 RATE=2000 CLOCK=50", &devices);
    hal.hang("halGetDeviceInfo");
    let client = bounded_start(&puppet, &home);
    assert_eq!(puppet.tell(&format!("api {RECORDS} 1")), "0");
    bounded_stop(client);
    let prof = capture(&home, 1);
    assert_eq!(prof.api().len(), RECORDS);
    assert_eq!(prof.devices.len(), 64);
    hal.let_go("halGetDeviceInfo");
    puppet.finish().expect_code(0);
}

#[test]
fn a_program_ends_while_its_driver_hangs() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let mut puppet = hal.puppet(&home, SETTINGS, &[0]);
    hal.hang("prof_channel_read");
    let _client = bounded_start(&puppet, &home);
    hal.wait_hangs(puppet.pid(), "prof_channel_read", 0);
    assert_eq!(puppet.tell("api 100 1"), "0");
    puppet.order("exit 3");
    let status = within_bound("exit", || puppet.wait_end());
    assert_eq!(status.code(), Some(3));
    assert_eq!(capture(&home, 1).api().len(), 100);
}
