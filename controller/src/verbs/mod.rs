//! Verbs that look at processes, or give one command without a prompt (spec 4 section 4.3).
//!
//! With `--json` each prints one object on stdout (docs/json.md), and what is meant for people goes to stderr.

mod arguments;
mod fleet;
mod job;
mod row;
pub mod time;

pub mod doctor;
pub mod list;
pub mod record;
pub mod start;
pub mod status;
pub mod stop;

pub use row::{failed, whose};

use crate::screen::Screen;
use crate::signals::{self, Ignored};
use fleet::{Fleet, Plan};
use serde_json::{Value, json};

/// Commands processes and tells what came of it; gives the exit status. `params` goes to each process.
fn command(plan: Plan, pids: &[u32], params: &str, mut printer: Printer) -> u8 {
    let ignored = Ignored::read();
    let mut fleet = Fleet::new(plan, pids, &mut printer);
    let interrupt = fleet.interrupter();
    // Before anybody is connected to: who is killed in between leaves a stock server without a control thread.
    match signals::watch(ignored, move |_| interrupt()) {
        Ok(()) => {
            fleet.attach(params);
            fleet.run();
        }
        Err(error) => {
            let text = format!("signals cannot be watched: {error}");
            fleet.give_up("no-signals", &text);
        }
    }
    let (status, objects) = (fleet.status(), fleet.objects());
    printer.object(|| json!({ "processes": objects }));
    status
}

/// Where results go.
struct Printer {
    screen: Screen,
    json: bool,
}

impl Printer {
    fn new(json: bool) -> Printer {
        Printer {
            screen: Screen::new(),
            json,
        }
    }

    /// A result for people.
    fn say(&mut self, text: &str) {
        match self.json {
            true => self.screen.warn(text),
            false => self.screen.say(text),
        }
    }

    /// An error or a remark for people.
    fn warn(&mut self, text: &str) {
        self.screen.warn(text);
    }

    /// The result for programs, in the end.
    fn object(&mut self, object: impl FnOnce() -> Value) {
        if self.json {
            crate::print(&format!("{}\n", object()));
        }
    }
}
