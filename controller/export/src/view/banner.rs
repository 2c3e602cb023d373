//! What has to be said above everything else: losses, a killed process, and what the page does not show.

use super::View;
use crate::notes::not_read;
use crate::visible::cut;
use msprof_agent_core::ledger::{CaptureState, Ledger};
use msprof_agent_core::records::{Trace, TraceCounts};
use serde::Serialize;

/// Notes of a ledger that are shown, and characters of each.
const NOTES_MAX: usize = 10;
const LONGEST: usize = 500;

/// A sentence above the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Banner {
    /// Whether something is missing that was there, rather than only not shown.
    pub bad: bool,
    pub text: String,
}

pub(super) fn banners(view: &View) -> Vec<Banner> {
    let mut banners = Vec::new();
    let mut say = |bad, text: String| banners.push(Banner { bad, text });
    let not_read = not_read(view.source);
    for sentence in &not_read {
        say(
            true,
            format!("Not all is here: {}.", cut(sentence, LONGEST)),
        );
    }
    match view.source.ledger() {
        Some(ledger) => of_ledger(ledger, &mut say),
        // It is among what could not be read.
        None if view.source.has_damaged_ledger() => {}
        None => say(
            false,
            "There is no ledger (not made by this agent): what was lost is not known.".to_owned(),
        ),
    }
    let foreign = view.statistics.skipped.foreign;
    if foreign > 0 {
        say(
            true,
            format!("{foreign} records were left out: torn, or not written by an agent."),
        );
    }
    let skipped = view.statistics.skipped;
    let edges = skipped.unpaired + skipped.partial;
    if edges > 0 {
        say(
            false,
            format!(
                "{edges} calls are here in part, mostly cut by the edges of the capture, and not drawn."
            ),
        );
    }
    let (shown, total) = (view.shown(), view.total());
    if shown < total {
        say(
            false,
            format!(
                "{shown} of {total} intervals are drawn: the longest of each thread and piece of time. \
                 The table counts all of them; msprof view --limit draws more."
            ),
        );
    }
    if view.unplaced > 0 {
        say(
            false,
            format!(
                "{} records of devices are not drawn: their times are of another clock.",
                view.unplaced
            ),
        );
    }
    banners
}

fn of_ledger(ledger: &Ledger, say: &mut impl FnMut(bool, String)) {
    let lost = counted(&ledger.lost);
    if ledger.recovered.is_some() {
        say(
            true,
            format!(
                "The process was killed. Lost until its last account: {lost}. What was lost after that is not known."
            ),
        );
    } else if ledger.stop.is_none() {
        say(
            true,
            format!(
                "This capture still ran, or its process was killed: it is not finished. Lost until its last account: \
                 {lost}. What was lost after that is not known."
            ),
        );
    } else if ledger.lost.total() > 0 {
        say(true, format!("Records were lost: {lost}."));
    }
    if ledger.state == CaptureState::Failed {
        say(
            true,
            "The capture ended early, by an error on writing.".to_owned(),
        );
    }
    if ledger.aged_out.total() > 0 {
        let aged_out = counted(&ledger.aged_out);
        say(
            true,
            format!("Records were deleted for the storage limit: {aged_out}."),
        );
    }
    for note in ledger.notes.iter().take(NOTES_MAX) {
        say(false, format!("Note: {}", cut(note, LONGEST)));
    }
}

/// `5 (runtime-api 3, task 2)`
fn counted(counts: &TraceCounts) -> String {
    let traces = Trace::ALL.into_iter();
    let traces = traces.filter(|trace| counts.get(*trace) > 0);
    let parts: Vec<String> = traces
        .map(|trace| format!("{} {}", trace.name(), counts.get(trace)))
        .collect();
    match parts.is_empty() {
        true => counts.total().to_string(),
        false => format!("{} ({})", counts.total(), parts.join(", ")),
    }
}
