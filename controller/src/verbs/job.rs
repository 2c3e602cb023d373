//! One process of several that are commanded: how far it is, and what came of it.

use super::fleet::Plan;
use super::row;
use crate::left::Left;
use crate::report;
use crate::screen::clean;
use crate::target::{Refusal, Target};
use msprof_agent_core::control::extension::{Capture, Detach, Op, Outcome, Reply};
use msprof_agent_core::ledger::Ledger;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A session is being begun.
    Attaching,
    /// It has one, and waits for the others.
    Ready,
    /// A start is under way.
    Starting,
    /// Captured until then.
    Capturing(Instant),
    /// A stop is under way since then.
    Stopping(Instant),
    /// The session is being ended.
    Quitting,
    /// There is nothing more to do.
    Over,
}

/// One process.
pub struct Job {
    /// Its pid, as the user knows it.
    pub pid: u32,
    /// Its thread, until it is over.
    pub target: Option<Target>,
    /// How far it is.
    pub phase: Phase,
    /// Whether it has a stock server; known once it was reached.
    pub stock: Option<bool>,
    /// A capture that ran before anything was done here.
    pub found: Option<Capture>,
    /// What it said to the start.
    pub started: Option<Reply>,
    /// The last word on its capture: directory, account, notes.
    pub ended: Option<Reply>,
    /// What a capture left that ended with the session.
    pub left: Option<Box<Left>>,
    /// Its capture ended before it was to.
    pub early: bool,
    /// Why what was asked for was not done.
    pub refusal: Option<Refusal>,
}

impl Job {
    /// Nothing has been done yet.
    pub fn new(pid: u32) -> Job {
        Job {
            pid,
            target: None,
            phase: Phase::Attaching,
            stock: None,
            found: None,
            started: None,
            ended: None,
            left: None,
            early: false,
            refusal: None,
        }
    }

    /// Whether what was asked for was done.
    pub fn succeeded(&self) -> bool {
        self.refusal.is_none()
    }

    /// Nothing more is waited for: what has not been done by now is not known to be done.
    pub fn interrupt(&mut self, plan: Plan) {
        let text = match (self.phase, plan) {
            (Phase::Over, _) => return,
            // It has been done, only the farewell is missing.
            (Phase::Quitting, _) => return,
            (Phase::Attaching | Phase::Ready, _) => "interrupted before it was begun".to_owned(),
            (Phase::Starting | Phase::Capturing(_) | Phase::Stopping(_), _) => {
                format!(
                    "interrupted while it was under way; msprof status --pid={} tells what became of it",
                    self.pid
                )
            }
        };
        self.refusal.get_or_insert(Refusal {
            code: "interrupted",
            text,
        });
    }

    /// What an interrupted `start` or `stop` leaves in the process.
    pub fn left_behind(&self, plan: Plan) -> String {
        let pid = self.pid;
        let directory = |reply: &Reply| reply.path.as_deref().map(clean).unwrap_or_default();
        if let Some(reply) = self.started.as_ref().filter(|_| plan != Plan::Stop) {
            let directory = directory(reply);
            return format!(
                "pid {pid}: its capture goes on in {directory}; stop it with: msprof stop --pid={pid}"
            );
        }
        if let Some(reply) = self.ended.as_ref().filter(|_| plan == Plan::Stop) {
            return format!("pid {pid}: its capture has ended, in {}", directory(reply));
        }
        let what = if plan == Plan::Stop { "stop" } else { "start" };
        match self.phase {
            Phase::Starting | Phase::Stopping(_) => format!(
                "pid {pid}: the {what} is under way; msprof status --pid={pid} tells what became of it"
            ),
            _ => format!("pid {pid}: the {what} was not done, it is as it was before"),
        }
    }

    /// What came of it, every key always there.
    pub fn object(&self) -> Value {
        let told = self.ended.as_ref().or(self.started.as_ref());
        let ledger = self.ended.as_ref().and_then(|reply| reply.ledger.as_ref());
        let notes = [&self.started, &self.ended].into_iter().flatten();
        let notes: Vec<&String> = notes
            .flat_map(|reply| &reply.notes)
            .chain(ledger.into_iter().flat_map(|ledger| &ledger.notes))
            .collect();
        json!({
            "pid": self.pid,
            "ok": self.succeeded(),
            "code": self.refusal.as_ref().map_or("ok", |refusal| refusal.code),
            "error": self.refusal.as_ref().map(|refusal| &refusal.text),
            "stock": self.stock,
            "capture": self.found.as_ref().map(row::capture),
            "directory": told.and_then(|reply| reply.path.as_ref()),
            "started_ns": self.started.as_ref().and_then(|reply| reply.started_ns),
            "captured_ms": ledger.and_then(captured_ms),
            "ended_early": self.early,
            "written": ledger.map(|ledger| &ledger.written),
            "lost": ledger.map(|ledger| &ledger.lost),
            "aged_out": ledger.map(|ledger| &ledger.aged_out),
            "bytes": ledger.map(|ledger| ledger.bytes),
            "notes": notes,
        })
    }
}

fn captured_ms(ledger: &Ledger) -> Option<u64> {
    let (start, stop) = (ledger.start, ledger.stop?);
    Some(stop.monotonic_raw_ns.saturating_sub(start.monotonic_raw_ns) / 1_000_000)
}

/// What is to be known of a capture that nobody looks after.
pub fn detached(text: &mut String, pid: u32, reply: &Reply, detach: Detach) {
    if let Some(path) = &reply.path {
        report::directory(text, path);
    }
    let limit = match detach.limit_ms {
        0 => "nothing else ends it while the process runs (--max-duration=0)".to_owned(),
        ms => format!(
            "it ends by itself after {} (--max-duration)",
            super::time::words(Duration::from_millis(ms))
        ),
    };
    text.push_str(&format!(
        "\n  it goes on without msprof; stop it with: msprof stop --pid={pid}\n  note: {limit}\
         \n  note: if the process is killed, its last milliseconds are lost; msprof recover finishes the rest"
    ));
}

/// The short word and the sentence for an outcome that is no success.
pub fn refused(op: Op, outcome: Option<Outcome>, reply: &Reply) -> (&'static str, String) {
    let (code, text) = match outcome {
        Some(Outcome::AlreadyStarted) => ("already-started", "a capture runs already"),
        Some(Outcome::NotStarted) => ("not-started", "no capture runs"),
        Some(Outcome::NoDevice) => ("no-device", "no device is open yet"),
        Some(Outcome::Disconnected) => ("disconnected", "the process has ended the session"),
        _ if reply.disabled.is_some() => ("disabled", "the agent has turned itself off"),
        _ if op == Op::Start => ("start-failed", "the process does not say why"),
        _ => ("stop-failed", "the process does not say why"),
    };
    let said = reply.disabled.as_ref().or(reply.error.as_ref());
    (code, said.cloned().unwrap_or_else(|| text.to_owned()))
}

/// The sentence for a start that has found a capture running.
pub fn already(capture: &Capture, way_out: &str) -> String {
    let place = match capture.path.is_empty() {
        true => String::new(),
        false => format!(", in {}", capture.path),
    };
    format!(
        "a capture runs already{}{place}; {way_out}",
        row::whose(capture)
    )
}
