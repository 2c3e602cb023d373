//! What happens when replies are late: with time limits of their own, since the real ones are long.

use super::*;
use crate::process::Process;
use msprof_agent_core::control::extension::{decode_frame, encode_frame};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

const SHORT: Timeouts = Timeouts {
    hello: Duration::from_secs(10),
    reply: Duration::from_millis(300),
};

/// A session with a server that this process plays itself.
fn session(serve: impl FnOnce(UnixStream) + Send + 'static) -> (Session, JoinHandle<()>) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).expect("bound");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("set");
        let mut params = [0; wire::PARAMS_SIZE];
        stream.read_exact(&mut params).expect("params");
        serve(stream);
    });
    let attached = Attached {
        connection: Connection::open(&path, Instant::now()).expect("connected"),
        process: Process::find(std::process::id()).expect("lives"),
    };
    let session = Session::begin(attached, "{}", SHORT).expect("begun");
    (session, server)
}

fn say(stream: &mut UnixStream, kind: u32) {
    let message = Message { kind, status: 0 };
    stream.write_all(&message.encode()).expect("written");
}

fn hear(stream: &mut UnixStream) -> u32 {
    let mut bytes = [0; wire::MESSAGE_SIZE];
    stream.read_exact(&mut bytes).expect("message");
    Message::decode(&bytes).kind
}

#[test]
fn a_late_stock_reply_is_not_taken_for_the_answer_to_the_next_command() {
    let (mut session, server) = session(|mut stream| {
        say(&mut stream, kind::PARAMS_REPLY);
        assert_eq!(hear(&mut stream), kind::STOP);
        // Only once the client has given up and asks again:
        assert_eq!(hear(&mut stream), kind::STOP);
        let late = Message {
            kind: kind::STOP_REPLY,
            status: status::SUCCESS,
        };
        stream.write_all(&late.encode()).expect("written");
        let idle = Message {
            kind: kind::STOP_REPLY,
            status: status::NOT_STARTED,
        };
        stream.write_all(&idle.encode()).expect("written");
        assert_eq!(hear(&mut stream), kind::START);
        say(&mut stream, kind::START_REPLY);
    });
    let mut no_progress = |_| {};
    let error = session
        .request(Op::Stop, &mut no_progress)
        .expect_err("late");
    assert!(matches!(error, SessionError::NoReply(_)) && !error.is_final());
    let reply = session
        .request(Op::Stop, &mut no_progress)
        .expect("answered");
    assert_eq!(reply.outcome, Some(Outcome::NotStarted));
    let reply = session
        .request(Op::Start, &mut no_progress)
        .expect("answered");
    assert_eq!(reply.outcome, Some(Outcome::Success));
    server.join().expect("served as expected");
}

#[test]
fn a_stop_may_take_longer_than_the_limit_as_long_as_it_makes_progress() {
    let (mut session, server) = session(|mut stream| {
        let answer = Message {
            kind: kind::PARAMS_REPLY,
            status: status::EXTENDED,
        };
        stream.write_all(&answer.encode()).expect("written");
        let hello = Hello {
            protocol: 1,
            agent_version: "0.1.0".into(),
            pid: 1,
            devices: Vec::new(),
            busy: None,
            error: None,
        };
        stream
            .write_all(&encode_frame(0, &hello).expect("small"))
            .expect("written");
        let mut bytes = Vec::new();
        let id = loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("request");
            bytes.push(byte[0]);
            if let Some(frame) = decode_frame(&bytes).expect("valid") {
                break frame.id;
            }
        };
        for left in [3, 2, 1] {
            let progress = Reply {
                outcome: Some(Outcome::Progress),
                progress: Some(left),
                ..Reply::default()
            };
            stream
                .write_all(&encode_frame(id, &progress).expect("small"))
                .expect("written");
            std::thread::sleep(SHORT.reply / 2);
        }
        let done = Reply {
            outcome: Some(Outcome::Success),
            ..Reply::default()
        };
        stream
            .write_all(&encode_frame(id, &done).expect("small"))
            .expect("written");
    });
    let mut seen = Vec::new();
    let reply = session
        .request(Op::Stop, &mut |left| seen.push(left))
        .expect("answered");
    assert_eq!(reply.outcome, Some(Outcome::Success));
    assert_eq!(seen, [3, 2, 1]);
    server.join().expect("served as expected");
}
