//! The socket's file: whose it is, who may open it, and what becomes of it.

mod support;

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use support::client::{ByteClient, assert_serves, params};
use support::home::{Home, only_prof_dir};
use support::msprof::{dynamic, run_script};
use support::proc::Proc;
use support::puppet::{self, Puppet};
use support::rules::open_complete;
use support::wait::{PATIENCE, wait_for, wait_until};

#[test]
fn the_socket_is_for_its_owner_only() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let meta = fs::symlink_metadata(puppet.socket()).expect("there");
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    let proc = Proc::of(puppet.pid());
    for (descriptor, kind) in proc.descriptors() {
        let ours = ["socket", "anon_inode"].contains(&kind.as_str());
        assert!(
            !ours || descriptor > 2 && proc.is_close_on_exec(descriptor),
            "{descriptor}: {kind}"
        );
    }
}

#[test]
fn a_removed_socket_file_is_back_within_five_seconds_and_the_session_goes_on() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut session = ByteClient::open(puppet.socket(), &params(&home.output()));
    session.start();
    fs::remove_file(puppet.socket()).expect("removed");
    wait_for("the socket to be back", Duration::from_secs(5), || {
        puppet.socket().exists().then_some(())
    });
    let meta = fs::symlink_metadata(puppet.socket()).expect("there");
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    session.stop();
    session.quit();
    assert_serves(puppet.socket(), &home.output());
}

#[test]
fn a_socket_that_a_killed_process_left_is_replaced_by_the_next_with_its_key() {
    let home = Home::new();
    let with_key = |home: &Home| {
        home.armed(puppet::path())
            .env("DYNAMIC_PROFILING_KEY_PID", "12345")
    };
    let socket = home.socket(12345);
    let killed = Puppet::start_program(&home, with_key(&home));
    wait_until("the socket", || socket.exists());
    killed.kill();
    assert!(socket.exists(), "a killed process cannot tidy up");
    let next = Puppet::start_program(&home, with_key(&home));
    wait_for("somebody to answer", PATIENCE, || {
        std::os::unix::net::UnixStream::connect(&socket).ok()
    });
    assert_serves(&socket, &home.output());
    assert_eq!(home.sockets(), std::slice::from_ref(&socket));
    next.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn two_processes_with_one_key_do_not_take_each_others_socket() {
    let home = Home::new();
    let with_key = |home: &Home| {
        home.armed(puppet::path())
            .env("DYNAMIC_PROFILING_KEY_PID", "12345")
    };
    let first = Puppet::start_program(&home, with_key(&home));
    let shared = home.socket(12345);
    wait_until("the first socket", || shared.exists());
    let second = Puppet::start_program(&home, with_key(&home));
    let own = home.socket(second.pid());
    wait_until("the second socket", || own.exists());
    let hello_of = |socket: &Path| {
        let mut client = ByteClient::connect(socket);
        client.introduce_extended(&params(&home.output()))["pid"].clone()
    };
    assert_eq!(hello_of(&shared), first.pid());
    assert_eq!(hello_of(&own), second.pid());
    second.finish().expect_code(0);
    assert_eq!(
        home.sockets(),
        std::slice::from_ref(&shared),
        "the first one's stays"
    );
    first.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let home = Home::new();
    let file = home.socket(12345);
    fs::write(&file, "precious").expect("written");
    let program = home
        .armed(puppet::path())
        .env("DYNAMIC_PROFILING_KEY_PID", "12345");
    let mut puppet = Puppet::start_program(&home, program);
    assert_eq!(puppet.tell("init"), "0");
    let own = home.socket(puppet.pid());
    wait_until("a socket by its own pid", || own.exists());
    assert_eq!(fs::read_to_string(&file).expect("still there"), "precious");
    puppet.finish().expect_code(0);
    assert_eq!(fs::read_to_string(&file).expect("still there"), "precious");
}

#[test]
fn what_killed_processes_left_is_swept_and_those_that_live_are_left_alone() {
    let home = Home::new();
    let mut living = Puppet::start(&home);
    let mut session = ByteClient::open(living.socket(), &params(&home.output()));
    session.start();
    // By the next process that comes up.
    let killed = Puppet::start(&home);
    let left = killed.socket().clone();
    killed.kill();
    assert!(left.exists(), "a killed process cannot tidy up");
    let next = Puppet::start(&home);
    wait_until("the file to be swept", || !left.exists());
    // By the controller, when it looks for one that is not there any more.
    let killed = Puppet::start(&home);
    let (pid, left) = (killed.pid(), killed.socket().clone());
    killed.kill();
    let controller = dynamic(&home, &home.output()).arg(format!("--pid={pid}"));
    run_script(controller, &["start"]).expect_code(1);
    assert!(!left.exists());
    let mut sockets = [living.socket().clone(), next.socket().clone()];
    sockets.sort();
    assert_eq!(home.sockets(), sockets);
    assert_eq!(living.tell("api 10 1"), "0");
    session.stop();
    session.quit();
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 10);
    assert_serves(next.socket(), &home.path().join("next"));
}

#[test]
fn a_process_that_is_stopped_and_continued_goes_on_capturing() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("api 50 1"), "0");
    for _ in 0..5 {
        puppet.signal(libc::SIGSTOP);
        let proc = Proc::of(puppet.pid());
        wait_until("the process to stop", || {
            proc.status("State").starts_with('T')
        });
        puppet.signal(libc::SIGCONT);
        wait_until("the process to go on", || {
            !proc.status("State").starts_with('T')
        });
    }
    assert_eq!(puppet.tell("api 50 1"), "0");
    client.stop();
    client.quit();
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        100
    );
    assert_serves(puppet.socket(), &home.output());
}
