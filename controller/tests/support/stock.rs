//! A server with the ways and the faults of the stock one (spec 1 sections 1.2 and 1.3).

use super::{DEADLINE, Server};
use msprof_agent_core::control::wire::{self, Message, kind, status};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Messages that are answered on one connection; with the last one's reply come types 7 and 6.
const MESSAGES_MAX: u32 = 101;

/// What the server has met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// A client and its params.
    Params,
    /// A command and the status of its reply.
    Command(u32, u32),
    /// The client went without a quit.
    Gone,
    /// The client did not wait for a reply; a real server may die of SIGPIPE.
    Deaf,
    /// Its control thread has ended for the life of the process, and the socket is removed.
    Dead,
}

#[derive(Default)]
struct Shared {
    met: Mutex<Vec<Met>>,
    no_device: AtomicBool,
    over: AtomicBool,
}

impl Shared {
    fn note(&self, met: Met) {
        self.met.lock().unwrap().push(met);
    }
}

/// The server; it takes one client after the other until it is told to end or dies.
pub struct Stock {
    shared: Arc<Shared>,
    server: Option<Server>,
}

impl Stock {
    pub fn new(path: &Path) -> Stock {
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let shared = Arc::new(Shared::default());
        let (own, path) = (shared.clone(), path.to_owned());
        let server = Server::running(move || {
            while !own.over.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        if serve(stream, &own).is_none() {
                            own.note(Met::Dead);
                            let _ = std::fs::remove_file(path);
                            return;
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            }
        });
        Stock {
            shared,
            server: Some(server),
        }
    }

    /// Whether the program has set a device; it has, from the beginning.
    pub fn set_device(&self, set: bool) {
        self.shared.no_device.store(!set, Ordering::Release);
    }

    /// Waits until it has met so many things; gives all.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Met> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let met = self.shared.met.lock().unwrap().clone();
            if met.len() >= count {
                return met;
            }
            assert!(Instant::now() < deadline, "only {met:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends it once the present client is gone; gives all that it has met.
    pub fn end(mut self) -> Vec<Met> {
        self.shared.over.store(true, Ordering::Release);
        self.server.take().unwrap().join();
        self.shared.met.lock().unwrap().clone()
    }
}

/// One read. With a limit it ends where the machine was stopped meanwhile, and goes on.
fn read(stream: &mut UnixStream, bytes: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// One client; `None` when the control thread ends with it.
fn serve(mut stream: UnixStream, shared: &Shared) -> Option<()> {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // One read: params in two pieces are too short.
    let mut params = [0; wire::PARAMS_SIZE];
    if read(&mut stream, &mut params).ok()? != params.len() {
        return None;
    }
    wire::decode_params(&params).ok()?;
    shared.note(Met::Params);
    let mut say = {
        let mut stream = stream.try_clone().unwrap();
        move |kind, status| {
            let bytes = Message { kind, status }.encode();
            if stream.write_all(&bytes).is_err() {
                shared.note(Met::Deaf);
            }
        }
    };
    say(kind::PARAMS_REPLY, status::SUCCESS);
    let mut started = false;
    for number in 1.. {
        let mut bytes = [0; wire::MESSAGE_SIZE];
        let Ok(count @ 1..) = read(&mut stream, &mut bytes) else {
            shared.note(Met::Gone);
            return Some(());
        };
        // The status of a request is not looked at.
        let asked = Message::decode(&bytes).kind;
        let no_device = shared.no_device.load(Ordering::Acquire);
        let status = match asked {
            _ if count < bytes.len() => break,
            kind::START if started => status::ALREADY_STARTED,
            kind::START if no_device => status::NO_DEVICE,
            kind::START | kind::QUIT => status::SUCCESS,
            kind::STOP if !started => status::NOT_STARTED,
            kind::STOP => status::SUCCESS,
            _ => break,
        };
        if status == status::SUCCESS {
            started = asked == kind::START;
        }
        shared.note(Met::Command(asked, status));
        say(asked + 1, status);
        if asked == kind::QUIT || number == MESSAGES_MAX {
            break;
        }
    }
    // The session is over by the server's will, or by a quit.
    say(kind::DISCONNECT, status::SUCCESS);
    say(kind::QUIT_REPLY, status::SUCCESS);
    Some(())
}
