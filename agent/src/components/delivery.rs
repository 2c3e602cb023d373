//! Running queued commands: on the calling thread, or on a helper thread within a deadline.

use super::{Command, Handler, module_name};
use crate::clock::Moment;
use crate::waiting;
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A handler that takes longer than this no longer holds up the others.
const PATIENCE: Duration = Duration::from_secs(1);

/// Commands that wait for one handler at most; each takes 5.4 KB.
const WAITING_MAX: usize = 1000;

/// The commands that a handler has yet to run.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Box<Command>>,
    running: bool,
    /// The handler has run beyond a deadline and has not returned since.
    hung: bool,
}

impl Outbox {
    /// Adds a command behind those that wait.
    ///
    /// Bounded: handlers that open and close devices when they are told of a device could go on for ever.
    pub fn push(&self, command: Box<Command>) {
        let mut queue = self.queue.lock();
        if queue.waiting.len() < WAITING_MAX {
            queue.waiting.push_back(command);
        } else {
            tracing::warn!("a component is told too much at once; a command to it was dropped");
        }
    }

    /// Whether the handler has run beyond a deadline and has not returned since. What is queued meanwhile
    /// is run when it does.
    pub fn is_hung(&self) -> bool {
        self.queue.lock().hung
    }

    /// Notes that the deadline has passed; false when the handler has finished after all.
    fn mark_hung(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.hung = queue.running;
        queue.running || !queue.waiting.is_empty()
    }

    /// Whether everything was run.
    fn is_idle(&self) -> bool {
        let queue = self.queue.lock();
        !queue.running && queue.waiting.is_empty()
    }
}

/// A handler with something in its outbox.
#[derive(Clone, Debug)]
pub struct Call {
    /// Module id.
    pub module: u32,
    /// The callback.
    pub handler: Handler,
    /// What it has to run.
    pub outbox: Arc<Outbox>,
}

impl Call {
    /// Runs what waits in the outbox, unless another thread (or a frame further up this thread's stack)
    /// is at it: that one then runs ours too.
    fn run(&self) {
        loop {
            let mut command = {
                let mut queue = self.outbox.queue.lock();
                if queue.running {
                    return;
                }
                let Some(command) = queue.waiting.pop_front() else {
                    return;
                };
                queue.running = true;
                command
            };
            let command: *mut Command = &mut *command;
            // SAFETY: a registered handler takes a pointer to a command of this size and may change
            // it (contract of MsprofRegisterCallback); the box lives until the call returns. No lock
            // is held.
            unsafe { (self.handler)(1, command.cast(), size_of::<Command>() as u32) };
            let mut queue = self.outbox.queue.lock();
            queue.running = false;
            queue.hung = false;
        }
    }
}

/// Modules whose handlers did not finish in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// Module names.
    pub modules: Vec<String>,
}

/// Commands that were decided and are to be run now.
#[derive(Debug, Default)]
#[must_use = "the commands are queued but not run"]
pub struct Delivery {
    calls: Vec<Call>,
    /// Modules whose handlers hang: they are not waited for.
    left_out: Vec<u32>,
}

impl Delivery {
    /// A command was put into the call's outbox.
    pub(super) fn add(&mut self, call: Call) {
        if call.outbox.is_hung() {
            self.leave_out(call.module);
        } else {
            self.calls.push(call);
        }
    }

    /// A module is not told, since its handler hangs.
    pub(super) fn leave_out(&mut self, module: u32) {
        if !self.left_out.contains(&module) {
            self.left_out.push(module);
        }
    }

    /// Whether nothing is to be run.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Runs the commands on the calling thread: for application threads that called in.
    pub fn run_here(self) {
        for call in &self.calls {
            call.run();
        }
    }

    /// Runs the commands on helper threads and waits for at most `limit`. A handler that takes longer
    /// than a second is left to its helper, and another helper goes on with the rest.
    pub fn run_within(self, limit: Duration) -> Undelivered {
        let deadline = Moment::now() + limit;
        let calls = Arc::new(self.calls);
        let mut next = 0;
        while next < calls.len() {
            let Some(progress) = spawn_helper(&calls, next) else {
                break;
            };
            next = follow(&progress, next, calls.len(), deadline);
            if deadline.has_come() {
                // The rest is for one more helper, which nobody waits for.
                if next < calls.len() {
                    spawn_last_helper(&calls, next);
                }
                break;
            }
        }
        let mut modules = self.left_out;
        for module in unfinished(&calls, deadline) {
            if !modules.contains(&module) {
                modules.push(module);
            }
        }
        Undelivered {
            modules: modules.into_iter().map(module_name).collect(),
        }
    }
}

/// Waits while the helper makes progress; returns the number of the call to go on with.
fn follow(progress: &Receiver<()>, mut next: usize, count: usize, deadline: Moment) -> usize {
    while next < count {
        let until = deadline.min(Moment::now() + PATIENCE);
        match waiting::receive_by(progress, until) {
            Ok(()) => next += 1,
            // The helper hangs in call `next`, or is gone: the rest is for another one.
            Err(_) => return next + 1,
        }
    }
    next
}

fn spawn_last_helper(calls: &Arc<Vec<Call>>, from: usize) {
    let calls = calls.clone();
    let spawned = crate::process::spawn("msprof-cmd", move || {
        for call in &calls[from..] {
            call.run();
        }
    });
    if let Err(error) = spawned {
        tracing::error!("no thread for the components' commands: {error}");
    }
}

/// Starts a thread that runs the calls from number `from` on and says so after each.
fn spawn_helper(calls: &Arc<Vec<Call>>, from: usize) -> Option<Receiver<()>> {
    let (done, progress): (Sender<()>, Receiver<()>) = bounded(calls.len());
    let calls = calls.clone();
    let spawned = crate::process::spawn("msprof-cmd", move || {
        for call in &calls[from..] {
            call.run();
            // Nobody listens any more once another helper has taken over: leave the rest to it.
            if done.send(()).is_err() {
                return;
            }
        }
    });
    match spawned {
        Ok(_) => Some(progress),
        Err(error) => {
            tracing::error!("no thread for the components' commands: {error}");
            None
        }
    }
}

/// Modules with commands still queued or running, given until the deadline to finish.
fn unfinished(calls: &[Call], deadline: Moment) -> Vec<u32> {
    let mut late: Vec<&Call> = calls.iter().collect();
    waiting::until(deadline, || {
        late.retain(|call| !call.outbox.is_idle());
        late.is_empty().then_some(())
    });
    late.retain(|call| call.outbox.mark_hung());
    late.iter().map(|call| call.module).collect()
}
