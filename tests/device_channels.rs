//! Records that lie in the devices: what the driver hands over is written, byte for byte.

mod support;

use support::hal::{
    AICPU, CUSTOM_AICPU, Edition, Hal, Served, aicpu_count, channel_bytes, device_bytes,
    good_records, numbers, start,
};
use support::home::{Home, only_prof_dir};
use support::msprof::{dynamic, give};
use support::prof::Prof;
use support::puppet::Puppet;
use support::rules::{lost, open_complete};
use support::wait::wait_until;

fn open(home: &Home) -> Prof {
    open_complete(&only_prof_dir(&home.output()))
}

/// The account of a channel in a ledger.
fn account(prof: &Prof, device: u32, channel: u32) -> serde_json::Value {
    let ledger = prof.ledger();
    let channels = ledger["channels"].as_array().expect("channels").iter();
    let mut of = channels.filter(|a| a["device"] == device && a["channel"] == channel);
    let account = of.next().cloned();
    account.unwrap_or_else(|| panic!("device {device}, channel {channel}: {ledger}"))
}

/// Each channel's first start has served exactly what is written, and nothing was lost.
#[track_caller]
fn assert_all_written(hal: &Hal, pid: u32, prof: &Prof, channels: &[(u32, u32)]) {
    let mut all = 0;
    for &(device, channel) in channels {
        let served = hal.bytes(pid, (device, channel, 1));
        let written = channel_bytes(prof, device, channel);
        assert!(!served.is_empty(), "device {device}, channel {channel}");
        assert!(
            served == written,
            "device {device}, channel {channel}: {} bytes served, {} written",
            served.len(),
            written.len()
        );
        let records = served.len() as u64 / 256;
        assert_eq!(account(prof, device, channel)["records"], records);
        all += records;
    }
    assert_eq!(aicpu_count(prof, "written"), all);
    assert_eq!(prof.aicpu().len() as u64, all);
    assert_eq!(lost(&prof.ledger()), 0);
}

const ALL: [(u32, u32); 4] = [(0, AICPU), (0, CUSTOM_AICPU), (1, AICPU), (1, CUSTOM_AICPU)];

/// The first start of each channel.
fn firsts(channels: &[(u32, u32)]) -> Vec<(u32, u32, u32)> {
    let of = channels.iter();
    of.map(|(device, channel)| (*device, *channel, 1)).collect()
}

#[test]
fn two_devices_with_two_channels_each_are_written_byte_for_byte() {
    for reads in [
        "",
        "READ_MAX=1000",
        "READ_MAX=1",
        "READ_MAX=255",
        "EMPTY=-4",
    ] {
        let home = Home::new();
        let hal = Hal::new(&home);
        let records = if reads == "READ_MAX=1" { 50 } else { 2_000 };
        let settings = format!(
            "DEVICES=0,1 CHANNELS=143,144 RATE=4000 TOTAL={records} TYPES=0,1,2,3 SERVED=bytes {reads}"
        );
        let puppet = hal.puppet(&home, &settings, &[0, 1]);
        let mut client = start(&puppet, &home);
        hal.wait_served(puppet.pid(), &firsts(&ALL), records);
        client.stop();
        let prof = open(&home);
        assert_all_written(&hal, puppet.pid(), &prof, &ALL);
        assert_eq!(prof.aicpu().len() as u64, 4 * records, "{reads}");
        assert_eq!(prof.notes_with("device "), [] as [String; 0], "{reads}");
        check_order_of_calls(&hal, puppet.pid());
    }
}

/// Each channel is started once, flushed, and then stopped; the driver's queue of events is somebody else's.
fn check_order_of_calls(hal: &Hal, pid: u32) {
    let calls = hal.calls(pid);
    assert!(
        !calls.iter().any(|call| call.contains("poll")),
        "{calls:#?}"
    );
    for (device, channel) in ALL {
        let end = format!(" {device} {channel} = 0");
        let of_channel = calls.iter().filter(|call| call.ends_with(&end));
        let names: Vec<&str> = of_channel
            .filter_map(|call| call.split(' ').next())
            .collect();
        let expected = ["prof_drv_start", "halProfDataFlush", "prof_stop"];
        assert_eq!(names, expected, "{calls:#?}");
    }
}

#[test]
fn a_channel_that_appears_late_is_read_from_then_on() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1:400 RATE=2000 TOTAL=500 SERVED=bytes";
    let puppet = hal.puppet(&home, settings, &[0, 1]);
    let mut client = start(&puppet, &home);
    let channels = [(0, AICPU), (1, AICPU)];
    hal.wait_served(puppet.pid(), &firsts(&channels), 500);
    client.stop();
    let prof = open(&home);
    assert_all_written(&hal, puppet.pid(), &prof, &channels);
    // 144 is there on some devices only, and nothing needs to be said of that.
    assert_eq!(account(&prof, 1, CUSTOM_AICPU)["offered"], false);
    assert_eq!(prof.notes_with("144"), [] as [String; 0]);
}

#[test]
fn a_device_without_the_channel_is_said_and_does_not_disturb_the_others() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let puppet = hal.puppet(
        &home,
        "DEVICES=0,63 RATE=2000 TOTAL=300 SERVED=bytes",
        &[0, 5, 62, 63],
    );
    let mut client = start(&puppet, &home);
    let channels = [(0, AICPU), (63, AICPU)];
    hal.wait_served(puppet.pid(), &firsts(&channels), 300);
    client.stop();
    let prof = open(&home);
    assert_all_written(&hal, puppet.pid(), &prof, &channels);
    for device in [5, 62] {
        let said = format!("device {device}: the driver offered no AICPU channel (143)");
        prof.the_note(&said);
        assert_eq!(account(&prof, device, AICPU)["offered"], false);
    }
    assert_eq!(hal.count_calls(puppet.pid(), "prof_drv_start"), 2);
}

#[test]
fn a_device_that_opens_in_mid_capture_and_one_that_closes_are_read_as_long_as_they_are_open() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1,2 RATE=2000 TOTAL=400 HOLD=150 SERVED=bytes";
    let mut puppet = hal.puppet(&home, settings, &[0, 1]);
    let pid = puppet.pid();
    let mut client = start(&puppet, &home);
    hal.wait_served(pid, &[(0, AICPU, 1), (1, AICPU, 1)], 300);
    assert_eq!(puppet.tell("device 2 1"), "0");
    assert_eq!(puppet.tell("device 0 0"), "0");
    // What the device had kept back comes with its end, in mid capture.
    wait_until("the closed device to be stopped", || {
        hal.count_calls(pid, "prof_stop 0 143 = 0") == 1
    });
    let of_closed = hal.served(pid)[&(0, AICPU, 1)].records;
    hal.wait_served(pid, &[(2, AICPU, 1)], 300);
    // It opens again: that is another start of its channel.
    assert_eq!(puppet.tell("device 0 1"), "0");
    hal.wait_served(pid, &[(0, AICPU, 2)], 300);
    client.stop();
    let prof = open(&home);
    let both = [hal.bytes(pid, (0, AICPU, 1)), hal.bytes(pid, (0, AICPU, 2))];
    assert!(channel_bytes(&prof, 0, AICPU) == both.concat());
    for device in [1, 2] {
        let served = hal.bytes(pid, (device, AICPU, 1));
        assert!(channel_bytes(&prof, device, AICPU) == served);
        assert_eq!(served.len(), 400 * 256, "device {device}");
    }
    assert!(of_closed > 300, "{of_closed}: the flush");
    assert_eq!(lost(&prof.ledger()), 0);
}

#[test]
fn what_a_device_keeps_back_comes_with_a_flush_where_the_driver_knows_one() {
    for (edition, expected) in [(Edition::New, 1_000), (Edition::Old, 960)] {
        let home = Home::new();
        let hal = Hal::new(&home);
        let settings = "DEVICES=0 RATE=4000 TOTAL=1000 HOLD=64 SERVED=bytes";
        let program = hal.program(&home, edition, settings);
        let mut puppet = Puppet::start_armed(&home, program);
        assert_eq!(puppet.tell("device 0 1"), "0");
        let mut client = start(&puppet, &home);
        hal.wait_served(puppet.pid(), &[(0, AICPU, 1)], 960);
        // The device makes the rest in ten milliseconds.
        let made = std::time::Instant::now() + std::time::Duration::from_millis(100);
        wait_until("the rest to be made", || std::time::Instant::now() > made);
        client.stop();
        let prof = open(&home);
        assert_all_written(&hal, puppet.pid(), &prof, &[(0, AICPU)]);
        assert_eq!(prof.aicpu().len(), expected, "{edition:?}");
    }
}

#[test]
fn a_device_that_vanishes_in_mid_capture_is_read_again_when_it_comes_back() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1 RATE=1000 SERVED=bytes";
    let puppet = hal.puppet(&home, settings, &[0, 1]);
    let pid = puppet.pid();
    let mut client = start(&puppet, &home);
    hal.wait_served(pid, &firsts(&[(0, AICPU), (1, AICPU)]), 100);
    hal.vanish(0);
    let before = hal.served(pid)[&(1, AICPU, 1)].records;
    hal.wait_served(pid, &[(1, AICPU, 1)], before + 200);
    hal.come_back(0);
    hal.wait_served(pid, &[(0, AICPU, 2)], 100);
    client.stop();
    let prof = open(&home);
    let both = [hal.bytes(pid, (0, AICPU, 1)), hal.bytes(pid, (0, AICPU, 2))];
    assert!(channel_bytes(&prof, 0, AICPU) == both.concat());
    assert!(channel_bytes(&prof, 1, AICPU) == hal.bytes(pid, (1, AICPU, 1)));
    assert_eq!(lost(&prof.ledger()), 0);
}

#[test]
fn a_capture_ends_well_while_a_device_is_gone() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let puppet = hal.puppet(&home, "DEVICES=0 RATE=1000 SERVED=bytes", &[0]);
    let mut client = start(&puppet, &home);
    hal.wait_served(puppet.pid(), &[(0, AICPU, 1)], 50);
    hal.vanish(0);
    client.stop();
    let prof = open(&home);
    assert_all_written(&hal, puppet.pid(), &prof, &[(0, AICPU)]);
}

#[test]
fn records_that_the_driver_had_no_room_for_are_said_by_ledger_and_msprof() {
    let home = Home::new();
    let hal = Hal::new(&home);
    // Reads come every ten milliseconds: a hundred times what the buffer holds.
    let settings = "DEVICES=0,1 RATE=100000 BUFFER=10 SERVED=bytes";
    let puppet = hal.puppet(&home, settings, &[0, 1]);
    let pid = puppet.pid();
    let mut msprof = dynamic(&home, &home.output())
        .arg(format!("--pid={pid}"))
        .spawn();
    give(&mut msprof, &["start"]);
    let channels = [(0, AICPU), (1, AICPU)];
    hal.wait_served(pid, &firsts(&channels), 100);
    give(&mut msprof, &["stop", "quit"]);
    let finished = msprof.finish_within(std::time::Duration::from_secs(60));
    finished.expect_code(0);
    let prof = open(&home);
    assert_all_written(&hal, pid, &prof, &channels);
    for (device, channel) in channels {
        let Served { lost, .. } = hal.served(pid)[&(device, channel, 1)];
        assert!(lost > 0);
        let said = format!("device {device}: the driver lost aicpu records of channel {channel}");
        let note = prof.the_note(&said);
        assert!(finished.text().contains(&note), "{finished:#?}");
        assert_eq!(account(&prof, device, channel)["driver_lost"], true);
        let numbers = numbers(&device_bytes(&prof, device));
        assert!(numbers.is_sorted_by(|a, b| a < b), "in order");
        assert!(numbers.windows(2).any(|pair| pair[1] != pair[0] + 1));
    }
}

#[test]
fn what_is_no_record_is_skipped_and_counted() {
    for reads in ["", "READ_MAX=777"] {
        let home = Home::new();
        let hal = Hal::new(&home);
        let settings = format!(
            "DEVICES=0 RATE=4000 TOTAL=1000 SERVED=bytes GARBAGE=magic,level,count {reads}"
        );
        let puppet = hal.puppet(&home, &settings, &[0]);
        let mut client = start(&puppet, &home);
        hal.wait_served(puppet.pid(), &[(0, AICPU, 1)], 1_000);
        client.stop();
        let prof = open(&home);
        let served = hal.bytes(puppet.pid(), (0, AICPU, 1));
        assert_eq!(served.len(), 1_000 * 256);
        assert!(device_bytes(&prof, 0) == good_records(&served));
        assert_eq!(aicpu_count(&prof, "written"), 800);
        assert_eq!(account(&prof, 0, AICPU)["records"], 800);
        assert_eq!(account(&prof, 0, AICPU)["skipped_bytes"], 200 * 256);
        let note = prof.the_note("were no aicpu records");
        assert!(note.contains(&(200 * 256).to_string()), "{note}");
    }
}
