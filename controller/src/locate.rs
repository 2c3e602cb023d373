//! Finds the control socket of a process and connects to it (spec 1 section 1.1).

mod error;
mod hint;
mod launched;
mod places;

pub use error::LocateError;
pub use hint::{Hint, is_dynamic, no_directory, why_not_armed};
pub use launched::LaunchSearch;
pub use places::our_places;

use crate::conn::{Connection, Peer};
use crate::process::{self, Libraries, Process};
use crate::session::dismiss;
use msprof_agent_core::control::binding::temporary_name;
use msprof_agent_core::control::places::{key_of, socket_name};
use msprof_agent_core::control::probe::{self, Presence};
use msprof_agent_core::names;
use msprof_agent_core::process::effective_uid;
use places::{Place, places_of};
use rustix::fs::{Mode, OFlags, open};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for a place in a server's queue.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a process that has only begun is given to open its socket.
const BEGINNING: Duration = Duration::from_secs(3);
/// The number of a launcher in the environment of what it has started.
const KEY_VARIABLE: &str = names::KEY_PID;
/// How often its socket is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A connection and who is at its other end.
#[derive(Debug)]
pub struct Attached {
    /// The connection; nothing has been sent yet.
    pub connection: Connection,
    /// The process that the user means.
    pub process: Process,
    /// Its socket, as seen from here.
    pub socket: PathBuf,
}

/// Whose server may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// Anybody's, also a stock one, which has to hear a quit then.
    Anybody,
    /// Our agent's alone: a stock server is found out without a connection.
    Agent,
}

/// Connects to the socket of a process that is to be attached to. One that is to be profiled and has
/// no socket yet has perhaps only begun, and is given time.
pub fn attach(pid: u32, whom: Whom) -> Result<Attached, LocateError> {
    let deadline = Instant::now() + BEGINNING;
    let mut seen = false;
    loop {
        let result = look(pid, whom);
        match result {
            Err(LocateError::NotArmed { .. })
                if Instant::now() < deadline && hint::will_open_socket(pid) => {}
            // An agent binds its socket a moment before its thread can be seen.
            Err(LocateError::Stock | LocateError::Foreign { peer: None, .. }) if !seen => {}
            Err(LocateError::NoSuchPid) if seen => return Err(LocateError::Ended),
            result => return result,
        }
        seen = true;
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn look(pid: u32, whom: Whom) -> Result<Attached, LocateError> {
    let process = Process::find(pid).ok_or_else(|| {
        sweep_for(pid);
        LocateError::NoSuchPid
    })?;
    let ours = effective_uid();
    if ours != 0 && ours != process.euid {
        return Err(LocateError::OtherUser(process.euid));
    }
    let sought = sockets(&process);
    let mut problem = None;
    let (has_agent, libraries) = match whom {
        Whom::Anybody => (true, None),
        Whom::Agent => (process.has_agent(), process.libraries()),
    };
    for socket in sought.alive {
        if whom == Whom::Agent {
            match socket.server(has_agent, libraries) {
                Server::Agent => {}
                Server::Stock => return Err(LocateError::Stock),
                Server::Foreign => {
                    let path = socket.shown;
                    problem = problem.or(Some(LocateError::Foreign { path, peer: None }));
                    continue;
                }
            }
        }
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        match connect_to(&socket.path, &socket.shown, &process, deadline) {
            Ok(connection) => {
                return Ok(Attached {
                    connection,
                    process,
                    socket: socket.path,
                });
            }
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    let hint = || why_not_armed(&process);
    Err(match (problem, sought.dead) {
        (Some(problem), _) => problem,
        (None, Some(path)) => LocateError::Stale { path, hint: hint() },
        (None, None) => LocateError::NotArmed {
            dirs: sought.dirs,
            hint: hint(),
        },
    })
}

/// A socket that some process has bound where that of another one would lie.
#[derive(Debug)]
pub struct Socket {
    /// As seen from here.
    pub path: PathBuf,
    /// As the user knows it.
    pub shown: PathBuf,
    /// Whether the process is seen to hold it; `None` where that cannot be seen.
    pub held: Option<bool>,
}

/// Who serves a socket, as far as that is seen without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Our agent in the process.
    Agent,
    /// The vendor's library in the process.
    Stock,
    /// Another process.
    Foreign,
}

impl Socket {
    /// Who serves it, by what is in the process: whether it has an agent that serves, and its libraries.
    pub fn server(&self, has_agent: bool, libraries: Option<Libraries>) -> Server {
        // Whose it is, is known where the descriptors of the process can be read.
        match libraries {
            _ if self.held == Some(false) => Server::Foreign,
            _ if has_agent => Server::Agent,
            Some(found) if found.agent || !found.profapi => Server::Foreign,
            _ => Server::Stock,
        }
    }
}

/// What lies in the places of a process's socket.
#[derive(Debug, Default)]
pub struct Sought {
    /// Sockets that somebody has bound, best first.
    pub alive: Vec<Socket>,
    /// The first that nobody answers on, as the user knows it.
    pub dead: Option<PathBuf>,
    /// Where was looked.
    pub dirs: Vec<PathBuf>,
}

/// Looks for the socket of a process; connects to nothing.
///
/// One that a launcher has started may have it under the launcher's number. Its siblings have that number in their
/// environment too: such a socket counts for nobody but who is seen to hold it.
pub fn sockets(process: &Process) -> Sought {
    let launcher = process.variable(KEY_VARIABLE);
    let launcher = launcher.and_then(|key| key.to_str()?.trim().parse().ok());
    let launcher = launcher.filter(|key| *key != process.own_pid);
    let mut sought = Sought::default();
    for (key, is_own) in [(Some(process.own_pid), true), (launcher, false)] {
        let Some(key) = key else { continue };
        let name = socket_name(key);
        let places = places_of(process);
        let bound = [name.clone(), temporary_name(process.own_pid, key)];
        let mut held = None;
        for place in &places {
            let path = place.reach.join(&name);
            let shown = place.dir.join(&name);
            match probe::probe(&path) {
                Presence::Alive => {
                    let dirs = held.get_or_insert_with(|| process.socket_dirs(&bound));
                    let held = dirs.as_deref().and_then(|dirs| is_in(place, dirs, &places));
                    if is_own || held == Some(true) {
                        sought.alive.push(Socket { path, shown, held });
                    }
                }
                Presence::Dead if is_own => sought.dead = sought.dead.or(Some(shown)),
                _ => {}
            }
        }
        if is_own {
            sought.dirs = places.into_iter().map(|place| place.dir).collect();
        }
    }
    // What is seen to be its own comes first: others need not be connected to.
    sought.alive.sort_by_key(|socket| socket.held != Some(true));
    sought
}

/// Whether a process that has bound sockets in these directories, as it calls them, has one in this place; `None` where
/// it calls the places otherwise than we do.
fn is_in(place: &Place, dirs: &[String], places: &[Place]) -> Option<bool> {
    let is = |place: &Place| dirs.iter().any(|dir| Path::new(dir) == place.dir);
    if dirs.is_empty() {
        return Some(false);
    }
    places.iter().any(is).then(|| is(place))
}

/// Connects to a socket of the process; an error when somebody else serves it. `shown` is its path as the user
/// knows it.
pub fn connect_to(
    socket: &Path,
    shown: &Path,
    process: &Process,
    deadline: Instant,
) -> Result<Connection, LocateError> {
    let failed = |error| LocateError::Connect {
        path: shown.to_owned(),
        error,
    };
    let connection = open_socket(socket, deadline).map_err(failed)?;
    let peer = connection.peer().map_err(failed)?;
    if !serves(peer, process) {
        dismiss(connection);
        return Err(LocateError::Foreign {
            path: shown.to_owned(),
            peer: Some(peer),
        });
    }
    Ok(connection)
}

/// Whether the server at the other end speaks for the process.
///
/// In containers that share a home, keys collide: a socket of the right name can be somebody
/// else's. A process of the same family may serve: a launcher's descendant, a worker's parent.
fn serves(peer: Peer, process: &Process) -> bool {
    if peer.uid != process.euid && peer.uid != 0 {
        return false;
    }
    match peer.pid {
        Some(pid) => process::descends(pid, process.pid) || process::descends(process.pid, pid),
        None => false,
    }
}

/// Connects by way of a descriptor, so that no path is too long for a socket address.
fn open_socket(path: &Path, deadline: Instant) -> io::Result<Connection> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = open_dir(dir)?;
    let short = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string());
    Connection::open(&short.join(name), deadline)
}

/// Connects to a process once more, at the socket where it was found.
pub fn again(socket: &Path, process: &Process) -> Result<Attached, LocateError> {
    Ok(Attached {
        connection: connect_to(socket, socket, process, Instant::now() + CONNECT_TIMEOUT)?,
        process: process.clone(),
        socket: socket.to_owned(),
    })
}

fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(dir, flags, Mode::empty())?)
}

/// Removes what a dead process of this pid has left.
fn sweep_for(pid: u32) {
    for dir in our_places() {
        let uid = effective_uid();
        probe::sweep(&dir.join(socket_name(pid)), uid);
    }
}

/// Removes the sockets of dead processes of this user from the usual places; gives their paths.
pub fn sweep_all() -> Vec<PathBuf> {
    let uid = effective_uid();
    let mut swept = Vec::new();
    for dir in our_places() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let key = entry.file_name().to_str().and_then(key_of);
            // A process that lives replaces what an earlier one has left, and knows better when.
            let is_left = key.is_some_and(|pid| Process::find(pid).is_none());
            if is_left && probe::sweep(&entry.path(), uid) {
                swept.push(entry.path());
            }
        }
    }
    swept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_served_by_its_own_user_or_by_root_and_by_no_number_of_a_namespace() {
        let mut process = Process::find(std::process::id()).expect("lives");
        let peer = |uid| Peer {
            pid: Some(process.pid),
            uid,
        };
        let (container, own_number) = (peer(104_241), peer(4242));
        let root = peer(0);
        process.euid = 104_241;
        assert!(serves(container, &process) && serves(root, &process));
        assert!(!serves(own_number, &process));
        let hidden = Peer {
            pid: None,
            ..container
        };
        assert!(!serves(hidden, &process));
    }
}
