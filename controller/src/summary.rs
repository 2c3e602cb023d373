//! `msprof summary <PROF_XXX>`: what a capture holds, read back from its directory without CANN.

use crate::command::shown;
use crate::report::by_trace;
use crate::screen::clean;
use msprof_agent_core::ledger::{CaptureState, Ledger};
use msprof_agent_core::profdir::check::{Severity, check};
use msprof_agent_core::profdir::reader::{Profile, ReadError};
use msprof_agent_core::profdir::summary::{ApiRow, Summary, summarize};
use msprof_agent_core::records::TraceCounts;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Rows that are shown; the rest is counted.
const ROWS: usize = 30;
/// PROF directories that are named when there are several to choose from.
const CHOICES: usize = 20;
/// Wrong usage.
const USAGE: u8 = 2;
/// The directory cannot be read.
const FAILED: u8 = 1;

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
enum SummaryError {
    /// The directory or something in it cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A directory with several captures.
    #[error("{} holds {} PROF directories, name one of them: {}", clean(&.parent.display().to_string()), .names.len(), choices(.names))]
    Several {
        /// The directory.
        parent: PathBuf,
        /// Their names, sorted.
        names: Vec<String>,
    },
}

fn choices(names: &[String]) -> String {
    let first: Vec<_> = names.iter().take(CHOICES).map(|name| shown(name)).collect();
    let more = if names.len() > CHOICES { ", ..." } else { "" };
    format!("{}{more}", first.join(", "))
}

const HELP: &str = "\
usage: msprof summary <PROF_XXX>

Shows the calls of a capture by total time, its records per trace, and what was lost. A directory
that holds one PROF_XXX will do as well.

exit status: 0 shown, 1 the directory cannot be read, 2 usage
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let first = arguments.first().and_then(|word| word.to_str());
    if matches!(first, Some("-h" | "--help")) {
        crate::print(HELP);
        return 0;
    }
    let is_option = first.is_some_and(|word| word.starts_with('-'));
    let [path] = arguments else {
        eprintln!("msprof: summary takes one directory: msprof summary <PROF_XXX>");
        return USAGE;
    };
    if is_option || path.is_empty() {
        eprintln!(
            "msprof: summary: \"{}\" is no directory; usage: msprof summary <PROF_XXX>",
            shown(&path.to_string_lossy())
        );
        return USAGE;
    }
    match text(Path::new(path)) {
        Ok(text) => {
            crate::print(&text);
            0
        }
        Err(error) => {
            eprintln!("msprof: {}", clean(&error.to_string()));
            FAILED
        }
    }
}

fn text(path: &Path) -> Result<String, SummaryError> {
    let profile = open(path)?;
    let path = profile.path();
    let summary = summarize(&profile)?;
    let ledger = profile.ledger()?;
    let mut text = String::new();
    head(&mut text, path, &profile, ledger.as_ref());
    table(&mut text, &summary);
    for violation in check(path) {
        if violation.severity == Severity::Fatal {
            let violation = clean(&violation.to_string());
            let _ = writeln!(text, "the parser may refuse this directory: {violation}");
        }
    }
    Ok(text)
}

/// Opens a PROF directory, or the only one in a directory such as `--output` names.
fn open(path: &Path) -> Result<Profile, SummaryError> {
    let error = match Profile::open(path) {
        Err(error @ ReadError::NotProfile { .. }) => error,
        other => return Ok(other?),
    };
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> = dirs
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("PROF_"))
        .collect();
    names.sort();
    match names.as_slice() {
        [] => Err(error.into()),
        [only] => Ok(Profile::open(&path.join(only))?),
        _ => Err(SummaryError::Several {
            parent: path.to_owned(),
            names,
        }),
    }
}

// Writing to a String cannot fail; the results of `writeln!` say nothing below.

fn head(text: &mut String, path: &Path, profile: &Profile, ledger: Option<&Ledger>) {
    let _ = writeln!(text, "{}", clean(&path.display().to_string()));
    let Some(ledger) = ledger else {
        let _ = writeln!(
            text,
            "{} bytes of data; no ledger (not made by this agent), so losses are not known",
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
    if ledger.stop.is_none() {
        // The account is as old as a second; what came after it can only be counted in the files.
        counted(text, "records, when last accounted for:", &ledger.written);
        counted(text, "lost until then:", &ledger.lost);
        let _ = writeln!(
            text,
            "{} bytes of data on disk; what was lost after that is not known",
            profile.bytes()
        );
    } else {
        counted(text, "records:", &ledger.written);
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
        counted(text, "lost:", &ledger.lost);
    }
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
        let _ = writeln!(text, "note: {}", clean(note));
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
    } else {
        rows(text, summary);
    }
    if summary.unpaired_events > 0 {
        let _ = writeln!(
            text,
            "events without a partner (cut by the edges of the window): {}",
            summary.unpaired_events
        );
    }
    if summary.dropped > 0 {
        let _ = writeln!(
            text,
            "calls that begin at time 0, which the parser drops: {}",
            summary.dropped
        );
    }
}

fn rows(text: &mut String, summary: &Summary) {
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
}

/// A name as a terminal may show it: no control characters, bounded.
fn shown_name(row: &ApiRow) -> String {
    const LONGEST: usize = 48;
    let mut name: String = clean(&row.name).chars().take(LONGEST + 1).collect();
    if name.chars().count() > LONGEST {
        name = name
            .chars()
            .take(LONGEST - 3)
            .chain("...".chars())
            .collect();
    }
    name
}
