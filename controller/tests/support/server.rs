//! Servers on sockets: our agent's ways and a stock one's, for one client.

use super::DEADLINE;
use super::client::{Client, hello, outcome, stopped};
use msprof_agent_core::control::extension::{Op, Outcome, Reply};
use msprof_agent_core::control::wire;
use msprof_agent_core::ledger::CaptureState;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
    client.greet(pid);
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
    client.greet(pid);
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

    /// Serves clients one after the other, each in its own way.
    pub fn each(path: &Path, serves: Vec<Box<dyn FnOnce(Client) + Send>>) -> Server {
        let listener = UnixListener::bind(path).unwrap();
        Server(Some(std::thread::spawn(move || {
            for serve in serves {
                let (stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(DEADLINE)).unwrap();
                serve(Client { stream });
            }
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
