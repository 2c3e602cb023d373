//! Python programs: the library and CANN by ctypes, in and out of the order of symbols; processes that
//! multiprocessing makes; a program that replaces itself.

mod support;

use serde_json::json;
use std::path::{Path, PathBuf};
use support::artifacts::artifacts;
use support::client::{ByteClient, params};
use support::counting::Window;
use support::home::{Home, only_prof_dir, prof_dirs};
use support::process::{Finished, Program, Running};
use support::prof::{ACL, Prof};
use support::rules::open_complete;
use support::task::wait_runs;
use support::wait::PATIENCE;

/// Runs a model of the stand-in CANN until its stdin ends, and then says what that has counted. Arguments: scope of
/// the agent's library (empty: it is not opened), the library, CANN's. Where only its own ranges can be seen, it has some.
const MODEL: &str = r#"
import ctypes, select, sys
scope, library, cann = sys.argv[1:]
if scope:
    agent = ctypes.CDLL(library, getattr(ctypes, scope))
acl = ctypes.CDLL(cann, ctypes.RTLD_LOCAL)
shape, model, stream = (ctypes.c_uint32 * 3)(), ctypes.c_uint32(), ctypes.c_void_p()
assert acl.aclInit(None) == 0 and acl.aclrtSetDevice(0) == 0
assert acl.aclrtCreateStream(ctypes.byref(stream)) == 0
assert acl.aclmdlLoadFromFile(b"builtin:mlp", ctypes.byref(model)) == 0
assert acl.aclmdlGetShape(model, shape) == 0
put, got = (ctypes.c_float * (shape[0] * width) for width in (shape[1], shape[2]))
put, got = put(), got()
size = lambda array: ctypes.c_size_t(ctypes.sizeof(array))
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.002)[0]:
    if scope == "RTLD_LOCAL":
        agent.msprof_agent_push(b"step")
    assert acl.aclmdlExecute(model, put, size(put), got, size(got), stream) == 0
    if scope == "RTLD_LOCAL":
        agent.msprof_agent_pop()
text = ctypes.create_string_buffer(1 << 16)
for window in range(1, acl.cannCountsWindows() + 1):
    assert acl.cannCountsWindowJson(window, text, size(text)) > 0
    print("window", text.value.decode(), flush=True)
assert acl.aclrtResetDevice(0) == 0 and acl.aclFinalize() == 0
"#;

/// Captures some of it once `is_under_way`; the program as it ended, and the capture.
fn capture(
    home: &Home,
    program: Program,
    is_under_way: impl Fn(&Path),
) -> (Vec<Window>, Finished, Prof) {
    let mut running = program.spawn();
    running.line("the program", |line| (line == "ready").then_some(()));
    let socket = home.wait_socket(running.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    is_under_way(&home.output());
    client.stop();
    client.quit();
    let finished = running.finish();
    finished.expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    let lines = finished.stdout.iter();
    let windows = lines.filter_map(|line| Window::from_line(line)).collect();
    let prof = open_complete(&only_prof_dir(&home.output()));
    (windows, finished, prof)
}

fn model(home: &Home, scope: &str) -> Program {
    let cann = artifacts().task.with_file_name("libascendcl.so");
    let program = home.armed("python3").arg("-c").arg(MODEL);
    program.arg(scope).arg(&artifacts().library).arg(cann)
}

/// Named ranges, by the program itself.
fn steps(prof: &Prof) -> u64 {
    let calls = prof.calls();
    let (apis, _) = calls
        .get(&(ACL, "step".into()))
        .copied()
        .unwrap_or_default();
    apis
}

#[test]
fn opened_before_cann_with_rtld_global_it_sees_every_call() {
    let home = Home::new();
    let under_way = |output: &Path| wait_runs(output, 10);
    let (windows, finished, prof) = capture(&home, model(&home, "RTLD_GLOBAL"), under_way);
    assert_eq!(windows.len(), 1, "{finished:#?}");
    assert!(windows[0].total() > 100);
    windows[0].assert_matches(&prof);
}

#[test]
fn opened_with_rtld_local_it_sees_the_programs_own_ranges_alone() {
    let home = Home::new();
    let under_way = |output: &Path| {
        let dir = only_prof_dir(output);
        let slice = dir.join("host/data/unaging.api_event.data.slice_0");
        let aging = dir.join("host/data/aging.api_event.data.slice_0");
        support::wait::wait_until("some ranges", || {
            let has = |file: &Path| file.metadata().is_ok_and(|meta| meta.len() >= 400);
            has(&slice) || has(&aging)
        });
    };
    let (windows, _, prof) = capture(&home, model(&home, "RTLD_LOCAL"), under_way);
    assert_eq!(windows.len(), 0, "CANN's components have not heard of it");
    assert!(steps(&prof) >= 9);
    assert_eq!(prof.api().len() as u64, steps(&prof));
}

#[test]
fn preloaded_and_in_place_of_libprofapi_it_sees_every_call_of_python() {
    for drop_in in [false, true] {
        let home = Home::new();
        let mut program = model(&home, "").env("LD_PRELOAD", &artifacts().library);
        if drop_in {
            program = program.env("LD_LIBRARY_PATH", &artifacts().drop_in);
        }
        let (windows, _, prof) = capture(&home, program, |output| wait_runs(output, 10));
        assert_eq!(windows.len(), 1);
        windows[0].assert_matches(&prof);
    }
}

// ---- processes ----------------------------------------------------------------

/// Reports when told to, in this process and in one that multiprocessing makes (`fork`, `spawn`), or in the program
/// that it becomes (`exec`). The arguments: how, and how often still.
const WORKER: &str = r#"
import ctypes, multiprocessing, os, sys
class Api(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint16), ("level", ctypes.c_uint16), ("kind", ctypes.c_uint32),
                ("thread", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("begin", ctypes.c_uint64), ("end", ctypes.c_uint64), ("item", ctypes.c_uint64)]
def work(orders, answers):
    agent = ctypes.CDLL(None)
    agent.MsprofSysCycleTime.restype = ctypes.c_uint64
    answers.send(("pid", os.getpid(), agent.MsprofInit(255, None, 0)))
    while (count := orders.recv()) is not None:
        wrong = 0
        for number in range(count):
            now = agent.MsprofSysCycleTime()
            wrong |= agent.MsprofReportApi(1, ctypes.byref(Api(0x5A5A, 5000, 1003, 7, 0, now, now, number)))
        answers.send(("wrong", wrong, count))
    answers.send(("ends", 0, 0))
def say(answer):
    print(*answer, flush=True)
class Lines:
    def recv(self):
        line = sys.stdin.readline().strip()
        return int(line) if line.isdigit() else None
    def send(self, answer):
        say(answer)
if __name__ == "__main__":
    how, rounds = sys.argv[1], int(sys.argv[2])
    work(Lines(), Lines())
    if rounds > 0 and how == "exec":
        os.execv(sys.executable, [sys.executable, __file__, how, str(rounds - 1)])
    elif rounds > 0:
        context = multiprocessing.get_context(how)
        mine, theirs = context.Pipe()
        child = context.Process(target=work, args=(theirs, theirs))
        child.start()
        say(mine.recv())
        while (count := Lines().recv()) is not None:
            mine.send(count)
            say(mine.recv())
        mine.send(None)
        say(mine.recv())
        child.join()
        say(("status", child.exitcode, 0))
"#;

fn worker(home: &Home, how: &str, rounds: u32) -> Running {
    let script = home.path().join("worker.py");
    std::fs::write(&script, WORKER).expect("written");
    let program = home.armed("python3").arg(&script).arg(how);
    let program = program
        .arg(rounds.to_string())
        .env("LD_PRELOAD", &artifacts().library);
    program.spawn()
}

/// Captures a thousand reports of the process that has said its number.
#[track_caller]
fn capture_thousand(home: &Home, worker: &mut Running) -> u32 {
    let said = worker.answer(PATIENCE);
    let words: Vec<&str> = said.split(' ').collect();
    let ["pid", pid, "0"] = words.as_slice() else {
        panic!("{said}");
    };
    let pid = pid.parse().expect("a pid");
    let socket = home.wait_socket(pid);
    let output = home.path().join(format!("output-{pid}"));
    let before = prof_dirs(&output).len();
    let mut options = params(&output);
    options["taskTime"] = json!("off");
    let mut client = ByteClient::open(&socket, &options);
    client.start();
    assert_eq!(worker.tell("1000"), "wrong 0 1000");
    client.stop();
    client.quit();
    let dirs = prof_dirs(&output);
    assert_eq!(dirs.len(), before + 1);
    assert_eq!(open_complete(&dirs[before]).api().len(), 1000);
    assert_eq!(worker.tell("no more"), "ends 0 0");
    pid
}

#[test]
fn processes_of_multiprocessing_are_captured_each_by_its_own_socket() {
    for how in ["fork", "spawn"] {
        let home = Home::new();
        let mut first = worker(&home, how, 1);
        let parent = capture_thousand(&home, &mut first);
        let child = capture_thousand(&home, &mut first);
        assert_ne!(parent, child, "{how}");
        assert_eq!(first.answer(PATIENCE), "status 0 0", "{how}");
        first.finish().expect_code(0);
        assert!(!home.sockets().contains(&home.socket(parent)), "{how}");
        // A forked one ends by os._exit, and a helper of multiprocessing's is killed with the test's process group, so
        // that nothing of ours runs there: the next agent sweeps their sockets.
        let mut last = worker(&home, "exec", 0);
        capture_thousand(&home, &mut last);
        last.finish().expect_code(0);
        assert_eq!(home.sockets(), [] as [PathBuf; 0], "{how}");
    }
}

#[test]
fn a_program_that_replaces_itself_is_captured_in_each_of_its_lives() {
    let home = Home::new();
    let mut worker = worker(&home, "exec", 2);
    let pids: Vec<u32> = (0..3)
        .map(|_| capture_thousand(&home, &mut worker))
        .collect();
    assert_eq!(pids, [worker.pid(); 3]);
    worker.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}
