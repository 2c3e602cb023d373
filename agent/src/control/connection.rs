//! One client's connection: bytes in and out, never blocking.

#![forbid(unsafe_code)]

use super::extension::Holder;
use crate::capture::Handout;
use crate::clock::Moment;
use crate::process::fd::{ParentOnly, keep_above_standard};
use crate::process::peer::{Peer, peer};
use crate::process::user_map::is_from_outside;
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

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
    /// Descriptors that go with the byte of `output` at this place.
    attached: Option<(usize, Arc<Handout>)>,
    closing: Option<Moment>,
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
    let Ok(peer) = peer(socket.as_fd()) else {
        return Accepted::Nobody;
    };
    let Peer { uid, pid } = peer;
    if !may_command(peer) {
        tracing::warn!("a client of uid {uid} is turned away");
        return Accepted::Nobody;
    }
    Accepted::Client(Connection {
        socket: ParentOnly::new(socket),
        peer: Holder { uid, pid },
        input: Vec::new(),
        output: Vec::new(),
        attached: None,
        closing: None,
    })
}

/// Whether a client is the same user, or root: ours, or one around our user namespace, who has no number in it. The mode
/// of the socket's file has let nobody else of those outside connect.
fn may_command(peer: Peer) -> bool {
    // The user as of now: the program may have changed it since load.
    peer.uid == crate::process::effective_uid() || peer.uid == 0 || is_from_outside(peer)
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

    /// The next message takes these descriptors along.
    pub fn attach(&mut self, handout: Arc<Handout>) {
        self.attached = Some((self.output.len(), handout));
    }

    /// Sends a message whole, in one call where the socket has room for it.
    pub fn send(&mut self, bytes: &[u8]) -> PeerState {
        self.output.extend_from_slice(bytes);
        self.flush()
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> PeerState {
        while !self.output.is_empty() {
            match self.send_some() {
                Ok(count) => {
                    self.output.drain(..count);
                    self.attached = match self.attached.take() {
                        Some((ahead, handout)) if ahead > 0 => Some((ahead - count, handout)),
                        _ => None,
                    };
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.output.len() <= OUTPUT_MAX => return PeerState::Open,
                // The message says more than the descriptors do.
                Err(_) if self.attached.take().is_some() => {}
                Err(_) => return PeerState::Gone,
            }
        }
        if self.closing.is_some() {
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
        }
        PeerState::Open
    }

    fn send_some(&self) -> Result<usize, Errno> {
        let flags = SendFlags::NOSIGNAL;
        match &self.attached {
            Some((0, handout)) => match handout.descriptors() {
                Some(both) => {
                    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
                    let mut ancillary = SendAncillaryBuffer::new(&mut space);
                    ancillary.push(SendAncillaryMessage::ScmRights(&both));
                    let bytes = [IoSlice::new(&self.output)];
                    rustix::net::sendmsg(&self.socket, &bytes, &mut ancillary, flags)
                }
                None => rustix::net::send(&self.socket, &self.output, flags),
            },
            Some((ahead, _)) => rustix::net::send(&self.socket, &self.output[..*ahead], flags),
            None => rustix::net::send(&self.socket, &self.output, flags),
        }
    }

    /// Nothing more is said: the client is given some time to close.
    pub fn begin_closing(&mut self, now: Moment) {
        self.closing = Some(now);
        self.input = Vec::new();
        let _ = self.flush();
    }

    /// When the last word was said.
    pub fn closing_since(&self) -> Option<Moment> {
        self.closing
    }

    /// When a closing connection is dropped.
    pub fn closing_until(&self) -> Option<Moment> {
        self.closing.map(|since| since + LINGER)
    }
}
