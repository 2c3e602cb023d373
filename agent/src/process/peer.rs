//! Who is at the other end of a unix socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The process that connected, or that listens, as of that moment (SO_PEERCRED).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Effective user id.
    pub uid: u32,
    /// Process id; 0 when it is in a pid namespace that cannot be seen from here.
    pub pid: u32,
}

/// Asks the kernel. Not through rustix: its result cannot hold a pid of 0.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel writes at most `len` bytes into a struct of that size.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer {
        uid: found.uid,
        pid: u32::try_from(found.pid).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn both_ends_of_a_pair_are_this_process() {
        let (one, _other) = UnixStream::pair().expect("pair");
        let peer = peer(one.as_fd()).expect("connected");
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.uid, crate::process::effective_uid());
    }
}
