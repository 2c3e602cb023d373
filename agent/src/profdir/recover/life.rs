//! Whether the process that makes a directory still lives.
//!
//! The directory names a process id, and those are used again. It is that process if it began before the
//! capture did and holds the directory open, as a capture does from its start to its end. What cannot be
//! looked at counts as unknown, never as dead.

use crate::clock::Moment;
use crate::ledger::Anchor;
use crate::waiting;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A process that begins this long after a capture can be no other than a later one; for clocks that are not
/// read at one instant.
const SLACK_NS: u64 = 2_000_000_000;
/// CLOCK_MONOTONIC_RAW and CLOCK_BOOTTIME differ by at most one part in so many.
const CLOCKS_DIFFER: u64 = 1_000;
/// Wall clock less monotonic clock is a property of one boot of one machine, give or take this much (ns).
const SAME_BOOT_NS: u64 = 5_000_000_000;
/// A running capture writes its account every second: with none in this time it does not run.
const RENEWAL: Duration = Duration::from_millis(2_500);
/// How often the account is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Inode of the first pid namespace (the kernel's PROC_PID_INIT_INO): from there every process is seen.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// What a directory says of the process that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maker {
    /// Process id as the process saw it; 0 if the directory does not say.
    pub pid: u32,
    /// Name of its host.
    pub host: Option<String>,
    /// Clocks at the start of the capture.
    pub start: Anchor,
    /// Device and inode of the directory.
    pub directory: (u64, u64),
    /// The account that a running capture keeps writing.
    pub account: PathBuf,
}

/// What is known of that process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// It has ended.
    Dead,
    /// It runs, with this process id as seen from here.
    Runs(u32),
    /// It runs somewhere: the account was renewed.
    Writes,
    /// Made on another host, the one of this name.
    Elsewhere(String),
    /// A process that may be it, into which this user cannot look.
    Hidden(u32),
}

/// Looks the process up.
pub fn look(maker: &Maker) -> Life {
    let now = crate::clock::anchor();
    let here = rustix::system::uname();
    let here = here.nodename().to_string_lossy();
    let other = maker.host.as_deref().filter(|host| *host != here);
    if let Some(host) = other
        && !same_boot(&maker.start, &now)
    {
        return Life::Elsewhere(host.to_owned());
    }
    if maker.start.monotonic_raw_ns > now.monotonic_raw_ns {
        // This machine was booted after that.
        return Life::Dead;
    }
    let life = among(Path::new("/proc"), maker, &now);
    if life == Life::Dead && !sees_all() && renews(&maker.account) {
        return Life::Writes;
    }
    life
}

fn same_boot(then: &Anchor, now: &Anchor) -> bool {
    let boot = |at: &Anchor| at.realtime_ns.wrapping_sub(at.monotonic_raw_ns);
    boot(then).abs_diff(boot(now)) < SAME_BOOT_NS
}

/// Whether no process is hidden in a namespace beside ours.
fn sees_all() -> bool {
    std::fs::metadata("/proc/self/ns/pid").is_ok_and(|meta| meta.ino() == FIRST_PID_NAMESPACE)
}

/// Whether a new account is written. Only a fresh one can be a running capture's, so that waiting is rare.
fn renews(account: &Path) -> bool {
    let state = || {
        let meta = std::fs::symlink_metadata(account).ok()?;
        Some((meta.ino(), meta.modified().ok()))
    };
    let first = state();
    let written = first.and_then(|(_, modified)| modified?.elapsed().ok());
    if written.is_some_and(|age| age > RENEWAL) {
        return false;
    }
    let until = Moment::now() + RENEWAL;
    while !until.has_come() {
        if state() != first {
            return true;
        }
        waiting::sleep(LOOK);
    }
    false
}

/// Looks through all processes.
fn among(proc: &Path, maker: &Maker, now: &Anchor) -> Life {
    let mut life = Life::Dead;
    for entry in std::fs::read_dir(proc).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let dir = entry.path();
        if own_pid(&dir).unwrap_or(pid) != maker.pid || !began_before(&dir, maker, now) {
            continue;
        }
        match holds(&dir, maker.directory) {
            Ok(true) => return Life::Runs(pid),
            Ok(false) => {}
            Err(error) if is_gone(&error) => {}
            Err(_) => life = Life::Hidden(pid),
        }
    }
    life
}

/// What /proc says of a process or thread that has ended in the meantime.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// A process's id as it sees itself.
fn own_pid(process: &Path) -> Option<u32> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

fn began_before(process: &Path, maker: &Maker, now: &Anchor) -> bool {
    let capture = now
        .monotonic_raw_ns
        .saturating_sub(maker.start.monotonic_raw_ns);
    // Unreadable: it may have.
    let Some(age) = age_ns(process) else {
        return process.exists();
    };
    // Its age holds the time that the machine was suspended, the capture's does not: at worst somebody is
    // looked at who need not be.
    age.saturating_add(age / CLOCKS_DIFFER)
        .saturating_add(SLACK_NS)
        >= capture
}

fn age_ns(process: &Path) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let text = std::fs::read(process.join("stat")).ok()?;
    // The command may hold blanks and parentheses: count from its end.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(text.get(end + 1..)?).into_owned();
    let ticks: u64 = rest.split_whitespace().nth(19)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let began = u128::from(ticks) * u128::from(SECOND) / u128::from(per_second);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = u64::try_from(now.tv_sec)
        .ok()?
        .saturating_mul(SECOND)
        .saturating_add(u64::try_from(now.tv_nsec).ok()?);
    Some(now.saturating_sub(u64::try_from(began).ok()?))
}

/// Whether a process has the directory open. Its first thread may have ended before the others, and then has
/// no descriptors.
fn holds(process: &Path, directory: (u64, u64)) -> io::Result<bool> {
    for task in std::fs::read_dir(process.join("task"))? {
        let fds = match std::fs::read_dir(task?.path().join("fd")) {
            Ok(fds) => fds,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error),
        };
        let mut any = false;
        for fd in fds.flatten() {
            any = true;
            // Through the link: what the descriptor stands for.
            let meta = std::fs::metadata(fd.path());
            if meta.is_ok_and(|meta| (meta.dev(), meta.ino()) == directory) {
                return Ok(true);
            }
        }
        if any {
            // Threads have their descriptors in common.
            return Ok(false);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn maker(dir: &Path, pid: u32) -> Maker {
        let meta = std::fs::metadata(dir).expect("there");
        Maker {
            pid,
            host: None,
            start: crate::clock::anchor(),
            directory: (meta.dev(), meta.ino()),
            account: dir.join("none"),
        }
    }

    #[test]
    fn a_process_runs_as_long_as_it_holds_the_directory() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let held = File::open(temp.path()).expect("opened");
        let us = std::process::id();
        let maker = maker(temp.path(), us);
        assert_eq!(look(&maker), Life::Runs(us));
        drop(held);
        let now = crate::clock::anchor();
        assert_eq!(among(Path::new("/proc"), &maker, &now), Life::Dead);
    }

    #[test]
    fn a_killed_process_is_dead_even_when_nobody_has_waited_for_it() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let mut sleep = std::process::Command::new("sleep");
        let held = File::open(temp.path()).expect("opened");
        let mut child = sleep.arg("60").stdin(held).spawn().expect("started");
        drop(sleep);
        let maker = maker(temp.path(), child.id());
        let life = || among(Path::new("/proc"), &maker, &crate::clock::anchor());
        assert_eq!(life(), Life::Runs(child.id()));
        child.kill().expect("killed");
        let until = Moment::now() + Duration::from_secs(30);
        while life() != Life::Dead {
            assert!(!until.has_come(), "{:?}", life());
            std::thread::yield_now();
        }
        child.wait().expect("reaped");
    }

    #[test]
    fn a_process_that_began_after_the_capture_is_a_later_one() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let _held = File::open(temp.path()).expect("opened");
        let mut maker = maker(temp.path(), std::process::id());
        let mut now = crate::clock::anchor();
        // As if the capture had begun a day ago.
        let day = 86_400_000_000_000;
        now.monotonic_raw_ns += day;
        assert_eq!(among(Path::new("/proc"), &maker, &now), Life::Dead);
        // Began after this boot, as it seems: before the last one.
        maker.start.monotonic_raw_ns += day;
        assert_eq!(look(&maker), Life::Dead);
    }

    #[test]
    fn of_another_host_nothing_is_known_but_a_container_of_this_one_is_looked_at() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let _held = File::open(temp.path()).expect("opened");
        let us = std::process::id();
        let mut maker = maker(temp.path(), us);
        maker.host = Some("no-such-host".to_owned());
        assert_eq!(look(&maker), Life::Runs(us));
        maker.start.realtime_ns += 10 * SAME_BOOT_NS;
        assert_eq!(look(&maker), Life::Elsewhere("no-such-host".to_owned()));
    }

    #[test]
    fn an_account_that_is_renewed_tells_of_a_process_that_cannot_be_seen() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let account = temp.path().join("account");
        std::fs::write(&account, "1").expect("written");
        let renewed = std::thread::scope(|scope| {
            let looks = scope.spawn(|| renews(&account));
            let until = Moment::now() + RENEWAL;
            while !looks.is_finished() && !until.has_come() {
                std::fs::remove_file(&account).expect("removed");
                std::fs::write(&account, "2").expect("written");
            }
            looks.join().expect("looked")
        });
        assert!(renewed);
    }
}
