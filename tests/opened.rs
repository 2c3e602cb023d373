//! The library as a program opens it by itself: by several threads at once, amid forks, a thousand times, in a
//! namespace of its own, by Python.

mod support;

use std::path::{Path, PathBuf};
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::Proc;
use support::process::Running;
use support::rules::{lost, open_complete};
use support::wait::{PATIENCE, wait_until};

/// Starts the program that opens `library`, armed.
fn opener(home: &Home, library: &Path) -> Running {
    let program = build("tests/c/opener.c", Linkage::Without);
    let mut opener = home.armed(program).arg(library).spawn();
    assert_eq!(opener.answer(PATIENCE), "ready");
    opener
}

/// Captures a thousand reports of it.
#[track_caller]
fn capture_thousand(home: &Home, opener: &mut Running, name: &str) {
    let socket = home.wait_socket(opener.pid());
    let output = home.path().join(name);
    let mut client = ByteClient::open(&socket, &params(&output));
    client.start();
    assert_eq!(opener.tell("report 1000 1"), "0");
    client.stop();
    client.quit();
    let prof = open_complete(&only_prof_dir(&output));
    assert_eq!(prof.api().len(), 1000, "{name}");
}

#[test]
fn threads_that_open_it_at_once_amid_forks_get_one_agent() {
    for _ in 0..5 {
        let home = Home::new();
        let mut opener = opener(&home, &artifacts().library);
        assert_eq!(opener.tell("race 8 100"), "0");
        capture_thousand(&home, &mut opener, "output");
        let proc = Proc::of(opener.pid());
        proc.wait_for_control_thread_alone();
        opener.finish().expect_code(0);
        assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    }
}

#[test]
fn opened_with_deepbind_it_is_captured() {
    let home = Home::new();
    let mut opener = opener(&home, &artifacts().library);
    assert_eq!(opener.tell("open 2"), "0");
    capture_thousand(&home, &mut opener, "output");
    opener.finish().expect_code(0);
}

// ---- again and again ----------------------------------------------------------

/// Resident memory that comes and goes with the C library's arenas and the threads' stacks, KiB.
const PLAY_KIB: u64 = 1024;

#[test]
fn opening_and_closing_it_thousands_of_times_amid_reports_and_captures_leaves_nothing_behind() {
    const THREADS: usize = 2;
    let home = Home::new();
    let program = build("tests/c/opener.c", Linkage::Without);
    let mut opener = home
        .armed(program)
        .arg(&artifacts().library)
        .env("MALLOC_ARENA_MAX", "1")
        .env("MSPROF_AGENT_MAX_COMMANDS", "0")
        .spawn();
    assert_eq!(opener.answer(PATIENCE), "ready");
    assert_eq!(opener.tell("open 1"), "0");
    assert_eq!(opener.tell("reporters 2"), "0");
    let socket = home.wait_socket(opener.pid());
    let proc = Proc::of(opener.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    // Makes the buffers' memory, which stays, and stacks for as many threads as there will be.
    for _ in 0..2 {
        client.start();
        assert_eq!(opener.tell(&format!("reopen {THREADS} 5")), "0");
        client.stop();
    }
    client.quit();
    let before = proc.idle_resources();
    let mappings = proc.mappings().len();
    let resident = proc.resident_kib();

    let mut captures = 2;
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    // Counted before the order: its answer may come at once.
    let answers = opener.stdout().len();
    opener.say(&format!("reopen {THREADS} 1000"));
    // At least ten captures, and as many as there is time for.
    while captures < 12 || opener.stdout().len() <= answers {
        client.start();
        captures += 1;
        let dirs = prof_dirs(&home.output());
        let slice = dirs[captures - 1].join("host/data/aging.api_event.data.slice_0");
        wait_until("records", || {
            slice.metadata().is_ok_and(|meta| meta.len() > 0)
        });
        client.stop();
    }
    client.quit();
    assert_eq!(opener.answer(PATIENCE), "0");
    proc.wait_for_resources(&before);
    wait_until("mappings as before", || {
        proc.mappings().len() <= mappings + 2 * THREADS
    });
    wait_until("resident memory as before", || {
        proc.resident_kib() <= resident + PLAY_KIB
    });
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), captures);
    for dir in dirs.iter().skip(2) {
        let prof = open_complete(dir);
        assert!(!prof.api().is_empty());
        assert_eq!(lost(&prof.ledger()), 0);
    }
    opener.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

// ---- copies -------------------------------------------------------------------

/// The log of a copy that leaves the records to another one, and that of one that nobody else uses.
const LEFT: &str =
    "no control socket: another copy of the library in this process takes the records";
const APART: &str = "no control socket: the library was opened in a namespace of its own (dlmopen)";

/// There is one agent, which is captured, and one copy that has said that it is none, and why.
#[track_caller]
fn assert_one_answers(home: &Home, mut opener: Running, why: &str) {
    capture_thousand(home, &mut opener, "output");
    assert_eq!(home.log().matches(why).count(), 1, "{}", home.log());
    assert_eq!(home.sockets(), [home.socket(opener.pid())]);
    let proc = Proc::of(opener.pid());
    proc.wait_for_control_thread_alone();
    opener.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn a_copy_in_a_namespace_of_its_own_is_off_and_the_programs_answers() {
    // Out of the order of symbols, and in it; before the other one, and after it.
    for orders in [
        ["open 0", "namespace"],
        ["open 1", "namespace"],
        ["namespace", "open 1"],
    ] {
        let home = Home::new();
        let mut opener = opener(&home, &artifacts().library);
        for order in orders {
            assert_eq!(opener.tell(order), "0", "{order}");
        }
        assert_one_answers(&home, opener, APART);
    }
}

#[test]
fn a_copy_that_is_alone_in_a_namespace_of_its_own_makes_no_thread_and_starts_nothing() {
    let home = Home::new();
    let mut opener = opener(&home, &artifacts().library);
    assert_eq!(opener.tell("namespace"), "0");
    assert!(home.log().contains(APART), "{}", home.log());
    let proc = Proc::of(opener.pid());
    assert_eq!(proc.threads().len(), 1, "{:?}", proc.threads());
    opener.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

/// Opens the library and then a copy of it, by Python, both out of the order of symbols; reports by the first.
const TWO_LOCAL_COPIES: &str = r#"
import ctypes, sys
first, second = (ctypes.CDLL(path, ctypes.RTLD_LOCAL) for path in sys.argv[1:])
print("ready", flush=True)
class Api(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint16), ("level", ctypes.c_uint16), ("kind", ctypes.c_uint32),
                ("thread", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("begin", ctypes.c_uint64), ("end", ctypes.c_uint64), ("item", ctypes.c_uint64)]
first.MsprofSysCycleTime.restype = ctypes.c_uint64
for line in sys.stdin:
    wrong = 0
    for number in range(1000):
        now = first.MsprofSysCycleTime()
        wrong |= first.MsprofReportApi(1, ctypes.byref(Api(0x5A5A, 5000, 1003, 7, 0, now, now, number)))
    print(wrong, flush=True)
"#;

#[test]
fn of_two_copies_that_python_loads_the_first_one_answers() {
    let home = Home::new();
    let copy = home.path().join("libcopy.so");
    std::fs::copy(&artifacts().library, &copy).expect("a copy");
    let mut python = home
        .armed("python3")
        .arg("-c")
        .arg(TWO_LOCAL_COPIES)
        .arg(&artifacts().library)
        .arg(&copy)
        .spawn();
    assert_eq!(python.answer(PATIENCE), "ready");
    assert_one_answers(&home, python, LEFT);
}
