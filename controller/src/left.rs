//! What a process whose session is over has left of its capture on disk.

use crate::report;
use crate::screen::clean;
use crate::session::Session;
use msprof_agent_core::ledger::{CaptureState, Ledger};
use msprof_agent_core::profdir::reader::Profile;
use msprof_agent_core::profdir::recover::rescued_note;
use msprof_agent_core::rescue::{Lifeline, Rescued};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a process that still lives is given to complete the directory.
const COMPLETION: Duration = Duration::from_secs(2);
/// How often the directory is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A capture that was not stopped by a command.
#[derive(Debug)]
pub struct Left {
    /// Its directory, by the reply to the start.
    path: String,
    /// The last account that could be read.
    ledger: Result<Ledger, String>,
    /// What came out of the memory of a process that was killed, where that was tried.
    rescued: Option<Result<Rescued, String>>,
}

impl Left {
    /// Reads the account; waits for its completion while there is somebody to complete it.
    pub fn read(path: String, lives: impl Fn() -> bool) -> Left {
        let deadline = Instant::now() + COMPLETION;
        loop {
            // Before the look: what a process wrote last is seen after its end.
            let last = !lives() || Instant::now() >= deadline;
            let ledger = read_ledger(Path::new(&path));
            if last || ledger.as_ref().is_ok_and(|ledger| ledger.stop.is_some()) {
                return Left {
                    path,
                    ledger,
                    rescued: None,
                };
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether the process has seen its end.
    pub fn has_stopped(&self) -> bool {
        self.ledger
            .as_ref()
            .is_ok_and(|ledger| ledger.stop.is_some())
    }

    /// Writes what the process, which has ended without a stop, still had in memory, and finishes its directory.
    pub fn rescue(&mut self, lifeline: Lifeline, session: &Session) {
        if !session.wait_ended() {
            let why = "the process is still ending; nothing was touched";
            self.rescued = Some(Err(why.to_owned()));
            return;
        }
        let finished = lifeline.rescue(Path::new(&self.path), session.foreign_owner());
        self.rescued = Some(match finished {
            Ok(finished) => {
                if let Some(ledger) = finished.ledger {
                    self.ledger = Ok(ledger);
                }
                finished.rescued.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        });
        if let Some(Ok(rescued)) = &self.rescued {
            // Told with the result.
            self.leave_out(&[rescued_note(rescued.records)]);
        }
    }

    /// Whether everything is on disk and accounted for.
    pub fn is_complete(&self) -> bool {
        let complete = |l: &Ledger| l.stop.is_some() && l.state == CaptureState::Complete;
        self.ledger.as_ref().is_ok_and(complete)
    }

    /// Drops notes that the user knows.
    pub fn leave_out(&mut self, known: &[String]) {
        if let Ok(ledger) = &mut self.ledger {
            ledger.notes.retain(|note| !known.contains(note));
        }
    }

    /// The account.
    pub fn into_ledger(self) -> Option<Ledger> {
        self.ledger.ok()
    }

    /// What is to be told, behind `text`.
    pub fn tell(&self, text: &mut String) {
        let complete = self.is_complete();
        match &self.ledger {
            Ok(ledger) if ledger.stop.is_some() => {
                text.push_str(match (complete, &self.rescued) {
                    (true, _) => "; its capture is complete",
                    (false, Some(Ok(_))) => "; what it still had in memory is written",
                    (false, _) => "; its capture ended early",
                });
                report::directory(text, &self.path);
                self.tell_rescued(text);
                report::counts(text, ledger);
            }
            other => {
                text.push_str(
                    "; its capture is not complete, and what was lost of it is not known",
                );
                report::directory(text, &self.path);
                text.push_str("\n  finish it with: msprof recover ");
                text.push_str(&clean(&self.path));
                self.tell_rescued(text);
                if let Err(error) = other {
                    text.push_str("\n  no account: ");
                    text.push_str(&clean(error));
                }
            }
        }
    }

    fn tell_rescued(&self, text: &mut String) {
        // Writing to a String cannot fail.
        match &self.rescued {
            None => {}
            Some(Err(error)) => {
                let _ = write!(text, "\n  not rescued from memory: {}", clean(error));
            }
            Some(Ok(rescued)) => {
                let count = rescued.records;
                let _ = write!(
                    text,
                    "\n  rescued: {count} records that were still in memory were written"
                );
                report::by_trace(text, &rescued.by_trace);
                if rescued.undone_bytes > 0 {
                    text.push_str("; a write that was under way was done again");
                }
                if let Some(error) = &rescued.error {
                    let (count, error) = (rescued.unwritten, clean(error));
                    let _ = write!(text, "\n  {count} more could not be written: {error}");
                }
            }
        }
    }
}

fn read_ledger(path: &Path) -> Result<Ledger, String> {
    let profile = Profile::open(path).map_err(|error| error.to_string())?;
    let ledger = profile.ledger().map_err(|error| error.to_string())?;
    ledger.ok_or_else(|| "the directory holds none".to_owned())
}
