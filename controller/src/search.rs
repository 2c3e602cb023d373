//! The thread that looks for the sockets of a launched program.

use crate::locate::{Attached, LaunchSearch};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How often the socket named after the controller is looked for.
const POLL: Duration = Duration::from_millis(50);
/// Descendants are walked through in every n-th look only: it reads all of /proc.
const FAMILY_EVERY: u32 = 10;
/// After this time the looks become rarer; a program may take minutes to reach the NPU.
const EAGER: Duration = Duration::from_secs(60);
/// Pause between looks after that.
const POLL_LATE: Duration = Duration::from_millis(500);

/// What the thread is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Look until something is found.
    Until,
    /// Look once, at all descendants.
    Once,
    /// Tell which descendants could be connected to, and are not.
    Armed,
    /// Take a process whose session is over for one that has not been connected to.
    Forget(u32),
}

/// What a look has brought.
#[derive(Debug)]
pub enum Looked {
    /// Connections.
    Found(Vec<Attached>),
    /// Processes that are armed and not connected to.
    Armed(Vec<u32>),
}

/// The thread's handle.
#[derive(Debug)]
pub struct Search {
    tasks: Sender<Task>,
}

impl Search {
    /// Starts the thread; it begins to look at once.
    pub fn start(
        looker: LaunchSearch,
        report: impl Fn(Looked) + Send + 'static,
    ) -> std::io::Result<Search> {
        let (tasks, received) = channel();
        let thread = std::thread::Builder::new().name("search".to_owned());
        thread.spawn(move || run(looker, &received, &report))?;
        let search = Search { tasks };
        search.until_found();
        Ok(search)
    }

    /// Looks until something is found.
    pub fn until_found(&self) {
        let _ = self.tasks.send(Task::Until);
    }

    /// Looks once for what has appeared since; reports in any case.
    pub fn once(&self) {
        let _ = self.tasks.send(Task::Once);
    }

    /// Has a process that lost its session be found again.
    pub fn forget(&self, pid: u32) {
        let _ = self.tasks.send(Task::Forget(pid));
    }

    /// Asks which processes are armed and not connected to.
    pub fn armed(&self) {
        let _ = self.tasks.send(Task::Armed);
    }
}

fn run(mut looker: LaunchSearch, tasks: &Receiver<Task>, report: &impl Fn(Looked)) {
    let mut task = match tasks.recv() {
        Ok(task) => task,
        Err(_) => return,
    };
    loop {
        let began = Instant::now();
        let mut looks = 0u32;
        while task == Task::Until {
            let family = looks % FAMILY_EVERY == FAMILY_EVERY - 1;
            looks = looks.wrapping_add(1);
            let found = looker.find(family);
            if !found.is_empty() {
                report(Looked::Found(found));
                break;
            }
            let pause = if began.elapsed() < EAGER {
                POLL
            } else {
                POLL_LATE
            };
            match tasks.recv_timeout(pause) {
                Ok(next) => task = next,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        if task == Task::Once {
            report(Looked::Found(looker.find(true)));
        }
        if task == Task::Armed {
            report(Looked::Armed(looker.armed()));
        }
        if let Task::Forget(pid) = task {
            looker.forget(pid);
        }
        task = match tasks.recv() {
            Ok(task) => task,
            Err(_) => return,
        };
    }
}
