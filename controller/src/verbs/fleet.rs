//! One command, or a capture of a given length, for several processes at once.
//!
//! Each process has a thread of its own ([`Target`]); what they tell comes through one channel, and the wait of one is
//! never another's. A process that takes its time to be reached is commanded when it is.

mod interrupt;
mod outcome;

use super::Printer;
use super::job::{Job, Phase};
use crate::locate::Whom;
use crate::report;
use crate::screen::clean;
use crate::summary::short;
use crate::target::{Ready, Refusal, Target, TargetEvent};
use msprof_agent_core::control::extension::{Detach, Op};
use serde_json::Value;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long processes that have been reached wait for the others, so that all begin together.
const GATHER: Duration = Duration::from_secs(1);
/// A stop that takes longer shows its progress.
const SHOW_PROGRESS: Duration = Duration::from_secs(1);
/// How often the progress line moves.
const PROGRESS_PACE: Duration = Duration::from_millis(250);

/// The word for a process that has the vendor's library.
const STOCK: &str = "stock-process";

/// What captures a process whose captures end with their sessions.
fn instead(pid: u32) -> String {
    format!("use msprof record --pid={pid} --duration=<time>, or the prompt")
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Start a capture that goes on.
    Start(Detach),
    /// Stop what runs.
    Stop,
    /// Capture for so long.
    Record(Duration),
}

/// Whatever happens.
enum Event {
    Target(u32, TargetEvent),
    Interrupt,
}

/// The processes and what is done with them.
pub struct Fleet<'a> {
    plan: Plan,
    jobs: Vec<Job>,
    events: Receiver<Event>,
    sender: Sender<Event>,
    printer: &'a mut Printer,
    interrupts: u32,
    /// It has been said why a second interrupt is not the end.
    waits_told: bool,
}

impl Fleet<'_> {
    /// What is to be done with processes; none is reached for yet.
    pub fn new<'a>(plan: Plan, pids: &[u32], printer: &'a mut Printer) -> Fleet<'a> {
        let (sender, events) = channel();
        Fleet {
            plan,
            jobs: pids.iter().map(|pid| Job::new(*pid)).collect(),
            events,
            sender,
            printer,
            interrupts: 0,
            waits_told: false,
        }
    }

    /// Begins to reach the processes; `params` goes to each. To be called once signals are watched.
    pub fn attach(&mut self, params: &str) {
        let told = self.sender.clone();
        let report: crate::target::Report = Arc::new(move |pid, event| {
            let _ = told.send(Event::Target(pid, event));
        });
        // A capture of a stock process ends with its session: there is nothing to start or to stop from here.
        let whom = match self.plan {
            Plan::Record(_) => Whom::Anybody,
            Plan::Start(_) | Plan::Stop => Whom::Agent,
        };
        let params: Arc<str> = params.into();
        for index in 0..self.jobs.len() {
            let pid = self.jobs[index].pid;
            match Target::attach(pid, whom, params.clone(), report.clone()) {
                Ok(target) => self.jobs[index].target = Some(target),
                Err(error) => self.refuse(index, "no-thread", &error.to_string(), None),
            }
        }
    }

    /// Refuses all for one reason; none has been reached for.
    pub fn give_up(&mut self, code: &'static str, text: &str) {
        for index in 0..self.jobs.len() {
            self.refuse(index, code, text, None);
        }
    }

    /// For whoever is told of signals: ends a capture early; false when nobody listens any more.
    pub fn interrupter(&self) -> impl Fn() -> bool + Send + 'static {
        let sender = self.sender.clone();
        move || sender.send(Event::Interrupt).is_ok()
    }

    /// Does it; returns when it is done with all, or at the second interrupt.
    pub fn run(&mut self) {
        let gathered = Instant::now() + GATHER;
        loop {
            self.command(gathered);
            if self.jobs.iter().all(|job| job.phase == Phase::Over) {
                break;
            }
            if self.interrupts > 1 && !self.must_wait() {
                break;
            }
            self.show_progress();
            let wait = self
                .next_moment(gathered)
                .saturating_duration_since(Instant::now());
            match self.events.recv_timeout(wait) {
                Ok(Event::Target(pid, event)) => self.event(pid, event),
                Ok(Event::Interrupt) => self.interrupts += 1,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        let started = self.jobs.iter().filter_map(|job| job.started.as_ref());
        let started: Vec<u64> = started.filter_map(|reply| reply.started_ns).collect();
        if let Some(spread) = report::spread(&started) {
            self.printer.say(&spread);
        }
        let all_over = self.jobs.iter().all(|job| job.phase == Phase::Over);
        if !self.printer.json && all_over {
            self.sum_up();
        }
        if self.interrupts > 0 {
            self.tell_interrupted(all_over);
        }
    }

    /// What the captures come to that have been stopped, as behind a stop at the prompt.
    fn sum_up(&mut self) {
        let ended = self.jobs.iter().filter_map(|job| {
            let reply = job.ended.as_ref()?;
            short::Ended::of(job.pid, Op::Stop, reply)
        });
        for text in short::read_all(ended) {
            self.printer.say(&text);
        }
    }

    /// The results, in the order of the pids.
    pub fn objects(&self) -> Vec<Value> {
        self.jobs.iter().map(Job::object).collect()
    }

    /// Gives the commands that are due.
    fn command(&mut self, gathered: Instant) {
        let now = Instant::now();
        let waits = |job: &Job| job.phase == Phase::Attaching;
        let go = now >= gathered || !self.jobs.iter().any(waits);
        let interrupted = self.interrupts > 0;
        for job in &mut self.jobs {
            let Some(target) = &mut job.target else {
                continue;
            };
            match (job.phase, self.plan) {
                // Also of one that is reached only now: a stock server has to hear a quit.
                (Phase::Ready, _) if interrupted => {
                    job.refusal.get_or_insert(Refusal {
                        code: "interrupted",
                        text: "interrupted before it was begun".to_owned(),
                    });
                    target.send(Op::Quit);
                    job.phase = Phase::Quitting;
                }
                (Phase::Ready, Plan::Start(detach)) if go => {
                    target.start_detached(detach);
                    job.phase = Phase::Starting;
                }
                (Phase::Ready, Plan::Record(_)) if go => {
                    target.send(Op::Start);
                    job.phase = Phase::Starting;
                }
                (Phase::Ready, Plan::Stop) if go => {
                    target.send(Op::Stop);
                    job.phase = Phase::Stopping(now);
                }
                (Phase::Capturing(until), _) if now >= until || interrupted => {
                    job.early = now < until;
                    target.send(Op::Stop);
                    job.phase = Phase::Stopping(now);
                }
                _ => {}
            }
        }
    }

    /// When something has to be done although nothing happens.
    fn next_moment(&self, gathered: Instant) -> Instant {
        let now = Instant::now();
        let moments = self.jobs.iter().filter_map(|job| match job.phase {
            Phase::Ready => Some(gathered),
            Phase::Capturing(until) => Some(until),
            Phase::Stopping(_) => Some(now + PROGRESS_PACE),
            _ => None,
        });
        moments.min().unwrap_or(now + Duration::from_secs(60))
    }

    fn show_progress(&mut self) {
        let slow = |job: &&Job| matches!(job.phase, Phase::Stopping(since) if since.elapsed() >= SHOW_PROGRESS);
        let slow: Vec<&Job> = self.jobs.iter().filter(slow).collect();
        if slow.is_empty() {
            return;
        }
        let targets = slow.iter().filter_map(|job| job.target.as_ref());
        let left: u64 = targets.filter_map(|target| target.progress).sum();
        let text = format!(
            "stop: waiting for {} of {} processes, {} kB still to be written",
            slow.len(),
            self.jobs.len(),
            left.div_ceil(1000)
        );
        self.printer.screen.progress(&text);
    }

    fn event(&mut self, pid: u32, event: TargetEvent) {
        let Some(index) = self.jobs.iter().position(|job| job.pid == pid) else {
            return;
        };
        if self.jobs[index].phase == Phase::Over {
            return;
        }
        match event {
            TargetEvent::Ready(ready) => self.ready(index, &ready),
            TargetEvent::Unreachable(refusal) if refusal.code == STOCK => {
                let pid = self.jobs[index].pid;
                self.jobs[index].stock = Some(true);
                let way_out = match self.plan {
                    Plan::Stop => "stop it in that session".to_owned(),
                    _ => instead(pid),
                };
                let text = format!("{}; {way_out}", refusal.text);
                self.refuse(index, STOCK, &text, None);
            }
            TargetEvent::Unreachable(refusal) => {
                self.refuse(index, refusal.code, &refusal.text, None);
            }
            TargetEvent::Progress(left) => {
                if let Some(target) = &mut self.jobs[index].target {
                    target.progress = Some(left);
                }
            }
            TargetEvent::Done(op, Ok(mut reply)) => {
                if let Some(target) = &mut self.jobs[index].target {
                    target.leave_out_known_notes(op, &mut reply);
                }
                self.replied(index, op, *reply);
            }
            TargetEvent::Done(op, Err(error)) => self.not_replied(index, op, &error),
            TargetEvent::Left(left) => {
                let job = &mut self.jobs[index];
                job.left = Some(left);
                if let (Some(left), Some(target)) = (&mut job.left, &job.target) {
                    left.leave_out(&target.noted);
                }
            }
            TargetEvent::Gone(error) => self.gone(index, &error),
        }
    }

    fn ready(&mut self, index: usize, ready: &Ready) {
        let job = &mut self.jobs[index];
        let pid = job.pid;
        job.stock = Some(!ready.extended);
        job.phase = Phase::Ready;
        job.found = ready.running.clone();
        if let Some(version) = &ready.other_version {
            self.printer.warn(&report::other_version(pid, version));
        }
        if let Some(why) = &ready.disabled {
            self.printer.warn(&report::turned_off(pid, why));
        }
        if let (Plan::Stop, Some(capture)) = (self.plan, &ready.running) {
            let whose = clean(&super::whose(capture));
            self.printer
                .say(&format!("pid {pid}: stopping the capture that runs{whose}"));
        }
        if !matches!(self.plan, Plan::Start(_)) || ready.detaches {
            return;
        }
        let text = format!(
            "its agent is of an earlier release, which ends a capture with the session that started it; {}",
            instead(pid)
        );
        self.refuse(index, "old-agent", &text, None);
    }

    /// Gives a process up; `said` is the line for people, if another than that it cannot begin.
    fn refuse(&mut self, index: usize, code: &'static str, text: &str, said: Option<String>) {
        let pid = self.jobs[index].pid;
        let said = said.unwrap_or_else(|| {
            format!(
                "dynamic profiling for pid {pid} cannot begin: {}",
                clean(text)
            )
        });
        self.printer.warn(&said);
        let text = text.to_owned();
        self.jobs[index]
            .refusal
            .get_or_insert(Refusal { code, text });
        match self.jobs[index].phase {
            Phase::Ready => self.quit(index),
            _ => self.over(index),
        }
    }

    fn quit(&mut self, index: usize) {
        self.jobs[index].phase = Phase::Quitting;
        match &mut self.jobs[index].target {
            Some(target) => target.send(Op::Quit),
            None => self.over(index),
        }
    }

    fn over(&mut self, index: usize) {
        self.jobs[index].phase = Phase::Over;
        self.jobs[index].target = None;
    }
}
