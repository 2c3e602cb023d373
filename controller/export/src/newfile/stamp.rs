//! The time that is part of the names of exported files, one export's alone.

use super::owner::Owner;
use super::{Directory, HIDDEN, NewFile, PARTIAL};
use msprof_agent_core::profdir::local_stamp;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds that are tried where there are files of the same second already.
const TRIED: u64 = 100;
/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;
/// Digits of a stamp.
const DIGITS: usize = 14;

/// The local time, then that of the seconds that come, for those who find files of the first ones. There is always one.
pub fn stamps() -> impl Iterator<Item = String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    (now..now + TRIED).map(|second| local_stamp(second * NANOS))
}

pub(super) fn is_stamp(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A stamp that no other export uses for files in this directory while it lives, and that no file there has.
#[derive(Debug)]
pub struct Stamp {
    text: String,
    /// Says as long as it lives that it is taken. `None` where no file can be made: the first one that is exported says why.
    _claim: Option<Claim>,
}

/// A hidden file with the stamp for a name, which says whose it is.
#[derive(Debug)]
struct Claim {
    dir: Directory,
    name: String,
    /// Holds the lock that tells a sweep that we live.
    _file: NewFile,
}

impl Stamp {
    /// Claims one, of the present second where that is free.
    pub fn claim(dir: &Directory) -> Stamp {
        for text in stamps() {
            if is_used(dir, &text) {
                continue;
            }
            match Claim::make(dir, &text) {
                Ok(claim) => {
                    // Who had it a moment ago has made files since.
                    if !is_used(dir, &text) {
                        let _claim = Some(claim);
                        return Stamp { text, _claim };
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => return Stamp { text, _claim: None },
            }
        }
        // With none that is free, each file that is there already is an error of its own.
        Stamp {
            text: stamps().next().unwrap_or_default(),
            _claim: None,
        }
    }

    /// Its 14 digits.
    pub fn text(&self) -> &str {
        &self.text
    }

    #[cfg(test)]
    pub(super) fn is_claimed(&self) -> bool {
        self._claim.is_some()
    }
}

/// Whether a file of an export has the stamp.
fn is_used(dir: &Directory, stamp: &str) -> bool {
    let names = dir.names();
    names
        .iter()
        .any(|name| name.contains(stamp) && !name.starts_with(HIDDEN))
}

impl Claim {
    fn make(dir: &Directory, stamp: &str) -> io::Result<Claim> {
        let name = format!("{HIDDEN}{stamp}{PARTIAL}");
        if dir.has(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut file = dir.begin()?;
        file.write_all(Owner::this().to_string().as_bytes())?;
        file.name_it(&name)?;
        Ok(Claim {
            dir: dir.clone(),
            name,
            _file: file,
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.dir.remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_stamps_for_a_hundred_exports_in_a_second() {
        let all: Vec<String> = stamps().collect();
        assert_eq!(all.len(), 100);
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
        assert!(all.iter().all(|stamp| is_stamp(stamp)));
    }

    #[test]
    fn a_stamp_is_one_exports_alone_until_it_ends() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = Directory::open(home.path()).expect("opened");
        let taken: Vec<Stamp> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| Stamp::claim(&dir)))
                .collect();
            let stamps = threads.into_iter().map(|thread| thread.join());
            stamps.map(|stamp| stamp.expect("a stamp")).collect()
        });
        assert!(taken.iter().all(Stamp::is_claimed));
        let mut texts: Vec<&str> = taken.iter().map(Stamp::text).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 16, "{taken:?}");
        // What lives is not swept.
        let again = Directory::open(home.path()).expect("opened");
        assert_eq!(
            again
                .names()
                .iter()
                .filter(|name| name.ends_with(PARTIAL))
                .count(),
            16
        );
        drop(taken);
        assert_eq!(std::fs::read_dir(home.path()).expect("read").count(), 0);
    }

    #[test]
    fn a_stamp_that_files_have_is_not_taken() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = Directory::open(home.path()).expect("opened");
        let first = Stamp::claim(&dir);
        let name = format!("aicpu_{}.csv", first.text());
        std::fs::write(home.path().join(name), "").expect("written");
        let first = first.text().to_owned();
        assert_ne!(Stamp::claim(&dir).text(), first);
    }
}
