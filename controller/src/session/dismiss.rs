//! Ending a connection that turns out not to be wanted.

use super::QUIT_REPLIES;
use crate::conn::{Arrived, Connection};
use msprof_agent_core::control::wire::{self, Message, kind, status};
use msprof_agent_core::options::Options;
use msprof_agent_core::params::Params;
use std::time::{Duration, Instant};

/// How long the answer to the params, and the replies to the quit, are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends a connection to a server that is not the one looked for, over which nothing was sent yet.
///
/// A stock server that is connected to and closed without a word loses its control thread for good:
/// it gets what a user who changes their mind would send, the params and a quit. Takes at most two
/// seconds; whatever fails, there is nobody to tell.
pub fn dismiss(mut connection: Connection) {
    let params = Params::from_options(&Options::default(), std::process::id());
    let Some(bytes) = params
        .to_wire_text()
        .ok()
        .and_then(|text| wire::encode_params(&text).ok())
    else {
        return;
    };
    let deadline = Instant::now() + PATIENCE;
    if connection.send(bytes.as_slice(), deadline).is_err() {
        return;
    }
    let answer = next_message(&mut connection, deadline);
    let accepted =
        |message: &Message| (message.kind, message.status) == (kind::PARAMS_REPLY, status::SUCCESS);
    // Our own agent needs no farewell, and one that has refused expects none.
    if !answer.as_ref().is_some_and(accepted) {
        return;
    }
    let quit = Message {
        kind: kind::QUIT,
        status: status::SUCCESS,
    };
    let deadline = Instant::now() + PATIENCE;
    if connection.send(&quit.encode(), deadline).is_ok() {
        for _ in 0..QUIT_REPLIES {
            if next_message(&mut connection, deadline).is_none() {
                return;
            }
        }
    }
}

fn next_message(connection: &mut Connection, deadline: Instant) -> Option<Message> {
    loop {
        if let Some(message) = connection.take_message() {
            return Some(message);
        }
        match connection.receive(deadline) {
            Ok(Arrived::Bytes) => {}
            Ok(Arrived::End | Arrived::Nothing) | Err(_) => return None,
        }
    }
}
