//! `msprof summary <PROF_XXX>`: what a capture holds, read back from its directory without CANN.

mod head;
mod json;
pub mod short;
mod tables;

use crate::command::shown;
use crate::exit::{DONE, FAILED, USAGE};
use crate::paint::Paint;
use crate::profdirs::{self, OpenError};
use crate::screen::clean;
use msprof_agent_core::profdir::check::{Severity, check};
use msprof_export::notes::not_read;
use msprof_export::source::Source;
use msprof_export::statistics::Statistics;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof summary [--json] <PROF_XXX>

Shows the calls of a capture by total time, runs of models, what the AICPU of each device did,
records per trace, and what was lost. A directory that holds one PROF_XXX will do as well. What is no
record is counted and left out.

calls      count, mean and max are exact; half of the calls took no longer than P50 and 99 of 100 no
           longer than P99, both within 0.8 % (- where there are too many names)
models     runs are GE's ModelExecute calls, per second of the captured time: from start to stop;
           where nothing tells of a stop, to the end of the last call
busy       the time that a device's AICPU spent on operators, summed up, as a part of the captured
           time; operators that run at the same time count each, so that it may exceed 100 %
data wait  the time that a device waited for a data queue, summed up in the same way

On a terminal it has colours, unless NO_COLOR is set, and names are cut to the width.

  --json  all of it as one object on stdout, with every call and in ns

exit status: 0 shown, whatever is wrong with the capture; 1 it, or something in it, cannot be read, or
it is not clear which one is meant; 2 usage
";

/// All that is known of a directory.
struct Summary {
    path: PathBuf,
    source: Source,
    /// What is in the directory and could not be read, in sentences.
    not_read: Vec<String>,
    statistics: Statistics,
    /// Why the parser may refuse it.
    refused: Vec<String>,
}

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let mut json = false;
    let mut paths = Vec::new();
    for word in arguments {
        match word.to_str() {
            Some("-h" | "--help") => {
                crate::print(HELP);
                return DONE;
            }
            Some("--json") => json = true,
            Some(option) if option.starts_with('-') => {
                complain!(
                    "msprof: summary has no option \"{}\"; it has --json",
                    shown(option)
                );
                return USAGE;
            }
            _ => paths.push(word),
        }
    }
    let [path] = &paths[..] else {
        complain!("msprof: summary takes one directory: msprof summary <PROF_XXX>");
        return USAGE;
    };
    if path.is_empty() {
        complain!("msprof: summary: \"\" is no directory; usage: msprof summary <PROF_XXX>");
        return USAGE;
    }
    match Summary::read(Path::new(path)) {
        Ok(summary) => {
            match json {
                true => crate::print(&format!("{}\n", json::object(&summary))),
                false => crate::print(&summary.text(&Paint::of_stdout())),
            };
            for sentence in &summary.not_read {
                complain!("msprof: not all is here: {}", clean(sentence));
            }
            match summary.not_read.is_empty() {
                true => DONE,
                false => FAILED,
            }
        }
        Err(error) => {
            complain!("msprof: {}", clean(&error.to_string()));
            FAILED
        }
    }
}

impl Summary {
    fn read(path: &Path) -> Result<Summary, OpenError> {
        let source = profdirs::open(path)?;
        let path = source.profile().path().to_owned();
        // First: it reads the names for itself, and has forgotten them when the calls are summed up.
        let refused = check(&path).into_iter();
        let refused = refused.filter(|violation| violation.severity == Severity::Fatal);
        let statistics = Statistics::of(&source)?;
        Ok(Summary {
            refused: refused.map(|violation| violation.to_string()).collect(),
            not_read: not_read(&source),
            path,
            source,
            statistics,
        })
    }

    fn text(&self, paint: &Paint) -> String {
        let mut text = head::text(self, paint);
        text += &tables::text(&self.statistics, paint);
        for refused in &self.refused {
            let line = format!("the parser may refuse this directory: {}", clean(refused));
            text += &paint.tone(crate::paint::Tone::Bad, &line);
            text.push('\n');
        }
        text
    }
}
