//! What LD_PRELOAD names, as the loader takes it (ld.so(8)).

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub use msprof_agent_core::names::PRELOAD;
/// Has the loader say what it would load, and run nothing.
const TRACE: &str = "LD_TRACE_LOADED_OBJECTS";

/// How long the loader may take, and how often it is looked at.
const LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

/// The files that a list names by path. A bare name is searched for by the loader, and is ours where ours is loaded.
pub fn files(list: &OsStr) -> Vec<PathBuf> {
    let entries = list.as_bytes().split(|b| matches!(b, b' ' | b':'));
    let named = entries.filter(|entry| entry.contains(&b'/'));
    named.filter_map(file).collect()
}

/// The file that an entry leads to; `None` where that is not known.
fn file(entry: &[u8]) -> Option<PathBuf> {
    if !entry.contains(&b'$') {
        return Some(PathBuf::from(OsStr::from_bytes(entry)));
    }
    // The program's own directory is another one in each program that it starts.
    let holds = |token: &str| entry.windows(token.len()).any(|w| w == token.as_bytes());
    if holds("$ORIGIN") || holds("${ORIGIN}") {
        return None;
    }
    replaced(entry)
}

/// An entry with a path in the place of `$LIB` and `$PLATFORM`. What they are only the loader knows: ours is asked, and
/// nothing of the library runs.
fn replaced(entry: &[u8]) -> Option<PathBuf> {
    let us = Path::new("/proc/self/exe");
    let mut loader = Command::new(us)
        .env_clear()
        .env(TRACE, "1")
        .env(PRELOAD, OsStr::from_bytes(entry))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // It says a few lines, which a pipe takes whether they are read or not.
    let begin = Instant::now();
    while loader.try_wait().ok()?.is_none() {
        if begin.elapsed() > LIMIT {
            // The path may lead to a network that does not answer.
            let _ = loader.kill();
            return None;
        }
        thread::sleep(PAUSE);
    }
    let mut said = Vec::new();
    loader.stdout.take()?.read_to_end(&mut said).ok()?;
    let mut lines = said.split(|b| *b == b'\n');
    lines.find_map(|line| path_of(line, entry))
}

/// The path in a line of the loader's that is about an entry: a tab, the entry, an arrow, the path, an address.
fn path_of(line: &[u8], entry: &[u8]) -> Option<PathBuf> {
    let rest = line.strip_prefix(b"\t")?.strip_prefix(entry)?;
    let rest = rest.strip_prefix(b" => ")?;
    let end = rest.windows(2).rposition(|w| w == b" (")?;
    Some(PathBuf::from(OsStr::from_bytes(&rest[..end])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_a_list_of_either_separator_and_names_are_not() {
        let found = files(OsStr::new("/a.so:name.so b/c.so::/d.so "));
        assert_eq!(found, ["/a.so", "b/c.so", "/d.so"].map(PathBuf::from));
        assert_eq!(files(OsStr::new("")), [] as [PathBuf; 0]);
    }

    #[test]
    fn the_path_is_read_from_the_loaders_line() {
        let entry = b"/a/$LIB/b.so";
        let line = b"\t/a/$LIB/b.so => /a/lib (x)/b.so (0x00007f8f0b875000)";
        assert_eq!(path_of(line, entry), Some("/a/lib (x)/b.so".into()));
        for other in [
            &b"\t/a/$LIB/b.so (0x00007f8f0b875000)"[..],
            b"\t/a/$LIB/b.so.1 => /a/lib/b.so.1 (0x1)",
            b"/a/$LIB/b.so => /a/lib/b.so (0x1)",
            b"",
        ] {
            assert_eq!(path_of(other, entry), None);
        }
    }

    #[test]
    fn an_entry_that_leads_nowhere_or_to_each_programs_own_directory_is_no_file() {
        let list = "/nonexistent/$LIB/a.so:$ORIGIN/a.so:${ORIGIN}/a.so:/$LIB/$ORIGIN/a.so";
        assert_eq!(files(OsStr::new(list)), [] as [PathBuf; 0]);
    }
}
