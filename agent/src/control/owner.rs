//! The process's end of the control thread: brings it up, ends it, removes its socket.

#![forbid(unsafe_code)]

use super::binding::Binding;
use super::places::PlaceInputs;
use super::server::Server;
use crate::capture::{self, Captures};
use crate::clock::Moment;
use crate::components::Components;
use crate::names;
use crate::process;
use crate::process::environment::Environment;
use crate::process::fd::{ParentOnly, keep_above_standard};
use crate::waiting;
use crossbeam_channel::Receiver;
use parking_lot::Mutex;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an exit waits for a file that is just being made: on a network file system that can take time.
const FILE_LIMIT: Duration = Duration::from_millis(500);
/// How long a shutdown waits for the thread to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);

/// What the thread and its owner share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Where the socket may lie; the passwd home is still missing.
    pub(super) places: PlaceInputs,
    /// Key that a launcher wants, if any.
    pub(super) key_pid: Option<u32>,
    /// Commands per connection (0: no limit) and idle time of a session.
    pub(super) limits: (u32, Duration),
    /// Whether a start requires an open device.
    pub(super) need_device: bool,
    /// Where PROF_XXX goes when the client does not say.
    pub(super) default_dir: PathBuf,
    /// Whether it may go where other users could put something in its place.
    pub(super) allow_shared_dir: bool,
    /// Start, stop, status.
    pub(super) captures: Arc<Captures>,
    /// Open devices.
    pub(super) components: Arc<Components>,
    /// Path of the bound socket and the identity by which it is removed at exit.
    pub(super) bound: Mutex<Option<Arc<Binding>>>,
    /// The process exits: no new socket file.
    pub(super) exiting: AtomicBool,
    /// Held while files are made or swept: an exit in the middle of that would leave some behind.
    pub(super) files: Mutex<()>,
    /// The thread, once it was started.
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    wake: Arc<Waker>,
    /// Each thread has its own: one that is late to end must not be called back.
    shut: Arc<AtomicBool>,
    ended: Receiver<()>,
}

/// The owner's end of the control thread.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
}

impl Control {
    /// Nothing is bound yet.
    pub fn new(
        environment: &Environment,
        captures: Arc<Captures>,
        components: Arc<Components>,
    ) -> Control {
        let places = PlaceInputs {
            override_dir: environment.socket_dir.clone(),
            // Asked for by the control thread: it may wait for a directory service.
            passwd_home: None,
            home: environment.home.clone(),
            xdg_runtime_dir: environment.xdg_runtime_dir.clone(),
            uid: process::effective_uid(),
        };
        Control {
            shared: Arc::new(Shared {
                places,
                key_pid: environment.key_pid,
                limits: (environment.max_commands, environment.idle_timeout),
                need_device: environment.need_device,
                default_dir: capture::default_dir(environment.work_path.as_deref()),
                allow_shared_dir: environment.allow_shared_dir,
                captures,
                components,
                bound: Mutex::default(),
                exiting: AtomicBool::new(false),
                files: Mutex::default(),
                running: Mutex::default(),
            }),
        }
    }

    /// Makes sure that the thread runs; returns at once, the socket comes up behind.
    pub fn ensure(&self) {
        let mut running = self.shared.running.lock();
        let alive = running.as_ref().is_some_and(|thread| {
            thread.ended.try_recv() == Err(crossbeam_channel::TryRecvError::Empty)
        });
        if alive || self.shared.exiting.load(Ordering::Acquire) {
            return;
        }
        match start_thread(&self.shared) {
            Ok(thread) => *running = Some(thread),
            Err(error) => tracing::error!("no control socket: {error}"),
        }
    }

    /// Ends the thread and removes the socket.
    pub fn shut_down(&self) {
        let thread = self.shared.running.lock().take();
        if let Some(thread) = thread {
            thread.shut.store(true, Ordering::Release);
            thread.wake.wake();
            // Disconnected when the thread has ended.
            let _ = waiting::receive_by(&thread.ended, Moment::now() + SHUTDOWN_LIMIT);
        }
    }

    /// The process exits: the file goes, and the thread makes no new one.
    pub fn remove_socket(&self) {
        self.shared.exiting.store(true, Ordering::Release);
        let _files = waiting::until(Moment::now() + FILE_LIMIT, || self.shared.files.try_lock());
        if let Some(binding) = self.shared.bound.lock().take() {
            binding.remove();
        }
    }
}

fn start_thread(shared: &Arc<Shared>) -> std::io::Result<Running> {
    let wake = Arc::new(Waker::new()?);
    let (alive, ended) = crossbeam_channel::bounded::<()>(0);
    let shut = Arc::new(AtomicBool::new(false));
    let mut server = Server::new(shared.clone(), wake.clone(), shut.clone());
    let (theirs, mine) = (shared.clone(), shut.clone());
    process::spawn(names::CONTROL_THREAD, move || {
        if !server.serve() {
            replace(&theirs, &mine);
        }
        drop(alive);
        server.linger();
    })?;
    Ok(Running { wake, shut, ended })
}

/// Starts another thread in the place of the one with this `shut`, which has lost its descriptors, unless it
/// has been told to end meanwhile.
fn replace(shared: &Arc<Shared>, shut: &Arc<AtomicBool>) {
    let mut running = shared.running.lock();
    let is_current = running
        .as_ref()
        .is_some_and(|thread| Arc::ptr_eq(&thread.shut, shut));
    if !is_current || shared.exiting.load(Ordering::Acquire) {
        return;
    }
    match start_thread(shared) {
        Ok(thread) => *running = Some(thread),
        Err(error) => tracing::error!("no control socket: {error}"),
    }
}

/// Ends the control thread's sleep. A pair of sockets and no event counter: all event counters have one
/// inode, and could not be told from those of a program that has closed ours.
#[derive(Debug)]
pub(super) struct Waker {
    sender: ParentOnly,
    receiver: ParentOnly,
}

impl Waker {
    fn new() -> std::io::Result<Waker> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok(Waker {
            sender: ParentOnly::new(keep_above_standard(one)?),
            receiver: ParentOnly::new(keep_above_standard(other)?),
        })
    }

    /// Makes the control thread look around.
    pub(super) fn wake(&self) {
        if self.sender.is_ours() {
            // Fails only when so much is unread that the thread is woken anyway.
            let _ = rustix::net::send(&self.sender, &[1], SendFlags::NOSIGNAL);
        }
    }

    /// Readable when somebody wants the thread to look around.
    pub(super) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Whether the program has left the descriptors alone.
    pub(super) fn is_intact(&self) -> bool {
        self.receiver.is_ours()
    }

    /// Takes what was sent, so that the thread can sleep again.
    pub(super) fn drain(&self) {
        let mut buffer = [0u8; 64];
        let mut receive = || rustix::net::recv(&self.receiver, &mut buffer[..], RecvFlags::empty());
        while matches!(receive(), Ok((count, _)) if count > 0) {}
    }
}
