//! A connection to a control socket, with a deadline on everything.
//!
//! Messages and frames may arrive in pieces: bytes are gathered in a bounded buffer and taken off
//! it whole.

use msprof_agent_core::control::extension::{self, FrameError};
use msprof_agent_core::control::wire::{MESSAGE_SIZE, Message};
use msprof_agent_core::process::{fd, peer};
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes that are held unread: the largest frame and a piece of the next.
const BUFFER_MAX: usize = extension::MAX_BODY + extension::FRAME_HEAD + READ_SIZE;
const READ_SIZE: usize = 16 * 1024;
/// Most descriptors that are held: those of one reply.
const DESCRIPTORS_MAX: usize = 2;
/// How often a connect to a socket with a full queue is tried again.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Who serves a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id; `None` when the process lies in a pid namespace that cannot be seen from here.
    pub pid: Option<u32>,
    /// User id.
    pub uid: u32,
}

/// What a look at the connection gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// More bytes are in the buffer.
    Bytes,
    /// The other side has closed; what came before is in the buffer.
    End,
    /// Nothing by the deadline.
    Nothing,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    fd: OwnedFd,
    unread: Vec<u8>,
    /// Descriptors that came with the bytes, oldest first.
    descriptors: Vec<OwnedFd>,
}

impl Connection {
    /// Connects; a full queue at the other side is waited for until the deadline.
    pub fn open(path: &Path, deadline: Instant) -> io::Result<Connection> {
        let fd = net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        let address = SocketAddrUnix::new(path)?;
        loop {
            match net::connect(&fd, &address) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                // EAGAIN: as many clients as the queue holds are waiting already.
                Err(Errno::AGAIN) if Instant::now() < deadline => {
                    std::thread::sleep(CONNECT_PAUSE);
                }
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Connection {
            fd,
            unread: Vec::new(),
            descriptors: Vec::new(),
        })
    }

    /// Who was listening on the socket.
    pub fn peer(&self) -> io::Result<Peer> {
        let peer = peer::peer(self.fd.as_fd())?;
        Ok(Peer {
            pid: Some(peer.pid).filter(|pid| *pid > 0),
            uid: peer.uid,
        })
    }

    /// Sends all of `bytes`; never raises SIGPIPE.
    pub fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            match net::send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !self.wait(PollFlags::OUT, deadline)? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes in what has arrived, or waits for something until the deadline.
    pub fn receive(&mut self, deadline: Instant) -> io::Result<Arrived> {
        let mut piece = [0; READ_SIZE];
        loop {
            if self.unread.len() > BUFFER_MAX - READ_SIZE {
                let text = "the other side sends more than can be read";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            match self.receive_some(&mut piece) {
                Ok(0) | Err(Errno::CONNRESET) => return Ok(Arrived::End),
                Ok(count) => {
                    self.unread.extend_from_slice(&piece[..count]);
                    return Ok(Arrived::Bytes);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !self.wait(PollFlags::IN, deadline)? {
                        return Ok(Arrived::Nothing);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive_some(&mut self, piece: &mut [u8]) -> Result<usize, Errno> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [IoSliceMut::new(piece)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = net::recvmsg(&self.fd, &mut bytes, &mut ancillary, flags)?;
        for message in ancillary.drain() {
            let RecvAncillaryMessage::ScmRights(came) = message else {
                continue;
            };
            // Of a side that sends ever more the rest is closed at once.
            let room = DESCRIPTORS_MAX - self.descriptors.len();
            let kept = came.take(room).map(fd::keep_above_standard);
            self.descriptors.extend(kept.filter_map(Result::ok));
        }
        Ok(received.bytes)
    }

    /// Takes what descriptors came since the last call.
    pub fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }

    /// Takes one 8-byte message off the buffer.
    pub fn take_message(&mut self) -> Option<Message> {
        let message = Message::decode(self.unread.first_chunk::<MESSAGE_SIZE>()?);
        self.unread.drain(..MESSAGE_SIZE);
        Some(message)
    }

    /// Takes one frame off the buffer: its request id and body.
    pub fn take_frame(&mut self) -> Result<Option<(u32, Vec<u8>)>, FrameError> {
        let Some(frame) = extension::decode_frame(&self.unread)? else {
            return Ok(None);
        };
        let taken = (frame.id, frame.body.to_vec());
        let size = frame.size;
        self.unread.drain(..size);
        Ok(Some(taken))
    }

    /// Waits for an event; false at the deadline.
    fn wait(&self, event: PollFlags, deadline: Instant) -> io::Result<bool> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut fds = [PollFd::new(&self.fd, event)];
            match poll(&mut fds, Some(&left)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
