//! Every way of getting the agent into an AI task shows the same calls. tests/way_d.rs has the one behind libprofapi.so.

mod support;

use std::path::PathBuf;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::proc::Proc;
use support::prof::Prof;
use support::rules::open_complete;
use support::task::{EASY, Task, Way};
use support::wait::wait_until;

/// Captures some runs of the demo and compares with its own counts.
fn capture_matches(way: Way) -> Prof {
    let home = Home::new();
    let mut task = Task::start(&home, way, EASY);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    wait_for_records(&home);
    client.stop();
    client.quit();
    let window = task.window(1);
    assert_eq!(window.bad_commands(), 0);
    for component in ["runtime", "acl", "ge"] {
        for kind in ["start", "stop"] {
            assert_eq!(window.commands(component, kind), 1, "{component} {kind}");
        }
    }
    let prof = open_complete(&only_prof_dir(&home.output()));
    window.assert_matches(&prof);
    for (group, call) in [
        ("runtime", "KernelLaunch"),
        ("acl", "aclmdlExecute"),
        ("model", "ModelExecute"),
        ("node", "launch"),
    ] {
        assert!(window.calls(group)[call] > 0, "{call} was called");
    }
    assert!(window.records()["aicpu"] > 0, "aicpu records were reported");
    task.terminate();
    assert_eq!(
        home.sockets(),
        [] as [PathBuf; 0],
        "no socket after the end"
    );
    prof
}

/// Waits until the capture that runs has written api records and aicpu records.
fn wait_for_records(home: &Home) {
    wait_until("records on disk", || {
        let dirs = support::home::prof_dirs(&home.output());
        dirs.first().is_some_and(|dir| {
            let has = |name: &str| {
                dir.join(name)
                    .metadata()
                    .is_ok_and(|meta| meta.len() > 40_000)
            };
            has("host/data/aging.api_event.data.slice_0")
                && has("device_0/data/aicpu.data.0.slice_0")
        })
    });
}

#[test]
fn a_preloaded_agent_captures_what_the_task_does() {
    capture_matches(Way::Preload);
}

#[test]
fn an_agent_in_place_of_libprofapi_captures_what_the_task_does() {
    capture_matches(Way::DropIn);
}

#[test]
fn a_linked_agent_captures_what_the_task_does() {
    capture_matches(Way::Linked);
}

#[test]
fn an_agent_preloaded_and_in_place_of_libprofapi_captures_what_the_task_does() {
    capture_matches(Way::PreloadAndDropIn);
}

#[test]
fn an_agent_from_the_archive_captures_what_the_task_does() {
    capture_matches(Way::Static);
}

#[test]
fn an_agent_that_a_python_program_loads_captures_what_the_task_does() {
    capture_matches(Way::Python);
}

#[test]
fn ld_library_path_wins_over_the_runpath_of_the_task() {
    let home = Home::new();
    let task = Task::start(&home, Way::DropIn, EASY);
    let proc = Proc::of(task.pid());
    assert!(proc.maps_file("/release/libmsprof_agent.so"));
    assert!(!proc.maps_file("/cann/libprofapi.so"), "the stand-in's own");
    task.terminate();
    let task = Task::start(&home, Way::None, EASY);
    let proc = Proc::of(task.pid());
    assert!(!proc.maps_file("/release/libmsprof_agent.so"));
    assert!(proc.maps_file("/cann/libprofapi.so"));
    task.terminate();
}

#[test]
fn preload_and_drop_in_together_are_one_agent() {
    let home = Home::new();
    let task = Task::start(&home, Way::PreloadAndDropIn, EASY);
    let proc = Proc::of(task.pid());
    proc.wait_for_control_thread_alone();
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    wait_for_records(&home);
    client.stop();
    client.quit();
    open_complete(&only_prof_dir(&home.output()));
    task.terminate();
}

/// Starts a statically linked program whose source calls next to nothing, and waits for its socket.
fn static_program_has_a_socket(source: &str) {
    let home = Home::new();
    let mut program = home.armed(build(source, Linkage::Static)).spawn();
    program.line("the program", |line| (line == "ready").then_some(()));
    let socket = home.wait_socket(program.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    program.say("");
    program.line("its reports", |line| (line == "reported").then_some(()));
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 3, "api records");
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn the_static_library_brings_its_constructor_along_with_a_report_call() {
    static_program_has_a_socket("tests/c/static_report.c");
}

#[test]
fn the_static_library_brings_its_constructor_along_with_the_own_api() {
    static_program_has_a_socket("tests/c/static_ranges.c");
}
