//! The launched program: finding its processes, waiting for it, ending it.

use super::{Controller, GATHER, PROGRESS_PACE};
use crate::locate::Attached;
use crate::report;
use crate::session::dismiss;
use crate::target::Target;
use msprof_agent_core::control::extension::Op;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long a command waits for the program to open its socket.
const SOCKET_WAIT: Duration = Duration::from_secs(60);
/// After this wait the user is told what is waited for.
const SAY_WAITING: Duration = Duration::from_secs(2);

impl Controller {
    /// Launch mode: makes sure that there is somebody to command; false when there is not.
    pub(super) fn find_targets(&mut self, op: Op) -> bool {
        self.forget_lost();
        if !self.targets.is_empty() {
            // Further processes of the program may have come up meanwhile.
            if op == Op::Start {
                self.look_once();
            }
            return true;
        }
        self.search_again();
        let began = Instant::now();
        let mut said = false;
        loop {
            if !self.targets.is_empty() {
                return true;
            }
            if op == Op::Stop && self.ended_with_process {
                // It has been told how the capture ended.
                return false;
            }
            if self.exited.is_some() {
                let text = format!(
                    "{} failed: the program has ended before it called CANN, or the agent was not loaded into it",
                    report::name(op)
                );
                self.screen.warn(&text);
                self.failed = true;
                return false;
            }
            if self.interrupts > 0 || self.over() {
                return false;
            }
            let places = self
                .program
                .as_ref()
                .map_or("", |program| program.places.as_str());
            if began.elapsed() >= SOCKET_WAIT {
                let text = format!(
                    "{} failed: the program has opened no socket in {places} within {} s: it has not called CANN yet, or the agent is not loaded into it",
                    report::name(op),
                    SOCKET_WAIT.as_secs()
                );
                self.screen.warn(&text);
                self.failed = true;
                return false;
            }
            if !said && began.elapsed() >= SAY_WAITING {
                said = true;
                let text = format!(
                    "{}: waiting for the program to call CANN (its socket will be in {places})",
                    report::name(op)
                );
                self.screen.warn(&text);
            }
            self.pump(Instant::now() + PROGRESS_PACE);
        }
    }

    /// Those whose session is over are asked for another one at the next command, not before: whoever ends it again
    /// and again must not keep us busy.
    fn forget_lost(&mut self) {
        for pid in std::mem::take(&mut self.lost) {
            if let Some(program) = &self.program {
                program.search.forget(pid);
            }
        }
    }

    pub(super) fn look_once(&mut self) {
        if let Some(program) = &self.program {
            program.search.once();
            self.looking = true;
        }
        let deadline = Instant::now() + GATHER;
        while self.looking && Instant::now() < deadline && self.interrupts == 0 && !self.over() {
            self.pump(deadline);
        }
    }

    /// After the first start: whether there are processes of the program that it did not reach.
    pub(super) fn look_for_armed(&mut self) {
        if let Some(program) = self.program.as_ref().filter(|_| !self.armed_told) {
            program.search.armed();
            self.armed_told = true;
        }
    }

    pub(super) fn tell_armed(&mut self, pids: &[u32]) {
        let is_target = |pid: &u32| self.targets.iter().any(|target| target.pid == *pid);
        let others = pids.iter().filter(|pid| !is_target(pid));
        let others: Vec<_> = others.map(u32::to_string).collect();
        if !others.is_empty() {
            self.screen.warn(&format!(
                "{} more processes of the program are armed and are not captured: pids {}; attach to them with --pid",
                others.len(),
                others.join(", ")
            ));
        }
    }

    /// Waits for the end of the program; Ctrl-C ends it.
    pub(super) fn wait_for_program(&mut self) -> ExitStatus {
        let mut interrupts = self.interrupts;
        if self.end_wanted {
            self.end_program();
        }
        loop {
            if let Some(status) = self.exited {
                return status;
            }
            if self.interrupts > interrupts {
                self.end_program();
                interrupts = self.interrupts;
            }
            self.pump(Instant::now() + Duration::from_secs(60));
        }
    }

    /// Ends the program: politely at first, then for sure.
    pub(super) fn end_program(&mut self) {
        if self.exited.is_some() {
            return;
        }
        let first = !std::mem::replace(&mut self.terminating, true);
        let (signal, text) = match first {
            true => (Signal::TERM, "ending the program; Ctrl-C again kills it"),
            false => (Signal::KILL, "killing the program"),
        };
        self.screen.warn(text);
        self.signal_program(signal);
    }

    pub(super) fn signal_program(&self, signal: Signal) {
        let running = self.program.as_ref().filter(|_| self.exited.is_none());
        let group = running.and_then(|program| Pid::from_raw(i32::try_from(program.pid).ok()?));
        if let Some(group) = group {
            // Its group ends with it: a failure means that there is nobody left.
            let _ = kill_process_group(group, signal);
        }
    }

    pub(super) fn adopt(&mut self, found: Vec<Attached>) {
        self.looking = false;
        for attached in found {
            let pid = attached.process.pid;
            if self.targets.iter().any(|target| target.pid == pid) {
                // It has made its socket anew; the session that there is goes on.
                let thread = std::thread::Builder::new().name("dismiss".to_owned());
                let _ = thread.spawn(move || dismiss(attached.connection));
                continue;
            }
            match Target::adopt(attached, self.params.clone(), self.report()) {
                Ok(target) => self.targets.push(target),
                Err(error) => self.unreachable(pid, &error.to_string()),
            }
        }
    }

    /// Launch mode: when nobody is left, the program's next process is waited for.
    pub(super) fn search_again(&mut self) {
        let needed = self.targets.is_empty() && self.exited.is_none();
        if let Some(program) = self.program.as_ref().filter(|_| needed) {
            program.search.until_found();
        }
    }
}
