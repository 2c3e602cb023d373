//! Whose capture it is, how it ended, and what was lost.

use super::Summary;
use crate::losses::Losses;
use crate::paint::{Paint, Tone};
use crate::report::{by_trace, captured};
use crate::screen::clean;
use msprof_agent_core::ledger::{CaptureState, Ledger};
use msprof_agent_core::records::TraceCounts;
use std::fmt::Write as _;

// Writing to a String cannot fail; the results of `writeln!` say nothing below.

/// The lines above the tables.
pub(super) fn text(summary: &Summary, paint: &Paint) -> String {
    let path = clean(&summary.path.display().to_string());
    let mut text = format!("{}\n", paint.tone(Tone::Strong, &path));
    let bytes = summary.source.profile().bytes();
    let Some(ledger) = summary.source.ledger() else {
        let why = match summary.source.has_damaged_ledger() {
            true => "no ledger that could be read",
            false => "no ledger (not made by this agent)",
        };
        let _ = writeln!(
            text,
            "{bytes} bytes of data; {why}, so losses are not known"
        );
        return text;
    };
    let _ = writeln!(text, "{}", whose(ledger, paint));
    if ledger.stop.is_none() {
        unfinished(&mut text, ledger, bytes, &path, paint);
    } else {
        finished(&mut text, ledger, paint);
    }
    if ledger.aged_out.total() > 0 {
        let _ = writeln!(
            text,
            "{}",
            counted("deleted for the storage limit:", &ledger.aged_out)
        );
    }
    if ledger.unreadable > 0 {
        let _ = writeln!(
            text,
            "refused, since the parser cannot read them: {}",
            ledger.unreadable
        );
    }
    for note in &ledger.notes {
        let _ = writeln!(text, "note: {}", clean(note));
    }
    text
}

fn whose(ledger: &Ledger, paint: &Paint) -> String {
    let (state, tone) = match ledger.state {
        CaptureState::Capturing => ("still running, or its process was killed", Tone::Bad),
        CaptureState::Recovered => ("its process was killed; recovered", Tone::Bad),
        CaptureState::Failed => ("ended early", Tone::Bad),
        CaptureState::Complete => ("complete", Tone::Good),
    };
    let seconds = captured(ledger).map(|seconds| format!(", {seconds}"));
    format!(
        "capture {} of pid {}: {}{}",
        ledger.capture,
        ledger.pid,
        paint.tone(tone, state),
        seconds.unwrap_or_default()
    )
}

fn finished(text: &mut String, ledger: &Ledger, paint: &Paint) {
    let _ = writeln!(text, "{}", counted("records:", &ledger.written));
    // A row without a thread id sums up what has no row of its own.
    let named = ledger.threads.iter().filter(|row| row.tid != 0).count();
    let others = if named < ledger.threads.len() {
        " and others"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "{} bytes of data from {named} threads{others}",
        ledger.bytes
    );
    let lost = match Losses::of(ledger) {
        None => vec![counted("lost:", &ledger.lost)],
        Some(losses) => losses.lines(),
    };
    let none = ledger.recovered.is_none() && ledger.lost.total() == 0;
    let tone = if none { Tone::Good } else { Tone::Bad };
    for line in lost {
        let _ = writeln!(text, "{}", paint.tone(tone, &line));
    }
}

/// The account is as old as a second; what came after it can only be counted in the files.
fn unfinished(text: &mut String, ledger: &Ledger, bytes: u64, path: &str, paint: &Paint) {
    let lines = [
        counted("records, when last accounted for:", &ledger.written),
        counted("lost until then:", &ledger.lost),
        format!("{bytes} bytes of data on disk; what was lost after that is not known"),
    ];
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    let advice = format!("not finished: if the process has ended, run msprof recover {path}");
    let _ = writeln!(text, "{}", paint.tone(Tone::Bad, &advice));
}

/// A sum and its parts.
fn counted(what: &str, counts: &TraceCounts) -> String {
    let mut line = format!("{what} {}", counts.total());
    by_trace(&mut line, counts);
    line
}
