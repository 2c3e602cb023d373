//! Forked children: they are not hurt, and leave their parent's socket and capture alone.

mod support;

use std::path::PathBuf;
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::{IDLE_SOCKETS, Proc};
use support::puppet::{Puppet, capturing};
use support::rules::{lost, open_complete};
use support::wait::wait_until;

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
    let socket = home.wait_socket(child);

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
    let socket = home.wait_socket(child);
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
fn a_child_that_is_forked_in_mid_capture_does_not_hold_its_parents_buffers() {
    let home = Home::new();
    let (mut puppet, mut client) = capturing(&home);
    let buffers = |pid: u32| {
        let descriptors = Proc::of(pid).descriptors();
        let ours = |kind: &&String| kind.contains("memfd:msprof-rings");
        descriptors.values().filter(ours).count()
    };
    assert!(buffers(puppet.pid()) > 0, "no memory file here");
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    // From its socket on it is past the handlers of the fork.
    let socket = home.socket(child);
    wait_until("the child's socket", || socket.exists());
    assert_eq!(buffers(child), 0);
    assert!(!Proc::of(child).maps_file("msprof-rings (deleted)"));
    assert_eq!(puppet.tell("let"), "0", "exit status of the child");
    assert_eq!(puppet.tell("api 100 1"), "0");
    client.stop();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 100);
}

#[test]
fn a_forked_child_holds_no_socket_of_its_parent() {
    let home = Home::new();
    let (mut puppet, client) = capturing(&home);
    let child: u32 = puppet.tell("fork report").parse().expect("a pid");
    home.wait_socket(child);
    drop(client);
    wait_until("its own sockets each", || {
        Proc::of(puppet.pid()).sockets() == IDLE_SOCKETS
            && Proc::of(child).sockets() == IDLE_SOCKETS
    });
    let parents = puppet.socket().clone();
    puppet.kill();
    let error = std::os::unix::net::UnixStream::connect(parents).expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}
