//! Facts about a process from /proc.

use super::slower::stretched;
use super::wait::{PATIENCE, wait_for};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Names of threads.
    pub threads: Vec<String>,
    /// Kinds of descriptors, sorted.
    pub descriptors: Vec<String>,
}

/// What the kernel says of one process.
#[derive(Clone, Copy, Debug)]
pub struct Proc {
    pid: u32,
}

/// Sockets of an armed process to which nobody is connected: the listener, and the pair that wakes the control
/// thread up.
pub const IDLE_SOCKETS: usize = 3;
/// What tells an armed process of the removal of its socket.
const WATCH: &str = "anon_inode:inotify";
/// How many looks in a row have to find the same.
const STEADY_LOOKS: u32 = 5;

impl Proc {
    pub fn of(pid: u32) -> Proc {
        Proc { pid }
    }

    /// CPU time that the agent's threads have used so far, in the kernel's ticks (10 ms).
    pub fn agent_ticks(&self) -> u64 {
        let tasks = entries(&self.path("task"));
        let stats = tasks
            .iter()
            .filter_map(|task| fs::read_to_string(task.join("stat")).ok());
        stats
            .filter_map(|stat| {
                let (name, rest) = stat.rsplit_once(") ")?;
                // The state is field 3; utime and stime are fields 14 and 15.
                let field = |number: usize| rest.split(' ').nth(number - 3)?.parse::<u64>().ok();
                let used = field(14)? + field(15)?;
                name.contains("(msprof").then_some(used)
            })
            .sum()
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// Names of its threads, sorted.
    pub fn threads(&self) -> Vec<String> {
        let mut names: Vec<String> = entries(&self.path("task"))
            .iter()
            .filter_map(|task| fs::read_to_string(task.join("comm")).ok())
            .map(|name| name.trim_end().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Names of the agent's threads.
    pub fn agent_threads(&self) -> Vec<String> {
        let mut names = self.threads();
        names.retain(|name| name.starts_with("msprof"));
        names
    }

    /// What its descriptors point to; sockets and the like by kind only.
    pub fn descriptors(&self) -> BTreeMap<u32, String> {
        entries(&self.path("fd"))
            .iter()
            .filter_map(|entry| {
                let number = entry.file_name()?.to_str()?.parse().ok()?;
                let target = fs::read_link(entry).ok()?;
                let target = target.to_string_lossy();
                let kind = target.split(":[").next().unwrap_or_default();
                Some((number, kind.to_owned()))
            })
            .collect()
    }

    /// Number of its sockets.
    pub fn sockets(&self) -> usize {
        let descriptors = self.descriptors();
        descriptors
            .values()
            .filter(|kind| *kind == "socket")
            .count()
    }

    /// Threads and descriptors.
    pub fn resources(&self) -> Resources {
        let mut descriptors: Vec<String> = self.descriptors().into_values().collect();
        descriptors.sort();
        Resources {
            threads: self.threads(),
            descriptors,
        }
    }

    /// What it holds when nobody is connected and nothing is captured: waits for that, and until what is open for a
    /// moment is closed (a directory in which the agent looks for dead sockets).
    pub fn idle_resources(&self) -> Resources {
        let (mut last, mut looks) = (None, 0);
        wait_for("an idle agent", PATIENCE, || {
            let now = self.resources();
            looks = if last.replace(now.clone()).as_ref() == Some(&now) {
                looks + 1
            } else {
                0
            };
            let sockets = now.descriptors.iter().filter(|kind| *kind == "socket");
            // The last thing that it makes, a moment after the socket's file is there.
            let watches = now.descriptors.iter().any(|kind| kind == WATCH);
            // A look for dead sockets takes long where there are many and the machine is slow.
            let sweeps = now.descriptors.iter().any(|kind| Path::new(kind).is_dir());
            let is_idle = sockets.count() == IDLE_SOCKETS && self.agent_threads() == ["msprof-ctl"];
            (is_idle && watches && !sweeps && looks >= STEADY_LOOKS).then_some(now)
        })
    }

    /// Waits until no thread of a capture is left: they end a moment after the capture was answered.
    #[track_caller]
    pub fn wait_for_control_thread_alone(&self) {
        wait_for("the control thread alone", PATIENCE, || {
            (self.agent_threads() == ["msprof-ctl"]).then_some(())
        });
    }

    /// Waits until it holds exactly what it held `before`.
    #[track_caller]
    pub fn wait_for_resources(&self, before: &Resources) {
        let deadline = Instant::now() + stretched(PATIENCE);
        loop {
            let now = self.resources();
            if now == *before {
                return;
            }
            if Instant::now() > deadline {
                assert_eq!(now, *before);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether a descriptor is closed on exec.
    pub fn is_close_on_exec(&self, descriptor: u32) -> bool {
        let info = fs::read_to_string(self.path(&format!("fdinfo/{descriptor}")));
        let info = info.expect("the descriptor is open");
        let flags = info
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .expect("flags");
        let flags = i64::from_str_radix(flags.trim(), 8).expect("octal");
        flags & i64::from(libc::O_CLOEXEC) != 0
    }

    /// Lines of its memory map.
    pub fn mappings(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("maps")).expect("the process is ours");
        text.lines().map(str::to_owned).collect()
    }

    /// Whether a file whose path ends so is mapped.
    pub fn maps_file(&self, end: &str) -> bool {
        self.mappings().iter().any(|line| line.ends_with(end))
    }

    /// A line of its status.
    pub fn status(&self, key: &str) -> String {
        let text = fs::read_to_string(self.path("status")).expect("the process is ours");
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .unwrap_or_else(|| panic!("{key} in status"))
            .trim()
            .to_owned()
    }

    /// Resident memory, KiB.
    pub fn resident_kib(&self) -> u64 {
        let text = self.status("VmRSS");
        let number = text.split(' ').next().expect("a number");
        number.parse().expect("a number")
    }

    /// What a library must leave alone: signals, umask, working directory.
    pub fn manners(&self) -> Manners {
        Manners {
            ignored: self.status("SigIgn"),
            caught: self.status("SigCgt"),
            blocked: self.status("SigBlk"),
            umask: self.status("Umask"),
            working_directory: fs::read_link(self.path("cwd")).expect("the process is ours"),
        }
    }

    /// Whether it still exists and is no zombie.
    pub fn is_alive(&self) -> bool {
        fs::read_to_string(self.path("stat"))
            .ok()
            .and_then(|stat| Some(stat.rsplit_once(") ")?.1.to_owned()))
            .is_some_and(|rest| !rest.starts_with(['Z', 'X']))
    }
}

/// See [`Proc::manners`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manners {
    pub ignored: String,
    pub caught: String,
    /// Of the main thread.
    pub blocked: String,
    pub umask: String,
    pub working_directory: PathBuf,
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the process is ours");
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}
