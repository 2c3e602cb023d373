//! `msprof recover <PROF_XXX | parent>...`: finishes directories whose process was killed.

use crate::command::shown;
use crate::exit::{DONE, FAILED, USAGE};
use crate::losses::Losses;
use crate::profdirs;
use crate::report::by_trace;
use crate::screen::clean;
use msprof_agent_core::profdir::recover::{Done, Life, RecoverError, Recovery, look, recover};
use msprof_agent_core::records::TraceCounts;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Files of a kind that are named; the rest is counted.
const NAMED: usize = 10;
/// What a running capture may hold in memory, ms: no record waits longer for being written (README).
const IN_MEMORY_MS: u64 = 20;

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof recover [--json] [--force] <PROF_XXX | parent>...

Finishes directories whose process was killed in mid capture, so that the msprof parser exports them:
cuts torn records off, completes the control files, and says what was kept and what is lost. Of a
parent, such as --output names, every PROF_XXX in it. A complete directory stays as it is; one whose
process still runs is not touched. It can be run again, also after it was interrupted.

  --force  the process has ended, though that cannot be seen from here (another host)
  --json   the result as one object on stdout

exit status: 0 all are finished; 1 some were refused or failed, or something in them has to be
removed first, which is named; 2 usage
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let mut asked = Asked::default();
    for word in arguments {
        match word.to_str() {
            Some("-h" | "--help") => {
                crate::print(HELP);
                return DONE;
            }
            Some("--json") => asked.json = true,
            Some("--force") => asked.force = true,
            Some(option) if option.starts_with('-') => {
                complain!(
                    "msprof: recover has no option \"{}\"; it has --json and --force",
                    shown(option)
                );
                return USAGE;
            }
            Some("") => {
                complain!("msprof: recover: \"\" is no directory; name a PROF_XXX or its parent");
                return USAGE;
            }
            _ => asked.paths.push(PathBuf::from(word)),
        }
    }
    if asked.paths.is_empty() {
        complain!("msprof: recover takes a directory: msprof recover <PROF_XXX | parent>...");
        return USAGE;
    }
    asked.run()
}

#[derive(Default)]
struct Asked {
    json: bool,
    force: bool,
    paths: Vec<PathBuf>,
}

impl Asked {
    fn run(&self) -> u8 {
        let mut status = DONE;
        let mut objects = Vec::new();
        for path in self.paths.iter().flat_map(|path| expand(path)) {
            // What is seen to run is not recovered, whatever the user believes.
            let result = recover(&path, |maker| match look(maker) {
                Life::Elsewhere(_) | Life::Hidden(_) if self.force => Life::Dead,
                life => life,
            });
            match &result {
                Ok(recovery) if recovery.left.is_empty() => {}
                Ok(_) => status = FAILED,
                Err(error) => {
                    complain!("msprof: {}", clean(&told(&path, error)));
                    status = FAILED;
                }
            }
            match result {
                result if self.json => objects.push(object(&path, result)),
                Ok(recovery) => {
                    crate::print(&text(&recovery));
                }
                Err(_) => {}
            }
        }
        if self.json {
            crate::print(&format!("{}\n", json!({ "directories": objects })));
        }
        status
    }
}

/// The directory itself, or the PROF directories in it, sorted; links are not followed.
fn expand(path: &Path) -> Vec<PathBuf> {
    let is_dir =
        |name: &str| std::fs::symlink_metadata(path.join(name)).is_ok_and(|meta| meta.is_dir());
    let found = profdirs::within(path);
    match found.is_empty() || is_dir("host") {
        true => vec![path.to_owned()],
        false => found,
    }
}

/// An error, with the directory that was perhaps meant.
fn told(path: &Path, error: &RecoverError) -> String {
    match error {
        RecoverError::NotProfile { .. } => format!("{error}{}", profdirs::instead(path)),
        _ => error.to_string(),
    }
}

fn object(path: &Path, result: Result<Recovery, RecoverError>) -> Value {
    match result {
        Ok(recovery) => {
            let killed = recovery.done == Done::Recovered || recovery.before.is_some();
            let mut value = serde_json::to_value(&recovery).unwrap_or_default();
            value["recovered_before"] = recovery.before.is_some().into();
            value["lost_after_account_known"] = (!killed).into();
            value
        }
        Err(error) => json!({
            "path": path.to_string_lossy(),
            "done": "refused",
            "error": told(path, &error),
        }),
    }
}

// Writing to a String cannot fail; the results of `writeln!` say nothing below.

fn text(recovery: &Recovery) -> String {
    let mut text = String::new();
    let path = clean(&recovery.path.display().to_string());
    match recovery.done {
        Done::Nothing => {
            let state = match recovery.before {
                None => "complete",
                Some(_) => "recovered before",
            };
            let _ = writeln!(text, "{path}: {state}, nothing to recover");
            details(&mut text, recovery);
            if recovery.before.is_none() {
                return text;
            }
        }
        Done::Completed => {
            let _ = writeln!(
                text,
                "{path}: its capture had ended; now its files are complete"
            );
        }
        Done::Recovered => {
            let _ = writeln!(text, "{path}: recovered");
        }
    }
    counted(&mut text, "kept:", &recovery.kept);
    let _ = writeln!(text, "  bytes of data: {}", recovery.bytes);
    if recovery.done != Done::Nothing {
        details(&mut text, recovery);
    }
    if recovery.done == Done::Recovered || recovery.before.is_some() {
        losses(&mut text, recovery);
    }
    if recovery.exported {
        let _ = writeln!(
            text,
            "  it was exported before: remove host/sqlite and host/data/all_file.complete in it, or the parser does not read the data again"
        );
    }
    text
}

/// A line with a sum and its parts.
fn counted(text: &mut String, what: &str, counts: &TraceCounts) {
    let _ = write!(text, "  {what} {} records", counts.total());
    by_trace(text, counts);
    text.push('\n');
}

/// What was done to files.
fn details(text: &mut String, recovery: &Recovery) {
    let name = |path: &Path| {
        let inside = path.strip_prefix(&recovery.path).unwrap_or(path);
        clean(&inside.display().to_string())
    };
    let mut list = |items: Vec<String>| {
        for item in items.iter().take(NAMED) {
            let _ = writeln!(text, "  {item}");
        }
        if items.len() > NAMED {
            let _ = writeln!(text, "  ... and {} more files", items.len() - NAMED);
        }
    };
    let cut = recovery.cut.iter().map(|cut| {
        let what = match (cut.left, cut.bytes) {
            (0, 0) => "removed: it was empty".to_owned(),
            (0, bytes) => format!("removed: {bytes} bytes without a whole record"),
            (_, bytes) => format!("cut off: {bytes} bytes of torn or unreadable records"),
        };
        format!("{}: {what}", name(&cut.path))
    });
    list(cut.collect());
    let left = recovery.left.iter();
    list(
        left.map(|left| format!("{}: left as it is, {}", name(&left.path), clean(&left.why)))
            .collect(),
    );
    list(
        recovery
            .made
            .iter()
            .map(|path| format!("{}: made", name(path)))
            .collect(),
    );
    if recovery.done_files > 0 {
        let _ = writeln!(text, "  .done files written: {}", recovery.done_files);
    }
}

/// What is known of the loss, and what is not.
fn losses(text: &mut String, recovery: &Recovery) {
    if let Some(last) = recovery.last_record_ns {
        let seconds = last as f64 / 1e9;
        let _ = writeln!(text, "  last record: {seconds:.6} s after the start");
    }
    let losses = Losses {
        lost: &recovery.lost,
        account_ns: recovery.account_ns,
        last_record_ns: recovery.last_record_ns,
    };
    for line in losses.lines() {
        let _ = writeln!(text, "  {line}");
    }
    // Of an earlier recovery it is not said whether a controller had the memory rescued.
    if recovery.done == Done::Recovered {
        let _ = writeln!(
            text,
            "  not in the directory: about the last {IN_MEMORY_MS} ms before the kill, whose records were still in memory"
        );
    }
    if recovery.aged_out.total() > 0 {
        counted(
            text,
            "deleted for the storage limit until the last account:",
            &recovery.aged_out,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_with_a_count_of_the_rest() {
        let recovery = Recovery {
            path: "/out/PROF_1".into(),
            done: Done::Recovered,
            made: (0..15)
                .map(|n| format!("/out/PROF_1/f{n}\n").into())
                .collect(),
            ..Recovery::default()
        };
        let text = text(&recovery);
        assert!(
            text.contains("  f9 : made\n  ... and 5 more files\n"),
            "{text}"
        );
        assert!(text.contains("lost: not known"), "{text}");
    }
}
