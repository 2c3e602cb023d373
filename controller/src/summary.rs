//! `msprof summary <PROF_XXX>`: what a capture holds, read back from its directory without CANN.

use crate::report::by_trace;
use msprof_agent_core::capture::ledger::{CaptureState, Ledger};
use msprof_agent_core::profdir::check::{Severity, check};
use msprof_agent_core::profdir::reader::{Profile, ReadError};
use msprof_agent_core::profdir::summary::{ApiRow, Summary, summarize};
use msprof_agent_core::records::TraceCounts;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

/// Rows that are shown; the rest is counted.
const ROWS: usize = 30;
/// Wrong usage.
const USAGE: u8 = 2;
/// The directory cannot be read.
const FAILED: u8 = 1;

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let [path] = arguments else {
        eprintln!("msprof: usage: msprof summary <PROF_XXX>, one directory");
        return USAGE;
    };
    if matches!(path.to_str(), Some("-h" | "--help")) {
        crate::print(
            "usage: msprof summary <PROF_XXX>\n\nShows the top calls of a capture by total time, its records per trace, and what was lost.\n",
        );
        return 0;
    }
    match text(Path::new(path)) {
        Ok(text) => {
            crate::print(&text);
            0
        }
        Err(error) => {
            eprintln!("msprof: {error}");
            FAILED
        }
    }
}

fn text(path: &Path) -> Result<String, ReadError> {
    let profile = Profile::open(path)?;
    let summary = summarize(&profile)?;
    let ledger = profile.ledger()?;
    let mut text = String::new();
    head(&mut text, path, &profile, ledger.as_ref());
    table(&mut text, &summary);
    for violation in check(path) {
        if violation.severity == Severity::Fatal {
            let _ = writeln!(text, "the parser may refuse this directory: {violation}");
        }
    }
    Ok(text)
}

// Writing to a String cannot fail; the results of `writeln!` say nothing below.

fn head(text: &mut String, path: &Path, profile: &Profile, ledger: Option<&Ledger>) {
    let _ = writeln!(text, "{}", path.display());
    let Some(ledger) = ledger else {
        let _ = writeln!(
            text,
            "{} bytes of records; no ledger (not made by this agent), so losses are not known",
            profile.bytes()
        );
        return;
    };
    let state = match (ledger.state, &ledger.stop) {
        (CaptureState::Capturing, _) => "still running, or its process was killed",
        (CaptureState::Failed, _) => "ended early",
        (CaptureState::Complete, _) => "complete",
    };
    let seconds = ledger.stop.map(|stop| {
        let ns = stop
            .monotonic_raw_ns
            .saturating_sub(ledger.start.monotonic_raw_ns);
        format!(", {:.3} s", ns as f64 / 1e9)
    });
    let _ = writeln!(
        text,
        "capture {} of pid {}: {state}{}",
        ledger.capture,
        ledger.pid,
        seconds.unwrap_or_default()
    );
    counted(text, "records:", &ledger.written);
    let _ = writeln!(
        text,
        "{} bytes of records from {} threads",
        ledger.bytes,
        ledger.threads.len()
    );
    counted(text, "lost:", &ledger.lost);
    if ledger.aged_out.total() > 0 {
        counted(text, "deleted for the storage limit:", &ledger.aged_out);
    }
    if ledger.unreadable > 0 {
        let _ = writeln!(
            text,
            "refused, since the parser cannot read them: {}",
            ledger.unreadable
        );
    }
    for note in &ledger.notes {
        let _ = writeln!(text, "note: {note}");
    }
}

/// A line with a sum and its parts.
fn counted(text: &mut String, what: &str, counts: &TraceCounts) {
    let _ = write!(text, "{what} {}", counts.total());
    by_trace(text, counts);
    text.push('\n');
}

fn table(text: &mut String, summary: &Summary) {
    if summary.rows.is_empty() {
        let _ = writeln!(text, "\nno calls were captured");
        return;
    }
    let shown = &summary.rows[..summary.rows.len().min(ROWS)];
    let width = shown
        .iter()
        .map(|row| shown_name(row).chars().count())
        .max();
    let width = width.unwrap_or(0).max("API".len());
    let _ = writeln!(
        text,
        "\n{:<13} {:<width$} {:>9} {:>13} {:>11} {:>11} {:>11}",
        "Level", "API", "Count", "Total(us)", "Mean(us)", "Min(us)", "Max(us)"
    );
    for row in shown {
        let us = |ns: u64| ns as f64 / 1000.0;
        let _ = writeln!(
            text,
            "{:<13} {:<width$} {:>9} {:>13.3} {:>11.3} {:>11.3} {:>11.3}",
            row.level_name(),
            shown_name(row),
            row.count,
            us(row.total_ns),
            row.mean_ns() / 1000.0,
            us(row.min_ns),
            us(row.max_ns)
        );
    }
    if summary.rows.len() > ROWS {
        let rest: u64 = summary.rows[ROWS..].iter().map(|row| row.count).sum();
        let names = summary.rows.len() - ROWS;
        let _ = writeln!(text, "... and {names} more names with {rest} calls");
    }
    if summary.unpaired_events > 0 {
        let _ = writeln!(
            text,
            "{} events have no partner (cut by the edges of the window)",
            summary.unpaired_events
        );
    }
}

/// A name as a terminal may show it: no control characters, bounded.
fn shown_name(row: &ApiRow) -> String {
    const LONGEST: usize = 48;
    let mut name: String = row
        .name
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST + 1)
        .collect();
    if name.chars().count() > LONGEST {
        name = name
            .chars()
            .take(LONGEST - 3)
            .chain("...".chars())
            .collect();
    }
    name
}
