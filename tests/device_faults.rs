//! A driver that refuses, answers nonsense, or is not there: the capture stands, and says so.

mod support;

use serde_json::json;
use std::path::PathBuf;
use support::artifacts::artifacts;
use support::client::{ByteClient, FAILED, START, params};
use support::hal::{AICPU, Hal, device_bytes, start};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::prof::Prof;
use support::puppet::Puppet;
use support::rules::{lost, open_complete};
use support::task::{EASY, Task, Way, program, wait_runs};

fn open(home: &Home) -> Prof {
    open_complete(&only_prof_dir(&home.output()))
}

fn captures(home: &Home) -> Vec<Prof> {
    let dirs: Vec<PathBuf> = prof_dirs(&home.output());
    dirs.iter().map(|dir| open_complete(dir)).collect()
}

#[test]
fn a_few_unknown_codes_cost_no_record() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0 RATE=2000 TOTAL=500 SERVED=bytes GARBAGE=code";
    let puppet = hal.puppet(&home, settings, &[0]);
    let mut client = start(&puppet, &home);
    hal.wait_served(puppet.pid(), &[(0, AICPU, 1)], 500);
    client.stop();
    let prof = open(&home);
    assert!(device_bytes(&prof, 0) == hal.bytes(puppet.pid(), (0, AICPU, 1)));
    assert_eq!(prof.aicpu().len(), 500);
    let note = prof.the_note("prof_channel_read answered");
    assert!(note.starts_with("device 0: channel 143 "), "{note}");
}

/// A channel that only ever fails is given up and ended, so that the next capture has it again.
#[test]
fn a_channel_that_only_fails_is_given_up_and_stopped() {
    for (garbage, said) in [
        ("codes", "prof_channel_read answered"),
        ("length", "the driver says that it has read"),
    ] {
        let home = Home::new();
        let hal = Hal::new(&home);
        let settings = format!("DEVICES=0 RATE=2000 SERVED=bytes GARBAGE={garbage}");
        let puppet = hal.puppet(&home, &settings, &[0]);
        let pid = puppet.pid();
        for capture in 1..=2 {
            let mut client = start(&puppet, &home);
            support::wait::wait_until("the channel to be given up", || {
                hal.count_calls(pid, "prof_stop 0 143 = 0") == capture
            });
            client.stop();
            client.quit();
        }
        for (prof, start) in captures(&home).iter().zip(1..) {
            let served = hal.bytes(pid, (0, AICPU, start));
            assert!(device_bytes(prof, 0) == served, "{garbage}");
            prof.the_note(said);
            assert_eq!(lost(&prof.ledger()), 0);
        }
    }
}

#[test]
fn a_start_that_fails_lets_go_of_the_channels() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0 RATE=2000 SERVED=bytes";
    let puppet = hal.puppet(&home, settings, &[0]);
    let pid = puppet.pid();
    std::fs::write(home.path().join("file"), "").expect("a file");
    for _ in 0..3 {
        let nowhere = params(&home.path().join("file/output"));
        let mut client = ByteClient::open(puppet.socket(), &nowhere);
        assert_eq!(client.command(START), FAILED);
        client.quit();
        support::wait::wait_until("the channels' thread to end", || {
            let threads = support::proc::Proc::of(pid).agent_threads();
            !threads.iter().any(|name| name == "msprof-device")
        });
    }
    let starts = hal.count_calls(pid, "prof_drv_start 0 143 = 0");
    assert_eq!(hal.count_calls(pid, "prof_stop 0 143"), starts);
    let mut client = start(&puppet, &home);
    let at = (0, AICPU, starts as u32 + 1);
    hal.wait_served(pid, &[at], 100);
    client.stop();
    let prof = open(&home);
    assert!(device_bytes(&prof, 0) == hal.bytes(pid, at));
}

#[test]
fn a_channel_that_cannot_be_started_yet_is_tried_again() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0,1 RATE=2000 TOTAL=200 SERVED=bytes START=-10:2";
    let puppet = hal.puppet(&home, settings, &[0, 1]);
    let mut client = start(&puppet, &home);
    // Starts that fail have no account of their own.
    hal.wait_served(puppet.pid(), &[(0, AICPU, 1), (1, AICPU, 1)], 200);
    client.stop();
    let prof = open(&home);
    for device in [0, 1] {
        let served = hal.bytes(puppet.pid(), (device, AICPU, 1));
        assert!(device_bytes(&prof, device) == served);
        let said = format!("device {device}: channel 143 ");
        let notes = prof.notes_with(&said);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].contains("prof_drv_start answered code -10, no resources"),
            "{notes:?}"
        );
    }
    assert_eq!(prof.aicpu().len(), 400);
}

#[test]
fn a_channel_that_another_profiler_reads_is_left_to_it() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let settings = "DEVICES=0 RATE=2000 START=-3:1000000";
    let mut puppet = hal.puppet(&home, settings, &[0]);
    let pid = puppet.pid();
    let mut client = start(&puppet, &home);
    support::wait::wait_until("the start", || {
        hal.count_calls(pid, "prof_drv_start 0 143 = -3") > 0
    });
    assert_eq!(puppet.tell("api 100 1"), "0");
    client.stop();
    let prof = open(&home);
    let note = prof.the_note("another profiler");
    assert!(note.starts_with("device 0: channel 143 "), "{note}");
    assert_eq!(prof.api().len(), 100);
    assert_eq!(prof.aicpu(), []);
    let calls = hal.calls(pid);
    let touches = |call: &String| ["read", "Flush", "stop"].iter().any(|c| call.contains(c));
    assert!(!calls.iter().any(touches), "{calls:#?}");
}

#[test]
fn a_host_without_a_driver_says_so_once_and_takes_what_the_host_reports() {
    let home = Home::new();
    let mut task = Task::start(&home, Way::Preload, EASY);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    wait_runs(&home.output(), 10);
    client.stop();
    let window = task.window(1);
    task.terminate();
    let prof = open(&home);
    window.assert_matches(&prof);
    assert!(prof.aicpu().len() >= 10);
    prof.the_note("driver");
}

#[test]
fn a_capture_without_aicpu_does_not_call_the_driver() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let mut puppet = hal.puppet(&home, "DEVICES=0,1 RATE=2000", &[0, 1]);
    let mut without = params(&home.output());
    without["aicpuTrace"] = json!("off");
    let mut client = ByteClient::open(puppet.socket(), &without);
    client.start();
    assert_eq!(puppet.tell("api 100 1"), "0");
    assert_eq!(puppet.tell("device 2 1"), "0");
    client.stop();
    client.quit();
    let prof = open(&home);
    assert_eq!(prof.api().len(), 100);
    assert_eq!(prof.notes_with("driver"), [] as [String; 0]);
    assert_eq!(hal.calls(puppet.pid()), [] as [String; 0]);
    assert!(!support::proc::Proc::of(puppet.pid()).maps_file("libascend_hal.so"));
}

/// The program's own copy is used, wherever it lies, and it says what chip it is.
#[test]
fn the_driver_that_the_runtime_has_loaded_is_taken() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let program = program(&home, Way::Preload, EASY).env("STANDIN_HAL", &artifacts().driver);
    let settings = "DEVICES=0 RATE=2000 TOTAL=500 CHIP=4 SERVED=bytes";
    let mut task = Task::start_program(&home, hal.set(program, settings), true);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    hal.wait_served(task.pid(), &[(0, AICPU, 1)], 500);
    wait_runs(&home.output(), 510);
    client.stop();
    let window = task.window(1);
    let pid = task.pid();
    task.terminate();
    let prof = open(&home);
    // Those of the host are in the same files, and the host's own account is of them alone.
    let served = hal.bytes(pid, (0, AICPU, 1));
    assert!(support::hal::channel_bytes(&prof, 0, AICPU) == served);
    assert_eq!(served.len(), 500 * 256);
    let of_host = prof.aicpu().len() as u64 - 500;
    let (open, carried) = window.cut("records");
    let reported = window.records()["aicpu"];
    assert!((reported - open.min(reported)..=reported + carried).contains(&of_host));
    for info in ["host/info.json", "device_0/info.json.0"] {
        let text = std::fs::read_to_string(prof.path.join(info)).expect("a control file");
        assert!(
            text.contains("\"platform_version\":\"4\""),
            "{info}: {text}"
        );
    }
}

#[test]
fn a_library_of_that_name_that_is_no_driver_is_no_harm() {
    let home = Home::new();
    let hal = Hal::new(&home);
    let program = hal.program(&home, support::hal::Edition::New, "DEVICES=0");
    let lib = home.path().join("lib/libascend_hal.so");
    std::fs::remove_file(&lib).expect("a link");
    std::os::unix::fs::symlink(&artifacts().task_library, &lib).expect("a link");
    let mut puppet = Puppet::start_armed(&home, program);
    assert_eq!(puppet.tell("device 0 1"), "0");
    let mut client = start(&puppet, &home);
    assert_eq!(puppet.tell("api 100 1"), "0");
    client.stop();
    let prof = open(&home);
    assert_eq!(prof.api().len(), 100);
    prof.the_note("driver");
}
