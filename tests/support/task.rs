//! The demo AI task, with the agent in it one way or another.

use super::artifacts::artifacts;
use super::client::ByteClient;
use super::counting::Window;
use super::home::{Home, prof_dirs};
use super::process::{Finished, Program, Running, words};
use super::wait::{PATIENCE, wait_for, wait_until};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the agent gets into the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// LD_PRELOAD.
    Preload,
    /// In place of libprofapi.so, by LD_LIBRARY_PATH.
    DropIn,
    /// Both, as in launch mode.
    PreloadAndDropIn,
    /// Linked.
    Linked,
    /// In the program, from the archive.
    Static,
    /// Loaded by a Python program, which then loads and runs the task.
    Python,
    /// Not at all.
    None,
}

/// Loads the agent, then the task, and calls its main() with the other words.
const PYTHON: &str = r"
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
task = ctypes.CDLL(sys.argv[2])
words = [word.encode() for word in ['mlp_task'] + sys.argv[3:]]
sys.exit(task.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))
";

/// Options under which the task is busy, but leaves the machine some air.
pub const EASY: &str = "--seconds=-1 --streams=2 --pause-us=2000";

/// Waits until so many runs of the model are on disk: each has one aicpu record of 256 bytes.
pub fn wait_runs(output: &Path, runs: u64) {
    wait_until("some runs of the model", || {
        let dirs = prof_dirs(output);
        let slice = dirs
            .first()
            .map(|dir| dir.join("device_0/data/aicpu.data.0.slice_0"));
        slice.is_some_and(|slice| slice.metadata().is_ok_and(|meta| meta.len() >= runs * 256))
    });
}

/// A running demo task.
#[derive(Debug)]
pub struct Task {
    running: Running,
    socket: PathBuf,
}

/// The task as a program, not started yet.
pub fn program(home: &Home, way: Way, options: &str) -> Program {
    let artifacts = artifacts();
    let program = match way {
        Way::Linked => home.armed(&artifacts.task_linked),
        Way::Static => home.armed(&artifacts.task_static),
        Way::Python => home
            .armed("python3")
            .args(["-c", PYTHON])
            .arg(&artifacts.library)
            .arg(&artifacts.task_library),
        _ => home.armed(&artifacts.task),
    };
    let program = match way {
        Way::Preload => program.env("LD_PRELOAD", &artifacts.library),
        Way::DropIn => program.env("LD_LIBRARY_PATH", &artifacts.drop_in),
        Way::PreloadAndDropIn => program
            .env("LD_PRELOAD", &artifacts.library)
            .env("LD_LIBRARY_PATH", &artifacts.drop_in),
        Way::Linked | Way::Static | Way::Python | Way::None => program,
    };
    program.args(words(options))
}

impl Task {
    /// Starts it and waits until all its streams run and, with an agent, its socket is there.
    pub fn start(home: &Home, way: Way, options: &str) -> Task {
        Task::start_program(home, program(home, way, options), way != Way::None)
    }

    pub fn start_program(home: &Home, program: Program, armed: bool) -> Task {
        let mut running = program.spawn();
        let socket = home.socket(running.pid());
        let ready = format!("pid {} ready", running.pid());
        running.line("the task to be ready", |line| (line == ready).then_some(()));
        if armed {
            wait_for("the socket", PATIENCE, || socket.exists().then_some(()));
        }
        Task { running, socket }
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub fn socket(&self) -> &PathBuf {
        &self.socket
    }

    /// Connects a stock client.
    pub fn connect(&self) -> ByteClient {
        ByteClient::connect(&self.socket)
    }

    pub fn signal(&self, signal: i32) {
        self.running.signal(signal);
    }

    pub fn has_ended(&mut self) -> bool {
        self.running.has_ended()
    }

    /// The account of a finished window, which the task prints within a tenth of a second.
    pub fn window(&mut self, number: u64) -> Window {
        let what = format!("window {number}");
        self.running.line_from(0, &what, PATIENCE, |line| {
            Window::from_line(line).filter(|window| window.number() == number)
        })
    }

    /// All windows so far.
    pub fn windows(&self) -> Vec<Window> {
        let lines = self.running.stdout();
        lines
            .iter()
            .filter_map(|line| Window::from_line(line))
            .collect()
    }

    /// SIGTERM; the task tears down and ends with 0.
    pub fn terminate(self) -> Finished {
        let finished = self.running.terminate();
        finished.expect_code(0);
        finished
    }

    pub fn wait_end(&mut self, limit: Duration) -> std::process::ExitStatus {
        self.running.wait_end(limit)
    }

    pub fn kill(self) {
        self.running.kill();
    }
}
