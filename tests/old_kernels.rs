//! Kernels from 3.10 on, and the filters of containers: what the newer system calls are for is done without them
//! (tests/c/old_kernel.c refuses every call that 3.10 did not have).

mod support;

use std::process::Command;
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::msprof::{give, run_script};
use support::proc::Proc;
use support::process::{Program, Running};
use support::puppet::{self, Puppet};
use support::rules::{lost, open_complete, open_recovered};
use support::wait::wait_until;

/// What the kernel says to a call that it does not know, and what a container's filter says.
const REFUSALS: [&str; 2] = ["ENOSYS", "EPERM"];
/// Every kind of child, with its order to the puppet.
const CHILDREN: [&str; 4] = ["fork exit", "fork _exit", "vfork", "double"];

fn on_old_kernel() -> std::path::PathBuf {
    build("tests/c/old_kernel.c", Linkage::Without)
}

/// All of [`REFUSALS`]; none where this host lets no program filter its own calls.
fn refusals() -> &'static [&'static str] {
    let program = Command::new(on_old_kernel())
        .args([REFUSALS[0], "true"])
        .output()
        .expect("a program of ours");
    // What it says where filters cannot be had; execv does not search for "true".
    if program.status.code() == Some(77) {
        support::skip::skipped("this host lets no program filter its calls");
        return &[];
    }
    &REFUSALS
}

/// A puppet on such a kernel.
fn puppet(home: &Home, refusal: &str) -> Puppet {
    let program = home.armed(on_old_kernel()).arg(refusal);
    Puppet::start_armed(home, program.arg(puppet::path()))
}

/// The controller on such a kernel, attached to a process.
fn msprof(home: &Home, refusal: &str, pid: u32) -> Program {
    home.plain(on_old_kernel())
        .arg(refusal)
        .arg(&artifacts().msprof)
        .args(["--dynamic=on", "--runtime-api=on"])
        .arg(format!("--output={}", home.output().display()))
        .arg(format!("--pid={pid}"))
}

#[test]
fn captures_are_whole_and_follow_each_other() {
    for refusal in refusals() {
        let home = Home::new();
        let mut puppet = puppet(&home, refusal);
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        for round in 1..=3 {
            client.start();
            // The proof that the memory is not what it is elsewhere.
            assert!(!Proc::of(puppet.pid()).maps_file("msprof-rings (deleted)"));
            assert_eq!(puppet.tell(&format!("api 1000 {round}")), "0");
            assert_eq!(puppet.tell("flood 4 1000"), "0");
            client.stop();
        }
        client.quit();
        let dirs = prof_dirs(&home.output());
        assert_eq!(dirs.len(), 3, "{refusal}");
        for dir in dirs {
            let prof = open_complete(&dir);
            assert_eq!(prof.api().len(), 5000, "{refusal}");
            assert_eq!(lost(&prof.ledger()), 0);
        }
        puppet.finish().expect_code(0);
        assert!(home.sockets().is_empty());
    }
}

#[test]
fn children_of_a_capturing_process_leave_its_capture_alone() {
    for refusal in refusals() {
        let home = Home::new();
        let mut puppet = puppet(&home, refusal);
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        client.start();
        for order in CHILDREN {
            assert_eq!(puppet.tell("api 100 1"), "0");
            assert_eq!(puppet.tell(order), "0", "{refusal}: {order}");
        }
        assert_eq!(puppet.tell("state"), "0 2 0 1", "still capturing");
        client.stop();
        client.quit();
        let prof = open_complete(&only_prof_dir(&home.output()));
        assert_eq!(prof.api().len(), 100 * CHILDREN.len(), "{refusal}");
    }
}

/// No kernel wipes the gate: the handler of the fork has to.
#[test]
fn a_child_that_reports_becomes_an_agent_of_its_own() {
    for refusal in refusals() {
        let home = Home::new();
        let mut puppet = puppet(&home, refusal);
        let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
        client.start();
        assert_eq!(puppet.tell("api 100 1"), "0");
        let child: u32 = puppet.tell("fork report").parse().expect("a pid");
        let socket = home.wait_socket(child);
        let child_output = home.path().join("child");
        let mut second = ByteClient::open(&socket, &params(&child_output));
        second.start();
        wait_until("records of the child", || {
            let dirs = prof_dirs(&child_output);
            let slice = dirs
                .first()
                .map(|dir| dir.join("host/data/aging.api_event.data.slice_0"));
            slice.is_some_and(|slice| slice.exists())
        });
        second.stop();
        second.quit();
        let of_child = open_complete(&only_prof_dir(&child_output));
        assert!(!of_child.api().is_empty());
        assert!(of_child.api().iter().all(|record| record.item >> 40 == 0));
        assert_eq!(of_child.ledger()["pid"], child);
        assert_eq!(puppet.tell("let"), "0", "exit status of the child");
        client.stop();
        client.quit();
        let of_parent = open_complete(&only_prof_dir(&home.output()));
        assert_eq!(of_parent.api().len(), 100);
        assert!(of_parent.api().iter().all(|record| record.item >> 40 == 1));
    }
}

#[test]
fn the_controller_works_there_too_and_says_that_nothing_can_be_rescued() {
    for refusal in refusals() {
        let home = Home::new();
        let mut puppet = puppet(&home, refusal);
        let mut msprof = msprof(&home, refusal, puppet.pid()).spawn();
        started(&mut msprof, puppet.pid());
        assert_eq!(puppet.tell("api 1000 1"), "0");
        give(&mut msprof, &["stop", "quit"]);
        let finished = msprof.finish();
        finished.expect_code(0);
        finished.line_with("its buffers cannot be shared");
        let prof = open_complete(&only_prof_dir(&home.output()));
        assert_eq!(prof.api().len(), 1000, "{refusal}");
    }
}

#[test]
fn what_a_killed_program_leaves_there_is_finished() {
    for refusal in refusals() {
        let home = Home::new();
        let mut puppet = puppet(&home, refusal);
        let mut msprof = msprof(&home, refusal, puppet.pid()).spawn();
        started(&mut msprof, puppet.pid());
        assert_eq!(puppet.tell("api 1000 1"), "0");
        let dir = only_prof_dir(&home.output());
        let slice = dir.join("host/data/aging.api_event.data.slice_0");
        wait_until("records on disk", || {
            slice.metadata().is_ok_and(|meta| meta.len() >= 1000 * 40)
        });
        puppet.kill();
        msprof.finish().expect_code(1);
        let recover = home
            .plain(on_old_kernel())
            .arg(refusal)
            .arg(&artifacts().msprof);
        let recover = recover.arg("recover").arg(&dir);
        run_script(recover, &[]).expect_code(0);
        assert_eq!(open_recovered(&dir).api().len(), 1000, "{refusal}");
    }
}

fn started(msprof: &mut Running, pid: u32) {
    give(msprof, &["start"]);
    let expected = format!("dynamic profiling for pid {pid} start success");
    msprof.line("the start", |line| (line == expected).then_some(()));
}
