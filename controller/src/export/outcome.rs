//! The export of one directory, and what is said of it.

use super::options::Form;
use crate::screen::clean;
use indicatif::ProgressBar;
use msprof_export::db;
use msprof_export::source::Source;
use msprof_export::text::{self, Options};
use std::path::Path;

/// What came of a directory.
pub(super) type Outcome = Result<Told, String>;

/// What is said of a directory.
pub(super) struct Told {
    notes: Vec<String>,
    problems: Vec<String>,
    failed: Option<String>,
    /// What has been made, in a line.
    line: String,
}

/// Exports a directory.
pub(super) fn export(
    directory: &Path,
    form: Form,
    options: &Options,
    bar: &ProgressBar,
) -> Outcome {
    let source = Source::open(directory).map_err(|error| error.to_string())?;
    Ok(match form {
        Form::Text => text_of(&source, options, bar),
        Form::Db => database_of(&source, bar),
    })
}

/// Writes timeline and tables of a directory.
fn text_of(source: &Source, options: &Options, bar: &ProgressBar) -> Told {
    bar.inc_length(text::work(source));
    let report = text::export(source, options, &mut |bytes| bar.inc(bytes));
    let line = match (report.files.len(), &report.failed) {
        (0, Some(_)) => "not exported".to_owned(),
        (0, None) => "there is nothing in it to export".to_owned(),
        (files, failed) => {
            let rest = if failed.is_some() {
                ", the others are missing"
            } else {
                ""
            };
            format!(
                "{files} {} in {}, {} {}{rest}",
                plural(files as u64, "file"),
                text::OUTPUT,
                report.calls,
                plural(report.calls, "call")
            )
        }
    };
    Told {
        notes: report.notes,
        problems: report.problems,
        failed: report.failed.map(|error| error.to_string()),
        line,
    }
}

/// Writes a directory's database.
fn database_of(source: &Source, bar: &ProgressBar) -> Told {
    bar.inc_length(db::work(source));
    match db::export(source, &mut |bytes| bar.inc(bytes)) {
        Ok(report) => {
            let calls = report.rows("CANN_API").unwrap_or(0);
            let name = report.path.file_name().unwrap_or_default();
            Told {
                notes: report.notes(),
                problems: report.problems(source),
                failed: None,
                line: format!("{}, {calls} {}", name.display(), plural(calls, "call")),
            }
        }
        Err(error) => Told {
            notes: Vec::new(),
            problems: Vec::new(),
            failed: Some(error.to_string()),
            line: "not exported".to_owned(),
        },
    }
}

/// Says what came of a directory; whether all of it is exported.
pub(super) fn tell(directory: &Path, outcome: &Outcome) -> bool {
    let name = clean(&directory.display().to_string());
    let told = match outcome {
        Ok(told) => told,
        Err(error) => {
            complain!("msprof: {}", clean(error));
            return false;
        }
    };
    for note in &told.notes {
        complain!("msprof: note: {name}: {}", clean(note));
    }
    for problem in &told.problems {
        complain!("msprof: {name}: {}", clean(problem));
    }
    if let Some(error) = &told.failed {
        complain!("msprof: {name}: {}", clean(error));
    }
    crate::print(&format!("{name}: {}\n", told.line));
    told.problems.is_empty() && told.failed.is_none()
}

fn plural(count: u64, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{what}{ending}")
}
