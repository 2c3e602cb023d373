//! A look at a process: whether it can be profiled, what it does right now, or why it cannot be.
//!
//! Nothing is disturbed by it. A socket is only connected to where the process is seen to have our agent: a stock server
//! would lose its control thread. No session is held, and no capture is touched.

use crate::locate::{self, Hint, LocateError, Server, Socket};
use crate::process::{self, Process};
use crate::session::{SessionError, ask};
use msprof_agent_core::control::extension::Hello;
use msprof_agent_core::process::effective_uid;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long a process is given to answer.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// How long a look may take beyond that: /proc/<pid>/root can lead to a file system that hangs.
const GRACE: Duration = Duration::from_secs(1);

/// Processes that are looked at at once, each by a thread.
const AT_ONCE: usize = 256;

/// What was found.
#[derive(Debug)]
pub struct Look {
    /// The process.
    pub process: Process,
    /// Its socket as the user knows it, if it has one.
    pub socket: Option<PathBuf>,
    /// How it is.
    pub state: State,
}

/// How a process is.
#[derive(Debug)]
pub enum State {
    /// Our agent is in it, and has answered.
    Answers(Box<Hello>),
    /// It has a control socket, but not of our agent; nobody may connect just to look.
    Stock,
    /// It belongs to somebody else; whether our agent is in it.
    OtherUser {
        /// User id.
        uid: u32,
        /// Our agent serves a socket in it.
        armed: bool,
    },
    /// Its agent says nothing.
    Silent {
        /// Why, as far as is known.
        error: SessionError,
        /// It is stopped, by a signal or a debugger.
        stopped: bool,
    },
    /// There is a socket in its place, but it is not its own, nobody answers on it or it cannot be connected to.
    Unreachable(LocateError),
    /// It has none.
    NoSocket {
        /// What is probably missing.
        hint: Hint,
        /// It is in dynamic mode.
        dynamic: bool,
        /// Our agent, or the library in whose place it can be, is in it.
        loaded: bool,
    },
}

impl Look {
    /// Whether it is anybody's concern here: not one of the many processes that have nothing to do with profiling.
    pub fn concerns(&self) -> bool {
        match &self.state {
            State::OtherUser { armed, .. } => *armed,
            State::NoSocket {
                dynamic, loaded, ..
            } => *dynamic || *loaded,
            _ => true,
        }
    }
}

/// Looks at a process; `account` asks a capture's account of it as well.
pub fn look(process: Process, account: bool) -> Look {
    let deadline = Instant::now() + ANSWER_LIMIT;
    let ours = effective_uid();
    let has_agent = process.has_agent();
    let found = |process, socket, state| Look {
        process,
        socket,
        state,
    };
    if ours != 0 && ours != process.euid {
        let uid = process.euid;
        let armed = has_agent;
        return found(process, None, State::OtherUser { uid, armed });
    }
    let libraries = process.libraries();
    let environ = process.environ();
    let dynamic = environ.as_ref().is_some_and(locate::is_dynamic);
    let loaded = libraries.is_some_and(|found| found.agent || found.profapi);
    // Most processes of a machine: their places need not be looked at.
    let may_have_socket = has_agent || dynamic || loaded || libraries.is_none();
    let sought = match may_have_socket {
        true => locate::sockets(&process),
        false => locate::Sought::default(),
    };
    let mut foreign = None;
    for socket in sought.alive {
        let server = socket.server(has_agent, libraries);
        let Socket { path, shown, .. } = socket;
        match server {
            Server::Agent => {}
            Server::Stock => return found(process, Some(shown), State::Stock),
            Server::Foreign => {
                foreign = foreign.or(Some(shown));
                continue;
            }
        }
        let connected = locate::connect_to(&path, &shown, &process, deadline);
        if let Err(LocateError::Foreign { .. }) = connected {
            foreign = foreign.or(Some(shown));
            continue;
        }
        let state = match connected {
            Ok(connection) => match ask(connection, account, ANSWER_LIMIT, deadline) {
                Ok(hello) => State::Answers(Box::new(hello)),
                Err(error) => State::Silent {
                    error,
                    stopped: process.is_stopped(),
                },
            },
            Err(error) => State::Unreachable(error),
        };
        return found(process, Some(shown), state);
    }
    let hint = locate::why_not_armed(&process);
    let (socket, state) = match (foreign, sought.dead) {
        (Some(path), _) => {
            let error = LocateError::Foreign {
                path: path.clone(),
                peer: None,
            };
            (Some(path), State::Unreachable(error))
        }
        (None, Some(path)) => {
            let stale = LocateError::Stale {
                path: path.clone(),
                hint,
            };
            (Some(path), State::Unreachable(stale))
        }
        (None, None) => {
            let state = State::NoSocket {
                hint,
                dynamic,
                loaded: loaded || has_agent,
            };
            (None, state)
        }
    };
    found(process, socket, state)
}

/// Looks at several processes, many at once. Of one that cannot be looked at in time only that is told; those that have ended
/// meanwhile are left out.
pub fn look_at(pids: &[u32], account: bool) -> Vec<Look> {
    let groups = pids.chunks(AT_ONCE);
    groups
        .flat_map(|pids| look_at_once(pids, account))
        .collect()
}

fn look_at_once(pids: &[u32], account: bool) -> Vec<Look> {
    let (sender, found) = channel();
    let mut asked: Vec<Process> = Vec::new();
    for process in pids.iter().filter_map(|pid| Process::find(*pid)) {
        asked.push(process.clone());
        let sender = sender.clone();
        let thread = std::thread::Builder::new().name("look".to_owned());
        // Where no thread can be had the process counts as one that does not answer.
        let _ = thread.spawn(move || {
            let _ = sender.send(look(process, account));
        });
    }
    drop(sender);
    let deadline = Instant::now() + ANSWER_LIMIT + GRACE;
    let mut looks = Vec::new();
    while let Ok(look) = found.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        looks.push(look);
    }
    for process in asked {
        if looks
            .iter()
            .any(|look: &Look| look.process.pid == process.pid)
            || !process.lives()
        {
            continue;
        }
        let state = State::Silent {
            error: SessionError::NoHello(ANSWER_LIMIT + GRACE),
            stopped: process.is_stopped(),
        };
        looks.push(Look {
            process,
            socket: None,
            state,
        });
    }
    looks.retain(|look| look.process.lives());
    looks.sort_by_key(|look| look.process.pid);
    looks
}

/// Processes that have, or may have, something to do with profiling, by what /proc tells of them at a glance; not this
/// one.
pub fn candidates() -> Vec<u32> {
    let us = std::process::id();
    let ours = effective_uid();
    let pids = process::all().into_iter().filter(|pid| *pid != us);
    pids.filter(|pid| {
        let Some(process) = Process::find(*pid) else {
            return false;
        };
        if ours != 0 && ours != process.euid {
            return process.has_agent();
        }
        // A program can set the variable itself before it opens the library.
        match (process.environ(), process.libraries()) {
            (Some(environ), _) if locate::is_dynamic(&environ) => true,
            (_, Some(libraries)) => libraries.agent || libraries.profapi,
            (_, None) => process.has_agent(),
        }
    })
    .collect()
}
