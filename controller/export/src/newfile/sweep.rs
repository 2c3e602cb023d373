//! Removes what exports that were killed have left in a directory, and nothing else.

use super::owner::Owner;
use super::stamp::is_stamp;
use super::{Directory, HIDDEN, PARTIAL};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;

/// Bytes of a claim that are read: more than a process's three numbers have.
const CLAIM_MAX: u64 = 64;

/// What the name of a hidden file says of whose it is.
#[derive(Debug, PartialEq, Eq)]
enum Hidden {
    /// A file that grows: the name says it.
    Growing(Owner),
    /// The claim of a stamp: the file says it.
    Claim,
}

fn hidden(name: &str) -> Option<Hidden> {
    let inner = name.strip_prefix(HIDDEN)?.strip_suffix(PARTIAL)?;
    if is_stamp(inner) {
        return Some(Hidden::Claim);
    }
    let (owner, number) = inner.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Owner::parse(owner).map(Hidden::Growing))?
}

/// Removes the hidden files of processes that have ended. `here` is this process.
pub(super) fn sweep(dir: &Directory, here: &Owner) {
    for name in dir.names() {
        let Some(hidden) = hidden(&name) else {
            continue;
        };
        if let Hidden::Growing(owner) = &hidden
            && !owner.is_gone(here)
        {
            continue;
        }
        let Some(mut file) = open_left(dir, &name) else {
            continue;
        };
        let is_left = match hidden {
            Hidden::Growing(_) => true,
            Hidden::Claim => claimant(&mut file).is_some_and(|owner| owner.is_gone(here)),
        };
        if is_left {
            dir.remove(&name);
        }
    }
}

/// Opens a hidden file that nobody has locked; `None` where it is no file, may not be read, or is held by a process that
/// cannot be seen from here.
fn open_left(dir: &Directory, name: &str) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir.fd(), name, flags, Mode::empty()).ok()?;
    let file = File::from(file);
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => None,
        // Also where the file system knows no locks.
        _ => Some(file),
    }
}

/// Whose claim it is.
fn claimant(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.take(CLAIM_MAX).read_to_string(&mut text).ok()?;
    Owner::parse(text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_our_own_making_are_taken_for_hidden_files() {
        let owner = Owner::this();
        let growing = format!(".msprof_{owner}_0.partial");
        assert_eq!(hidden(&growing), Some(Hidden::Growing(owner.clone())));
        assert_eq!(
            hidden(".msprof_20260605155111.partial"),
            Some(Hidden::Claim)
        );
        for other in [
            format!("msprof_{owner}_0.partial"),
            format!(".msprof_{owner}_0.partial.bak"),
            format!(".msprof_{owner}_.partial"),
            format!(".msprof_{owner}_x.partial"),
            format!(".msprof_{owner}.partial"),
            ".msprof_2026060515511.partial".to_owned(),
            ".msprof_.partial".to_owned(),
            "msprof_20260605155111.json.partial".to_owned(),
        ] {
            assert_eq!(hidden(&other), None, "{other}");
        }
    }
}
