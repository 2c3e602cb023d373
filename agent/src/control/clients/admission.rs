//! Who gets a place at the control socket, and who gets the session.

#![forbid(unsafe_code)]

use super::super::client::{Client, Phase};
use super::super::connection::Connection;
use super::super::extension::{Hello, Holder, PARAMS_KEY, PROTOCOL_VERSION, Reply, feature};
use super::super::reply::{answer, capture, greet, last_failure, status_reply};
use super::super::session::Session;
use super::super::wire::{PARAMS_SIZE, decode_params, kind, status};
use super::Clients;
use crate::clock::Moment;
use crate::params::Params;
use crate::process;
use std::time::Duration;

/// What a client has at least for its params, or to close after its last answer, or to be turned away in
/// silence, when others wait for its place: a stock client that waits gives up after 1 s.
const PATIENCE: Duration = Duration::from_millis(100);
/// Clients at once; more wait in the backlog.
const CONNECTIONS_MAX: usize = 16;

impl Clients {
    /// Until when there is no room for another client; none if there is some now.
    pub(in crate::control) fn full_until(&self) -> Option<Moment> {
        if self.clients.len() < CONNECTIONS_MAX {
            return None;
        }
        let replaceable = self.first_replaceable().map(|(since, _)| since + PATIENCE);
        let until = self.deadline().into_iter().chain(replaceable).min();
        Some(until.unwrap_or_else(|| Moment::now() + PATIENCE))
    }

    /// Makes room for another client, if need be: of those who are in no session the one goes that was the
    /// first to have its turn, if it had some time for it.
    pub(in crate::control) fn make_room(&mut self) -> bool {
        if self.clients.len() < CONNECTIONS_MAX {
            return true;
        }
        let now = Moment::now();
        match self.first_replaceable() {
            Some((since, index)) if since + PATIENCE <= now => {
                self.clients.swap_remove(index);
                true
            }
            _ => false,
        }
    }

    /// Who may have to give its place to another, and since when: the first that said nothing, or is turned
    /// away, or did not close after its last answer, or let its session expire.
    fn first_replaceable(&self) -> Option<(Moment, usize)> {
        let clients = self.clients.iter().enumerate();
        let others = clients.filter(|(_, client)| {
            let number = client.session().map(|session| session.number);
            number.is_none() || number != self.holder
        });
        others
            .filter_map(|(index, client)| Some((client.replaceable_since()?, index)))
            .min()
    }

    /// Somebody has connected.
    pub(in crate::control) fn admit(&mut self, connection: Connection) {
        self.clients.push(Client {
            connection,
            phase: Phase::Params {
                since: Moment::now(),
            },
        });
    }

    pub(super) fn take_params(&mut self, index: usize) {
        let now = Moment::now();
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
        if let Some(looks) = params.announcement().filter(|announced| announced.look) {
            let hello = self.hello_to_look(looks.account);
            let client = &mut self.clients[index];
            greet(&mut client.connection, &hello);
            client.close(now);
            return;
        }
        self.yield_expired();
        let mut hello = self.hello();
        if let Some(holder) = self.session_holder() {
            let client = &mut self.clients[index];
            if params.announcement().is_some() {
                hello.busy = Some(holder);
                greet(&mut client.connection, &hello);
                client.close(now);
            } else {
                client.phase = Phase::Silence { since: now };
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
            disabled: self.shared.captures.disabled(),
            features: [feature::DETACH, feature::LOOK].map(str::to_owned).into(),
            capture: self.shared.captures.current().map(capture),
            last_failure: self.shared.captures.last_failure().map(last_failure),
            needs_device: self.shared.need_device,
            ..Hello::default()
        }
    }

    /// For a client that wants no session: who has it, and what is captured.
    fn hello_to_look(&self, account: bool) -> Hello {
        let mut hello = self.hello();
        hello.busy = self.session_holder();
        if account {
            let status = self.shared.captures.status();
            let reply = Reply {
                devices: hello.devices.clone(),
                capture: hello.capture.clone(),
                last_failure: hello.last_failure.clone(),
                ..status_reply(status)
            };
            hello.status = Some(Box::new(reply));
        }
        hello
    }

    /// An idle session gives way to a new client; its next command is answered with a disconnect.
    fn yield_expired(&mut self) {
        let capturing = self.shared.captures.is_capturing();
        let expired = self
            .holder
            .and_then(|number| self.client_of(number))
            .and_then(|index| self.clients[index].session())
            .is_some_and(|session| !capturing && session.is_expired());
        if expired {
            self.holder = None;
        }
    }

    fn session_holder(&self) -> Option<Holder> {
        let index = self.client_of(self.holder?)?;
        Some(self.clients[index].connection.peer.clone())
    }
}
