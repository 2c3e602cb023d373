//! Whether a socket file has a process behind it, found out without disturbing that process.
//!
//! A stock server takes a connection that is closed without a message for the end of its control
//! thread, so nobody may connect just to look. Connecting a datagram socket instead is refused by
//! the kernel in both cases, with different errors, and the server never hears of it.

#![forbid(unsafe_code)]

use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing.
    Absent,
    /// A file that is no socket; never touched.
    Other,
    /// A socket that some process has bound.
    Alive,
    /// A socket file whose process is gone; safe to remove for its owner.
    Dead,
    /// It could not be found out: the path may not be searched, or other machines share the file system.
    Unknown,
}

/// Looks at a path; never blocks, never wakes up the process behind it. Symlinks are not followed.
pub fn probe(path: &Path) -> Presence {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => {}
        Ok(_) => return Presence::Other,
        Err(error) if error.kind() == ErrorKind::NotFound => return Presence::Absent,
        Err(_) => return Presence::Unknown,
    }
    let Ok(probe) = UnixDatagram::unbound() else {
        return Presence::Unknown;
    };
    match probe.connect(path) {
        // Somebody's datagram socket.
        Ok(()) => Presence::Alive,
        Err(error) => match error.raw_os_error() {
            Some(libc::EPROTOTYPE) => Presence::Alive,
            // On a file system that other machines share, the process may live on one of them.
            Some(libc::ECONNREFUSED) if is_shared(path) => Presence::Unknown,
            Some(libc::ECONNREFUSED) => Presence::Dead,
            Some(libc::ENOENT) => Presence::Absent,
            _ => Presence::Unknown,
        },
    }
}

/// File systems of which other machines can have the same files.
const SHARED: [u64; 10] = [
    0x6969,      // NFS
    0xFF53_4D42, // CIFS
    0xFE53_4D42, // SMB2
    0x517B,      // SMB
    0x0BD0_0BD0, // Lustre
    0x4750_4653, // GPFS
    0x6573_5546, // FUSE, virtiofs among them
    0x0102_1997, // 9p
    0x00C3_6400, // Ceph
    0x5346_414F, // AFS
];

/// Whether a file lies on one of [`SHARED`], or that cannot be found out.
pub fn is_shared(path: &Path) -> bool {
    let dir = path.parent().unwrap_or(path);
    match rustix::fs::statfs(dir) {
        Ok(found) => SHARED.contains(&(found.f_type as u64 & 0xFFFF_FFFF)),
        Err(_) => true,
    }
}

/// What is added, with a process id behind it, to the name of a file that is taken aside.
pub const ASIDE: &str = ".dead";

/// The name that a file had before it was taken aside; more than once where one that swept was killed at it, or two did.
pub fn before_aside(name: &str) -> &str {
    match name.rsplit_once(ASIDE) {
        Some((swept, pid)) if pid.parse::<u32>().is_ok() => before_aside(swept),
        _ => name,
    }
}

/// Removes a dead socket file of user `uid`; says whether it did.
///
/// The file is taken aside and looked at again first: between question and removal somebody else may
/// have put a living socket there, which then goes back to its place.
pub fn sweep(path: &Path, uid: u32) -> bool {
    let owned = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == uid);
    if !owned || probe(path) != Presence::Dead {
        return false;
    }
    // Not one name behind another: it would grow beyond what a socket's path may have.
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let name = format!("{}{ASIDE}{}", before_aside(name), std::process::id());
    let aside = path.with_file_name(name);
    if aside == path {
        // Left by a process that had our number.
        let _ = std::fs::remove_file(path);
        return true;
    }
    if std::fs::rename(path, &aside).is_err() {
        return false;
    }
    let dead = probe(&aside) == Presence::Dead;
    if !dead {
        // Fails when yet another one is there already; then the link's owner has lost the race.
        let _ = std::fs::hard_link(&aside, path);
    }
    let _ = std::fs::remove_file(&aside);
    dead
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_live_socket_is_told_from_a_dead_one_without_a_connection() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("s");
        assert_eq!(probe(&path), Presence::Absent);
        let listener = UnixListener::bind(&path).expect("bound");
        listener.set_nonblocking(true).expect("non-blocking");
        let uid = std::fs::metadata(dir.path()).expect("exists").uid();
        assert_eq!(probe(&path), Presence::Alive);
        assert!(!sweep(&path, uid));
        let waiting = listener.accept().expect_err("nobody connected");
        assert_eq!(waiting.kind(), ErrorKind::WouldBlock);
        drop(listener);
        assert_eq!(probe(&path), Presence::Dead);
        assert!(!sweep(&path, uid + 1), "of another user");
        assert!(sweep(&path, uid));
        assert_eq!(probe(&path), Presence::Absent);
    }

    #[test]
    fn other_files_are_never_taken_for_sockets() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("f");
        std::fs::write(&path, "x").expect("written");
        assert_eq!(probe(&path), Presence::Other);
        let uid = std::fs::metadata(&path).expect("exists").uid();
        assert!(!sweep(&path, uid) && path.exists());
    }
}
