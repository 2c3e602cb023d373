//! What /proc says of a process.

mod facts;

pub use facts::{Environ, Libraries, all};

use msprof_agent_core::control::places::PlaceInputs;
use msprof_agent_core::process::user_map::uid_inside;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Steps from a process to its ancestors that are looked at; a bound, not a limit in practice.
const ANCESTORS_MAX: usize = 256;

/// A living process, as it was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id as seen from here.
    pub pid: u32,
    /// Real user id, as seen from here.
    pub uid: u32,
    /// Effective user id, as seen from here: sockets belong to it.
    pub euid: u32,
    /// Process id as the process itself sees it.
    pub own_pid: u32,
    /// Start in clock ticks since boot: tells a later process with the same pid.
    start: u64,
}

impl Process {
    /// Looks a process up; `None` when there is none or it has ended and waits for its parent.
    pub fn find(pid: u32) -> Option<Process> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(|rest| {
                rest.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
        };
        let uids = field("Uid:")?;
        let uid = |index: usize| uids.get(index).and_then(|word| word.parse().ok());
        let inner = field("NSpid:").and_then(|pids| pids.last().and_then(|p| p.parse().ok()));
        let stat = Stat::read(pid)?;
        if stat.ended {
            return None;
        }
        Some(Process {
            pid,
            uid: uid(0)?,
            euid: uid(1)?,
            own_pid: inner.unwrap_or(pid),
            start: stat.start,
        })
    }

    /// Whether it still lives.
    pub fn lives(&self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| !stat.ended && stat.start == self.start)
    }

    /// Whether it has ended with all its threads: nobody writes to its memory any more. A main thread that has
    /// ended, or is the first to be gone of a process that is killed, counts as an end for [`Process::lives`].
    pub fn has_ended_wholly(&self) -> bool {
        let is_it = |stat: &Stat| stat.start == self.start;
        let Some(stat) = Stat::read(self.pid).filter(is_it) else {
            return true;
        };
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid));
        stat.ended && threads.map_or(0, |threads| threads.count()) <= 1
    }

    /// A variable of the environment that it was started with; `None` also when that is not readable.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.environ()?.get(name)
    }

    /// Whether there is a directory where it would look for one.
    pub fn sees_directory(&self, dir: &Path) -> bool {
        let reach = self.root().join(dir.strip_prefix("/").unwrap_or(dir));
        // Of what cannot be looked at nothing is said.
        match std::fs::metadata(reach) {
            Ok(meta) => meta.is_dir(),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Whether the kernel keeps its files and its environment from us: of another user, or with rights that we lack.
    pub fn is_closed_to_us(&self) -> bool {
        let root = std::fs::read_link(format!("/proc/{}/root", self.pid));
        root.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    }

    /// Whether it sees other files than we do under the same names (a container, mostly).
    pub fn has_own_root(&self) -> bool {
        let link = |of: &str, what: &str| std::fs::read_link(format!("/proc/{of}/{what}"));
        let pid = self.pid.to_string();
        let differs = |what| match (link(&pid, what), link("self", what)) {
            (Ok(theirs), Ok(ours)) => theirs != ours,
            _ => false,
        };
        differs("ns/mnt") || differs("root")
    }

    /// Where its files begin, as seen from here.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid))
    }

    /// Who it takes itself for: the places of its socket go by that. In a user namespace that is another number than
    /// the one that we know it by.
    pub fn own_user(&self) -> OwnUser {
        OwnUser {
            uid: uid_inside(self.pid, self.uid),
            euid: uid_inside(self.pid, self.euid),
        }
    }

    /// Its user's home by its own passwd file.
    pub fn home_in_own_root(&self, user: OwnUser) -> Option<PathBuf> {
        let text = std::fs::read_to_string(self.root().join("etc/passwd")).ok()?;
        let mut entries = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let uid = user.uid.to_string();
        let entry = entries.find(|fields| fields.get(2) == Some(&uid.as_str()))?;
        entry.get(5).map(PathBuf::from)
    }

    /// What the places of its socket depend on, by its own environment.
    pub fn place_inputs(&self, user: OwnUser, passwd_home: Option<PathBuf>) -> PlaceInputs {
        PlaceInputs::new(user.euid, passwd_home, |name| self.variable(name))
    }
}

/// A process's user by the numbers that the process itself knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnUser {
    /// Real user id: the passwd home goes by it.
    pub uid: u32,
    /// Effective user id: the last place goes by it.
    pub euid: u32,
}

/// Some fields of /proc/<pid>/stat.
struct Stat {
    ended: bool,
    stopped: bool,
    parent: u32,
    start: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Stat> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The command may hold blanks and parentheses: count from its end.
        let end = text.iter().rposition(|b| *b == b')')?;
        let rest = String::from_utf8_lossy(text.get(end + 1..)?).into_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Stat {
            ended: matches!(*fields.first()?, "Z" | "X" | "x"),
            stopped: matches!(*fields.first()?, "T" | "t"),
            parent: fields.get(1)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Whether `pid` descends from `ancestor`, or is it.
pub fn descends(pid: u32, ancestor: u32) -> bool {
    let mut at = pid;
    for _ in 0..ANCESTORS_MAX {
        if at == ancestor {
            return true;
        }
        match Stat::read(at) {
            Some(stat) if stat.parent > 0 => at = stat.parent,
            _ => return false,
        }
    }
    false
}

/// All living descendants of `ancestor`, itself first.
pub fn family(ancestor: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir(Path::new("/proc"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        if let Some(stat) = Stat::read(pid).filter(|stat| !stat.ended) {
            parents.push((pid, stat.parent));
        }
    }
    let mut family = vec![ancestor];
    let mut next = 0;
    while next < family.len() {
        let parent = family[next];
        let children = parents
            .iter()
            .filter(|(_, p)| *p == parent)
            .map(|(pid, _)| *pid);
        family.extend(children.filter(|pid| *pid != ancestor).collect::<Vec<_>>());
        next += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn sleeper() -> std::process::Child {
        let mut command = Command::new("sleep");
        command
            .arg("60")
            .env("MSPROF_TEST", "a=b")
            .stdin(Stdio::null());
        command.spawn().expect("sleep runs")
    }

    #[test]
    fn a_child_is_found_until_it_ends_even_when_nobody_waits_for_it() {
        let mut child = sleeper();
        let process = Process::find(child.id()).expect("lives");
        assert_eq!(process.own_pid, child.id());
        assert!(process.lives() && !process.has_own_root());
        assert!(descends(child.id(), std::process::id()));
        assert!(!descends(std::process::id(), child.id()));
        assert!(family(std::process::id()).contains(&child.id()));
        child.kill().expect("killed");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while process.lives() {
            assert!(std::time::Instant::now() < deadline, "still there");
            std::thread::yield_now();
        }
        assert_eq!(Process::find(child.id()), None, "a zombie is no process");
        child.wait().expect("reaped");
    }

    #[test]
    fn the_environment_of_a_process_is_read_exactly() {
        let mut child = sleeper();
        let process = Process::find(child.id()).expect("lives");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        // Between fork and exec the child still shows our environment.
        while process.variable("MSPROF_TEST").is_none() {
            assert!(std::time::Instant::now() < deadline, "no variable");
            std::thread::yield_now();
        }
        assert_eq!(process.variable("MSPROF_TEST"), Some("a=b".into()));
        assert_eq!(process.variable("MSPROF_TES"), None);
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }
}
