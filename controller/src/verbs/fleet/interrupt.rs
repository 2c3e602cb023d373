//! What becomes of processes when a signal comes.

use super::{Fleet, Plan};
use crate::exit::{DONE, FAILED, INTERRUPTED};
use crate::verbs::job::{Job, Phase};

impl Fleet<'_> {
    /// Whether a second interrupt has to wait as well: a stock server that is left without a quit serves nobody any
    /// more, and one that has still to answer can die of it.
    pub(super) fn must_wait(&mut self) -> bool {
        if !matches!(self.plan, Plan::Record(_)) {
            return false;
        }
        // Who has not been reached yet may have one.
        let late = self
            .jobs
            .iter()
            .filter(|job| job.phase != Phase::Over && job.stock != Some(false));
        let late: Vec<String> = late.map(|job| job.pid.to_string()).collect();
        if !late.is_empty() && !self.waits_told {
            self.waits_told = true;
            self.printer.warn(&format!(
                "pid {}: the vendor's library has to be left with a quit, which is waited for",
                late.join(", ")
            ));
        }
        !late.is_empty()
    }

    /// What is left behind after a signal.
    pub(super) fn tell_interrupted(&mut self, all_over: bool) {
        for job in &mut self.jobs {
            job.interrupt(self.plan);
        }
        if let Plan::Record(_) = self.plan {
            if !all_over {
                self.printer
                    .warn("interrupted: running captures are finished by the processes");
            }
            return;
        }
        for index in 0..self.jobs.len() {
            let text = self.jobs[index].left_behind(self.plan);
            self.printer.warn(&format!("interrupted: {text}"));
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        let all_over = self.jobs.iter().all(|job| job.phase == Phase::Over);
        let is_record = matches!(self.plan, Plan::Record(_));
        match self.interrupts {
            // A recording that is ended early is one all the same.
            1.. if !is_record || !all_over => INTERRUPTED,
            _ if self.jobs.iter().all(Job::succeeded) => DONE,
            _ => FAILED,
        }
    }
}
