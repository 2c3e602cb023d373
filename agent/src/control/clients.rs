//! Who is connected to the control socket, and whose turn it is.
//!
//! One client at a time holds the session; others are turned away the way they understand. Starts and
//! stops run elsewhere (`operation`) and post what becomes of them. Used by the server's thread alone.

#![forbid(unsafe_code)]

mod admission;

use super::client::{Client, PARAMS_LIMIT, Phase, SILENCE};
use super::connection::{Connection, PeerState};
use super::extension::{Detach, Holder};
use super::operation::{self, Event, Posted, Task};
use super::owner::{Shared, Waker};
use super::reply::{capture, last_failure};
use super::server::timespec;
use super::session::{Demand, Facts, Session};
use super::unattended::{Due, Unattended};
use super::wire::PARAMS_SIZE;
use crate::capture::{Origin, Request};
use crate::clock::Moment;
use crate::process::peer::Peer;
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::event::{PollFd, PollFlags};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// All clients of the socket.
pub(super) struct Clients {
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
    unattended: Unattended,
}

impl Clients {
    /// Nobody is connected; `wake` has the server's thread call [`Clients::serve`].
    pub(super) fn new(shared: Arc<Shared>, wake: Arc<Waker>) -> Clients {
        let theirs = wake.clone();
        shared.captures.on_failure(move || theirs.wake());
        Clients {
            shared,
            wake,
            events: unbounded(),
            clients: Vec::new(),
            holder: None,
            orphans: 0,
            sessions: 0,
            unattended: Unattended::default(),
        }
    }

    /// When something has to be done although nothing came.
    pub(super) fn deadline(&self) -> Option<Moment> {
        let clients = self.clients.iter().filter_map(Client::deadline);
        let capture = self.unattended.deadline(&self.shared.captures);
        clients.chain(capture).min()
    }

    /// What poll is to watch.
    pub(super) fn sockets(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        self.clients
            .iter()
            .map(|client| (client.connection.socket(), client.wanted()))
            .collect()
    }

    /// Does all that is to be done: for operations that went on, for clients that sent something or are late.
    pub(super) fn serve(&mut self) {
        while let Ok(posted) = self.events.1.try_recv() {
            self.handle_event(posted);
        }
        if let Some(Due { number, note }) = self.unattended.due(&self.shared.captures) {
            self.stop_for_nobody(number, note);
        }
        for index in (0..self.clients.len()).rev() {
            if self.serve_client(index) == PeerState::Gone {
                let client = self.clients.swap_remove(index);
                self.client_gone(&client);
            }
        }
    }

    /// A program that closes all descriptors closes our clients' too.
    pub(super) fn drop_lost_descriptors(&mut self) {
        for index in (0..self.clients.len()).rev() {
            if !self.clients[index].connection.is_intact() {
                let client = self.clients.swap_remove(index);
                self.client_gone(&client);
            }
        }
    }

    /// Reads, answers and times out one client. Called at every turn: cheap when nothing is there.
    fn serve_client(&mut self, index: usize) -> PeerState {
        let client = &mut self.clients[index];
        let state = client.connection.receive();
        if client.connection.flush() == PeerState::Gone {
            return PeerState::Gone;
        }
        let now = Moment::now();
        match &client.phase {
            Phase::Params { since } => {
                let late = now >= *since + PARAMS_LIMIT;
                if client.connection.input().len() >= PARAMS_SIZE {
                    self.take_params(index);
                } else if late {
                    return PeerState::Gone;
                }
            }
            Phase::Silence { since } if now >= *since + SILENCE => return PeerState::Gone,
            Phase::Silence { .. } => {}
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
            capturing: &|| shared.captures.is_capturing(),
            clients_capture: &|| matches!(shared.captures.running(), Some((Origin::Client(_), _))),
            devices: &|| shared.components.devices(),
            capture: &|| shared.captures.current().map(capture),
            last_failure: &|| shared.captures.last_failure().map(last_failure),
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
            Demand::Stop => Task::Stop {
                only: None,
                note: None,
                // A stock client could not show it, and gives its session up.
                asks: self.is_ours(index),
            },
            Demand::Start(detach) => {
                let client = &self.clients[index];
                let Some(session) = client.session() else {
                    return;
                };
                let Holder { uid, pid } = client.connection.peer;
                let peer = Peer { uid, pid };
                let limit_ms = detach
                    .map(|Detach { limit_ms }| limit_ms)
                    .filter(|&ms| ms > 0);
                Task::Start(Box::new(Request {
                    params: session.params.clone(),
                    origin: match detach {
                        Some(_) => Origin::Detached(peer),
                        None => Origin::Client(peer),
                    },
                    default_dir: self.shared.default_dir.clone(),
                    allow_shared_dir: self.shared.allow_shared_dir,
                    need_device: self.shared.need_device,
                    time_limit: limit_ms.map(Duration::from_millis),
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

    /// Whether a client is our controller.
    fn is_ours(&self, index: usize) -> bool {
        let session = self.clients[index].session();
        session.is_some_and(|session| session.params.announcement().is_some())
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
                self.stop_for_nobody(started.number, None);
            }
            return;
        };
        let demand = self.with_session(index, |session, connection, facts| {
            session.event(connection, posted.event, facts)
        });
        self.meet(index, demand);
    }

    /// Number of the client that has the session of that number.
    fn client_of(&self, session: u64) -> Option<usize> {
        self.clients
            .iter()
            .position(|client| client.session().is_some_and(|s| s.number == session))
    }

    fn end_session(&mut self, index: usize) {
        let Some(number) = self.clients[index].session().map(|session| session.number) else {
            return;
        };
        self.clients[index].close(Moment::now());
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
        if let Some((Origin::Client(_), capture)) = self.shared.captures.running() {
            tracing::info!("the client has gone: its capture ends");
            self.stop_for_nobody(capture, None);
        }
    }

    fn stop_for_nobody(&mut self, capture: u64, note: Option<&'static str>) {
        let task = Task::Stop {
            only: Some(capture),
            note,
            asks: false,
        };
        match self.run(task, 0) {
            Ok(()) => self.orphans += 1,
            Err(error) => {
                tracing::error!("a capture that nobody stops could not be stopped: {error}");
            }
        }
    }

    /// Tells everybody that the socket is no more.
    pub(super) fn say_farewell(&mut self) {
        let now = Moment::now();
        for client in &mut self.clients {
            if let Phase::Session(session) = &client.phase {
                let reason = "the program has finalized profiling";
                session.disconnect(&mut client.connection, 0, reason);
            }
            client.close(now);
        }
    }

    /// Gives the clients that were told of the end some time to close: closing first can kill the stock
    /// client.
    pub(super) fn linger(&mut self) {
        while !self.clients.is_empty() {
            let deadline = self.deadline();
            let timeout = deadline.map(|at| timespec(at.remaining()));
            let sockets: Vec<_> = self.clients.iter().map(|c| c.connection.socket()).collect();
            let mut fds: Vec<_> = sockets
                .iter()
                .map(|s| PollFd::new(s, PollFlags::IN))
                .collect();
            let _ = rustix::event::poll(&mut fds, timeout.as_ref());
            let now = Moment::now();
            self.clients.retain_mut(|client| {
                client.connection.receive() == PeerState::Open
                    && client
                        .connection
                        .closing_until()
                        .is_some_and(|until| now < until)
            });
        }
    }
}
