//! `msprof doctor`: why a process cannot be profiled, and what to do.

use super::arguments::Takes;
use super::{Printer, row};
use crate::command::shown;
use crate::exit::{DONE, FAILED};
use crate::library;
use crate::look::{self, Look, State};
use crate::process::{self, Process};
use crate::screen::clean;
use msprof_agent_core::VERSION;
use msprof_agent_core::control::extension::Hello;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;

const TAKES: Takes = Takes {
    verb: "doctor",
    pids: true,
    time: None,
    capture: false,
    flags: &[],
};

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof doctor --pid=<pid>[,<pid>...] [--json]

Says whether a process can be profiled right now, and if not, why and what to do: started without
PROFILING_MODE, library not loaded, other user, container, no place for a socket, no device yet, agent
off, held by another msprof, stopped, ... Nothing is disturbed by that, no session taken.

  --pid=<pids>  the processes
  --json        the result as one object on stdout; each finding has a code that stays the same

exit status: 0 all can be profiled; 1 some cannot; 2 usage
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let given = match TAKES.read(arguments, HELP) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let mut printer = Printer::new(given.json);
    let looks = look::look_at(&given.pids, false);
    let mut objects = Vec::new();
    let mut status = DONE;
    for pid in given.pids {
        let look = looks.iter().find(|look| look.process.pid == pid);
        let findings = look.map_or_else(|| absent(pid), findings);
        let next = look.map(next).filter(|_| is_ready(&findings));
        if !is_ready(&findings) {
            status = FAILED;
        }
        printer.say(&text(pid, look, &findings, next.as_deref()));
        let mut object = look.map_or_else(|| row::absent(pid), row::object);
        object["ok"] = is_ready(&findings).into();
        object["findings"] = findings.iter().map(Finding::object).collect();
        object["next"] = next.into();
        objects.push(object);
    }
    printer.object(|| json!({ "processes": objects }));
    status
}

/// Something that is to be known of a process.
struct Finding {
    /// A short word for it that stays the same.
    code: &'static str,
    /// Nothing can be captured because of it.
    is_problem: bool,
    /// What it is, and the way out.
    text: String,
}

impl Finding {
    fn problem(code: &'static str, text: impl Into<String>) -> Finding {
        Finding {
            code,
            is_problem: true,
            text: text.into(),
        }
    }

    fn note(code: &'static str, text: impl Into<String>) -> Finding {
        Finding {
            is_problem: false,
            ..Finding::problem(code, text)
        }
    }

    fn kind(&self) -> &'static str {
        if self.is_problem { "problem" } else { "note" }
    }

    fn object(&self) -> Value {
        json!({ "code": self.code, "kind": self.kind(), "text": self.text })
    }
}

fn is_ready(findings: &[Finding]) -> bool {
    !findings.iter().any(|finding| finding.is_problem)
}

fn text(pid: u32, look: Option<&Look>, findings: &[Finding], next: Option<&str>) -> String {
    let command = look.map_or_else(String::new, |look| {
        format!(" ({})", shown(&look.process.command()))
    });
    let verdict = match is_ready(findings) {
        true => "can be profiled",
        false => "cannot be profiled now",
    };
    let mut text = format!("pid {pid}{command}: {verdict}");
    for finding in findings {
        let _ = write!(
            text,
            "\n  {} {}: {}",
            finding.kind(),
            finding.code,
            clean(&finding.text)
        );
    }
    if let Some(next) = next {
        let _ = write!(text, "\n  next: {next}");
    }
    text
}

/// What to type for a process that is ready.
fn next(look: &Look) -> String {
    let pid = look.process.pid;
    match &look.state {
        State::Answers(hello) if hello.capture.is_some() => format!("msprof stop --pid={pid}"),
        State::Answers(_) => format!("msprof start --pid={pid} --output=<dir> --runtime-api=on"),
        _ => format!("msprof record --pid={pid} --duration=5s --output=<dir> --runtime-api=on"),
    }
}

/// Of a number that no process has here.
fn absent(pid: u32) -> Vec<Finding> {
    let mut findings = vec![Finding::problem(
        row::NO_SUCH_PID,
        "no process has this number here; see msprof list",
    )];
    let inside = |other: &Process| other.own_pid == pid && other.pid != pid && other.has_agent();
    let others: Vec<String> = process::all()
        .into_iter()
        .filter_map(Process::find)
        .filter(inside)
        .map(|other| other.pid.to_string())
        .collect();
    if !others.is_empty() {
        findings.push(Finding::note(
            "container-pid",
            format!(
                "a process in a container knows itself by it; here that is pid {}",
                others.join(" or ")
            ),
        ));
    }
    findings
}

fn findings(look: &Look) -> Vec<Finding> {
    let (_, reason) = row::state(look);
    let reason = reason.unwrap_or_default();
    let mut findings = match &look.state {
        State::Answers(hello) => of_agent(hello),
        State::Stock => vec![Finding::note(
            "stock",
            "it has the vendor's library: msprof record and the prompt work, msprof start does not, since that library \
             ends a capture with the session; whether somebody else holds it cannot be seen",
        )],
        State::NoSocket { hint, .. } => vec![Finding::problem(hint.code, hint.text.clone())],
        State::OtherUser { uid, .. } => vec![Finding::problem(
            "other-user",
            format!("it belongs to uid {uid}: {reason}"),
        )],
        State::Silent { .. } => vec![Finding::problem("no-reply", reason)],
        State::Unreachable(error) => vec![Finding::problem(error.code(), reason)],
    };
    let process = &look.process;
    if process.own_pid != process.pid {
        findings.push(Finding::note(
            "container",
            format!(
                "it runs in a container, where it is pid {}: paths such as --output are those of the container",
                process.own_pid
            ),
        ));
    }
    findings
}

fn of_agent(hello: &Hello) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(why) = &hello.disabled {
        findings.push(Finding::problem(
            "disabled",
            format!("its agent has turned itself off and captures nothing more: {why}; start the program anew"),
        ));
    }
    if let Some(holder) = &hello.busy {
        findings.push(Finding::problem(
            "busy",
            format!(
                "it is held by {}: quit there; msprof status works beside it",
                row::client(holder)
            ),
        ));
    }
    match (hello.devices.is_empty(), hello.needs_device) {
        (true, true) => findings.push(Finding::problem(
            "need-device",
            "no device is open yet, and its MSPROF_AGENT_NEED_DEVICE=1 has a start refused until one is: try again when \
             the program has set its device",
        )),
        (true, false) => findings.push(Finding::note(
            "no-device",
            "no device is open yet: its components report when one is",
        )),
        _ => {}
    }
    if let Some(capture) = &hello.capture {
        findings.push(Finding::note(
            "capturing",
            format!("a capture runs{}, in {}", row::whose(capture), capture.path),
        ));
    }
    if hello.agent_version != VERSION {
        let text = library::differs(&clean(&hello.agent_version));
        findings.push(Finding::note("other-version", text));
    }
    findings
}
