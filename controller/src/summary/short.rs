//! The few lines of a summary that follow a stop: read back from the directory by a thread of its own, within a time in which
//! nobody notices, so that a stop in a script is not slower for it.

use super::tables;
use crate::paint::Paint;
use crate::screen::clean;
use crate::table::{Kind, Table};
use msprof_agent_core::control::extension::{Op, Outcome, Reply};
use msprof_agent_core::ledger::Anchor;
use msprof_export::source::Source;
use msprof_export::statistics::Statistics;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// For so long is read: a few million records on an ordinary machine.
pub const PATIENCE: Duration = Duration::from_millis(300);
/// How long a summary is waited for that does not come within its own time.
pub const GRACE: Duration = Duration::from_millis(100);
/// More captures than these are not summed up behind one command.
pub const MOST: usize = 8;
/// Calls that are shown.
const ROWS: usize = 5;

/// A capture that has ended.
#[derive(Debug)]
pub struct Ended {
    pid: u32,
    path: PathBuf,
    start: Anchor,
}

impl Ended {
    /// What a reply tells of; `None` unless a stop has succeeded and says where the capture is and when it began.
    pub fn of(pid: u32, op: Op, reply: &Reply) -> Option<Ended> {
        if op != Op::Stop || reply.outcome != Some(Outcome::Success) {
            return None;
        }
        Some(Ended {
            pid,
            path: reply.path.as_ref()?.into(),
            start: reply.ledger.as_ref()?.start,
        })
    }

    /// Reads it in a thread of its own, which says within [`PATIENCE`] what is to be shown, unless the file system hangs.
    pub fn read(self, tell: impl FnOnce(Option<String>) + Send + 'static) {
        let until = Instant::now() + PATIENCE;
        let thread = std::thread::Builder::new().name("summary".to_owned());
        // Without a thread there is no summary.
        let _ = thread.spawn(move || tell(self.text(|| Instant::now() < until)));
    }

    /// The lines; `None` where the directory is not to be read from here, or is another process's that has the same path.
    fn text(&self, go_on: impl Fn() -> bool) -> Option<String> {
        let source = Source::open(&self.path).ok()?;
        if source.ledger()?.start != self.start {
            return None;
        }
        let found = match Statistics::of_while(&source, |_| true, go_on).ok()? {
            Some(statistics) => lines(&statistics)?,
            None => {
                let path = clean(&self.path.display().to_string());
                format!("\n  too long to be read at once: msprof summary {path}")
            }
        };
        Some(format!("summary for pid {}:{found}", self.pid))
    }
}

/// The lines of several that have ended together, as they come; of those alone that come in time.
pub fn read_all(ended: impl Iterator<Item = Ended>) -> Vec<String> {
    let (sender, texts) = channel();
    let until = Instant::now() + PATIENCE + GRACE;
    for ended in ended.take(MOST) {
        let sender = sender.clone();
        ended.read(move |text| {
            let _ = sender.send(text);
        });
    }
    drop(sender);
    let next = || texts.recv_timeout(until.saturating_duration_since(Instant::now()));
    std::iter::from_fn(|| next().ok()).flatten().collect()
}

/// `None` where there is nothing to be shown.
fn lines(statistics: &Statistics) -> Option<String> {
    let mut text = String::new();
    if !statistics.models.is_empty() {
        text = format!("\n  {}", tables::runs(statistics));
    }
    let mut table = Table::new(&[
        (Kind::Label, "Level"),
        (Kind::Name, "API"),
        (Kind::Number, "Count"),
        (Kind::Number, "Total(us)"),
        (Kind::Number, "Mean(us)"),
        (Kind::Number, "P99(us)"),
    ]);
    for row in statistics.calls.iter().take(ROWS) {
        table.row(vec![
            row.level_name().to_owned(),
            row.name.clone(),
            row.times.count.to_string(),
            tables::us(row.times.total_ns),
            format!("{:.3}", row.times.mean_ns / 1000.0),
            row.times.p99_ns.map_or_else(|| "-".to_owned(), tables::us),
        ]);
    }
    for line in table.text(&Paint::default()).lines() {
        text += "\n  ";
        text += line;
    }
    (!text.is_empty()).then_some(text)
}
