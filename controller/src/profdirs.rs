//! Finding the PROF_XXX directories that a user means who has named another one.

use crate::command::shown;
use crate::screen::clean;
use msprof_agent_core::names::PROF_PREFIX;
use msprof_agent_core::profdir::reader::ReadError;
use msprof_export::source::Source;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// Directories that are looked into for those that could have been meant.
const CHILDREN_MAX: usize = 10_000;
/// Directories that are named when there are several to choose from.
const CHOICES: usize = 20;
/// Names in a PROF_XXX directory, of which some user has named one.
const PARTS: [&str; 2] = ["host", "device_"];

/// Why a capture cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory or something in it cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No PROF directory, but perhaps near one.
    #[error("{error}{}", instead(.path))]
    Elsewhere {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        error: ReadError,
    },
    /// A directory with several captures.
    #[error("{} holds {} PROF directories, name one of them: {}", text(.parent), .found.len(), choices(.found.iter().map(|path| name(path))))]
    Several {
        /// The directory.
        parent: PathBuf,
        /// Those in it, sorted.
        found: Vec<PathBuf>,
    },
}

/// Opens a PROF directory, or the only one in a directory such as `--output` names.
pub fn open(path: &Path) -> Result<Source, OpenError> {
    let error = match Source::open(path) {
        Err(error @ ReadError::NotProfile { .. }) => error,
        other => return Ok(other?),
    };
    let found = within(path);
    match found.as_slice() {
        [] => Err(OpenError::Elsewhere {
            path: path.to_owned(),
            error,
        }),
        [only] => Ok(Source::open(only)?),
        _ => Err(OpenError::Several {
            parent: path.to_owned(),
            found,
        }),
    }
}

/// The PROF_XXX directories in a directory, sorted; links are not followed.
pub fn within(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = directories(dir)
        .filter(|entry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(PROF_PREFIX.as_bytes())
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Where there is one to be named instead, behind an error: the directory above or those one below. Empty where there
/// is none.
pub fn instead(dir: &Path) -> String {
    let name = dir.file_name().and_then(|name| name.to_str());
    let is_part = |name: &str| PARTS.iter().any(|part| name.starts_with(part));
    if name.is_some_and(is_part)
        && let Some(above) = dir.parent().filter(|above| is_named_so(above))
    {
        return format!("; it is a part of {}: name that", text(above));
    }
    let children = directories(dir).take(CHILDREN_MAX);
    let below: Vec<PathBuf> = children
        .flat_map(|entry| within(&entry.path()))
        .take(CHILDREN_MAX)
        .collect();
    match below.as_slice() {
        [] => String::new(),
        [only] => format!("; name the one below it: {}", text(only)),
        several => format!(
            "; below it are {}, name one of them: {}",
            several.len(),
            choices(several.iter().map(|path| text(path)))
        ),
    }
}

/// The first of a list, for a sentence.
pub fn choices(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = if names.len() > CHOICES { ", ..." } else { "" };
    let first: Vec<String> = names.take(CHOICES).collect();
    format!("{}{more}", first.join(", "))
}

/// The name of a directory as a terminal may show it.
pub fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    shown(&name.to_string_lossy())
}

fn is_named_so(dir: &Path) -> bool {
    let name = dir.file_name();
    name.is_some_and(|name| name.as_encoded_bytes().starts_with(PROF_PREFIX.as_bytes()))
}

fn text(path: &Path) -> String {
    clean(&path.display().to_string())
}

fn directories(dir: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}
