//! Does the msprof parser take this directory as it is? Every rule of spec 3 (sections 3, 4, 6, 9
//! and 12), for both variants of the parser.
//!
//! A rule that is broken gives a [`Violation`] with its name, so that callers and tests can tell
//! them apart; what kind of harm it does is its [`Severity`]. Directories of the stock collector break
//! some rules of lesser severity.

#![forbid(unsafe_code)]

mod control;
mod data;

use super::families::Place;
use super::listing::ENTRIES_MAX;
use super::reader::{Entry, EntryKind, Profile, ReadError, Section};
use std::path::{Path, PathBuf};

/// What a broken rule costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing that is seen in the exports of a complete capture.
    Note,
    /// Some records or names are missing from the exports.
    Warning,
    /// A variant of the parser exports nothing, or nothing of a family or device.
    Fatal,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What it costs.
    pub severity: Severity,
    /// Name of the rule, stable.
    pub rule: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong, one sentence.
    pub message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Fatal => "fatal",
        };
        let path = self.path.display();
        write!(f, "{severity}: {path}: {} [{}]", self.message, self.rule)
    }
}

/// Sub-directories that the parser skips.
const SKIPPED_DIRS: [&str; 9] = [
    ".profiler",
    "HCCL_PROF",
    "timeline",
    "query",
    "sqlite",
    "log",
    "analyze",
    "mindstudio_profiler_log",
    "mindstudio_profiler_output",
];
/// Characters on which the parser refuses a path.
const REFUSED_CHARACTERS: &str = "\"'%><|&$;\\`";
/// Longest path that the parser takes, bytes.
const PATH_MAX: usize = 4096;

/// Checks a directory; violations in the order in which they were met. Reads every byte of it.
pub fn check(path: &Path) -> Vec<Violation> {
    let mut report = Report::default();
    match Profile::open(path) {
        Ok(profile) => {
            check_root(&profile, &mut report);
            for section in profile.sections() {
                check_entries(section, &mut report);
                control::check(&profile, section, &mut report);
            }
            data::check(&profile, &mut report);
        }
        Err(error) => report.unreadable(path, &error),
    }
    report.violations
}

/// Violations so far.
#[derive(Default)]
struct Report {
    violations: Vec<Violation>,
}

impl Report {
    fn add(&mut self, severity: Severity, rule: &'static str, path: &Path, message: String) {
        self.violations.push(Violation {
            severity,
            rule,
            path: path.to_owned(),
            message,
        });
    }

    fn fatal(&mut self, rule: &'static str, path: &Path, message: impl Into<String>) {
        self.add(Severity::Fatal, rule, path, message.into());
    }

    fn warning(&mut self, rule: &'static str, path: &Path, message: impl Into<String>) {
        self.add(Severity::Warning, rule, path, message.into());
    }

    fn note(&mut self, rule: &'static str, path: &Path, message: impl Into<String>) {
        self.add(Severity::Note, rule, path, message.into());
    }

    fn unreadable(&mut self, path: &Path, error: &ReadError) {
        let path = match error {
            ReadError::Io { path, .. } | ReadError::Damaged { path, .. } => path,
            ReadError::NotProfile { .. } => path,
        };
        self.fatal("unreadable", path, error.to_string());
    }
}

fn check_root(profile: &Profile, report: &mut Report) {
    let path = profile.path();
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = absolute.to_string_lossy();
    if !text.contains("PROF") {
        let message = "the path does not contain PROF, the C++ exporters refuse it";
        report.fatal("path-name", path, message);
    }
    let refused = text
        .chars()
        .find(|c| c.is_control() || REFUSED_CHARACTERS.contains(*c));
    if let Some(refused) = refused {
        let message = format!("the parser refuses a path with {refused:?} in it");
        report.fatal("path-character", path, message);
    }
    if text.len() > PATH_MAX {
        report.fatal(
            "path-length",
            path,
            format!("the path is longer than {PATH_MAX} bytes"),
        );
    }
    if profile.section(Place::Host).is_none() {
        let message = "there is no host directory: only device data is exported";
        report.fatal("no-host", path, message);
    }
    for entry in profile.entries() {
        check_root_entry(profile, entry, report);
    }
}

fn check_root_entry(profile: &Profile, entry: &Entry, report: &mut Report) {
    let path = profile.path().join(&entry.name);
    match entry.kind {
        EntryKind::Link => report.warning("link", &path, "links are not followed"),
        EntryKind::Special => report.warning("special-file", &path, "not a file or directory"),
        EntryKind::File => {}
        EntryKind::Directory => {
            let is_section = profile
                .sections()
                .iter()
                .any(|section| section.path == path);
            if is_section || SKIPPED_DIRS.contains(&entry.name.as_str()) {
                return;
            }
            let message = "the parser takes this directory for a member of a cluster and stops";
            report.fatal("unknown-directory", &path, message);
        }
    }
    // The C++ exporters go by the beginning of a name alone.
    let passes = entry.name.starts_with("host") || entry.name.starts_with("device_");
    if passes && entry.kind != EntryKind::Directory {
        let message = "the C++ exporters take it for a result directory";
        report.fatal("name-like-a-section", &path, message);
    }
}

/// Links, special files, and `.done` files that do not agree with their file.
fn check_entries(section: &Section, report: &mut Report) {
    let data = section.path.join("data");
    if !section
        .entries
        .iter()
        .any(|e| e.name == "data" && e.kind == EntryKind::Directory)
    {
        report.note("no-data-directory", &data, "there is no data directory");
    }
    for (dir, entries) in [(&section.path, &section.entries), (&data, &section.data)] {
        if entries.len() >= ENTRIES_MAX {
            let message = format!("more than {ENTRIES_MAX} entries, the rest was not looked at");
            report.warning("too-many-files", dir, message);
        }
        for entry in entries {
            let path = dir.join(&entry.name);
            match entry.kind {
                EntryKind::Link => report.warning("link", &path, "links are not followed"),
                EntryKind::Special => {
                    report.warning("special-file", &path, "not a file or directory");
                }
                EntryKind::File => check_done(&path, entry, entries, report),
                EntryKind::Directory => {}
            }
        }
    }
}

fn check_done(path: &Path, entry: &Entry, entries: &[Entry], report: &mut Report) {
    let Some(of) = entry.name.strip_suffix(".done") else {
        return;
    };
    let Some(file) = entries.iter().find(|other| other.name == of) else {
        report.note(
            "done-without-file",
            path,
            "the file that it speaks of is missing",
        );
        return;
    };
    let text = match super::reader::read_text(path, 4096) {
        Ok(text) => text,
        Err(error) => return report.unreadable(path, &error),
    };
    let said = text
        .lines()
        .find_map(|line| line.strip_prefix("filesize:")?.trim().parse::<u64>().ok());
    if said != Some(file.bytes) {
        let message = format!("it says {said:?} bytes, the file has {}", file.bytes);
        report.note("done-size", path, message);
    }
}
