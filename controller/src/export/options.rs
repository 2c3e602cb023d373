//! The options of an export: their table, and what a command line says.

use crate::command::shown;
use msprof_agent_core::options::rule::Rule;
use msprof_agent_core::options::{OptionError, most_like, split_option};
use msprof_export::text::{Format, Options};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The option that asks for all this.
pub const EXPORT: &str = "export";
/// The option that says where.
pub const OUTPUT: &str = "output";

/// An option of an export.
#[derive(Debug)]
pub struct ExportOption {
    /// Name without dashes.
    pub name: &'static str,
    /// Its valid values.
    pub rule: Rule,
    /// One line of help.
    pub help: &'static str,
}

/// All of them, the one that says where last: captures have it too.
pub static OPTIONS: [ExportOption; 6] = [
    ExportOption {
        name: EXPORT,
        rule: Rule::OnOff,
        help: "export the PROF_XXX directories of --output instead of profiling, without CANN",
    },
    ExportOption {
        name: "type",
        rule: Rule::OneOf(&["text", "db"]),
        help: "the form of the export",
    },
    ExportOption {
        name: "summary-format",
        rule: Rule::OneOf(&["csv", "json"]),
        help: "the form of the tables",
    },
    ExportOption {
        name: "reports",
        rule: Rule::Path,
        help: "a JSON file that says which layers the timeline has",
    },
    ExportOption {
        name: "clear",
        rule: Rule::OnOff,
        help: "accepted: no intermediate files are made, so that none have to be removed",
    },
    ExportOption {
        name: OUTPUT,
        rule: Rule::Path,
        help: "a PROF_XXX directory or its parent",
    },
];

/// Whether a command line asks for an export: `--export` is among the options before any program.
pub fn is_asked(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().map(OsString::as_os_str).peekable();
    while let Some(word) = words.next() {
        let Some((name, value)) = word.to_str().and_then(split_option) else {
            return false;
        };
        if name == EXPORT {
            return true;
        }
        if value.is_none() {
            words.next_if(|word| is_value(word));
        }
    }
    false
}

/// Whether a word is the value of the option before it.
fn is_value(word: &OsStr) -> bool {
    !word.as_encoded_bytes().starts_with(b"--")
}

/// What is asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    on: bool,
    pub(super) output: PathBuf,
    pub(super) reports: Option<PathBuf>,
    pub(super) form: Form,
    pub(super) options: Options,
    pub(super) clear: bool,
}

/// What is made of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// Timeline and tables.
    #[default]
    Text,
    /// A database.
    Db,
}

impl Asked {
    /// Reads the options; `None` where help is asked for.
    pub(super) fn parse(arguments: &[OsString]) -> Result<Option<Asked>, String> {
        let mut asked = Asked::default();
        let mut words = arguments.iter().map(OsString::as_os_str).peekable();
        while let Some(word) = words.next() {
            if matches!(word.to_str(), Some("-h" | "--help")) {
                return Ok(None);
            }
            let bytes = word.as_encoded_bytes();
            let text = word.to_string_lossy();
            let Some((name, value)) = split_option(&text) else {
                return Err(format!(
                    "\"{}\" is no option of --export; name the directory with --output=<PROF_XXX | parent>",
                    shown(&text)
                ));
            };
            // The bytes of the word itself: a path need not be UTF-8.
            let value = match (value, bytes.iter().position(|byte| *byte == b'=')) {
                (Some(_), Some(at)) => Some(os_str(&bytes[at + 1..])),
                _ => words.next_if(|word| is_value(word)),
            };
            asked.set(name, value.unwrap_or_default())?;
        }
        if !asked.on {
            return Err("--export=off asks for nothing; give --export=on".to_owned());
        }
        if asked.output.as_os_str().is_empty() {
            return Err("--output is missing: give --output=<PROF_XXX | parent>".to_owned());
        }
        Ok(Some(asked))
    }

    fn set(&mut self, name: &str, value: &OsStr) -> Result<(), String> {
        let Some(ExportOption { rule, .. }) = OPTIONS.iter().find(|option| option.name == name)
        else {
            return Err(unknown(name));
        };
        if value.is_empty() {
            let error = OptionError::Missing {
                option: name.to_owned(),
                valid: rule.to_string(),
            };
            return Err(error.to_string());
        }
        let text = value.to_string_lossy();
        if !matches!(rule, Rule::Path) {
            rule.check(name, &text).map_err(|error| error.to_string())?;
        }
        match name {
            EXPORT => self.on = text == "on",
            OUTPUT => self.output = PathBuf::from(value),
            "type" if text == "db" => self.form = Form::Db,
            "type" => self.form = Form::Text,
            "summary-format" if text == "json" => self.options.format = Format::Json,
            "summary-format" => self.options.format = Format::Csv,
            "reports" => self.reports = Some(PathBuf::from(value)),
            "clear" => self.clear = text == "on",
            _ => {}
        }
        Ok(())
    }
}

/// Bytes of a word of the command line.
fn os_str(bytes: &[u8]) -> &OsStr {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes)
}

fn unknown(name: &str) -> String {
    match name {
        "dynamic" | "pid" | "application" => {
            format!("arguments --export and --{name} cannot be configured at the same time")
        }
        "model-id" | "iteration-id" | "iteration-count" => {
            format!("--{name}: a capture is exported as a whole; leave the option away")
        }
        _ => {
            let error = OptionError::Unknown {
                option: name.to_owned(),
                similar: most_like(name, OPTIONS.iter().map(|option| option.name)),
            };
            error
                .to_string()
                .replace("msprof --help", "msprof --export=on --help")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn an_export_is_asked_for_by_its_option_alone() {
        assert!(is_asked(&words(&["--export=on"])));
        assert!(is_asked(&words(&["--output", "x", "--export", "on"])));
        assert!(is_asked(&words(&["--dynamic=on", "--export=on", "./main"])));
        assert!(!is_asked(&words(&[
            "--dynamic=on",
            "./main",
            "--export=on"
        ])));
        assert!(!is_asked(&words(&["--dynamic=on", "--", "--export=on"])));
        assert!(!is_asked(&words(&[])));
    }

    #[test]
    fn options_are_read_and_checked() {
        let asked = Asked::parse(&words(&[
            "--export=on",
            "--output",
            "/p=q",
            "--summary-format=json",
        ]));
        let asked = asked.expect("understood").expect("no help");
        assert_eq!(asked.output, Path::new("/p=q"));
        assert_eq!(asked.options.format, Format::Json);
        assert!(
            Asked::parse(&words(&["--export=on", "-h"]))
                .expect("help")
                .is_none()
        );
        for (line, part) in [
            (&["--export=on"][..], "--output is missing"),
            (
                &["--export=off", "--output=x"],
                "--export=off asks for nothing",
            ),
            (&["--export=yes"], "--export"),
            (&["--export=on", "--output"], "--output"),
            (&["--export=on", "--type=csv"], "--type"),
            (&["--export=on", "x"], "\"x\" is no option of --export"),
            (
                &["--export=on", "--dynamic=on"],
                "cannot be configured at the same time",
            ),
            (&["--export=on", "--model-id=1"], "exported as a whole"),
            (
                &["--export=on", "--sumary-format=csv"],
                "did you mean --summary-format?",
            ),
        ] {
            let error = Asked::parse(&words(line)).expect_err("refused");
            assert!(
                error.contains(part) && !error.contains('\n'),
                "{line:?}: {error}"
            );
        }
    }
}
