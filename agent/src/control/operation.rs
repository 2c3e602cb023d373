//! A start or stop under way: run on a thread of its own so that the socket stays responsive.

#![forbid(unsafe_code)]

use crate::capture::{Captures, Request, StartError, Started, StopError, StopMode, Stopped};
use crate::names;
use crate::process;
use crossbeam_channel::Sender;
use std::sync::Arc;

/// What is to be done.
#[derive(Debug)]
pub enum Task {
    /// Start a capture.
    Start(Box<Request>),
    /// Stop the running one.
    Stop {
        /// Its number; `None` for whichever runs.
        only: Option<u64>,
        /// Why, where nobody has asked for it; for its account.
        note: Option<&'static str>,
        /// Where none runs, the failure of the last one is told that nobody has been told yet.
        asks: bool,
    },
}

/// What came of it.
#[derive(Debug)]
pub enum Event {
    /// A stop still has this many bytes to write.
    Progress(u64),
    /// A start has ended.
    Started(Result<Started, StartError>),
    /// A stop has ended.
    Stopped(Result<Box<Stopped>, StopError>),
}

/// An event and the session that it is for.
#[derive(Debug)]
pub struct Posted {
    /// Number of the session that asked.
    pub session: u64,
    /// What happened.
    pub event: Event,
}

/// Runs `task` behind the caller's back; every event is posted and `wake` called. Fails when the system
/// has no thread left.
pub fn run(
    task: Task,
    session: u64,
    captures: Arc<Captures>,
    events: Sender<Posted>,
    wake: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let post = move |event| {
        // The control thread may have ended meanwhile; then nobody wants to know.
        let _ = events.send(Posted { session, event });
        wake();
    };
    process::spawn(names::OPERATION_THREAD, move || {
        let starts = matches!(task, Task::Start(_));
        let body = std::panic::AssertUnwindSafe(|| carry_out(task, &captures, &post));
        if let Err(panic) = std::panic::catch_unwind(body) {
            // Somebody waits for an answer; the thread's root deals with the panic.
            post(match starts {
                true => Event::Started(Err(StartError::Broken)),
                false => Event::Stopped(Err(StopError::Broken)),
            });
            std::panic::resume_unwind(panic);
        }
    })
    .map(drop)
}

fn carry_out(task: Task, captures: &Captures, post: &impl Fn(Event)) {
    match task {
        Task::Start(request) => post(Event::Started(captures.start(&request))),
        Task::Stop { only, note, asks } => {
            let mode = StopMode {
                only,
                note,
                ..StopMode::NORMAL
            };
            let mut progress = |remaining| post(Event::Progress(remaining));
            let mut stopped = captures.stop(mode, &mut progress);
            if asks
                && let Err(StopError::NotStarted) = stopped
                && let Some(failed) = captures.take_untold_failure()
            {
                stopped = Ok(failed);
            }
            post(Event::Stopped(stopped.map(Box::new)));
        }
    }
}
