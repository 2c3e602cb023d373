//! Several programs in one process id, one after the other: shells, `env`, and whoever they become.

mod support;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use support::artifacts::artifacts;
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::process::{Program, Running};
use support::rules::open_complete;
use support::wait::wait_until;
use support::watcher::Watcher;

/// Reports by the library that is already in the process, as a component in Python would.
const PYTHON: &str = r#"
import ctypes, os, sys
lib = ctypes.CDLL(None)
lib.MsprofSysCycleTime.restype = ctypes.c_uint64
class Api(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint16), ("level", ctypes.c_uint16), ("kind", ctypes.c_uint32),
                ("thread", ctypes.c_uint32), ("reserve", ctypes.c_uint32), ("begin", ctypes.c_uint64),
                ("end", ctypes.c_uint64), ("item", ctypes.c_uint64)]
print("pid", os.getpid(), flush=True)
sys.stdin.readline()
for item in range(100):
    now = lib.MsprofSysCycleTime()
    api = Api(23130, 5000, 1003, os.getpid(), 0, now, lib.MsprofSysCycleTime(), item)
    assert lib.MsprofReportApi(1, ctypes.byref(api)) == 0
print("reported", flush=True)
sys.stdin.readline()
"#;

/// The environment of an outer shell in which everything is preloaded and armed.
fn outer(home: &Home, program: &str) -> Program {
    home.armed(program)
        .env("LD_PRELOAD", &artifacts().library)
        .env("PYTHON", python())
        .env("PYTHON_PROGRAM", PYTHON)
}

/// The interpreter itself: what is called so may be a script, whose programs would be armed too.
fn python() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let program = Program::new("python3").args(["-c", "import sys; print(sys.executable)"]);
        program.run().expect_code(0).stdout[0].clone()
    })
}

/// Captures the hundred records that a program reports when it is told to, and then lets it end.
fn capture_hundred(home: &Home, socket: &Path, mut running: Running) {
    let mut client = ByteClient::open(socket, &params(&home.output()));
    client.start();
    running.say("report");
    running.line("its reports", |line| (line == "reported").then_some(()));
    client.stop();
    client.quit();
    running.finish().expect_code(0);
    assert_eq!(
        open_complete(&only_prof_dir(&home.output())).api().len(),
        100
    );
}

/// Captures what the Python program reports; its pid.
fn capture_python(home: &Home, script: &str, shell: &str) -> u32 {
    let mut running = outer(home, shell).args(["-c", script]).spawn();
    let pid: u32 = running.line("its pid", |line| line.strip_prefix("pid ")?.parse().ok());
    let socket = home.wait_socket(pid);
    assert_eq!(home.sockets(), std::slice::from_ref(&socket), "no other's");
    capture_hundred(home, &socket, running);
    assert_eq!(home.sockets(), [] as [PathBuf; 0], "none is left");
    pid
}

#[test]
fn of_a_chain_of_programs_only_the_task_at_its_end_has_a_socket() {
    for script in [
        // One process id all the way.
        r#"exec env NEVER=mind "$PYTHON" -c "$PYTHON_PROGRAM""#,
        r#"env "$PYTHON" -c "$PYTHON_PROGRAM""#,
        r#"exec sh -c 'exec env nice -n 1 "$PYTHON" -c "$PYTHON_PROGRAM"'"#,
        // A process id for each.
        r#"env sh -c 'timeout 60 "$PYTHON" -c "$PYTHON_PROGRAM"; exit $?' <&0; exit $?"#,
    ] {
        for shell in ["sh", "bash"] {
            let home = Home::new();
            let mut watcher = Watcher::of(home.path());
            let pid = capture_python(&home, script, shell);
            let appeared = watcher.appeared();
            assert_eq!(appeared.get(&pid), Some(&1), "{shell}: {script}");
            assert_eq!(appeared.len(), 1, "{shell}: {script}: {appeared:?}");
        }
    }
}

#[test]
fn programs_that_never_report_do_and_say_what_they_do_without_us() {
    const SCRIPT: &str = r#"
        printf 'b\na\nc\n' | sort | head -n 2 | tr a-z A-Z
        false; echo "false $?"
        sh -c 'exit 7'; echo "sh $?"
        (sh -c 'kill -9 $$'; echo "killed $?") 2>/dev/null
        "$PYTHON" -c 'import subprocess; print(subprocess.run(["expr", "6", "*", "7"], capture_output=True).stdout)'
        "$PYTHON" -c 'import multiprocessing as m
with m.get_context("fork").Pool(4) as pool: print(pool.map(abs, range(-5, 5)))'
        ls /nonexistent-for-certain; echo "ls $?"
    "#;
    let home = Home::new();
    let plain = home
        .plain("bash")
        .env("PYTHON", python())
        .args(["-c", SCRIPT])
        .run();
    let armed = outer(&home, "bash").args(["-c", SCRIPT]).run();
    plain.expect_code(0);
    armed.expect_code(0);
    assert_eq!(armed.stdout, plain.stdout);
    assert_eq!(armed.stderr, plain.stderr);
    assert_eq!(plain.stdout[..3], ["A", "B", "false 1"]);
    assert_eq!(home.sockets(), [] as [PathBuf; 0], "none is left");
}

#[test]
fn a_program_that_runs_itself_anew_keeps_its_socket_and_can_be_captured_again() {
    const AGAIN: &str = r#"
import os, sys
if len(os.environ.get("ROUND", "")) < 5:
    os.environ["ROUND"] = os.environ.get("ROUND", "") + "x"
    os.execv(os.environ["PYTHON"], ["python3", "-c", os.environ["AGAIN"]])
exec(os.environ["PYTHON_PROGRAM"])
"#;
    let home = Home::new();
    let mut watcher = Watcher::of(home.path());
    let mut running = outer(&home, python())
        .env("AGAIN", AGAIN)
        .args(["-c", AGAIN])
        .spawn();
    let pid = running.pid();
    running.line("the last of them", |line| {
        (line == format!("pid {pid}")).then_some(())
    });
    // The file of an earlier image may still be there: the last one answers on it in the end.
    let socket = home.socket(pid);
    wait_until("the last one's socket", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    capture_hundred(&home, &socket, running);
    assert_eq!(watcher.appeared().keys().collect::<Vec<_>>(), [&pid]);
    let left = home.entries(|name| name != "output" && name != "agent.log");
    assert_eq!(left, [] as [PathBuf; 0]);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}
