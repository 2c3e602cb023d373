//! What targets tell, and what becomes of it: result lines, the exit status, targets that are gone.

use super::Controller;
use crate::report::{self, Verdict};
use crate::session::SessionError;
use crate::summary::short;
use crate::target::TargetEvent;
use msprof_agent_core::control::extension::{Op, Outcome, Reply};
use std::time::Instant;

impl Controller {
    pub(super) fn target_event(&mut self, pid: u32, event: TargetEvent) {
        let Some(index) = self.targets.iter().position(|target| target.pid == pid) else {
            return;
        };
        let target = &mut self.targets[index];
        match event {
            TargetEvent::Ready(ready) => {
                let off = ready.disabled.as_deref();
                let other = ready.other_version.as_deref();
                let running = ready.running.as_ref();
                let said = [
                    other.map(|version| report::other_version(pid, version)),
                    off.map(|why| report::turned_off(pid, why)),
                    running.map(|capture| report::runs_already(pid, capture)),
                ];
                target.ready = Some(ready);
                for text in said.into_iter().flatten() {
                    self.screen.warn(&text);
                }
            }
            TargetEvent::Unreachable(error) => {
                self.targets.remove(index);
                self.unreachable(pid, &error.text);
                self.search_again();
            }
            TargetEvent::Progress(left) => target.progress = Some(left),
            TargetEvent::Done(op, result) => {
                target.progress = None;
                if let Some(first) = target.pending.iter().position(|pending| *pending == op) {
                    target.pending.remove(first);
                }
                match result {
                    Ok(mut reply) => {
                        self.targets[index].leave_out_known_notes(op, &mut reply);
                        self.replied(index, op, &reply);
                    }
                    Err(error) => self.not_replied(index, op, error),
                }
            }
            TargetEvent::Left(mut left) => {
                left.leave_out(&target.noted);
                target.left = Some(left);
            }
            TargetEvent::Gone(error) => self.gone(index, &error),
        }
    }

    pub(super) fn replied(&mut self, index: usize, op: Op, reply: &Reply) {
        let target = &mut self.targets[index];
        let (pid, extended) = (
            target.pid,
            target.ready.as_ref().is_some_and(|r| r.extended),
        );
        match (op, reply.outcome) {
            (Op::Start, Some(Outcome::Success | Outcome::AlreadyStarted)) => {
                target.capturing = true;
            }
            (Op::Stop, Some(Outcome::Progress) | None) => {}
            (Op::Stop | Op::Quit, Some(_)) => target.capturing = false,
            (Op::Status, Some(Outcome::Success)) => target.capturing = reply.capturing,
            _ => {}
        }
        if op == Op::Start && reply.outcome == Some(Outcome::Success) {
            self.started_ns.extend(reply.started_ns);
        }
        let mut verdict = report::verdict(pid, op, reply, extended);
        if let (Op::Start, Some(Outcome::AlreadyStarted), Some(capture)) =
            (op, reply.outcome, &reply.capture)
        {
            report::found_running(&mut verdict.text, capture, "`stop` ends it");
        }
        self.print(verdict);
        if let Some(ended) = short::Ended::of(pid, op, reply) {
            self.sum_up(ended);
        }
        if op == Op::Quit {
            self.targets.remove(index);
        }
    }

    pub(super) fn not_replied(&mut self, index: usize, op: Op, error: SessionError) {
        let pid = self.targets[index].pid;
        let ended = matches!(
            error,
            SessionError::Ended | SessionError::Disconnected(_) | SessionError::Idle(_)
        );
        let has_left = self.targets[index].left.is_some();
        if op == Op::Quit && ended || op != Op::Start && has_left {
            // What quit and stop ask for has happened already.
            return self.gone(index, &error);
        }
        self.print(report::failure(pid, op, &error.to_string()));
        if error.is_final() || op == Op::Quit {
            self.drop_target(index);
        }
    }

    /// A session is over although nobody asked for it.
    pub(super) fn gone(&mut self, index: usize, error: &SessionError) {
        let pid = self.targets[index].pid;
        let capturing = self.targets[index].capturing;
        let mut text = format!("dynamic profiling for pid {pid} is over: {error}");
        if let Some(left) = self.targets[index].left.take() {
            let complete = left.is_complete();
            left.tell(&mut text);
            // A launched program's own status is what counts.
            let success = complete || self.program.is_some();
            self.print(Verdict {
                text,
                success,
                is_error: !complete,
            });
            self.ended_with_process = true;
            let pending = &mut self.targets[index].pending;
            pending.retain(|op| *op != Op::Stop);
            return self.drop_target(index);
        }
        match self.program {
            // A program that ends finishes its capture itself: no failure.
            Some(_) if self.exited.is_none() => self.unexplained.push((Instant::now(), text)),
            Some(_) => {}
            None => {
                self.screen.warn(&text);
                self.failed |= capturing;
            }
        }
        self.drop_target(index);
    }

    /// Forgets a target; commands that it will never answer have failed.
    pub(super) fn drop_target(&mut self, index: usize) {
        let target = self.targets.remove(index);
        self.lost.push(target.pid);
        for op in target.pending.into_iter().filter(|op| *op != Op::Quit) {
            self.print(report::failure(target.pid, op, "the session is over"));
        }
        self.search_again();
    }

    pub(super) fn unreachable(&mut self, pid: u32, error: &str) {
        self.failed = true;
        self.screen.warn(&format!(
            "dynamic profiling for pid {pid} cannot begin: {error}"
        ));
    }

    pub(super) fn print(&mut self, verdict: Verdict) {
        self.failed |= !verdict.success;
        match verdict.is_error {
            true => self.screen.warn(&verdict.text),
            false => self.screen.say(&verdict.text),
        }
    }
}
