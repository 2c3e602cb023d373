//! Finds the control socket of a process and connects to it (spec 1 section 1.1).

use crate::conn::{Connection, Peer};
use crate::process::{self, Process};
use crate::session::dismiss;
use msprof_agent_core::control::places::{self, PlaceInputs};
use msprof_agent_core::control::probe::{self, Presence};
use msprof_agent_core::process::effective_uid;
use msprof_agent_core::process::user::passwd_home;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::getuid;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for a place in a server's queue.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a process that has only begun is given to open its socket.
const BEGINNING: Duration = Duration::from_secs(3);
/// How often its socket is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Why a process cannot be reached; each message names the way out.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// The process does not exist.
    #[error("no such pid; see `ps -e` for the running ones")]
    NoSuchPid,
    /// It belongs to somebody else.
    #[error("other user: it belongs to uid {0}; run msprof as that user or as root")]
    OtherUser(u32),
    /// There is no socket.
    #[error("not armed: no socket in {}; {hint}", list(.dirs))]
    NotArmed {
        /// Where it was looked for.
        dirs: Vec<PathBuf>,
        /// What is probably missing.
        hint: &'static str,
    },
    /// There is a socket, but nobody behind it.
    #[error(
        "not armed: the socket {} is stale, nobody answers on it; {hint}",
        .path.display()
    )]
    Stale {
        /// The socket.
        path: PathBuf,
        /// What is probably missing.
        hint: &'static str,
    },
    /// The socket is another process's.
    #[error(
        "the socket {} is served by {}, not by this process; its own could not be found, set MSPROF_AGENT_SOCKET_DIR for both sides",
        .path.display(), name(.peer)
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// Who serves it.
        peer: Peer,
    },
    /// Connecting failed.
    #[error("cannot connect to {}: {}", .path.display(), reason(.error))]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

fn list(dirs: &[PathBuf]) -> String {
    let texts: Vec<_> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    texts.join(", ")
}

fn name(peer: &Peer) -> String {
    match peer.pid {
        Some(pid) => format!("pid {pid} of uid {}", peer.uid),
        None => format!("a process of uid {} in another pid namespace", peer.uid),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            "too many clients wait there already; end the others and try again".to_owned()
        }
        _ => error.to_string(),
    }
}

/// A connection and who is at its other end.
#[derive(Debug)]
pub struct Attached {
    /// The connection; nothing has been sent yet.
    pub connection: Connection,
    /// The process that the user means.
    pub process: Process,
}

/// A directory that may hold the socket.
struct Place {
    /// As the user knows it.
    dir: PathBuf,
    /// Where it lies as seen from here.
    reach: PathBuf,
}

/// Connects to the socket of a process that is to be attached to. One that is to be profiled and has
/// no socket yet has perhaps only begun, and is given time.
pub fn attach(pid: u32) -> Result<Attached, LocateError> {
    let deadline = Instant::now() + BEGINNING;
    loop {
        let result = look(pid);
        let wait = match &result {
            Err(LocateError::NotArmed { .. }) => Instant::now() < deadline && is_dynamic(pid),
            _ => false,
        };
        if !wait {
            return result;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether a process was started to be profiled.
fn is_dynamic(pid: u32) -> bool {
    let mode = Process::find(pid).and_then(|process| process.variable("PROFILING_MODE"));
    mode.as_deref() == Some("dynamic".as_ref())
}

fn look(pid: u32) -> Result<Attached, LocateError> {
    let process = Process::find(pid).ok_or_else(|| {
        sweep_for(pid);
        LocateError::NoSuchPid
    })?;
    let ours = effective_uid();
    if ours != 0 && ours != process.euid {
        return Err(LocateError::OtherUser(process.euid));
    }
    let places = places_of(&process);
    let mut problem = None;
    for place in &places {
        match connect(place, process.own_pid, &process) {
            Ok(Some(connection)) => {
                return Ok(Attached {
                    connection,
                    process,
                });
            }
            Ok(None) => {}
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.unwrap_or_else(|| LocateError::NotArmed {
        dirs: places.into_iter().map(|place| place.dir).collect(),
        hint: why_not_armed(&process),
    }))
}

/// Connects to one place; `None` when there is no socket in it.
fn connect(place: &Place, key: u32, process: &Process) -> Result<Option<Connection>, LocateError> {
    let name = places::socket_name(key);
    let shown = place.dir.join(&name);
    match probe::probe(&place.reach.join(&name)) {
        Presence::Alive => {}
        Presence::Dead => {
            return Err(LocateError::Stale {
                path: shown,
                hint: why_not_armed(process),
            });
        }
        Presence::Absent | Presence::Other | Presence::Unknown => return Ok(None),
    }
    let failed = |error| LocateError::Connect {
        path: shown.clone(),
        error,
    };
    // By way of a descriptor, so that no path is too long for a socket address.
    let dir = open_dir(&place.reach).map_err(failed)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()));
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    let connection = Connection::open(&short, deadline).map_err(failed)?;
    let peer = connection.peer().map_err(failed)?;
    if !serves(peer, process) {
        dismiss(connection);
        return Err(LocateError::Foreign { path: shown, peer });
    }
    Ok(Some(connection))
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

fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(dir, flags, Mode::empty())?)
}

/// Where the socket of a process may lie, best first.
fn places_of(process: &Process) -> Vec<Place> {
    let mut found = Vec::new();
    let mut add = |dir: PathBuf, root: Option<PathBuf>| {
        let reach = match root {
            Some(root) => root.join(dir.strip_prefix("/").unwrap_or(&dir)),
            None => dir.clone(),
        };
        if !found.iter().any(|place: &Place| place.reach == reach) {
            found.push(Place { dir, reach });
        }
    };
    let home = passwd_home(process.uid);
    let ours = PlaceInputs::new(process.euid, home.clone(), |name| std::env::var_os(name));
    if ours.override_dir.is_some() {
        for dir in places::candidates(&ours) {
            add(dir, None);
        }
        return found;
    }
    if process.has_own_root() {
        let inner_home = process.home_in_own_root();
        for dir in places::candidates(&process.place_inputs(inner_home)) {
            add(dir, Some(process.root()));
        }
    }
    for dir in places::candidates(&process.place_inputs(home)) {
        add(dir, None);
    }
    for dir in places::candidates(&ours) {
        add(dir, None);
    }
    found
}

/// Removes what a dead process of this pid has left.
fn sweep_for(pid: u32) {
    for dir in our_places() {
        let uid = effective_uid();
        probe::sweep(&dir.join(places::socket_name(pid)), uid);
    }
}

/// Removes the sockets of dead processes of this user from the usual places.
pub fn sweep_all() {
    let uid = effective_uid();
    for dir in our_places() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let key = entry.file_name().to_str().and_then(places::key_of);
            // A process that lives replaces what an earlier one has left, and knows better when.
            if key.is_some_and(|pid| Process::find(pid).is_none()) {
                probe::sweep(&entry.path(), uid);
            }
        }
    }
}

/// The places by our own environment.
pub fn our_places() -> Vec<PathBuf> {
    let home = passwd_home(getuid().as_raw());
    let uid = effective_uid();
    places::candidates(&PlaceInputs::new(uid, home, |name| std::env::var_os(name)))
}

/// What is probably missing in a process without a socket.
fn why_not_armed(process: &Process) -> &'static str {
    let mode = process.variable("PROFILING_MODE");
    if mode.as_deref() == Some("dynamic".as_ref()) {
        return match process
            .maps("libmsprof_agent")
            .zip(process.maps("libprofapi"))
        {
            Some((false, false)) => {
                "its PROFILING_MODE is dynamic, but libmsprof_agent.so is not loaded: add it to LD_PRELOAD"
            }
            _ => "it is perhaps only starting, or has ended its profiling; try again",
        };
    }
    "start it with PROFILING_MODE=dynamic and libmsprof_agent.so in LD_PRELOAD"
}

/// Looks for the sockets of a program that this controller has launched.
#[derive(Debug)]
pub struct LaunchSearch {
    dirs: Vec<PathBuf>,
    key: u32,
    child: Option<u32>,
    /// Sockets not to connect to, by device and inode: there before the program was started, another
    /// process's, or connected to already.
    settled: Vec<(u64, u64)>,
}

impl LaunchSearch {
    /// Call before the program is started. `key` is our own pid, `inputs` the places by the
    /// program's environment.
    pub fn prepare(inputs: &PlaceInputs, key: u32) -> LaunchSearch {
        let dirs = places::candidates(inputs);
        let present = dirs.iter().filter_map(|dir| {
            let path = dir.join(places::socket_name(key));
            probe::sweep(&path, inputs.uid);
            std::fs::symlink_metadata(path).ok()
        });
        let settled = present.map(|meta| (meta.dev(), meta.ino())).collect();
        LaunchSearch {
            dirs,
            key,
            child: None,
            settled,
        }
    }

    /// The program runs now.
    pub fn launched(&mut self, child: u32) {
        self.child = Some(child);
    }

    /// Where is looked.
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// Connects to every socket of the program that has not been connected to yet: the one with our
    /// key, and with `family` those named after descendants as well.
    pub fn find(&mut self, family: bool) -> Vec<Attached> {
        let Some(child) = self.child else {
            return Vec::new();
        };
        let descendants = if family {
            process::family(child)
        } else {
            Vec::new()
        };
        let keys = std::iter::once(self.key).chain(descendants);
        let dirs = self.dirs.clone();
        let paths = keys.flat_map(|key| {
            let name = places::socket_name(key);
            dirs.iter().map(move |dir| dir.join(&name))
        });
        paths
            .filter_map(|path| self.connect(&path, child))
            .collect()
    }

    /// Descendants of the program with a socket of their own that has not been connected to.
    pub fn armed(&self) -> Vec<u32> {
        let family = self.child.map_or_else(Vec::new, process::family);
        let is_new = |path: PathBuf| {
            let meta = std::fs::symlink_metadata(&path).ok();
            let identity = meta.map(|meta| (meta.dev(), meta.ino()));
            identity.is_some_and(|identity| !self.settled.contains(&identity))
                && probe::probe(&path) == Presence::Alive
        };
        let armed = |pid: &u32| {
            let name = places::socket_name(*pid);
            self.dirs.iter().any(|dir| is_new(dir.join(&name)))
        };
        family.into_iter().filter(armed).collect()
    }

    fn connect(&mut self, path: &Path, child: u32) -> Option<Attached> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        let identity = (meta.dev(), meta.ino());
        if self.settled.contains(&identity) || probe::probe(path) != Presence::Alive {
            return None;
        }
        // A refusal means that the server does not listen yet: tried again next time.
        let connection = Connection::open(path, Instant::now() + CONNECT_TIMEOUT).ok()?;
        self.settled.push(identity);
        let server = connection.peer().ok().and_then(|peer| peer.pid);
        let family = server.filter(|pid| process::descends(*pid, child));
        match family.and_then(Process::find) {
            Some(process) => Some(Attached {
                connection,
                process,
            }),
            None => {
                dismiss(connection);
                None
            }
        }
    }
}
