//! What a process whose session is over has left of its capture on disk.

use crate::report;
use crate::screen::clean;
use msprof_agent_core::ledger::{CaptureState, Ledger};
use msprof_agent_core::profdir::reader::Profile;
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
                return Left { path, ledger };
            }
            std::thread::sleep(LOOK);
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
                text.push_str(match complete {
                    true => "; its capture is complete",
                    false => "; its capture ended early",
                });
                report::directory(text, &self.path);
                report::counts(text, ledger);
            }
            other => {
                text.push_str(
                    "; its capture is not complete, and what was lost of it is not known",
                );
                report::directory(text, &self.path);
                if let Err(error) = other {
                    text.push_str("\n  no account: ");
                    text.push_str(&clean(error));
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
