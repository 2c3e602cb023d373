//! `msprof --export=on --output=<PROF_XXX | parent>`: timeline and tables without CANN (spec 4 section 4.3).

mod options;
mod outcome;
mod progress;

pub use options::{EXPORT, OPTIONS, OUTPUT, is_asked};

use crate::exit::{FAILED, USAGE};
use crate::profdirs;
use crate::screen::clean;
use msprof_export::text::Layers;
use options::Asked;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What `--export=on --help` shows.
pub const HELP: &str = "\
usage: msprof --export=on --output=<PROF_XXX | parent> [options]

Writes a capture's timeline and tables into mindstudio_profiler_output in its PROF_XXX directory, in the
form of CANN's parser and without it: msprof_<time>.json for MindStudio Insight, chrome://tracing and
https://ui.perfetto.dev, and csv tables of calls, marks, aicpu operators, data queues and memory. Of a
parent, such as --output of a capture names, every PROF_XXX in it, several at the same time.

  --output=<path>              a PROF_XXX directory or its parent
  --type=text|db               the form of the export (default text): db is msprof_<time>.db, an SQLite
                               database in the PROF_XXX directory itself
  --summary-format=csv|json    the form of the tables (default csv)
  --reports=<file>             a JSON file that says which layers the timeline has, as for CANN's msprof
  --clear=on|off               accepted: no intermediate files are made, so that none have to be removed

exit status: 0 everything is exported; 1 some directory could not be read or written, or not all of it,
which is named on stderr; 2 usage
";

/// Exports; gives the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    match Asked::parse(arguments) {
        Ok(None) => {
            crate::print(HELP);
            0
        }
        Ok(Some(asked)) => asked.run(),
        Err(error) => {
            complain!("msprof: {}", clean(&error));
            USAGE
        }
    }
}

impl Asked {
    fn run(mut self) -> u8 {
        if let Some(reports) = &self.reports {
            match Layers::read(reports) {
                Ok(layers) => self.options.layers = layers,
                Err(error) => {
                    complain!("msprof: {}", clean(&error.to_string()));
                    return USAGE;
                }
            }
        }
        let directories = match directories(&self.output) {
            Ok(directories) => directories,
            Err(error) => {
                complain!("msprof: {}", clean(&error));
                return FAILED;
            }
        };
        if self.clear {
            complain!("msprof: note: --clear=on has nothing to do: no intermediate files are made");
        }
        match progress::export_all(&directories, self.form, &self.options) {
            true => 0,
            false => FAILED,
        }
    }
}

/// The directory itself, or the PROF directories in it.
fn directories(path: &Path) -> Result<Vec<PathBuf>, String> {
    let cannot = |why: &str| format!("--output: {}: {why}", path.display());
    match std::fs::metadata(path) {
        Err(error) => return Err(cannot(&error.to_string())),
        Ok(meta) if !meta.is_dir() => {
            let why = "it is no directory; name a PROF_XXX directory or its parent";
            return Err(cannot(why));
        }
        Ok(_) => {}
    }
    let entries = std::fs::read_dir(path).map_err(|error| cannot(&error.to_string()))?;
    let is_part = |name: &str| name == "host" || name.starts_with("device_");
    let mut entries = entries.flatten();
    if entries.any(|entry| entry.file_name().to_str().is_some_and(is_part)) {
        return Ok(vec![path.to_owned()]);
    }
    let found = profdirs::within(path);
    match found.is_empty() {
        false => Ok(found),
        true => Err(cannot(&format!(
            "it is no PROF_XXX directory, and none is in it{}",
            profdirs::instead(path)
        ))),
    }
}
