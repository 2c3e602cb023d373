//! What a guest leaves as it found it: signals, streams, directories, and the way the program ends.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::Home;
use support::puppet::{self, Puppet};
use support::slower::stretched;
use support::wait::{PATIENCE, wait_for};

/// What the end of a program may take longer with us, on a machine that does other things too; the fault was
/// three seconds.
const SLACK: Duration = Duration::from_secs(1);

#[test]
fn a_library_that_is_opened_changes_nothing_of_the_process() {
    let home = Home::new();
    let program = build("tests/c/manners.c", Linkage::Without);
    let mut program = Puppet::start_program(&home, home.armed(program));
    assert_eq!(program.tell("remember"), "0");
    assert_eq!(program.tell("compare"), "same", "before");
    let load = format!("load {}", artifacts().library.display());
    assert_eq!(program.tell(&load), "0");
    program.wait_socket();
    assert_eq!(program.tell("compare"), "same", "loaded");
    for _ in 0..2 {
        let mut client = ByteClient::open(program.socket(), &params(&home.output()));
        assert_eq!(program.tell("compare"), "same", "a client is there");
        client.start();
        assert_eq!(program.tell("compare"), "same", "capturing");
        assert_eq!(program.tell("report 1000"), "0");
        assert_eq!(program.tell("compare"), "same", "reporting");
        client.stop();
        assert_eq!(program.tell("compare"), "same", "stopped");
        client.quit();
        assert_eq!(program.tell("compare"), "same", "the client has gone");
    }
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

// ---- ends by signals --------------------------------------------------------

/// How far the agent is when the signal comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Nothing,
    Armed,
    Capturing,
}

/// How a puppet ends by a signal, and how long that takes.
fn end_by(signal: i32, with: With) -> (ExitStatus, Duration) {
    let home = Home::new();
    let program = match with {
        With::Nothing => home.plain(puppet::path()),
        _ => home.armed(puppet::path()),
    };
    let mut puppet = Puppet::start_program(&home, program);
    let mut client = None;
    if with != With::Nothing {
        puppet.wait_socket();
    }
    if with == With::Capturing {
        let mut capturing = ByteClient::open(puppet.socket(), &params(&home.output()));
        capturing.start();
        client = Some(capturing);
        assert_eq!(puppet.tell("reporters 2"), "0");
    }
    let begin = Instant::now();
    puppet.signal(signal);
    let status = puppet.wait_end();
    drop(client);
    (status, begin.elapsed())
}

#[test]
fn a_signal_ends_the_program_as_soon_and_with_the_same_status_as_without_us() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        let (without, _) = end_by(signal, With::Nothing);
        assert_eq!(without.signal(), Some(signal));
        for with in [With::Armed, With::Capturing] {
            let (status, took) = end_by(signal, with);
            assert_eq!(status, without, "{with:?}");
            assert!(
                took < stretched(SLACK),
                "signal {signal}, {with:?}: {took:?}"
            );
        }
    }
}

/// A Python program that waits, with its own way of taking Ctrl-C.
const WAITING: &str = "
import signal, sys
print('ready', flush=True)
signal.pause()
";

#[test]
fn ctrl_c_in_a_python_program_is_a_keyboard_interrupt_as_without_us() {
    let run = |armed: bool| {
        let home = Home::new();
        let program = match armed {
            true => home
                .armed("python3")
                .env("LD_PRELOAD", &artifacts().library),
            false => home.plain("python3"),
        };
        let mut python = program.args(["-c", WAITING]).spawn();
        python.line("ready", |line| (line == "ready").then_some(()));
        let mut client = None;
        if armed {
            let socket = home.wait_socket(python.pid());
            let mut capturing = ByteClient::open(&socket, &params(&home.output()));
            capturing.start();
            client = Some(capturing);
        }
        let begin = Instant::now();
        python.signal(libc::SIGINT);
        let finished = python.finish();
        drop(client);
        assert!(
            finished
                .stderr
                .iter()
                .any(|line| line == "KeyboardInterrupt"),
            "{finished:#?}"
        );
        (finished.status, begin.elapsed())
    };
    let (without, base) = run(false);
    let (with, took) = run(true);
    assert_eq!(with, without);
    assert!(
        took < base + stretched(SLACK),
        "{base:?} without us, {took:?} with us"
    );
}

// ---- pipelines --------------------------------------------------------------

/// `yes | head`, whose first part dies of SIGPIPE when the second has had enough: which it has when a line
/// comes on stdin. The pid of `yes` and its status are said on stderr.
const PIPELINE: &str = "
exec 3<&0
{ sh -c 'echo \"pid $$\" >&2; exec yes'; echo \"status $?\" >&2; } 3<&- | { head -n 1; read enough <&3; }
";
/// What a shell makes of a death by SIGPIPE.
const DIED_OF_SIGPIPE: &str = "status 141";

#[test]
fn the_first_part_of_a_pipeline_dies_of_sigpipe_armed_and_capturing() {
    for capturing in [false, true] {
        let home = Home::new();
        let mut shell = home
            .armed("/bin/sh")
            .env("LD_PRELOAD", &artifacts().library)
            .args(["-c", PIPELINE])
            .spawn();
        shell.line("a line of the pipeline", |line| (line == "y").then_some(()));
        let pid: u32 = wait_for("the pid of yes", PATIENCE, || {
            let lines = shell.stderr();
            lines
                .iter()
                .find_map(|line| line.strip_prefix("pid ")?.parse().ok())
        });
        let socket = home.wait_socket(pid);
        let mut client = None;
        if capturing {
            let mut starter = ByteClient::open(&socket, &params(&home.output()));
            starter.start();
            client = Some(starter);
        }
        shell.say("enough");
        let finished = shell.finish();
        finished.expect_code(0);
        assert!(
            finished.stderr.iter().any(|line| line == DIED_OF_SIGPIPE),
            "capturing {capturing}: {finished:#?}"
        );
        drop(client);
    }
}
