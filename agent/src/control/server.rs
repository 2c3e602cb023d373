//! The thread that serves the control socket, `msprof-ctl`.
//!
//! It sleeps in poll for the life of the process; no timer wakes it while nobody is connected. One
//! client at a time holds the session; others are turned away the way they understand. Starts and
//! stops run elsewhere (`operation`), so the thread itself never waits for anything but poll.

#![forbid(unsafe_code)]

use super::binding::{self, Binding};
use super::connection::{self, Connection, PeerState};
use super::extension::{Hello, Holder, PROTOCOL_VERSION};
use super::operation::{self, Event, Posted, Task};
use super::params::Params;
use super::places::PlaceInputs;
use super::session::{Demand, Facts, Session, answer, greet};
use super::wire::{PARAMS_SIZE, decode_params, kind, status};
use crate::capture::{self, Captures, Origin, Request};
use crate::components::Components;
use crate::process::environment::Environment;
use crate::process::fd::{ParentOnly, keep_above_standard};
use crate::process::{self, user};
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use std::os::fd::AsFd;
use std::path::PathBuf;
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
/// Without inotify, or when the file could not be made again, it is looked at this often.
const FILE_CHECK: Duration = Duration::from_secs(2);
/// How long a shutdown waits for the thread to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);

/// What the thread and its owner share.
#[derive(Debug)]
struct Shared {
    places: PlaceInputs,
    key_pid: Option<u32>,
    limits: (u32, Duration),
    need_device: bool,
    default_dir: PathBuf,
    captures: Arc<Captures>,
    components: Arc<Components>,
    /// Path of the bound socket and the identity by which it is removed at exit.
    bound: Mutex<Option<Arc<Binding>>>,
    shut: AtomicBool,
    exiting: AtomicBool,
}

#[derive(Debug)]
struct Running {
    wake: Arc<ParentOnly>,
    ended: Receiver<()>,
}

/// The owner's end of the control thread.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
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
                captures,
                components,
                bound: Mutex::default(),
                shut: AtomicBool::new(false),
                exiting: AtomicBool::new(false),
            }),
            running: Mutex::default(),
        }
    }

    /// Makes sure that the thread runs; returns at once, the socket comes up behind.
    pub fn ensure(&self) {
        let mut running = self.running.lock();
        let alive = running.as_ref().is_some_and(|thread| {
            thread.ended.try_recv() == Err(crossbeam_channel::TryRecvError::Empty)
        });
        if alive || self.shared.exiting.load(Ordering::Acquire) {
            return;
        }
        self.shared.shut.store(false, Ordering::Release);
        match start_thread(&self.shared) {
            Ok(thread) => *running = Some(thread),
            Err(error) => tracing::error!("no control socket: {error}"),
        }
    }

    /// Ends the thread and removes the socket.
    pub fn shut_down(&self) {
        self.shared.shut.store(true, Ordering::Release);
        if let Some(thread) = self.running.lock().take() {
            wake(&thread.wake);
            // Disconnected when the thread has ended.
            let _ = thread.ended.recv_timeout(SHUTDOWN_LIMIT);
        }
    }

    /// The process exits: the file goes, and the thread makes no new one.
    pub fn remove_socket(&self) {
        self.shared.exiting.store(true, Ordering::Release);
        if let Some(binding) = self.shared.bound.lock().take() {
            binding.remove();
        }
    }
}

fn start_thread(shared: &Arc<Shared>) -> std::io::Result<Running> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let eventfd = keep_above_standard(rustix::event::eventfd(0, flags)?)?;
    let wake = Arc::new(ParentOnly::new(eventfd));
    let (alive, ended) = crossbeam_channel::bounded::<()>(0);
    let server = Server::new(shared.clone(), wake.clone());
    process::spawn("msprof-ctl", move || {
        server.serve();
        drop(alive);
    })?;
    Ok(Running { wake, ended })
}

fn wake(eventfd: &ParentOnly) {
    // Fails only when the counter is full, and then the thread is woken anyway.
    let _ = rustix::io::write(eventfd.as_fd(), &1u64.to_ne_bytes());
}

/// What a connection is there for.
#[derive(Debug)]
enum Phase {
    /// Its params are awaited until then.
    Params(Instant),
    /// A stock client that is turned away: closed then, without an answer.
    Silence(Instant),
    /// Holds the session, or held it before it expired.
    Session(Box<Session>),
    /// The last word was said.
    Closing,
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    phase: Phase,
}

impl Client {
    fn wanted(&self) -> PollFlags {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, self.connection.wants_to_write());
        flags
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Params(until) | Phase::Silence(until) => Some(*until),
            Phase::Session(session) => session.deadline(),
            Phase::Closing => self.connection.closing_until(),
        }
    }

    fn close(&mut self, now: Instant) {
        self.connection.begin_closing(now);
        self.phase = Phase::Closing;
    }
}

struct Server {
    shared: Arc<Shared>,
    wake: Arc<ParentOnly>,
    events: (Sender<Posted>, Receiver<Posted>),
    clients: Vec<Client>,
    /// Number of the session that may give commands.
    holder: Option<u64>,
    sessions: u64,
    /// When a file that was removed and could not be made again is tried next.
    rebind_at: Option<Instant>,
}

impl Server {
    fn new(shared: Arc<Shared>, wake: Arc<ParentOnly>) -> Server {
        Server {
            shared,
            wake,
            events: unbounded(),
            clients: Vec::new(),
            holder: None,
            sessions: 0,
            rebind_at: None,
        }
    }

    fn serve(mut self) {
        let Some(mut binding) = self.bind() else {
            return;
        };
        while !self.is_shut() {
            self.turn(&binding);
            let now = Instant::now();
            if self.is_exiting() || now < self.rebind_at.unwrap_or(now) || binding.in_place() {
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

    fn is_shut(&self) -> bool {
        self.shared.shut.load(Ordering::Acquire)
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

    /// Poll; returns whether the file's watch and the listener have something.
    fn wait(&self, binding: &Binding) -> (bool, bool) {
        let deadline = self.clients.iter().filter_map(Client::deadline).min();
        let mut timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if binding.watch().is_none() || self.rebind_at.is_some() {
            timeout = Some(timeout.map_or(FILE_CHECK, |t| t.min(FILE_CHECK)));
        }
        let timeout = timeout.map(|t| Timespec {
            tv_sec: t.as_secs() as i64,
            // Rounded up, so that the deadline has passed when poll returns.
            tv_nsec: i64::from(t.subsec_nanos())
                .saturating_add(1_000_000)
                .min(999_999_999),
        });
        let wake = self.wake.as_fd();
        let listener = binding.socket();
        let watch = binding.watch();
        let sockets: Vec<_> = self.clients.iter().map(|c| c.connection.socket()).collect();
        let listens = if self.clients.len() < CONNECTIONS_MAX {
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
        if !fds[0].revents().is_empty() {
            let mut counter = [0u8; 8];
            let _ = rustix::io::read(wake, &mut counter);
        }
        let accepts = !fds[1].revents().is_empty();
        let file_event = watch.is_some() && fds.last().is_some_and(|f| !f.revents().is_empty());
        (file_event, accepts)
    }

    fn accept(&mut self, binding: &Binding) {
        let uid = self.shared.places.uid;
        if let Some(connection) = connection::accept(binding.socket(), uid) {
            self.clients.push(Client {
                connection,
                phase: Phase::Params(Instant::now() + PARAMS_LIMIT),
            });
        }
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
            Demand::Stop => Task::Stop,
            Demand::Start => {
                let Phase::Session(session) = &self.clients[index].phase else {
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
            Task::Stop => "stop",
        };
        tracing::info!("{name} by uid {uid}, pid {pid}");
        let Phase::Session(session) = &client.phase else {
            return;
        };
        let number = session.number;
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
        operation::run(task, session, captures, events, move || wake(&wake_end))
    }

    fn handle_event(&mut self, posted: Posted) {
        let index = self.clients.iter().position(|client| {
            matches!(&client.phase, Phase::Session(session) if session.number == posted.session)
        });
        let Some(index) = index else {
            // The client went while its start was under way: nobody could ever stop it.
            if let Event::Started(Ok(_)) = posted.event {
                self.stop_for_nobody();
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
        let params = decode_params(bytes)
            .map_err(|error| error.to_string())
            .and_then(|text| Params::parse(text).map_err(|error| error.to_string()));
        client.connection.take(PARAMS_SIZE);
        let params = match params {
            Ok(params) => params,
            Err(error) => {
                tracing::warn!("{error}");
                answer(&mut client.connection, kind::PARAMS_REPLY, status::FAILED);
                client.close(now);
                return;
            }
        };
        self.yield_expired();
        let mut hello = Hello {
            protocol: PROTOCOL_VERSION,
            agent_version: crate::VERSION.into(),
            pid: process::current_pid(),
            devices: self.shared.components.devices(),
            busy: None,
            error: None,
        };
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

    /// An idle session gives way to a new client; its next command is answered with a disconnect.
    fn yield_expired(&mut self) {
        let capturing = self.shared.captures.status().capturing;
        let expired = self.clients.iter().any(|client| {
            matches!(&client.phase, Phase::Session(session)
                if Some(session.number) == self.holder && !capturing && session.is_expired())
        });
        if expired {
            self.holder = None;
        }
    }

    fn session_holder(&self) -> Option<Holder> {
        self.clients
            .iter()
            .find(|client| {
                matches!(&client.phase, Phase::Session(session)
                    if Some(session.number) == self.holder)
            })
            .map(|client| client.connection.peer.clone())
    }

    fn end_session(&mut self, index: usize) {
        let number = match &self.clients[index].phase {
            Phase::Session(session) => session.number,
            _ => return,
        };
        self.clients[index].close(Instant::now());
        self.released(number);
    }

    fn client_gone(&mut self, client: &Client) {
        if let Phase::Session(session) = &client.phase {
            self.released(session.number);
        }
    }

    /// A session has ended: so does the capture that its client started.
    fn released(&mut self, number: u64) {
        if self.holder != Some(number) {
            return;
        }
        self.holder = None;
        if self.shared.captures.origin() == Some(Origin::Client) {
            tracing::info!("the client has gone: its capture ends");
            self.stop_for_nobody();
        }
    }

    fn stop_for_nobody(&self) {
        if let Err(error) = self.run(Task::Stop, 0) {
            tracing::error!("a capture whose client has gone could not be stopped: {error}");
        }
    }

    fn say_farewell(&mut self) {
        self.shared.bound.lock().take();
        let now = Instant::now();
        for client in &mut self.clients {
            if let Phase::Session(session) = &client.phase {
                let reason = "the program has finalized profiling";
                session.disconnect(&mut client.connection, 0, reason);
                client.connection.begin_closing(now);
            }
        }
    }
}
