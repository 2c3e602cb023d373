//! What happens when replies are late: with time limits of their own, since the real ones are long.

use super::*;
use crate::process::Process;
use msprof_agent_core::control::extension::{decode_frame, encode_frame};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
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
        socket: std::path::PathBuf::new(),
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

/// Answers the params as an agent of a release.
fn greet(stream: &mut UnixStream, version: &str) {
    let answer = Message {
        kind: kind::PARAMS_REPLY,
        status: status::EXTENDED,
    };
    stream.write_all(&answer.encode()).expect("written");
    let hello = Hello {
        protocol: 1,
        agent_version: version.into(),
        pid: 1,
        ..Hello::default()
    };
    let frame = encode_frame(0, &hello).expect("small");
    stream.write_all(&frame).expect("written");
}

/// The id of the next request.
fn hear_request(stream: &mut UnixStream) -> u32 {
    let mut bytes = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("request");
        bytes.push(byte[0]);
        if let Some(frame) = decode_frame(&bytes).expect("valid") {
            return frame.id;
        }
    }
}

/// Whether a controller keeps what comes with the reply to a start, for the case of a kill.
fn keeps_lifeline_of(version: &'static str) -> bool {
    let (mut session, server) = session(move |mut stream| {
        greet(&mut stream, version);
        let id = hear_request(&mut stream);
        let started = Reply {
            outcome: Some(Outcome::Success),
            rescue: Some(1),
            ..Reply::default()
        };
        let frame = encode_frame(id, &started).expect("small");
        let memory = tempfile::tempfile().expect("a file");
        let dir = std::fs::File::open("/").expect("a directory");
        let both = [memory.as_fd(), dir.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&both)));
        let bytes = [io::IoSlice::new(&frame)];
        sendmsg(&stream, &bytes, &mut ancillary, SendFlags::empty()).expect("sent");
    });
    let reply = session.request(Op::Start, &mut |_| {}).expect("answered");
    assert_eq!(reply.outcome, Some(Outcome::Success));
    server.join().expect("served as expected");
    session.take_lifeline().is_some()
}

#[test]
fn the_memory_of_an_agent_of_another_release_is_left_alone() {
    assert!(keeps_lifeline_of(VERSION));
    assert!(!keeps_lifeline_of("0.0.1"));
}

#[test]
fn a_stop_may_take_longer_than_the_limit_as_long_as_it_makes_progress() {
    let (mut session, server) = session(|mut stream| {
        greet(&mut stream, VERSION);
        let id = hear_request(&mut stream);
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

/// Asks a server that this process plays itself, and gives what it got.
fn asked(
    account: bool,
    serve: impl FnOnce(UnixStream, String) + Send + 'static,
) -> Result<Hello, SessionError> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).expect("bound");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        let mut params = [0; wire::PARAMS_SIZE];
        stream.read_exact(&mut params).expect("params");
        let text = wire::decode_params(&params).expect("a text").to_owned();
        serve(stream, text);
    });
    let limit = Duration::from_secs(10);
    let connection = Connection::open(&path, Instant::now() + limit).expect("connected");
    let answer = ask(connection, account, limit, Instant::now() + limit);
    server.join().expect("served as expected");
    answer
}

#[test]
fn an_agent_that_can_be_looked_at_is_asked_for_no_more_than_the_hello() {
    let hello = asked(true, |mut stream, params| {
        let announced = msprof_agent_core::params::Params::parse(&params).expect("params");
        let announced = announced.announcement().expect("announced");
        assert!(announced.look && announced.account && !announced.rescue);
        let answer = Message {
            kind: kind::PARAMS_REPLY,
            status: status::EXTENDED,
        };
        stream.write_all(&answer.encode()).expect("written");
        let hello = Hello {
            features: vec!["look".to_owned()],
            status: Some(Box::new(Reply {
                path: Some("/out/PROF_1".to_owned()),
                ..Reply::default()
            })),
            ..Hello::default()
        };
        let frame = encode_frame(0, &hello).expect("small");
        stream.write_all(&frame).expect("written");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("closed");
        assert_eq!(rest, b"", "nothing more is asked");
    });
    let status = hello.expect("an answer").status.expect("asked for");
    assert_eq!(status.path.as_deref(), Some("/out/PROF_1"));
}

#[test]
fn an_earlier_agent_is_asked_for_its_status_and_told_a_quit() {
    let hello = asked(false, |mut stream, _| {
        greet(&mut stream, "0.0.1");
        let mut ops = Vec::new();
        let mut bytes = Vec::new();
        while ops.len() < 2 {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            bytes.push(byte[0]);
            if let Some(frame) = decode_frame(&bytes).expect("valid") {
                let request: Request = extension::parse_body(frame.body).expect("a request");
                ops.push(request.op);
                let reply = Reply {
                    outcome: Some(Outcome::Success),
                    capturing: true,
                    path: Some("/out/PROF_1".to_owned()),
                    ..Reply::default()
                };
                let answer = encode_frame(frame.id, &reply).expect("small");
                stream.write_all(&answer).expect("written");
                bytes.clear();
            }
        }
        assert_eq!(ops, [Op::Status, Op::Quit]);
    });
    let hello = hello.expect("an answer");
    assert_eq!(hello.agent_version, "0.0.1");
    assert_eq!(hello.capture.expect("it captures").path, "/out/PROF_1");
    assert_eq!(hello.status, None, "nobody asked for it");
}

#[test]
fn a_stock_server_that_passed_for_an_agent_is_told_a_quit() {
    let answer = asked(false, |mut stream, _| {
        say(&mut stream, kind::PARAMS_REPLY);
        assert_eq!(hear(&mut stream), kind::QUIT);
        for reply in [kind::QUIT_REPLY, kind::DISCONNECT, kind::QUIT_REPLY] {
            say(&mut stream, reply);
        }
    });
    assert!(matches!(answer, Err(SessionError::Unexpected(_))));
}
