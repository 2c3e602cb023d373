//! `msprof status`: what processes do right now, and the account of their captures, without taking a session.

use super::arguments::Takes;
use super::{Printer, row};
use crate::exit::{DONE, FAILED};
use crate::look::{self, Look, State};
use crate::report;
use crate::screen::clean;
use msprof_agent_core::control::extension::Reply;
use serde_json::{Value, json};
use std::ffi::OsString;

const TAKES: Takes = Takes {
    verb: "status",
    pids: true,
    time: None,
    capture: false,
    flags: &[],
};

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof status --pid=<pid>[,<pid>...] [--json]

Shows what processes do right now: whether something is captured, since when, by whom and where to, the
account of it so far, or that of the last capture. No session is taken: it works beside another msprof.

  --pid=<pids>  the processes
  --json        the result as one object on stdout

exit status: 0 all have answered; 1 some have not, or cannot be profiled; 2 usage
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let given = match TAKES.read(arguments, HELP) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let mut printer = Printer::new(given.json);
    let looks = look::look_at(&given.pids, true);
    let mut objects = Vec::new();
    let mut status = DONE;
    for pid in given.pids {
        let Some(look) = looks.iter().find(|look| look.process.pid == pid) else {
            status = FAILED;
            printer.warn(&format!("pid {pid}: no such pid"));
            objects.push(with_account(row::absent(pid), None));
            continue;
        };
        let answered = matches!(look.state, State::Answers(_) | State::Stock);
        match answered {
            true => printer.say(&text(look)),
            false => printer.warn(&text(look)),
        }
        if !answered {
            status = FAILED;
        }
        objects.push(object(look));
    }
    printer.object(|| json!({ "processes": objects }));
    status
}

fn text(look: &Look) -> String {
    let mut text = format!("pid {}: {}", look.process.pid, row::text(look));
    let State::Answers(hello) = &look.state else {
        return text;
    };
    let Some(reply) = &hello.status else {
        return text;
    };
    if let Some(ledger) = &reply.ledger {
        if !reply.capturing {
            text.push_str(" (last capture)");
        }
        if let Some(path) = &reply.path {
            report::directory(&mut text, path);
        }
        report::counts(&mut text, ledger);
    }
    for note in &reply.notes {
        text.push_str("\n  note: ");
        text.push_str(&clean(note));
    }
    text
}

fn object(look: &Look) -> Value {
    let reply = match &look.state {
        State::Answers(hello) => hello.status.as_deref(),
        _ => None,
    };
    with_account(row::object(look), reply)
}

fn with_account(mut object: Value, reply: Option<&Reply>) -> Value {
    object["ledger"] = json!(reply.and_then(|reply| reply.ledger.as_ref()));
    object["directory"] = json!(reply.and_then(|reply| reply.path.as_ref()));
    object["notes"] = json!(reply.map_or(&[][..], |reply| &reply.notes));
    object
}
