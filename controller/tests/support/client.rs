//! One client's connection, as the server sees it, and what an agent answers.

use msprof_agent_core::control::extension::{self, Hello, Op, Outcome, Reply, Request};
use msprof_agent_core::control::wire::{self, Message};
use msprof_agent_core::ledger::Ledger;
use serde_json::{Map, Value};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// One client's connection, as the server sees it.
pub struct Client {
    pub stream: UnixStream,
}

impl Client {
    pub fn read_params(&mut self) -> Map<String, Value> {
        let mut bytes = [0; wire::PARAMS_SIZE];
        self.stream.read_exact(&mut bytes).expect("params");
        serde_json::from_str(wire::decode_params(&bytes).unwrap()).unwrap()
    }

    pub fn read_message(&mut self) -> Option<Message> {
        let mut bytes = [0; wire::MESSAGE_SIZE];
        self.stream.read_exact(&mut bytes).ok()?;
        Some(Message::decode(&bytes))
    }

    pub fn say(&mut self, kind: u32, status: u32) {
        let bytes = Message { kind, status }.encode();
        let _ = self.stream.write_all(&bytes);
    }

    /// Answers the params as our agent does.
    pub fn extend(&mut self, hello: &Hello) {
        self.say(wire::kind::PARAMS_REPLY, wire::status::EXTENDED);
        let frame = extension::encode_frame(0, hello).unwrap();
        let _ = self.stream.write_all(&frame);
    }

    /// Takes the params and answers them as our agent does.
    pub fn greet(&mut self, pid: u32) {
        self.read_params();
        self.extend(&hello(pid));
    }

    pub fn read_request(&mut self) -> Option<(u32, Op)> {
        let mut head = [0; extension::FRAME_HEAD];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_le_bytes(head[..4].try_into().unwrap());
        let id = u32::from_le_bytes(head[4..].try_into().unwrap());
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body).ok()?;
        let request: Request = extension::parse_body(&body).unwrap();
        Some((id, request.op))
    }

    pub fn reply(&mut self, id: u32, reply: &Reply) {
        let frame = extension::encode_frame(id, reply).unwrap();
        let _ = self.stream.write_all(&frame);
    }

    /// Reads until the client closes; proof that it was not cut off.
    pub fn wait_for_close(&mut self) {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
    }
}

pub fn hello(pid: u32) -> Hello {
    Hello {
        protocol: extension::PROTOCOL_VERSION,
        agent_version: msprof_agent_core::VERSION.into(),
        pid,
        devices: vec![0],
        ..Hello::default()
    }
}

pub fn outcome(outcome: Outcome) -> Reply {
    Reply {
        outcome: Some(outcome),
        ..Reply::default()
    }
}

/// What an agent says to a command that came too late; nothing was done.
pub fn idled() -> Reply {
    Reply {
        error: Some("nothing was captured for 1800 s; attach again".into()),
        idle_seconds: Some(1800),
        ..outcome(Outcome::Disconnected)
    }
}

/// A complete reply to a stop.
pub fn stopped() -> Reply {
    let mut ledger = Ledger::default();
    ledger.stop = Some(ledger.start);
    ledger.bytes = 80;
    ledger.written.0[0] = 2;
    ledger.reported.0[0] = 2;
    Reply {
        path: Some("/out/PROF_000001_x".into()),
        ledger: Some(ledger),
        ..outcome(Outcome::Success)
    }
}
