//! The thread that serves the control socket, `msprof-ctl`.
//!
//! It sleeps in poll for the life of the process; no timer wakes it while nobody is connected. One
//! client at a time holds the session; others are turned away the way they understand. Starts and
//! stops run elsewhere (`operation`). Beside poll, the thread looks at its socket's file, and once for each
//! binding asks for the home directory and looks for dead sockets; a network file system may delay that.

#![forbid(unsafe_code)]

use super::binding::{self, Binding};
use super::client::{Client, Phase};
use super::connection::{self, Accepted, Connection, PeerState};
use super::extension::{Hello, Holder, PARAMS_KEY, PROTOCOL_VERSION};
use super::operation::{self, Event, Posted, Task};
use super::owner::{Shared, Waker};
use super::reply::{answer, greet};
use super::session::{Demand, Facts, Session};
use super::wire::{PARAMS_SIZE, decode_params, kind, status};
use crate::capture::{Origin, Request};
use crate::params::Params;
use crate::process::{self, user};
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A client that says nothing is dropped after this.
const PARAMS_LIMIT: Duration = Duration::from_secs(5);
/// A stock client that is turned away is left without an answer for this long, then closed: it waits
/// 1 s and then tells its user that the process belongs to another client.
const SILENCE: Duration = Duration::from_millis(1200);
/// Clients at once; more wait in the backlog.
const CONNECTIONS_MAX: usize = 16;
/// When there is no descriptor or no room left, the next client is tried after this.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Without inotify, or when the file could not be made again, it is looked at this often.
const FILE_CHECK: Duration = Duration::from_secs(2);

/// What the thread works with.
pub(super) struct Server {
    shared: Arc<Shared>,
    wake: Arc<Waker>,
    events: (Sender<Posted>, Receiver<Posted>),
    clients: Vec<Client>,
    /// Number of the session that may give commands.
    holder: Option<u64>,
    /// Starts and stops under way whose client is gone. Until they have ended, the next client's commands
    /// wait: it must not meet a capture that is about to be stopped.
    orphans: u32,
    sessions: u64,
    /// When a file that was removed and could not be made again is tried next.
    rebind_at: Option<Instant>,
    /// Until then nobody is accepted: the system had no descriptor left.
    accept_at: Option<Instant>,
    /// The thread is to end.
    shut: Arc<AtomicBool>,
}

impl Server {
    /// A server that has bound nothing yet; `wake` ends its sleep.
    pub(super) fn new(shared: Arc<Shared>, wake: Arc<Waker>, shut: Arc<AtomicBool>) -> Server {
        Server {
            shared,
            wake,
            events: unbounded(),
            clients: Vec::new(),
            holder: None,
            orphans: 0,
            sessions: 0,
            rebind_at: None,
            accept_at: None,
            shut,
        }
    }

    /// Serves until it is told to end.
    pub(super) fn serve(&mut self) {
        let Some(mut binding) = self.bind() else {
            return;
        };
        while !self.is_shut() {
            self.turn(&binding);
            if !self.is_intact(&binding) {
                // Neither the waker nor the listener can be used; another MsprofInit makes new ones.
                tracing::error!(
                    "the program has closed the agent's descriptors: no control socket"
                );
                break;
            }
            let now = Instant::now();
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
        binding.remove();
        self.say_farewell();
    }

    /// Gives the clients that were told of the end some time to close: closing first can kill the stock
    /// client.
    pub(super) fn linger(&mut self) {
        while !self.clients.is_empty() {
            let deadline = self.clients.iter().filter_map(Client::deadline).min();
            let timeout = deadline.map(|at| timespec(at.saturating_duration_since(Instant::now())));
            let sockets: Vec<_> = self.clients.iter().map(|c| c.connection.socket()).collect();
            let mut fds: Vec<_> = sockets
                .iter()
                .map(|s| PollFd::new(s, PollFlags::IN))
                .collect();
            let _ = rustix::event::poll(&mut fds, timeout.as_ref());
            let now = Instant::now();
            self.clients.retain_mut(|client| {
                client.connection.receive() == PeerState::Open
                    && client
                        .connection
                        .closing_until()
                        .is_some_and(|until| now < until)
            });
        }
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
        match binding::bind(&places, self.shared.key_pid, process::current_pid()) {
            Ok(binding) => {
                let binding = Arc::new(binding);
                let mut bound = self.shared.bound.lock();
                if self.is_exiting() {
                    binding.remove();
                    return None;
                }
                *bound = Some(binding.clone());
                drop(bound);
                binding.sweep_siblings(places.uid);
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
        self.drop_lost_descriptors();
        if !self.is_intact(binding) {
            return;
        }
        if file_event {
            binding.drain_watch();
        }
        while let Ok(posted) = self.events.1.try_recv() {
            self.handle_event(posted);
        }
        for index in (0..self.clients.len()).rev() {
            if self.serve_client(index) == PeerState::Gone {
                let client = self.clients.swap_remove(index);
                self.client_gone(&client);
            }
        }
        if accepts {
            self.accept(binding);
        }
    }

    /// A program that closes all descriptors may have files of its own under our numbers by now.
    fn is_intact(&self, binding: &Binding) -> bool {
        self.wake.is_intact() && binding.is_intact()
    }

    fn drop_lost_descriptors(&mut self) {
        for index in (0..self.clients.len()).rev() {
            if !self.clients[index].connection.is_intact() {
                let client = self.clients.swap_remove(index);
                self.client_gone(&client);
            }
        }
    }

    /// Poll; returns whether the file's watch and the listener have something.
    fn wait(&self, binding: &Binding) -> (bool, bool) {
        let deadline = self.clients.iter().filter_map(Client::deadline).min();
        let now = Instant::now();
        let accept_at = self.accept_at.filter(|&at| at > now);
        let deadline = deadline.into_iter().chain(accept_at).min();
        let mut timeout = deadline.map(|at| at.saturating_duration_since(now));
        if binding.watch().is_none() || self.rebind_at.is_some() {
            timeout = Some(timeout.map_or(FILE_CHECK, |t| t.min(FILE_CHECK)));
        }
        let timeout = timeout.map(timespec);
        let wake = self.wake.receiver();
        let listener = binding.socket();
        let watch = binding.watch();
        let sockets: Vec<_> = self.clients.iter().map(|c| c.connection.socket()).collect();
        let listens = if accept_at.is_none() {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let mut fds = vec![
            PollFd::new(&wake, PollFlags::IN),
            PollFd::new(&listener, listens),
        ];
        for (socket, client) in sockets.iter().zip(&self.clients) {
            fds.push(PollFd::new(socket, client.wanted()));
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
        if self.clients.len() >= CONNECTIONS_MAX && !self.drop_oldest_silent() {
            self.accept_at = Some(Instant::now() + ACCEPT_PAUSE);
            return;
        }
        match connection::accept(binding.socket()) {
            Accepted::Client(connection) => self.clients.push(Client {
                connection,
                phase: Phase::Params(Instant::now() + PARAMS_LIMIT),
            }),
            Accepted::Nobody => {}
            Accepted::Later => self.accept_at = Some(Instant::now() + ACCEPT_PAUSE),
        }
    }

    /// Makes room for another client: the one that has said nothing for the longest time goes, if it had a
    /// second for it.
    fn drop_oldest_silent(&mut self) -> bool {
        const PATIENCE: Duration = Duration::from_secs(1);
        let latest = Instant::now() + PARAMS_LIMIT - PATIENCE;
        let oldest = self
            .clients
            .iter()
            .enumerate()
            .filter_map(|(index, client)| match client.phase {
                Phase::Params(until) if until <= latest => Some((until, index)),
                _ => None,
            })
            .min();
        if let Some((_, index)) = oldest {
            self.clients.swap_remove(index);
        }
        oldest.is_some()
    }

    /// Reads, answers and times out one client. Called at every turn: cheap when nothing is there.
    fn serve_client(&mut self, index: usize) -> PeerState {
        let client = &mut self.clients[index];
        let state = client.connection.receive();
        if client.connection.flush() == PeerState::Gone {
            return PeerState::Gone;
        }
        let now = Instant::now();
        match &client.phase {
            Phase::Params(until) => {
                let late = now >= *until;
                if client.connection.input().len() >= PARAMS_SIZE {
                    self.take_params(index);
                } else if late {
                    return PeerState::Gone;
                }
            }
            Phase::Silence(until) if now >= *until => return PeerState::Gone,
            Phase::Silence(_) => {}
            Phase::Closing => {
                if client
                    .connection
                    .closing_until()
                    .is_none_or(|until| now >= until)
                {
                    return PeerState::Gone;
                }
            }
            Phase::Session(session) => {
                if session.deadline().is_some_and(|until| now >= until) {
                    tracing::warn!("a client left a message unfinished");
                    return PeerState::Gone;
                }
                self.serve_session(index);
            }
        }
        state
    }

    /// Commands that came before the client went are carried out as far as they go.
    fn serve_session(&mut self, index: usize) {
        loop {
            if self.orphans > 0 {
                return;
            }
            let before = self.clients[index].connection.input().len();
            let holder = self.holder;
            let demand = self.with_session(index, |session, connection, facts| {
                if Some(session.number) == holder {
                    session.next(connection, facts)
                } else {
                    session.next_after_expiry(connection)
                }
            });
            self.meet(index, demand);
            let client = &self.clients[index];
            let after = client.connection.input().len();
            if after == before || !matches!(client.phase, Phase::Session(_)) {
                return;
            }
        }
    }

    fn with_session(
        &mut self,
        index: usize,
        f: impl FnOnce(&mut Session, &mut Connection, &Facts<'_>) -> Demand,
    ) -> Demand {
        let shared = &self.shared;
        let facts = Facts {
            status: &|| shared.captures.status(),
            clients_capture: &|| matches!(shared.captures.running(), Some((Origin::Client, _))),
            devices: &|| shared.components.devices(),
        };
        let client = &mut self.clients[index];
        match &mut client.phase {
            Phase::Session(session) => f(session, &mut client.connection, &facts),
            _ => Demand::None,
        }
    }

    fn meet(&mut self, index: usize, demand: Demand) {
        let task = match demand {
            Demand::None => return,
            Demand::End => {
                self.end_session(index);
                return;
            }
            Demand::Stop => Task::Stop { only: None },
            Demand::Start => {
                let Some(session) = self.clients[index].session() else {
                    return;
                };
                Task::Start(Box::new(Request {
                    params: session.params.clone(),
                    origin: Origin::Client,
                    default_dir: self.shared.default_dir.clone(),
                    need_device: self.shared.need_device,
                }))
            }
        };
        let client = &self.clients[index];
        let Holder { uid, pid } = client.connection.peer;
        let name = match task {
            Task::Start(_) => "start",
            Task::Stop { .. } => "stop",
        };
        tracing::info!("{name} by uid {uid}, pid {pid}");
        let Some(number) = client.session().map(|session| session.number) else {
            return;
        };
        if let Err(error) = self.run(task, number) {
            self.with_session(index, |session, connection, _| {
                session.operation_failed(connection, &error);
                Demand::None
            });
        }
    }

    fn run(&self, task: Task, session: u64) -> std::io::Result<()> {
        let wake_end = self.wake.clone();
        let events = self.events.0.clone();
        let captures = self.shared.captures.clone();
        operation::run(task, session, captures, events, move || wake_end.wake())
    }

    fn handle_event(&mut self, posted: Posted) {
        let index = self.client_of(posted.session);
        let Some(index) = index else {
            if matches!(posted.event, Event::Progress(_)) {
                return;
            }
            self.orphans = self.orphans.saturating_sub(1);
            // The client went while its start was under way: nobody could ever stop it.
            if let Event::Started(Ok(started)) = posted.event {
                self.stop_for_nobody(started.number);
            }
            return;
        };
        let demand = self.with_session(index, |session, connection, facts| {
            session.event(connection, posted.event, facts)
        });
        self.meet(index, demand);
    }

    fn take_params(&mut self, index: usize) {
        let now = Instant::now();
        let client = &mut self.clients[index];
        let Some(bytes) = client.connection.input().first_chunk::<PARAMS_SIZE>() else {
            return;
        };
        let announced = decode_params(bytes).is_ok_and(|text| text.contains(PARAMS_KEY));
        let params = decode_params(bytes)
            .map_err(|error| error.to_string())
            .and_then(|text| Params::parse(text).map_err(|error| error.to_string()));
        client.connection.take(PARAMS_SIZE);
        let params = match params {
            Ok(params) => params,
            Err(error) => {
                tracing::warn!("{error}");
                if announced {
                    let hello = Hello {
                        error: Some(error),
                        ..self.hello()
                    };
                    greet(&mut self.clients[index].connection, &hello);
                } else {
                    answer(&mut client.connection, kind::PARAMS_REPLY, status::FAILED);
                }
                self.clients[index].close(now);
                return;
            }
        };
        self.yield_expired();
        let mut hello = self.hello();
        if let Some(holder) = self.session_holder() {
            let client = &mut self.clients[index];
            if params.announcement().is_some() {
                hello.busy = Some(holder);
                greet(&mut client.connection, &hello);
                client.close(now);
            } else {
                client.phase = Phase::Silence(now + SILENCE);
            }
            return;
        }
        self.sessions += 1;
        self.holder = Some(self.sessions);
        let limits = self.shared.limits;
        let client = &mut self.clients[index];
        let session = Session::open(
            self.sessions,
            params,
            limits,
            &mut client.connection,
            &hello,
        );
        client.phase = Phase::Session(Box::new(session));
        self.serve_session(index);
    }

    fn hello(&self) -> Hello {
        Hello {
            protocol: PROTOCOL_VERSION,
            agent_version: crate::VERSION.into(),
            pid: process::current_pid(),
            devices: self.shared.components.devices(),
            busy: None,
            error: None,
        }
    }

    /// An idle session gives way to a new client; its next command is answered with a disconnect.
    fn yield_expired(&mut self) {
        let capturing = self.shared.captures.status().capturing;
        let expired = self
            .holder
            .and_then(|number| self.client_of(number))
            .and_then(|index| self.clients[index].session())
            .is_some_and(|session| !capturing && session.is_expired());
        if expired {
            self.holder = None;
        }
    }

    /// Number of the client that has the session of that number.
    fn client_of(&self, session: u64) -> Option<usize> {
        self.clients
            .iter()
            .position(|client| client.session().is_some_and(|s| s.number == session))
    }

    fn session_holder(&self) -> Option<Holder> {
        let index = self.client_of(self.holder?)?;
        Some(self.clients[index].connection.peer.clone())
    }

    fn end_session(&mut self, index: usize) {
        let Some(number) = self.clients[index].session().map(|session| session.number) else {
            return;
        };
        self.clients[index].close(Instant::now());
        self.released(number);
    }

    fn client_gone(&mut self, client: &Client) {
        if let Some(session) = client.session() {
            self.orphans += u32::from(session.is_busy());
            self.released(session.number);
        }
    }

    /// A session has ended: so does the capture that its client started.
    fn released(&mut self, number: u64) {
        if self.holder != Some(number) {
            return;
        }
        self.holder = None;
        if let Some((Origin::Client, capture)) = self.shared.captures.running() {
            tracing::info!("the client has gone: its capture ends");
            self.stop_for_nobody(capture);
        }
    }

    fn stop_for_nobody(&mut self, capture: u64) {
        let task = Task::Stop {
            only: Some(capture),
        };
        match self.run(task, 0) {
            Ok(()) => self.orphans += 1,
            Err(error) => {
                tracing::error!("a capture whose client has gone could not be stopped: {error}");
            }
        }
    }

    fn say_farewell(&mut self) {
        self.shared.bound.lock().take();
        let now = Instant::now();
        for client in &mut self.clients {
            if let Phase::Session(session) = &client.phase {
                let reason = "the program has finalized profiling";
                session.disconnect(&mut client.connection, 0, reason);
            }
            client.close(now);
        }
    }
}

/// A timeout of poll, rounded up so that the deadline has passed when it returns.
fn timespec(timeout: Duration) -> Timespec {
    const ROUND_UP: Duration = Duration::from_millis(1);
    let timeout = timeout + ROUND_UP;
    Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    }
}
