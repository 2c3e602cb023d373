//! The sockets of a program that this controller has launched.

use super::{Attached, CONNECT_TIMEOUT, open_socket};
use crate::process::{self, Process};
use crate::session::dismiss;
use msprof_agent_core::control::places::{self, PlaceInputs};
use msprof_agent_core::control::probe::{self, Presence};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Looks for the sockets of a program that this controller has launched.
#[derive(Debug)]
pub struct LaunchSearch {
    dirs: Vec<PathBuf>,
    key: u32,
    child: Option<u32>,
    /// Sockets not to connect to, by device and inode: there before the program was started, another
    /// process's, or connected to already.
    settled: Vec<(u64, u64)>,
    /// Those of them that were connected to, by the process.
    connected: Vec<(u32, (u64, u64))>,
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
            connected: Vec::new(),
        }
    }

    /// The program runs now.
    pub fn launched(&mut self, child: u32) {
        self.child = Some(child);
    }

    /// The session with a process is over: its socket may be connected to once more.
    pub fn forget(&mut self, pid: u32) {
        for (_, socket) in self.connected.extract_if(.., |(of, _)| *of == pid) {
            self.settled.retain(|settled| *settled != socket);
        }
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
        let connection = open_socket(path, Instant::now() + CONNECT_TIMEOUT).ok()?;
        self.settled.push(identity);
        let server = connection.peer().ok().and_then(|peer| peer.pid);
        let family = server.filter(|pid| process::descends(*pid, child));
        match family.and_then(Process::find) {
            Some(process) => {
                self.connected.push((process.pid, identity));
                Some(Attached {
                    connection,
                    process,
                    socket: path.to_owned(),
                })
            }
            None => {
                dismiss(connection);
                None
            }
        }
    }
}
