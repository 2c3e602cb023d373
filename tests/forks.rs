//! Forked children: they are not hurt, and leave their parent's socket and capture alone.

mod support;

use std::path::PathBuf;
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::{IDLE_SOCKETS, Proc};
use support::puppet::{Puppet, capturing};
use support::rules::{lost, open_complete};
use support::wait::{PATIENCE, wait_for, wait_until};

/// Sockets that a process has open.
fn sockets_of(pid: u32) -> usize {
    let descriptors = Proc::of(pid).descriptors();
    descriptors
        .values()
        .filter(|kind| *kind == "socket")
        .count()
}

/// Every kind of child, with its order to the puppet.
const CHILDREN: [&str; 4] = ["fork exit", "fork _exit", "vfork", "double"];

#[test]
fn children_of_an_armed_process_end_well_and_leave_its_socket_alone() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    for order in CHILDREN {
        for _ in 0..5 {
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
        assert_eq!(home.sockets(), [puppet.socket().clone()], "{order}");
        ByteClient::open(puppet.socket(), &params(&home.output())).quit();
    }
    assert_eq!(prof_dirs(&home.output()), [] as [PathBuf; 0]);
}

#[test]
fn children_of_a_capturing_process_end_well_and_leave_its_capture_alone() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    let mut reported = 0;
    for order in CHILDREN {
        for _ in 0..5 {
            assert_eq!(puppet.tell("api 100 1"), "0");
            reported += 100;
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
    }
    assert_eq!(puppet.tell("state"), "0 2 0 1", "still capturing");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), reported);
    assert_eq!(home.sockets(), [puppet.socket().clone()]);
}

#[test]
fn children_of_a_process_whose_threads_report_end_well() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    assert_eq!(puppet.tell("reporters 4"), "0");
    for _ in 0..25 {
        for order in CHILDREN {
            assert_eq!(puppet.tell(order), "0", "exit status of {order}");
        }
    }
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    assert!(!prof.api().is_empty());
}

#[test]
fn a_child_that_reports_becomes_an_agent_of_its_own() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    assert_eq!(puppet.tell("api 100 1"), "0");
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    let socket = home.socket(child);
    wait_for("the child's socket", PATIENCE, || {
        socket.exists().then_some(())
    });

    // A capture of the child beside the parent's.
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
    assert_eq!(puppet.tell("api 100 1"), "0");
    second.stop();
    let of_child = open_complete(&only_prof_dir(&child_output));
    assert!(!of_child.api().is_empty());
    assert!(
        of_child.api().iter().all(|record| record.item >> 40 == 0),
        "its own records only"
    );
    assert_eq!(of_child.ledger()["pid"], child);
    second.quit();

    client.stop();
    client.quit();
    let of_parent = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(of_parent.api().len(), 200);
    assert!(
        of_parent.api().iter().all(|record| record.item >> 40 == 1),
        "its own records only"
    );
    assert_eq!(puppet.tell("let"), "0", "exit status of the child");
    assert_eq!(
        home.sockets(),
        [puppet.socket().clone()],
        "the child's socket is gone"
    );
}

#[test]
fn a_child_that_ends_in_mid_capture_completes_its_own_directory_only() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    let socket = home.socket(child);
    wait_for("the child's socket", PATIENCE, || {
        socket.exists().then_some(())
    });
    let child_output = home.path().join("child");
    let mut second = ByteClient::open(&socket, &params(&child_output));
    second.start();
    assert_eq!(puppet.tell("let"), "0", "exit status of the child");
    open_complete(&only_prof_dir(&child_output));
    assert_eq!(puppet.tell("api 100 1"), "0");
    assert_eq!(puppet.tell("state"), "0 2 0 1", "still capturing");
    client.stop();
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        100
    );
}

#[test]
fn a_forked_child_holds_no_socket_of_its_parent() {
    let home = Home::new();
    let (mut puppet, client) = capturing(&home);
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    let socket = home.socket(child);
    wait_for("the child's socket", PATIENCE, || {
        socket.exists().then_some(())
    });
    drop(client);
    wait_until("its own sockets each", || {
        sockets_of(puppet.pid()) == IDLE_SOCKETS && sockets_of(child) == IDLE_SOCKETS
    });
    let parents = puppet.socket().clone();
    puppet.kill();
    let error = std::os::unix::net::UnixStream::connect(parents).expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}
