//! The thread that serves the control socket, `msprof-ctl`.
//!
//! It sleeps in poll for the life of the process; no timer wakes it while nobody is connected. Who is
//! connected is [`Clients`]' concern; this is the socket, its file and the sleep. Beside poll, the thread
//! looks at the file, and once for each binding asks for the home directory and looks for dead sockets; a
//! network file system may delay that.

#![forbid(unsafe_code)]

use super::binding::{self, Binding};
use super::clients::Clients;
use super::connection::{self, Accepted};
use super::owner::{Shared, Waker};
use crate::clock::Moment;
use crate::process::{self, user};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// When the system had no descriptor left, the next client is tried after this.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Without inotify, or when the file could not be made again, it is looked at this often.
const FILE_CHECK: Duration = Duration::from_secs(2);

/// What the thread works with.
pub(super) struct Server {
    shared: Arc<Shared>,
    wake: Arc<Waker>,
    clients: Clients,
    /// When a file that was removed and could not be made again is tried next.
    rebind_at: Option<Moment>,
    /// Until then nobody is accepted: the system had no descriptor left.
    accept_at: Option<Moment>,
    /// The thread is to end.
    shut: Arc<AtomicBool>,
}

impl Server {
    /// A server that has bound nothing yet; `wake` ends its sleep.
    pub(super) fn new(shared: Arc<Shared>, wake: Arc<Waker>, shut: Arc<AtomicBool>) -> Server {
        Server {
            clients: Clients::new(shared.clone(), wake.clone()),
            shared,
            wake,
            rebind_at: None,
            accept_at: None,
            shut,
        }
    }

    /// Serves until it is told to end; false when the program has closed the descriptors with which it did:
    /// another server is to take its place.
    pub(super) fn serve(&mut self) -> bool {
        // Whatever ends this thread: nobody is to wait at a socket that is not served.
        let shared = self.shared.clone();
        let bound = RemovedAtTheEnd(&shared);
        let Some(mut binding) = self.bind() else {
            return true;
        };
        let mut intact = true;
        while !self.is_shut() {
            self.turn(&binding);
            if !self.is_intact(&binding) {
                // Neither the waker nor the listener can be used.
                tracing::warn!(
                    "the program has closed the agent's descriptors: a new control socket"
                );
                intact = false;
                break;
            }
            let now = Moment::now();
            if self.is_exiting() || now < self.rebind_at.unwrap_or(now) {
                continue;
            }
            if binding.in_place() {
                self.rebind_at = None;
                continue;
            }
            // Somebody removed the file. Clients that are connected stay so, whatever comes of it.
            match self.bind() {
                Some(fresh) => {
                    self.rebind_at = None;
                    binding = fresh;
                }
                None => self.rebind_at = Some(now + FILE_CHECK),
            }
        }
        drop(bound);
        self.clients.say_farewell();
        intact
    }

    /// Gives the clients that were told of the end some time to close.
    pub(super) fn linger(&mut self) {
        self.clients.linger();
    }

    fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Acquire)
    }

    fn is_exiting(&self) -> bool {
        self.shared.exiting.load(Ordering::Acquire)
    }

    fn bind(&self) -> Option<Arc<Binding>> {
        let mut places = self.shared.places.clone();
        places.passwd_home = user::passwd_home(places.uid);
        let _files = self.shared.files.lock();
        if self.is_exiting() {
            return None;
        }
        match binding::bind(&places, self.shared.key_pid, process::current_pid()) {
            Ok(binding) => {
                let binding = Arc::new(binding);
                let mut bound = self.shared.bound.lock();
                // The exit may have been tired of waiting.
                if self.is_exiting() {
                    binding.remove();
                    return None;
                }
                *bound = Some(binding.clone());
                drop(bound);
                // Not before somebody removes the file, should this panic.
                let path = binding.path().display();
                if let Some(error) = binding.passed_over() {
                    tracing::warn!("control socket at {path}: {error}");
                }
                tracing::info!("agent {}, control socket {path}", crate::VERSION);
                binding.sweep_siblings(places.uid, || !self.is_exiting());
                Some(binding)
            }
            Err(error) => {
                tracing::error!("no control socket, this process cannot be profiled: {error}");
                None
            }
        }
    }

    /// Sleeps until something happens and handles it.
    fn turn(&mut self, binding: &Binding) {
        let (file_event, accepts) = self.wait(binding);
        self.clients.drop_lost_descriptors();
        if !self.is_intact(binding) {
            return;
        }
        if file_event {
            binding.drain_watch();
        }
        self.clients.serve();
        if accepts {
            self.accept(binding);
        }
    }

    /// A program that closes all descriptors may have files of its own under our numbers by now.
    fn is_intact(&self, binding: &Binding) -> bool {
        self.wake.is_intact() && binding.is_intact()
    }

    /// Poll; returns whether the file's watch and the listener have something.
    fn wait(&self, binding: &Binding) -> (bool, bool) {
        let deadline = self.clients.deadline();
        let now = Moment::now();
        // A full house is no reason to wait for longer than it is full.
        let waits = [self.accept_at, self.clients.full_until()];
        let accept_at = waits.into_iter().flatten().max().filter(|&at| at > now);
        let deadline = deadline.into_iter().chain(accept_at).min();
        let mut timeout = deadline.map(|at| at - now);
        if binding.watch().is_none() || self.rebind_at.is_some() {
            timeout = Some(timeout.map_or(FILE_CHECK, |t| t.min(FILE_CHECK)));
        }
        let timeout = timeout.map(timespec);
        let wake = self.wake.receiver();
        let listener = binding.socket();
        let watch = binding.watch();
        let sockets = self.clients.sockets();
        let listens = if accept_at.is_none() {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let mut fds = vec![
            PollFd::new(&wake, PollFlags::IN),
            PollFd::new(&listener, listens),
        ];
        for (socket, wanted) in &sockets {
            fds.push(PollFd::new(socket, *wanted));
        }
        if let Some(watch) = &watch {
            fds.push(PollFd::new(watch, PollFlags::IN));
        }
        // EINTR (a stopped and continued process) is one more turn.
        if rustix::event::poll(&mut fds, timeout.as_ref()).is_err() {
            return (false, false);
        }
        let woken = !fds[0].revents().is_empty();
        if woken && self.wake.is_intact() {
            self.wake.drain();
        }
        let accepts = !fds[1].revents().is_empty();
        let file_event = watch.is_some() && fds.last().is_some_and(|f| !f.revents().is_empty());
        (file_event, accepts)
    }

    fn accept(&mut self, binding: &Binding) {
        if !self.clients.make_room() {
            return;
        }
        match connection::accept(binding.socket()) {
            Accepted::Client(connection) => self.clients.admit(connection),
            Accepted::Nobody => {}
            Accepted::Later => self.accept_at = Some(Moment::now() + ACCEPT_PAUSE),
        }
    }
}

/// Takes the socket and its file away when dropped, in a panic too.
struct RemovedAtTheEnd<'a>(&'a Shared);

impl Drop for RemovedAtTheEnd<'_> {
    fn drop(&mut self) {
        if let Some(binding) = self.0.bound.lock().take() {
            binding.remove();
        }
    }
}

/// A timeout of poll, rounded up so that the deadline has passed when it returns.
pub(super) fn timespec(timeout: Duration) -> Timespec {
    const ROUND_UP: Duration = Duration::from_millis(1);
    let timeout = timeout + ROUND_UP;
    Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    }
}
