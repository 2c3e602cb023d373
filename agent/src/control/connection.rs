//! One client's connection: bytes in and out, never blocking.

#![forbid(unsafe_code)]

use super::extension::Holder;
use crate::process::fd::{ParentOnly, keep_above_standard};
use crate::process::peer::{Peer, peer};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Input that may wait to be understood; requests are small, so more is a flood.
const INPUT_MAX: usize = 64 * 1024;
/// Reads from one client before the others have their turn.
const READS_PER_TURN: u32 = 16;
/// Output that a client may leave unread before it counts as gone.
const OUTPUT_MAX: usize = 8 << 20;
/// After the last answer a client has this long to close; closing first can kill the stock client
/// (it does not ignore SIGPIPE).
const LINGER: Duration = Duration::from_secs(5);

/// A connected client.
#[derive(Debug)]
pub struct Connection {
    socket: ParentOnly,
    /// Who is at the other end.
    pub peer: Holder,
    input: Vec<u8>,
    output: Vec<u8>,
    closing: Option<Instant>,
}

/// What became of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// Connected.
    Open,
    /// Closed, or broken.
    Gone,
}

/// What came of taking a client from the backlog.
#[derive(Debug)]
pub enum Accepted {
    /// A client.
    Client(Connection),
    /// None waits, or it may not talk to us (another user).
    Nobody,
    /// The system has no descriptor or memory for it now: the client waits on.
    Later,
}

/// Takes a client from the backlog.
pub fn accept(listener: BorrowedFd<'_>) -> Accepted {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = loop {
        match rustix::net::accept_with(listener, flags) {
            Ok(socket) => break socket,
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                return Accepted::Later;
            }
            Err(_) => return Accepted::Nobody,
        }
    };
    let Ok(socket) = keep_above_standard(socket) else {
        return Accepted::Nobody;
    };
    let Ok(Peer { uid, pid }) = peer(socket.as_fd()) else {
        return Accepted::Nobody;
    };
    // The user as of now: the program may have changed it since load.
    if uid != crate::process::effective_uid() && uid != 0 {
        tracing::warn!("a client of uid {uid} is turned away");
        return Accepted::Nobody;
    }
    Accepted::Client(Connection {
        socket: ParentOnly::new(socket),
        peer: Holder { uid, pid },
        input: Vec::new(),
        output: Vec::new(),
        closing: None,
    })
}

impl Connection {
    /// For poll.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether the program has left the descriptor alone.
    pub fn is_intact(&self) -> bool {
        self.socket.is_ours()
    }

    /// Whether output waits for room.
    pub fn wants_to_write(&self) -> bool {
        !self.output.is_empty()
    }

    /// What was received and not taken yet.
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// Takes the first `count` bytes off the input.
    pub fn take(&mut self, count: usize) {
        self.input.drain(..count);
    }

    /// Reads what is there. While closing, what comes is thrown away.
    pub fn receive(&mut self) -> PeerState {
        let mut buffer = [0u8; 8192];
        // Bounded: a client that floods must not keep the thread from the others.
        for _ in 0..READS_PER_TURN {
            if self.input.len() > INPUT_MAX {
                return PeerState::Gone;
            }
            match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return PeerState::Gone,
                Ok((count, _)) => {
                    if self.closing.is_none() {
                        self.input.extend_from_slice(&buffer[..count]);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return PeerState::Open,
                Err(_) => return PeerState::Gone,
            }
        }
        PeerState::Open
    }

    /// Sends a message whole, in one call where the socket has room for it.
    pub fn send(&mut self, bytes: &[u8]) -> PeerState {
        self.output.extend_from_slice(bytes);
        self.flush()
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> PeerState {
        while !self.output.is_empty() {
            match rustix::net::send(&self.socket, &self.output, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.output.drain(..count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.output.len() <= OUTPUT_MAX => return PeerState::Open,
                Err(_) => return PeerState::Gone,
            }
        }
        if self.closing.is_some() {
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
        }
        PeerState::Open
    }

    /// Nothing more is said: the client is given some time to close.
    pub fn begin_closing(&mut self, now: Instant) {
        self.closing = Some(now + LINGER);
        self.input = Vec::new();
        let _ = self.flush();
    }

    /// When a closing connection is dropped.
    pub fn closing_until(&self) -> Option<Instant> {
        self.closing
    }
}
