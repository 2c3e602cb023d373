//! A process as `list`, `status` and `doctor` tell of it: an object for programs, and words.

use super::time::{rfc3339, words};
use crate::look::{Look, State};
use crate::screen::clean;
use msprof_agent_core::control::extension::{Capture, Hello, Holder, LastFailure, Origin};
use msprof_agent_core::process::user::passwd_name;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// State of a process that is none.
pub const NO_SUCH_PID: &str = "no-such-pid";

/// The state of a process in one word that stays the same, and in a sentence why it cannot be profiled.
pub fn state(look: &Look) -> (&'static str, Option<String>) {
    match &look.state {
        State::Answers(hello) => (answered(hello), hello.disabled.clone()),
        State::Stock => (
            "stock",
            Some(
                "a process of the vendor's library: it cannot be asked without taking its only session, \
                 so that more is not known"
                    .to_owned(),
            ),
        ),
        State::OtherUser { uid, .. } => (
            "other-user",
            Some(format!("run msprof as uid {uid} or as root")),
        ),
        State::Silent { error, stopped } => {
            let stopped = if *stopped {
                "it is stopped (SIGSTOP or a debugger); "
            } else {
                ""
            };
            ("no-reply", Some(format!("{stopped}{error}")))
        }
        State::Unreachable(error) => (error.code(), Some(error.to_string())),
        State::NoSocket { hint, .. } => {
            let state = match hint.code {
                "launcher" => "launcher",
                "not-bound-yet" | "no-socket" => "not-bound",
                "no-permission" => "no-permission",
                _ => "not-armed",
            };
            (state, Some(hint.text.clone()))
        }
    }
}

fn answered(hello: &Hello) -> &'static str {
    match hello {
        hello if hello.disabled.is_some() => "disabled",
        hello if hello.capture.is_some() => "capturing",
        hello if hello.busy.is_some() => "held",
        _ => "idle",
    }
}

/// The short word for why a process cannot be profiled; `ready` if it can.
pub fn code(look: &Look) -> &'static str {
    match &look.state {
        State::NoSocket { hint, .. } => hint.code,
        State::Answers(hello) if hello.disabled.is_some() => "disabled",
        State::Answers(hello) if hello.busy.is_some() => "busy",
        State::Answers(_) => "ready",
        _ => state(look).0,
    }
}

/// The object of a process; every key is always there.
pub fn object(look: &Look) -> Value {
    let process = &look.process;
    let hello = match &look.state {
        State::Answers(hello) => Some(hello),
        _ => None,
    };
    let (state, reason) = state(look);
    json!({
        "pid": process.pid,
        "container_pid": (process.own_pid != process.pid).then_some(process.own_pid),
        "command": process.command(),
        "uid": process.euid,
        "user": passwd_name(process.euid),
        "since": rfc3339(process.started_unix_ns()),
        "state": state,
        "code": code(look),
        "reason": reason,
        "socket": look.socket.as_ref().map(|path| path.to_string_lossy()),
        "agent_version": hello.map(|hello| &hello.agent_version),
        "devices": hello.map(|hello| &hello.devices),
        "held_by": hello.and_then(|hello| hello.busy.as_ref()),
        "capture": hello.and_then(|hello| hello.capture.as_ref()).map(capture),
        "last_failure": hello.and_then(|hello| hello.last_failure.as_ref()).map(last_failure),
    })
}

/// The same of a process that is none; every key is there.
pub fn absent(pid: u32) -> Value {
    json!({
        "pid": pid,
        "container_pid": null,
        "command": null,
        "uid": null,
        "user": null,
        "since": null,
        "state": NO_SUCH_PID,
        "code": NO_SUCH_PID,
        "reason": "no such pid",
        "socket": null,
        "agent_version": null,
        "devices": null,
        "held_by": null,
        "capture": null,
        "last_failure": null,
    })
}

/// A running capture for programs.
pub fn capture(capture: &Capture) -> Value {
    json!({
        "directory": (!capture.path.is_empty()).then_some(&capture.path),
        "origin": capture.origin,
        "by": capture.by,
        "since": (capture.since_unix_ns > 0).then(|| rfc3339(capture.since_unix_ns)),
        "ends_in_ms": capture.ends_in_ms,
        "failed": capture.failed,
    })
}

/// The last capture, which failed, for programs.
fn last_failure(failure: &LastFailure) -> Value {
    json!({
        "directory": (!failure.path.is_empty()).then_some(&failure.path),
        "error": failure.error,
        "since": (failure.since_unix_ns > 0).then(|| rfc3339(failure.since_unix_ns)),
    })
}

/// The same in words.
pub fn failed(failure: &LastFailure) -> String {
    format!("the last capture failed: {}", failure.error)
}

/// The state of a process in words, for one line.
pub fn text(look: &Look) -> String {
    let (state, reason) = state(look);
    let State::Answers(hello) = &look.state else {
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        return clean(&format!("{}{reason}", state.replace('-', " ")));
    };
    let mut text = state.to_owned();
    if let Some(reason) = reason {
        let _ = write!(text, ": {reason}");
    }
    if let Some(capture) = &hello.capture {
        let _ = write!(text, "{}", whose(capture));
    }
    if let Some(holder) = &hello.busy {
        let held = if state == "held" { "" } else { ", held" };
        let _ = write!(text, "{held} by {}", client(holder));
    }
    if let Some(failure) = &hello.last_failure {
        let _ = write!(text, ", {}", failed(failure));
    }
    match hello.devices.as_slice() {
        [] => text.push_str(", no device open"),
        devices => {
            let devices: Vec<_> = devices.iter().map(u32::to_string).collect();
            let _ = write!(text, ", devices {}", devices.join(","));
        }
    }
    let _ = write!(text, ", agent {}", hello.agent_version);
    clean(&text)
}

/// Since when a capture runs, whose it is, when it ends and why it takes nothing more.
pub fn whose(capture: &Capture) -> String {
    let mut text = String::new();
    if capture.since_unix_ns > 0 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let began = Duration::from_nanos(capture.since_unix_ns);
        let age = now.unwrap_or_default().saturating_sub(began);
        let _ = write!(text, " for {}", words(age));
    }
    let by = capture.by.as_ref().map_or_else(String::new, client);
    match capture.origin {
        Origin::Detached => {
            let _ = write!(text, ", detached by {by}");
        }
        Origin::Program => text.push_str(", started by the program itself"),
        Origin::Client | Origin::Unknown => {}
    }
    if let Some(ms) = capture.ends_in_ms {
        let _ = write!(text, ", ends in {}", words(Duration::from_millis(ms)));
    }
    if let Some(reason) = &capture.failed {
        let _ = write!(text, ", but has failed: {reason}");
    }
    text
}

/// Who a client is.
pub fn client(holder: &Holder) -> String {
    match holder.pid {
        0 => format!("a client of uid {} in another pid namespace", holder.uid),
        pid => format!("pid {pid} of uid {}", holder.uid),
    }
}
