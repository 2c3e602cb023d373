//! A fake agent that speaks byte by byte what a test tells it, and a runner for the controller.

#![allow(dead_code, clippy::unwrap_used)]

pub mod stock;

use msprof_agent_core::control::extension::{self, Hello, Op, Outcome, Reply, Request};
use msprof_agent_core::control::wire::{self, Message};
use msprof_agent_core::ledger::{CaptureState, Ledger};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No test waits longer for anything.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A home, a place for sockets and an output directory of a test's own.
pub struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Lab {
        let lab = Lab {
            dir: tempfile::tempdir().unwrap(),
        };
        for sub in ["home", "sockets", "out"] {
            std::fs::create_dir(lab.dir.path().join(sub)).unwrap();
        }
        lab
    }

    pub fn path(&self, sub: &str) -> PathBuf {
        self.dir.path().join(sub)
    }

    pub fn socket(&self, key: u32) -> PathBuf {
        self.path("sockets")
            .join(format!("dynamic_profiling_socket_{key}"))
    }

    /// A controller command with this lab's environment.
    pub fn msprof(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_msprof"));
        command
            .current_dir(self.path("out"))
            .env("HOME", self.path("home"))
            .env("MSPROF_AGENT_SOCKET_DIR", self.path("sockets"))
            .env_remove("MSPROF_AGENT_LIB")
            .env_remove("XDG_RUNTIME_DIR");
        command
    }

    /// A library that does nothing, to be preloaded.
    pub fn library(&self) -> PathBuf {
        let source = self.path("agent.c");
        std::fs::write(&source, "int msprof_test_library = 1;\n").unwrap();
        let library = self.path("libmsprof_agent.so");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source);
        assert!(cc.status().unwrap().success());
        library
    }

    /// An attach session to these processes.
    pub fn attach(&self, pids: &[u32]) -> Run {
        let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
        let mut command = self.msprof();
        command
            .arg("--dynamic=on")
            .arg(format!("--pid={}", pids.join(",")));
        Run::start(command)
    }
}

/// A process to attach to; killed in the end.
pub struct Sleeper(Child);

impl Sleeper {
    pub fn new() -> Sleeper {
        Sleeper::with(&[])
    }

    /// One with further environment variables.
    pub fn with(variables: &[(&str, &str)]) -> Sleeper {
        let mut command = Command::new("sleep");
        command
            .arg("300")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Sleeper(command.spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One client's connection, as the server sees it.
pub struct Client {
    pub stream: UnixStream,
}

impl Client {
    pub fn read_params(&mut self) -> Map<String, Value> {
        let mut bytes = [0; wire::PARAMS_SIZE];
        self.stream.read_exact(&mut bytes).expect("params");
        serde_json::from_str(wire::decode_params(&bytes).unwrap()).unwrap()
    }

    pub fn read_message(&mut self) -> Option<Message> {
        let mut bytes = [0; wire::MESSAGE_SIZE];
        self.stream.read_exact(&mut bytes).ok()?;
        Some(Message::decode(&bytes))
    }

    pub fn say(&mut self, kind: u32, status: u32) {
        let bytes = Message { kind, status }.encode();
        let _ = self.stream.write_all(&bytes);
    }

    /// Answers the params as our agent does.
    pub fn extend(&mut self, hello: &Hello) {
        self.say(wire::kind::PARAMS_REPLY, wire::status::EXTENDED);
        let frame = extension::encode_frame(0, hello).unwrap();
        let _ = self.stream.write_all(&frame);
    }

    pub fn read_request(&mut self) -> Option<(u32, Op)> {
        let mut head = [0; extension::FRAME_HEAD];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_le_bytes(head[..4].try_into().unwrap());
        let id = u32::from_le_bytes(head[4..].try_into().unwrap());
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body).ok()?;
        let request: Request = extension::parse_body(&body).unwrap();
        Some((id, request.op))
    }

    pub fn reply(&mut self, id: u32, reply: &Reply) {
        let frame = extension::encode_frame(id, reply).unwrap();
        let _ = self.stream.write_all(&frame);
    }

    /// Reads until the client closes; proof that it was not cut off.
    pub fn wait_for_close(&mut self) {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
    }
}

pub fn hello(pid: u32) -> Hello {
    Hello {
        protocol: extension::PROTOCOL_VERSION,
        agent_version: "0.1.0".into(),
        pid,
        devices: vec![0],
        busy: None,
        error: None,
    }
}

pub fn outcome(outcome: Outcome) -> Reply {
    Reply {
        outcome: Some(outcome),
        ..Reply::default()
    }
}

/// A complete reply to a stop.
pub fn stopped() -> Reply {
    let mut ledger = Ledger::default();
    ledger.stop = Some(ledger.start);
    ledger.bytes = 80;
    ledger.written.0[0] = 2;
    ledger.reported.0[0] = 2;
    Reply {
        path: Some("/out/PROF_000001_x".into()),
        ledger: Some(ledger),
        ..outcome(Outcome::Success)
    }
}

/// Writes a PROF directory with the account of 2 records, as a process leaves it that ends in the
/// middle of a capture.
pub fn leave_capture(dir: &Path, complete: bool) {
    let mut ledger = stopped().ledger.unwrap();
    if complete {
        ledger.state = CaptureState::Complete;
    } else {
        ledger.stop = None;
    }
    std::fs::create_dir_all(dir.join("host")).unwrap();
    let text = serde_json::to_string(&ledger).unwrap();
    std::fs::write(dir.join("msprof_agent.json"), text).unwrap();
}

/// Serves until a capture into `dir` has started.
pub fn serve_start(client: &mut Client, pid: u32, dir: &Path) {
    client.read_params();
    client.extend(&hello(pid));
    let (id, op) = client.read_request().expect("start");
    assert_eq!(op, Op::Start);
    let reply = Reply {
        path: Some(dir.to_str().unwrap().to_owned()),
        ..outcome(Outcome::Success)
    };
    client.reply(id, &reply);
}

/// Serves every request with success until the client is gone.
pub fn serve_extended(client: &mut Client, pid: u32) {
    serve_extended_with(client, pid, || {});
}

/// The same, with something to be done before each start is answered.
pub fn serve_extended_with(client: &mut Client, pid: u32, on_start: impl Fn()) {
    client.read_params();
    client.extend(&hello(pid));
    let mut started = 0;
    while let Some((id, op)) = client.read_request() {
        let reply = match op {
            Op::Start => {
                on_start();
                started += 1;
                Reply {
                    started_ns: Some(1_000_000 * started),
                    ..outcome(Outcome::Success)
                }
            }
            Op::Stop => stopped(),
            _ => outcome(Outcome::Success),
        };
        client.reply(id, &reply);
        if op == Op::Quit {
            return;
        }
    }
}

/// Serves as a stock server does, with its three replies to quit.
pub fn serve_stock(client: &mut Client) {
    client.read_params();
    client.say(wire::kind::PARAMS_REPLY, wire::status::SUCCESS);
    let mut started = false;
    while let Some(message) = client.read_message() {
        let status = match (message.kind, started) {
            (wire::kind::START, true) => wire::status::ALREADY_STARTED,
            (wire::kind::STOP, false) => wire::status::NOT_STARTED,
            _ => wire::status::SUCCESS,
        };
        match message.kind {
            wire::kind::START => started = true,
            wire::kind::STOP => started = false,
            _ => {}
        }
        client.say(message.kind + 1, status);
        if message.kind == wire::kind::QUIT {
            client.say(wire::kind::DISCONNECT, 0);
            client.say(wire::kind::QUIT_REPLY, 0);
            client.wait_for_close();
            return;
        }
    }
}

/// A server on a socket; its thread's panics fail the test.
pub struct Server(Option<JoinHandle<()>>);

impl Server {
    /// Serves one client.
    pub fn once(path: &Path, serve: impl FnOnce(Client) + Send + 'static) -> Server {
        let listener = UnixListener::bind(path).unwrap();
        Server(Some(std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            drop(listener);
            serve(Client { stream });
        })))
    }

    /// Runs a server of the caller's own.
    pub fn running(serve: impl FnOnce() + Send + 'static) -> Server {
        Server(Some(std::thread::spawn(serve)))
    }

    pub fn join(mut self) {
        let deadline = Instant::now() + DEADLINE;
        let thread = self.0.take().unwrap();
        while !thread.is_finished() {
            assert!(Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        thread.join().expect("the server's expectations");
    }
}

/// A condition that one thread sets and others wait for.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        let (open, _) = self
            .0
            .1
            .wait_timeout_while(open, DEADLINE, |open| !*open)
            .unwrap();
        assert!(*open, "the gate was not opened");
    }
}

/// Which stream a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Out,
    Err,
}

/// A running controller.
pub struct Run {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<(From, String)>,
    /// Every line so far, with its time of arrival.
    pub seen: Vec<(From, String, Instant)>,
}

/// How a controller ended.
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Ended {
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Ended {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}\n--\n{}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    pub fn says(&self, part: &str) -> &Ended {
        assert!(
            self.out.contains(part),
            "no {part:?} in: {}\n--\n{}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    pub fn warns(&self, part: &str) -> &Ended {
        assert!(
            self.err.contains(part),
            "no {part:?} in: {}\n--\n{}",
            self.err,
            self.out
        );
        self
    }
}

impl Run {
    pub fn start(mut command: Command) -> Run {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let streams: [(From, Box<dyn Read + Send>); 2] = [
            (From::Out, Box::new(child.stdout.take().unwrap())),
            (From::Err, Box::new(child.stderr.take().unwrap())),
        ];
        for (from, stream) in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                use std::io::BufRead;
                for line in std::io::BufReader::new(stream).lines() {
                    let Ok(line) = line else { return };
                    if sender.send((from, line)).is_err() {
                        return;
                    }
                }
            });
        }
        Run {
            stdin: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn send(&mut self, lines: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        // The controller may have ended already, as some tests want it.
        let _ = stdin.write_all(lines.as_bytes());
        let _ = stdin.flush();
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for a line that holds `part`, among those that have come already as well.
    #[track_caller]
    pub fn wait_for(&mut self, part: &str) -> Instant {
        let deadline = Instant::now() + DEADLINE;
        let known = self.seen.iter().find(|(_, line, _)| line.contains(part));
        if let Some((_, _, at)) = known {
            return *at;
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok((from, line)) => {
                    let now = Instant::now();
                    let found = line.contains(part);
                    self.seen.push((from, line, now));
                    if found {
                        return now;
                    }
                }
                Err(_) => panic!("no {part:?} in {:#?}", self.seen),
            }
        }
    }

    /// Waits for the end; stdin stays as it is.
    #[track_caller]
    pub fn ended(&mut self) -> Ended {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("does not end: {:#?}", self.seen);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        while let Ok((from, line)) = self.lines.recv_timeout(DEADLINE) {
            self.seen.push((from, line, Instant::now()));
        }
        let text = |which: From| {
            let lines = self.seen.iter().filter(|(from, _, _)| *from == which);
            lines.map(|(_, line, _)| format!("{line}\n")).collect()
        };
        Ended {
            status,
            out: text(From::Out),
            err: text(From::Err),
        }
    }

    /// Sends these lines, closes stdin and waits for the end.
    #[track_caller]
    pub fn script(mut self, lines: &str) -> Ended {
        self.send(lines);
        self.close_stdin();
        self.ended()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
