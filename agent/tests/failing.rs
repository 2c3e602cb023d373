//! Captures that fail, as those who look after them meet them: who is called, what is known of the failure, and for how
//! long.

use msprof_agent_core::capture::{
    Captures, Current, Failure, Models, Origin, Parts, Request, StopError, StopMode,
};
use msprof_agent_core::lanes::Lanes;
use msprof_agent_core::params::Params;
use msprof_agent_core::process::peer::Peer;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const GENERATION: u32 = 7;
/// Longer than anything here takes on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process has one gate: one capture at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn captures() -> (Captures, Receiver<()>) {
    let parts = Parts {
        lanes: Arc::new(Lanes::new(16 << 20, GENERATION)),
        dictionary: Arc::default(),
        components: Arc::default(),
        long: Arc::default(),
        marks: Arc::default(),
        devices: Arc::default(),
        diverted: Arc::default(),
        unreadable: Arc::default(),
        model_devices: Arc::default(),
        models: Arc::<parking_lot::Mutex<Models>>::default(),
        disabled: Arc::default(),
        alarm: Arc::default(),
    };
    let captures = Captures::new(parts, GENERATION);
    let (called, calls) = channel();
    captures.on_failure(move || {
        let _ = called.send(());
    });
    (captures, calls)
}

fn request(dir: &Path, origin: Origin) -> Request {
    Request {
        params: Params::parse("{}").expect("no options"),
        origin,
        default_dir: dir.to_owned(),
        allow_shared_dir: true,
        need_device: false,
        time_limit: None,
    }
}

const PEER: Peer = Peer { uid: 1, pid: 2 };

/// A capture whose directory is removed, once that was noticed.
fn failed(captures: &Captures, calls: &Receiver<()>, dir: &Path, origin: Origin) -> Current {
    let started = captures.start(&request(dir, origin)).expect("started");
    assert_eq!(captures.current().expect("it runs").failed, None);
    std::fs::remove_dir_all(&started.path).expect("removed");
    calls.recv_timeout(PATIENCE).expect("a call");
    captures.current().expect("it runs until it is stopped")
}

fn only(number: u64) -> StopMode {
    StopMode {
        only: Some(number),
        ..StopMode::NORMAL
    }
}

#[track_caller]
fn assert_removed(failure: &Failure) {
    assert!(failure.reason.contains("No such file"), "{failure:?}");
    assert!(failure.since_unix_ns > 1_600_000_000_000_000_000);
}

#[test]
fn the_failure_of_a_capture_that_nobody_attends_is_told_once_to_who_stops_and_known_until_the_next()
{
    let _alone = alone();
    let temp = tempfile::tempdir().expect("a directory");
    let (captures, calls) = captures();
    let current = failed(&captures, &calls, temp.path(), Origin::Detached(PEER));
    let failure = current.failed.expect("it has failed");
    assert_removed(&failure);
    assert!(captures.take_untold_failure().is_none(), "it runs");
    let stopped = captures.stop(only(current.number), &mut |_| {});
    assert_eq!(
        stopped.expect("ended").error.as_ref(),
        Some(&failure),
        "the first failure is the one that is told"
    );
    let known = Some((current.path, failure));
    assert_eq!(captures.last_failure(), known);

    let none = captures.stop(StopMode::NORMAL, &mut |_| {});
    assert!(matches!(none, Err(StopError::NotStarted)));
    let told = captures.take_untold_failure().expect("untold so far");
    assert_eq!(Some((told.path, told.error.expect("failed"))), known);
    assert!(captures.take_untold_failure().is_none(), "told once");
    assert_eq!(captures.last_failure(), known, "but known");

    // One that does not begin leaves it as it is.
    let file = temp.path().join("file");
    std::fs::write(&file, "").expect("written");
    let refused = captures.start(&request(&file, Origin::Detached(PEER)));
    refused.expect_err("no directory");
    assert_eq!(captures.last_failure(), known);

    let next = request(temp.path(), Origin::Detached(PEER));
    let next = captures.start(&next).expect("the next one starts");
    assert_eq!(captures.last_failure(), None);
    assert_eq!(captures.current().expect("it runs").failed, None);
    let stopped = captures.stop(only(next.number), &mut |_| {});
    assert_eq!(stopped.expect("ended").error, None);
    assert_eq!(captures.last_failure(), None);
    assert!(captures.take_untold_failure().is_none());
}

#[test]
fn a_failure_that_nobody_was_told_of_is_forgotten_when_the_next_capture_begins() {
    let _alone = alone();
    let temp = tempfile::tempdir().expect("a directory");
    let (captures, calls) = captures();
    let current = failed(&captures, &calls, temp.path(), Origin::Detached(PEER));
    let stopped = captures.stop(only(current.number), &mut |_| {});
    stopped.expect("ended");
    let next = request(temp.path(), Origin::Detached(PEER));
    captures.start(&next).expect("the next one starts");
    assert!(captures.take_untold_failure().is_none());
    let stopped = captures.stop(StopMode::NORMAL, &mut |_| {});
    assert_eq!(stopped.expect("ended").error, None);
    assert!(captures.take_untold_failure().is_none());
}

#[test]
fn the_failure_of_a_capture_whose_client_or_program_is_told_is_told_to_nobody_else() {
    let _alone = alone();
    for origin in [Origin::Client(PEER), Origin::Program] {
        let temp = tempfile::tempdir().expect("a directory");
        let (captures, calls) = captures();
        let current = failed(&captures, &calls, temp.path(), origin);
        assert_removed(&current.failed.expect("it has failed"));
        // As when its client has gone.
        let stopped = captures.stop(only(current.number), &mut |_| {});
        let failure = stopped.expect("ended").error.expect("failed");
        assert!(captures.take_untold_failure().is_none());
        assert_eq!(captures.last_failure(), Some((current.path, failure)));
    }
}
