//! What /proc tells of a process to who looks at many of them: read once each, and nothing is asked of the process.

use super::{Process, Stat};
use msprof_agent_core::names::{CONTROL_THREAD, LIBRARY_STEM, PROFAPI, PROFIMPL};
use msprof_agent_core::process::environment::is_launcher_name;
use rustix::param::clock_ticks_per_second;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Characters of a command line that are kept.
const COMMAND_MAX: usize = 4096;
/// Bytes of a file's head in which the names of its loader and its tables lie.
const HEAD: u64 = 4096;

/// What is mapped into a process, as far as it says whether it can be profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// Our agent, by its name.
    pub agent: bool,
    /// The vendor's library for reports, or another one in its place.
    pub profapi: bool,
    /// Any loader of shared libraries: without one there is nothing to preload.
    pub loader: bool,
    /// musl's.
    pub musl: bool,
}

/// The environment that a process was started with.
#[derive(Clone, Debug, Default)]
pub struct Environ(Vec<u8>);

impl Environ {
    /// A variable.
    pub fn get(&self, name: &str) -> Option<OsString> {
        let found = self.0.split(|b| *b == 0).find_map(|entry| {
            let rest = entry.strip_prefix(name.as_bytes())?;
            rest.strip_prefix(b"=")
        });
        found.map(|value| OsStr::from_bytes(value).to_owned())
    }

    /// Whether a variable has this value.
    pub fn is(&self, name: &str, value: &str) -> bool {
        self.get(name).is_some_and(|is| is == value)
    }

    /// Whether there is nothing in it: also what a process in the middle of an exec shows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// When the machine was started, seconds since 1970.
fn boot_seconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let said = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    said.trim().parse().ok()
}

/// Process ids of all living processes that /proc shows us, in their order.
pub fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = pids.collect();
    pids.sort_unstable();
    pids
}

impl Process {
    /// The environment that it was started with; `None` when that is not readable.
    pub fn environ(&self) -> Option<Environ> {
        std::fs::read(self.file("environ")).ok().map(Environ)
    }

    /// What is mapped into it; `None` when that is not readable.
    pub fn libraries(&self) -> Option<Libraries> {
        let maps = std::fs::read(self.file("maps")).ok()?;
        let mut found = Libraries::default();
        for line in maps.split(|b| *b == b'\n') {
            // Five columns, then the path.
            let Some(start) = line.iter().position(|b| *b == b'/') else {
                continue;
            };
            let path = String::from_utf8_lossy(&line[start..]);
            let name = path.rsplit('/').next().unwrap_or(&path);
            found.agent |= name.starts_with(LIBRARY_STEM) && name.contains(".so");
            found.profapi |= [PROFAPI, PROFIMPL]
                .iter()
                .any(|library| name.starts_with(library));
            // Its loader is its libc, and mostly a link to a file of that name; glibc's has a number behind it.
            found.musl |= name.starts_with("ld-musl-") || name == "libc.so";
            found.loader |= name.starts_with("ld-") || name.starts_with("ld.so");
        }
        Some(found)
    }

    /// Whether an agent of ours serves a socket in it: that is seen of processes of other users as well.
    pub fn has_agent(&self) -> bool {
        let tasks = std::fs::read_dir(self.file("task"));
        tasks.into_iter().flatten().flatten().any(|task| {
            let name = std::fs::read(task.path().join("comm"));
            name.is_ok_and(|name| name.trim_ascii_end() == CONTROL_THREAD.as_bytes())
        })
    }

    /// Its command line, a blank between the words; the name of its file where there is none.
    pub fn command(&self) -> String {
        let mut line = std::fs::read(self.file("cmdline")).unwrap_or_default();
        line.truncate(COMMAND_MAX);
        let words = line.split(|b| *b == 0).map(String::from_utf8_lossy);
        let words: Vec<_> = words.collect();
        let text = words.join(" ").trim().to_owned();
        match text.is_empty() {
            false => text,
            true => {
                let name = std::fs::read(self.file("comm")).unwrap_or_default();
                String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
            }
        }
    }

    /// How long it has run.
    pub fn age(&self) -> Duration {
        let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let uptime: f64 = text
            .split(' ')
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0.0);
        let started = self.start as f64 / clock_ticks_per_second() as f64;
        Duration::try_from_secs_f64(uptime - started).unwrap_or_default()
    }

    /// When it was started, ns since 1970, to a second: the same at every call, unless somebody sets the clock.
    pub fn started_unix_ns(&self) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        let started = match boot_seconds() {
            Some(boot) => boot.saturating_add(self.start / clock_ticks_per_second().max(1)),
            None => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                now.unwrap_or_default().saturating_sub(self.age()).as_secs()
            }
        };
        started.saturating_mul(SECOND)
    }

    /// Whether it is stopped, by a signal or a debugger.
    pub fn is_stopped(&self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.stopped)
    }

    /// Its program; `None` when that is not readable.
    pub fn program(&self) -> Option<PathBuf> {
        std::fs::read_link(self.file("exe")).ok()
    }

    /// Whether it is a shell or another program that only starts others, which gets no socket.
    pub fn is_launcher(&self) -> bool {
        let program = self.program();
        let name = program.as_deref().and_then(Path::file_name);
        name.and_then(OsStr::to_str).is_some_and(is_launcher_name)
    }

    /// Whether its program gives rights that its user lacks (set-user-ID, set-group-ID): the environment then means
    /// nothing to the loader and to the agent.
    pub fn gains_rights(&self) -> bool {
        const SET_ID: u32 = 0o6000;
        let program = std::fs::metadata(self.file("exe"));
        self.uid != self.euid || program.is_ok_and(|meta| meta.mode() & SET_ID != 0)
    }

    /// Whether its program is linked statically: it has no loader that could preload anything. `None` when that cannot
    /// be read.
    pub fn is_static(&self) -> Option<bool> {
        let file = std::fs::File::open(self.file("exe")).ok()?;
        let mut head = Vec::new();
        file.take(HEAD).read_to_end(&mut head).ok()?;
        has_loader(&head).map(|has| !has)
    }

    /// Its groups, as seen from here.
    pub fn groups(&self) -> Option<Vec<u32>> {
        let status = std::fs::read_to_string(self.file("status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let words = line.split_whitespace().map(|word| word.parse().ok());
            words.collect::<Option<Vec<u32>>>()
        };
        Some([field("Gid:")?, field("Groups:")?].concat())
    }

    /// Directories in which it has bound a socket under one of these file names, as it calls them; `None` when its
    /// descriptors are not readable. Exact where others are guesses: nobody has to be connected to for it.
    pub fn socket_dirs(&self, names: &[String]) -> Option<Vec<String>> {
        let table = std::fs::read(self.file("net/unix")).ok()?;
        let bound = bound_sockets(&String::from_utf8_lossy(&table), names);
        let descriptors = match std::fs::read_dir(self.file("fd")) {
            Ok(descriptors) => descriptors,
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(Vec::new()),
            Err(_) => return None,
        };
        let inodes = descriptors.flatten().filter_map(|descriptor| {
            let target = std::fs::read_link(descriptor.path()).ok()?;
            let target = target.to_str()?.strip_prefix("socket:[")?;
            target.strip_suffix(']').map(str::to_owned)
        });
        let inodes: Vec<String> = inodes.collect();
        let held = bound
            .into_iter()
            .filter(|(inode, _)| inodes.contains(inode));
        Some(held.map(|(_, dir)| dir).collect())
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }
}

/// Inode and directory of the sockets in a /proc/<pid>/net/unix that were bound under one of these file names.
fn bound_sockets(table: &str, names: &[String]) -> Vec<(String, String)> {
    const INODE: usize = 6;
    let mut sockets: Vec<(String, String)> = Vec::new();
    // A path stands there as it is, line breaks and all.
    for line in table.lines() {
        let mut columns = line.split_whitespace();
        let address = columns.next().and_then(|word| word.strip_suffix(':'));
        let is_head = address.is_some_and(|word| word.bytes().all(|b| b.is_ascii_hexdigit()));
        let inode = columns.nth(INODE - 1).filter(|_| is_head);
        match inode.filter(|inode| inode.bytes().all(|b| b.is_ascii_digit())) {
            Some(inode) => {
                // The only blank that is not padding stands before the path.
                let end = line.split_once(&format!(" {inode} "));
                let path = end.map_or("", |(_, path)| path);
                sockets.push((inode.to_owned(), path.to_owned()));
            }
            None => {
                if let Some((_, path)) = sockets.last_mut() {
                    path.push('\n');
                    path.push_str(line);
                }
            }
        }
    }
    let named = sockets.into_iter().filter_map(|(inode, path)| {
        let (dir, name) = path.rsplit_once('/')?;
        let is_one = names.iter().any(|one| one == name);
        is_one.then(|| (inode, dir.to_owned()))
    });
    named.collect()
}

/// Whether a program's head names a loader (PT_INTERP); `None` of what is no 64-bit ELF file of this byte order, or has
/// its table elsewhere.
fn has_loader(head: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let class = head.get(..6)?;
    if class != b"\x7fELF\x02\x01" {
        return None;
    }
    let half = |at: usize| {
        let bytes = head.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    };
    let offset = head.get(32..40)?;
    let offset = usize::try_from(u64::from_le_bytes(offset.try_into().ok()?)).ok()?;
    let (size, count) = (half(54)?, half(56)?);
    let mut found = false;
    for at in (0..count).map(|index| offset.checked_add(index * size)) {
        let at = at?;
        let kind = head.get(at..at.checked_add(4)?)?;
        found |= u32::from_le_bytes(kind.try_into().ok()?) == PT_INTERP;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_process_was_started_is_the_same_whenever_it_is_asked_for() {
        const SECOND: u64 = 1_000_000_000;
        let process = Process::find(std::process::id()).expect("lives");
        let started = process.started_unix_ns();
        assert_eq!(started % SECOND, 0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let by_age = now.expect("later") - process.age();
        assert!(by_age.as_secs().abs_diff(started / SECOND) <= 2);
        // Longer than a tick of /proc.
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(process.started_unix_ns(), started);
    }

    #[test]
    fn a_process_is_told_by_what_proc_has_of_it() {
        let process = Process::find(std::process::id()).expect("lives");
        assert!(all().contains(&process.pid));
        let libraries = process.libraries().expect("our own");
        assert!(!libraries.agent && !libraries.profapi && !libraries.musl);
        assert_eq!(process.is_static().map(|is| !is), Some(libraries.loader));
        assert!(!process.has_agent() && !process.is_launcher() && !process.gains_rights());
        assert!(process.command().contains("msprof"));
        assert!(process.age() < Duration::from_secs(24 * 3600));
        let path = process.environ().expect("our own").get("PATH");
        assert_eq!(path, std::env::var_os("PATH"));
        let dirs = process.socket_dirs(&["no such socket".to_owned()]);
        assert_eq!(dirs, Some(Vec::new()));
    }

    #[test]
    fn a_bound_socket_is_found_by_its_name_whatever_its_directory_is_called() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     ffff0000: 00000002 00000000 00010000 0001 01 101 /home/a b/s_1\n\
                     ffff0001: 00000002 00000000 00010000 0001 01 102 /home/a\nb: c d e f 77 g/s_2\n\
                     ffff0002: 00000003 00000000 00000000 0001 03 103\n\
                     ffff0003: 00000002 00000000 00010000 0001 01 104 @/s_3x\n";
        let bound = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let found = bound_sockets(table, &names);
            found
                .into_iter()
                .map(|(inode, dir)| format!("{inode} {dir}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(bound(&["s_1"]), ["101 /home/a b"]);
        let both = ["101 /home/a b", "102 /home/a\nb: c d e f 77 g"];
        assert_eq!(bound(&["s_2", "s_1"]), both);
        assert_eq!(bound(&["s_3", "_1", ""]), [] as [String; 0]);
    }

    #[test]
    fn what_is_no_program_names_no_loader() {
        for head in [
            &b""[..],
            b"#!/bin/sh\n",
            b"\x7fELF\x01\x01",
            b"\x7fELF\x02\x01",
        ] {
            assert_eq!(has_loader(head), None);
        }
        let mut endless = vec![0xff; 64];
        endless[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(has_loader(&endless), None);
    }
}
