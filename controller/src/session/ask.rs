//! Asking an agent of ours how it is, without being its client.

use super::SessionError;
use crate::conn::{Arrived, Connection};
use msprof_agent_core::control::extension::{self, Hello, Op, Reply, Request, feature};
use msprof_agent_core::control::wire::{self, Message, kind, status};
use msprof_agent_core::params::Params;
use std::time::{Duration, Instant};

/// What is left of the time for an earlier agent's answer to the farewell; it needs none.
const FAREWELL: Duration = Duration::from_millis(100);

/// Asks for the hello, and with `account` for the state of the captures as well. Over when this returns, whatever comes
/// of it; the session that another client has goes on.
///
/// An earlier agent takes whoever asks for a client: it is told the quit at once, and answers that it is busy if it is.
pub fn ask(
    mut connection: Connection,
    account: bool,
    limit: Duration,
    deadline: Instant,
) -> Result<Hello, SessionError> {
    let text = Params::of_look(std::process::id(), account).to_wire_text();
    let refused = |error: String| SessionError::Refused(error);
    let text = text.map_err(|error| refused(error.to_string()))?;
    let bytes = wire::encode_params(&text).map_err(|error| refused(error.to_string()))?;
    let unanswered = SessionError::NoHello;
    match connection.send(bytes.as_slice(), deadline) {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            return Err(unanswered(limit));
        }
        // What was said before the close may explain it.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        sent => sent?,
    }
    let answer = loop {
        if let Some(message) = connection.take_message() {
            break message;
        }
        wait(&mut connection, limit, deadline)?;
    };
    if (answer.kind, answer.status) != (kind::PARAMS_REPLY, status::EXTENDED) {
        farewell_of_stock(connection, answer);
        return Err(SessionError::Unexpected(answer));
    }
    let mut hello: Hello = extension::parse_body(&next_frame(&mut connection, limit, deadline)?)?;
    if hello.has(feature::LOOK) || hello.busy.is_some() || hello.error.is_some() {
        return Ok(hello);
    }
    // It holds a session now. What the hello of such an agent does not say, a status does.
    if let Ok(reply) = request(&mut connection, Op::Status, limit, deadline) {
        if reply.capturing {
            hello.capture = Some(extension::Capture {
                path: reply.path.clone().unwrap_or_default(),
                since_unix_ns: reply.ledger.as_ref().map_or(0, |l| l.start.realtime_ns),
                ..Default::default()
            });
        }
        hello.status = account.then(|| Box::new(reply));
    }
    let _ = request(
        &mut connection,
        Op::Quit,
        FAREWELL,
        Instant::now() + FAREWELL,
    );
    Ok(hello)
}

fn request(
    connection: &mut Connection,
    op: Op,
    limit: Duration,
    deadline: Instant,
) -> Result<Reply, SessionError> {
    let frame = extension::encode_frame(1, &Request::from(op))?;
    connection.send(&frame, deadline)?;
    Ok(extension::parse_body(&next_frame(
        connection, limit, deadline,
    )?)?)
}

fn next_frame(
    connection: &mut Connection,
    limit: Duration,
    deadline: Instant,
) -> Result<Vec<u8>, SessionError> {
    loop {
        if let Some((_, body)) = connection.take_frame()? {
            return Ok(body);
        }
        wait(connection, limit, deadline)?;
    }
}

fn wait(
    connection: &mut Connection,
    limit: Duration,
    deadline: Instant,
) -> Result<(), SessionError> {
    match connection.receive(deadline)? {
        Arrived::Bytes => Ok(()),
        Arrived::End => Err(SessionError::ClosedAtOnce),
        Arrived::Nothing => Err(SessionError::NoHello(limit)),
    }
}

/// What passes for our agent and is none: a stock server needs a quit, or it serves nobody any more.
fn farewell_of_stock(mut connection: Connection, answer: Message) {
    if (answer.kind, answer.status) != (kind::PARAMS_REPLY, status::SUCCESS) {
        return;
    }
    let quit = Message {
        kind: kind::QUIT,
        status: status::SUCCESS,
    };
    let deadline = Instant::now() + FAREWELL;
    if connection.send(&quit.encode(), deadline).is_ok() {
        for _ in 0..super::QUIT_REPLIES {
            let answered = loop {
                match connection.take_message() {
                    Some(_) => break true,
                    None if matches!(connection.receive(deadline), Ok(Arrived::Bytes)) => {}
                    None => break false,
                }
            };
            if !answered {
                return;
            }
        }
    }
}
