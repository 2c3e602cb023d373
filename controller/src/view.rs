//! `msprof view <PROF_XXX>`: a capture as one HTML file.

use crate::command::shown;
use crate::exit::{DONE, FAILED, USAGE};
use crate::profdirs;
use crate::screen::clean;
use msprof_export::source::Source;
use msprof_export::view::{LIMIT, LIMIT_MAX, PageFile, View};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// End of the file's name.
const EXTENSION: &str = ".html";

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof view [--output=FILE] [--limit=N] <PROF_XXX>

Writes a capture as one HTML file that any browser opens, without a network: a timeline of each
thread with its nested calls, and of what each device's AICPU did, to zoom, move and search; the
calls by total time; runs of models; and what was lost. A directory that holds one PROF_XXX will
do as well.

The file is PROF_XXX.html beside the directory, or PROF_XXX-1.html and so on where that is there
already. The capture itself is not changed.

  --output=FILE  where to write it; a file that is there already is refused
  --limit=N      intervals in the page, 1~10000000 (default 1000000). Of more, the longest ones of
                 each thread and piece of time are drawn, and the page says so; its table counts all

exit status: 0 written; 1 the capture cannot be read, or the file not be written; 2 usage
";

/// What is asked for.
#[derive(Debug, Default)]
struct Asked {
    paths: Vec<OsString>,
    output: Option<PathBuf>,
    limit: Option<u64>,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
enum ViewError {
    #[error(transparent)]
    Open(#[from] profdirs::OpenError),
    #[error("{path} is there already: name another file by --output, or remove it")]
    There { path: String },
    #[error("cannot write {path}: {error}; name another file by --output")]
    Write { path: String, error: io::Error },
}

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    if arguments
        .iter()
        .any(|word| word == "-h" || word == "--help")
    {
        crate::print(HELP);
        return DONE;
    }
    let asked = match Asked::parse(arguments) {
        Ok(asked) => asked,
        Err(wrong) => {
            complain!("msprof: {wrong}");
            return USAGE;
        }
    };
    let [path] = &asked.paths[..] else {
        complain!("msprof: view takes one directory: msprof view <PROF_XXX>");
        return USAGE;
    };
    if path.is_empty() {
        complain!("msprof: view: \"\" is no directory; usage: msprof view <PROF_XXX>");
        return USAGE;
    }
    match asked.write(Path::new(path)) {
        Ok(told) => {
            crate::print(&format!("{told}\n"));
            DONE
        }
        Err(error) => {
            complain!("msprof: {}", clean(&error.to_string()));
            FAILED
        }
    }
}

impl Asked {
    fn parse(arguments: &[OsString]) -> Result<Asked, String> {
        let mut asked = Asked::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let bytes = word.as_encoded_bytes();
            if !bytes.starts_with(b"-") {
                asked.paths.push(word.clone());
                continue;
            }
            // An option, and a value that may be any name of a file.
            let (name, value) = match word.to_str().and_then(|word| word.split_once('=')) {
                Some((name, value)) => (name.to_owned(), Some(OsString::from(value))),
                None => (word.to_string_lossy().into_owned(), None),
            };
            if name != "--output" && name != "--limit" {
                let name = shown(&name);
                return Err(format!(
                    "view has no option \"{name}\"; it has --output and --limit"
                ));
            }
            let value = value.or_else(|| words.next().cloned());
            let value = value.filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| format!("view: {name} takes a value"))?;
            match name.as_str() {
                "--output" => asked.output = Some(value.into()),
                _ => asked.limit = Some(limit(&value.to_string_lossy())?),
            }
        }
        Ok(asked)
    }

    /// Writes the page; what is said of it.
    fn write(&self, path: &Path) -> Result<String, ViewError> {
        let source = profdirs::open(path)?;
        let view = View::of(&source, self.limit.unwrap_or(LIMIT));
        let view = view.map_err(profdirs::OpenError::from)?;
        let wanted = self.wanted(&source);
        let refused = |error| refused(&wanted, error);
        let mut file = self.file(&wanted).map_err(refused)?;
        let written = view.write(&mut file).and_then(|()| file.finish());
        let (path, bytes) = written.map_err(refused)?;
        let path = path.display().to_string();
        let all = match view.shown() == view.total() {
            true => format!("{} intervals", view.total()),
            false => format!("the longest {} of {} intervals", view.shown(), view.total()),
        };
        let lanes = view.lanes().len();
        let devices = view.lanes().iter().filter(|lane| lane.is_device()).count();
        Ok(format!(
            "{}: {all} in {} lanes of threads and {devices} of devices, {:.1} MB; open it in a browser",
            clean(&path),
            lanes - devices,
            bytes as f64 / 1e6
        ))
    }

    /// Where the page is to be.
    fn wanted(&self, source: &Source) -> PathBuf {
        if let Some(output) = &self.output {
            return output.clone();
        }
        // Links and ".." are no names of captures.
        let directory = source.profile().path();
        let whole = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let name = whole.file_name().unwrap_or("capture".as_ref());
        let parent = whole.parent().unwrap_or(Path::new("."));
        parent.join(format!("{}{EXTENSION}", name.to_string_lossy()))
    }

    fn file(&self, wanted: &Path) -> io::Result<PageFile> {
        let name = wanted.file_name().unwrap_or_default().to_string_lossy();
        match (&self.output, wanted.parent(), name.strip_suffix(EXTENSION)) {
            (None, Some(parent), Some(stem)) => PageFile::beside(parent, stem, EXTENSION),
            _ => PageFile::at(wanted),
        }
    }
}

fn refused(path: &Path, error: io::Error) -> ViewError {
    let path = path.display().to_string();
    match error.kind() {
        ErrorKind::AlreadyExists => ViewError::There { path },
        _ => ViewError::Write { path, error },
    }
}

fn limit(word: &str) -> Result<u64, String> {
    let limit = word.parse().ok();
    limit
        .filter(|limit| (1..=LIMIT_MAX).contains(limit))
        .ok_or_else(|| {
            format!(
                "view: --limit \"{}\" is invalid, valid range is 1~{LIMIT_MAX}",
                shown(word)
            )
        })
}
