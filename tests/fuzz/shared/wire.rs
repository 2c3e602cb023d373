//! What a client sends: params, commands and frames, in pieces of any size.
//!
//! The first byte chooses the language, the second the size of the pieces; the rest is what comes over the
//! connection behind the params.

use msprof_agent_core::capture::Status;
use msprof_agent_core::control::connection::{Accepted, Connection, PeerState, accept};
use msprof_agent_core::control::extension::{
    self, Announcement, Hello, MAX_BODY, PARAMS_KEY, PROTOCOL_VERSION, Reply, Request,
};
use msprof_agent_core::control::session::{Demand, Facts, Session};
use msprof_agent_core::control::wire::{self, MESSAGE_SIZE, Message, PARAMS_SIZE};
use msprof_agent_core::params::Params;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

pub fn run(data: &[u8]) {
    params_message(data);
    frames(data);
    if let [language, piece, rest @ ..] = data {
        session(language % 2 == 1, usize::from(*piece) + 1, rest);
    }
}

fn params_message(data: &[u8]) {
    let mut bytes = [0; PARAMS_SIZE];
    let length = data.len().min(PARAMS_SIZE);
    bytes[..length].copy_from_slice(&data[..length]);
    if let Ok(text) = wire::decode_params(&bytes) {
        let again = wire::encode_params(text).expect("what was decoded fits");
        assert_eq!(wire::decode_params(&again), Ok(text));
    }
    if let Some(bytes) = data.first_chunk::<MESSAGE_SIZE>() {
        assert_eq!(Message::decode(bytes).encode(), *bytes);
    }
}

/// Frames of both directions one after the other.
fn frames(mut data: &[u8]) {
    while let Ok(Some(frame)) = extension::decode_frame(data) {
        assert!(frame.size <= data.len() && frame.body.len() <= MAX_BODY);
        let _ = extension::parse_body::<Request>(frame.body);
        if let Ok(hello) = extension::parse_body::<Hello>(frame.body) {
            round(frame.id, &hello);
        }
        if let Ok(reply) = extension::parse_body::<Reply>(frame.body) {
            round(frame.id, &reply);
        }
        data = &data[frame.size..];
    }
}

fn round<T>(id: u32, body: &T)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    // Escapes can make it longer than a frame holds.
    let Ok(bytes) = extension::encode_frame(id, body) else {
        return;
    };
    let frame = extension::decode_frame(&bytes)
        .expect("ours")
        .expect("whole");
    assert_eq!(frame.id, id);
    let again: T = extension::parse_body(frame.body).expect("ours");
    assert_eq!(&again, body);
}

/// A client and our end of its connection.
fn connected() -> (UnixStream, Connection) {
    thread_local! {
        static LISTENER: (tempfile::TempDir, UnixListener) = {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let listener = UnixListener::bind(dir.path().join("s")).expect("bound");
            (dir, listener)
        };
    }
    LISTENER.with(|(dir, listener)| {
        let client = UnixStream::connect(dir.path().join("s")).expect("connected");
        client.set_nonblocking(true).expect("a socket");
        match accept(listener.as_fd()) {
            Accepted::Client(connection) => (client, connection),
            other => panic!("not accepted: {other:?}"),
        }
    })
}

fn session(extended: bool, piece: usize, data: &[u8]) {
    let (mut client, mut connection) = connected();
    let text = match extended {
        true => format!(
            "{{\"{PARAMS_KEY}\":{}}}",
            serde_json::to_string(&Announcement {
                version: PROTOCOL_VERSION,
                model_execution: true,
                rescue: true,
                ..Announcement::default()
            })
            .expect("JSON")
        ),
        false => "{}".to_owned(),
    };
    let params = Params::parse(&text).expect("params");
    let hello = Hello {
        protocol: PROTOCOL_VERSION,
        agent_version: String::new(),
        pid: 1,
        devices: vec![0],
        ..Hello::default()
    };
    let limits = (3, Duration::from_secs(3600));
    let mut session = Session::open(1, params, limits, &mut connection, &hello);
    let facts = Facts {
        status: &Status::default,
        capturing: &|| false,
        clients_capture: &|| false,
        devices: &|| vec![0],
        capture: &|| None,
        last_failure: &|| None,
    };
    for bytes in data.chunks(piece) {
        if client.write_all(bytes).is_err() || connection.receive() == PeerState::Gone {
            break;
        }
        // Every round takes something off the input, or the session waits for more.
        loop {
            let before = connection.input().len();
            let demand = session.next(&mut connection, &facts);
            if matches!(demand, Demand::End) {
                return;
            }
            if session.is_busy() {
                let error = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
                session.operation_failed(&mut connection, &error);
            }
            if connection.input().len() == before {
                break;
            }
        }
        // Answers are well formed: the client's buffer is emptied so that they never pile up.
        let mut answers = [0; 4096];
        while matches!(client.read(&mut answers), Ok(count) if count > 0) {}
    }
}
