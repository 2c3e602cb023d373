//! What processes answer, and what becomes of it: lines for people, and how far each is.

use super::{Fleet, Plan};
use crate::report;
use crate::session::SessionError;
use crate::target::Refusal;
use crate::verbs::job::{Phase, already, detached, refused};
use msprof_agent_core::control::extension::{Op, Outcome, Reply};
use std::time::Instant;

impl Fleet<'_> {
    pub(super) fn replied(&mut self, index: usize, op: Op, reply: Reply) {
        let extended = self.jobs[index].stock == Some(false);
        let pid = self.jobs[index].pid;
        match (op, reply.outcome) {
            (Op::Quit, _) => self.over(index),
            (Op::Start, Some(Outcome::Success)) => {
                let mut verdict = report::verdict(pid, op, &reply, extended).text;
                if let Plan::Start(detach) = self.plan {
                    detached(&mut verdict, pid, &reply, detach);
                }
                self.printer.say(&verdict);
                self.jobs[index].started = Some(reply);
                match self.plan {
                    Plan::Record(duration) => {
                        self.jobs[index].phase = Phase::Capturing(Instant::now() + duration);
                    }
                    _ => self.quit(index),
                }
            }
            (Op::Stop, Some(Outcome::Success)) => {
                let mut text = report::verdict(pid, op, &reply, extended).text;
                if self.jobs[index].early {
                    text.push_str("\n  note: interrupted, it ended before its time");
                }
                self.printer.say(&text);
                self.jobs[index].ended = Some(reply);
                self.quit(index);
            }
            (_, outcome) => {
                let mut verdict = report::verdict(pid, op, &reply, extended);
                let (code, mut text) = refused(op, outcome, &reply);
                if (op, outcome) == (Op::Start, Some(Outcome::AlreadyStarted)) {
                    let job = &mut self.jobs[index];
                    job.found = reply.capture.clone().or(job.found.take());
                    if let Some(capture) = &job.found {
                        let way_out = format!("stop it with: msprof stop --pid={pid}");
                        report::found_running(&mut verdict.text, capture, &way_out);
                        text = already(capture, &way_out);
                    }
                }
                self.printer.warn(&verdict.text);
                self.jobs[index].refusal = Some(Refusal { code, text });
                self.jobs[index].ended = Some(reply).filter(|reply| reply.ledger.is_some());
                self.quit(index);
            }
        }
    }

    pub(super) fn not_replied(&mut self, index: usize, op: Op, error: &SessionError) {
        if op == Op::Quit {
            // What was to be done has been done.
            return self.over(index);
        }
        if self.jobs[index].left.is_some() {
            return self.gone(index, error);
        }
        let pid = self.jobs[index].pid;
        let text = error.to_string();
        self.printer.warn(&report::failure(pid, op, &text).text);
        let code = error.code();
        self.jobs[index].refusal = Some(Refusal { code, text });
        match error.is_final() {
            true => self.over(index),
            false => self.quit(index),
        }
    }

    /// The session is over although nobody asked for it.
    pub(super) fn gone(&mut self, index: usize, error: &SessionError) {
        let pid = self.jobs[index].pid;
        if self.jobs[index].phase == Phase::Quitting {
            return self.over(index);
        }
        let mut text = format!("dynamic profiling for pid {pid} is over: {error}");
        let Some(left) = self.jobs[index].left.take() else {
            return self.refuse(index, error.code(), &error.to_string(), Some(text));
        };
        left.tell(&mut text);
        let complete = left.is_complete();
        let path = self.jobs[index]
            .started
            .as_ref()
            .and_then(|reply| reply.path.clone());
        let ended = Reply {
            path,
            ledger: left.into_ledger(),
            ..Reply::default()
        };
        self.jobs[index].ended = Some(ended);
        self.jobs[index].early = true;
        match complete {
            true => {
                self.printer.say(&text);
                self.over(index);
            }
            false => self.refuse(index, error.code(), &error.to_string(), Some(text)),
        }
    }
}
