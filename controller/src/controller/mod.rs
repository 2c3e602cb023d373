//! The session as the user sees it: commands in, results out, until everything is over.
//!
//! One thread, one channel of events: whatever happens (a line, a reply, a death, a signal) comes
//! through [`Controller::pump`], so that nothing the user does or a process fails to do can block it.

mod outcome;
mod program;

use crate::command::{self, Command};
use crate::exit::INTERRUPTED;
use crate::launch;
use crate::locate::Whom;
use crate::prompt::{Input, Prompt};
use crate::report;
use crate::screen::Screen;
use crate::search::{Looked, Search};
use crate::summary::short;
use crate::target::{Report, Target, TargetEvent};
use msprof_agent_core::control::extension::Op;
use signal_hook::consts::SIGINT;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long the prompt waits for slow processes when the session begins.
const GATHER: Duration = Duration::from_secs(1);
/// With several processes, how long the next command waits for those that have not answered.
const PATIENCE: Duration = Duration::from_secs(5);
/// A command that takes longer shows its progress.
const SHOW_PROGRESS: Duration = Duration::from_secs(1);
/// How often the progress line moves.
const PROGRESS_PACE: Duration = Duration::from_millis(250);
/// The end of a launched program explains the end of its session; the latter is told only when the
/// former does not follow within this time.
const EXIT_GRACE: Duration = Duration::from_millis(500);
/// Longest wait for the replies to quit; each session gives up before.
const QUIT_WAIT: Duration = Duration::from_secs(125);

/// Whatever happens.
#[derive(Debug)]
pub enum Event {
    /// A command was typed.
    Input(Input),
    /// A target's thread tells something.
    Target(u32, TargetEvent),
    /// SIGINT, SIGTERM or SIGHUP.
    Signal(i32),
    /// The launched program has ended.
    Exited(ExitStatus),
    /// Sockets of the launched program were looked for.
    Looked(Looked),
    /// The summary behind the stop of that number, `None` where there is nothing to show.
    Summed(u32, Option<String>),
}

/// How long a session may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Start and stop commands in all; 0 for no limit.
    pub commands: u32,
    /// Time at the prompt without a running capture; zero for no limit.
    pub idle: Duration,
}

/// A launched program.
#[derive(Debug)]
pub struct Program {
    /// Process id, also of its process group.
    pub pid: u32,
    /// Looks for its sockets.
    pub search: Search,
    /// Where they are looked for, in words.
    pub places: String,
}

/// The session.
#[derive(Debug)]
pub struct Controller {
    screen: Screen,
    events: Receiver<Event>,
    sender: Sender<Event>,
    prompt: Prompt,
    limits: Limits,
    params: Arc<str>,
    targets: Vec<Target>,
    program: Option<Program>,
    exited: Option<ExitStatus>,
    /// Processes of the program whose session is over; they may have another one.
    lost: Vec<u32>,
    /// A session of the program that has ended without a reason given yet.
    unexplained: Vec<(Instant, String)>,
    input: Option<Input>,
    interrupts: u32,
    /// The program is to end after the session.
    end_wanted: bool,
    /// The program has been asked to end.
    terminating: bool,
    /// A single look for further sockets is on its way.
    looking: bool,
    /// It has been looked for processes of the program that are not captured.
    armed_told: bool,
    /// A capture has ended with its process since the last start.
    ended_with_process: bool,
    /// When captures began, of the command that runs.
    started_ns: Vec<u64>,
    /// Summaries that are still to come, of captures that the last command has ended.
    summing: usize,
    commands: u32,
    failed: bool,
}

impl Controller {
    /// A session without targets.
    pub fn new(
        screen: Screen,
        channel: (Sender<Event>, Receiver<Event>),
        prompt: Prompt,
        limits: Limits,
        params: String,
    ) -> Controller {
        let (sender, events) = channel;
        Controller {
            screen,
            events,
            sender,
            prompt,
            limits,
            params: params.into(),
            targets: Vec::new(),
            program: None,
            exited: None,
            lost: Vec::new(),
            unexplained: Vec::new(),
            input: None,
            interrupts: 0,
            end_wanted: false,
            terminating: false,
            looking: false,
            ended_with_process: false,
            armed_told: false,
            started_ns: Vec::new(),
            summing: 0,
            commands: 0,
            failed: false,
        }
    }

    /// Attaches to running processes and serves the prompt; gives the exit status.
    pub fn attach(mut self, pids: &[u32]) -> u8 {
        for pid in pids {
            match Target::attach(*pid, Whom::Anybody, self.params.clone(), self.report()) {
                Ok(target) => self.targets.push(target),
                Err(error) => self.unreachable(*pid, &error.to_string()),
            }
        }
        let deadline = Instant::now() + GATHER;
        while self.targets.iter().any(|t| t.ready.is_none()) && Instant::now() < deadline {
            self.pump(deadline);
        }
        self.serve();
        self.quit();
        u8::from(self.failed)
    }

    /// Serves the prompt for a program that was launched, then waits for its end; gives the exit
    /// status.
    pub fn launched(mut self, program: Program) -> u8 {
        self.program = Some(program);
        self.serve();
        self.quit();
        if self.exited.is_none() && !self.end_wanted && !self.terminating {
            self.screen
                .say("the program runs on; waiting for it to end (Ctrl-C ends it)");
        }
        let status = self.wait_for_program();
        match launch::exit_status(status) {
            0 => u8::from(self.failed),
            own => own,
        }
    }

    fn report(&self) -> Report {
        let sender = self.sender.clone();
        Arc::new(move |pid, event| {
            let _ = sender.send(Event::Target(pid, event));
        })
    }

    /// Carries out commands until something ends the session.
    fn serve(&mut self) {
        while let Some(command) = self.next_command() {
            match command {
                Command::Nothing => {}
                Command::Help => self.screen.say(command::HELP),
                Command::Wrong(message) => {
                    self.screen.warn(&message);
                    self.screen.warn(command::HELP);
                    self.failed = true;
                }
                Command::Sleep(duration) => self.sleep(duration),
                Command::Status => self.dispatch(Op::Status),
                Command::Start | Command::Stop => {
                    if self.limits.commands > 0 && self.commands >= self.limits.commands {
                        self.screen.warn(&format!(
                            "{} start and stop commands are the limit of a session; it ends here, begin a new one (MSPROF_AGENT_MAX_COMMANDS=0 lifts the limit)",
                            self.limits.commands
                        ));
                        self.failed = true;
                        return;
                    }
                    self.commands += 1;
                    let start = command == Command::Start;
                    self.dispatch(if start { Op::Start } else { Op::Stop });
                }
                Command::Quit => return,
            }
        }
    }

    /// Waits for a command; `None` when the session is to end.
    fn next_command(&mut self) -> Option<Command> {
        let mut idle_since = Instant::now();
        let mut asked = false;
        loop {
            if let Some(input) = self.input.take() {
                self.screen.set_at_prompt(false);
                return match input {
                    Input::Line(line) if self.interrupts == 0 => Some(Command::parse(&line)),
                    _ => None,
                };
            }
            if self.interrupts > 0 || self.over() {
                self.screen.leave_prompt();
                return None;
            }
            if !asked {
                self.screen.set_at_prompt(true);
                self.prompt.ask();
                asked = true;
            }
            if self.targets.iter().any(|target| target.capturing) {
                idle_since = Instant::now();
            }
            if !self.limits.idle.is_zero() && idle_since.elapsed() >= self.limits.idle {
                self.screen.leave_prompt();
                self.screen.warn(&format!(
                    "no capture has run for {} s: the session ends here, begin a new one when needed",
                    self.limits.idle.as_secs()
                ));
                return None;
            }
            let mut until = Instant::now() + Duration::from_secs(60);
            if !self.limits.idle.is_zero() {
                until = until.min(idle_since + self.limits.idle);
            }
            self.pump(until);
        }
    }

    /// Whether there is nobody left to command.
    fn over(&self) -> bool {
        let nobody = match self.program {
            Some(_) => self.exited.is_some(),
            None => self.targets.is_empty(),
        };
        nobody || self.screen.is_closed()
    }

    fn sleep(&mut self, duration: Duration) {
        let until = Instant::now() + duration;
        while Instant::now() < until && self.interrupts == 0 && !self.over() {
            self.pump(until);
        }
    }

    /// Sends a command to every target and waits for the replies, which are printed as they come.
    fn dispatch(&mut self, op: Op) {
        if op == Op::Start {
            self.ended_with_process = false;
        }
        if self.program.is_some() && !self.find_targets(op) {
            return;
        }
        let began = Instant::now();
        self.started_ns.clear();
        let asked = self.targets.len();
        for target in &mut self.targets {
            target.send(op);
        }
        loop {
            let late = self.targets.iter().filter(|t| t.pending.contains(&op));
            let late: Vec<u32> = late.map(|t| t.pid).collect();
            if late.is_empty() || self.interrupts > 0 || self.screen.is_closed() {
                break;
            }
            if late.len() < asked && began.elapsed() >= PATIENCE {
                let pids: Vec<_> = late.iter().map(u32::to_string).collect();
                self.screen.warn(&format!(
                    "pid {} has not answered {} yet; the others go on, its result follows",
                    pids.join(", "),
                    report::name(op)
                ));
                break;
            }
            self.show_progress(op, began, &late);
            self.pump(Instant::now() + PROGRESS_PACE);
        }
        let spread = report::spread(&self.started_ns).filter(|_| op == Op::Start);
        if let Some(spread) = spread {
            self.screen.say(&spread);
        }
        if op == Op::Start {
            self.look_for_armed();
        }
        self.wait_for_summaries();
    }

    /// What a capture that has ended comes to is read in the background; not of many processes at once.
    fn sum_up(&mut self, ended: short::Ended) {
        if self.summing >= short::MOST {
            return;
        }
        self.summing += 1;
        let (sender, command) = (self.sender.clone(), self.commands);
        ended.read(move |text| {
            let _ = sender.send(Event::Summed(command, text));
        });
    }

    /// Shows the summaries of the command that has just run; one that comes later is not shown.
    fn wait_for_summaries(&mut self) {
        let until = Instant::now() + short::PATIENCE + short::GRACE;
        while self.summing > 0 && self.interrupts == 0 && !self.over() && Instant::now() < until {
            self.pump(until);
        }
        self.summing = 0;
    }

    fn show_progress(&mut self, op: Op, began: Instant, late: &[u32]) {
        if began.elapsed() < SHOW_PROGRESS {
            return;
        }
        let left: u64 = self.targets.iter().filter_map(|t| t.progress).sum();
        let mut text = format!(
            "{}: {} s, waiting for {} of {} processes",
            report::name(op),
            began.elapsed().as_secs(),
            late.len(),
            self.targets.len()
        );
        if left > 0 {
            text.push_str(&format!(", {} kB still to be written", left.div_ceil(1000)));
        }
        self.screen.progress(&text);
    }

    /// Ends all sessions.
    fn quit(&mut self) {
        self.screen.leave_prompt();
        let interrupts = self.interrupts;
        for target in &mut self.targets {
            target.send(Op::Quit);
        }
        let began = Instant::now();
        while !self.targets.is_empty() && began.elapsed() < QUIT_WAIT {
            if self.interrupts > interrupts {
                self.screen
                    .warn("interrupted: running captures are finished by the processes");
                self.failed = true;
                if self.program.is_none() {
                    self.screen.restore();
                    std::process::exit(INTERRUPTED.into());
                }
                self.targets.clear();
                self.end_program();
                return;
            }
            let late: Vec<u32> = self.targets.iter().map(|target| target.pid).collect();
            self.show_progress(Op::Quit, began, &late);
            self.pump(Instant::now() + PROGRESS_PACE);
        }
        self.targets.clear();
    }

    /// Takes one event in, or waits until the deadline.
    fn pump(&mut self, deadline: Instant) {
        let mut deadline = deadline;
        if let Some((since, _)) = self.unexplained.first() {
            deadline = deadline.min(*since + EXIT_GRACE);
        }
        let wait = deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(wait) {
            Ok(Event::Input(input)) => {
                self.prompt.answered();
                if input == Input::Interrupted {
                    self.interrupts += 1;
                }
                self.input = Some(input);
            }
            Ok(Event::Signal(signal)) => {
                self.interrupts += 1;
                // Who ends the controller so means the program as well, once its capture is safe.
                self.end_wanted |= signal != SIGINT;
            }
            Ok(Event::Exited(status)) => {
                self.exited = Some(status);
                self.unexplained.clear();
                self.screen.leave_prompt();
                self.screen.say(&launch::ending(status));
            }
            Ok(Event::Looked(Looked::Found(found))) => self.adopt(found),
            Ok(Event::Looked(Looked::Armed(pids))) => self.tell_armed(&pids),
            Ok(Event::Summed(command, text)) if command == self.commands && self.summing > 0 => {
                self.summing -= 1;
                if let Some(text) = text {
                    self.screen.say(&text);
                }
            }
            Ok(Event::Summed(..)) => {}
            Ok(Event::Target(pid, event)) => self.target_event(pid, event),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let due = |(since, _): &(Instant, String)| since.elapsed() >= EXIT_GRACE;
        while self.unexplained.first().is_some_and(due) {
            let (_, text) = self.unexplained.remove(0);
            self.screen.warn(&format!("{text}; the program runs on"));
        }
    }
}
