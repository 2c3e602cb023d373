//! The options of dynamic mode: their values, their checks, and what a user gave.
//!
//! The table is shared by the command line and by the C API, so that both take the same words.
//! Invariant: every value inside [`Options`] has passed its rule.

#![forbid(unsafe_code)]

pub mod rule;
pub mod table;
pub mod words;

pub use table::{Group, OptionSpec, TABLE};
pub use words::{split_option, split_words};

use crate::visible::is_harmful;

/// Why a word of the options is refused. Every message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No such option.
    #[error("unknown option --{}; {}", one_line(.option), hint(.similar))]
    Unknown {
        /// Name without dashes.
        option: String,
        /// The known option that looks most like it.
        similar: Option<&'static str>,
    },
    /// The value breaks the option's rule.
    #[error("argument --{option}: value \"{}\" is invalid, valid range is {valid}", one_line(.value))]
    Value {
        /// Name without dashes.
        option: String,
        /// What was given.
        value: String,
        /// The rule in words.
        valid: String,
    },
    /// The option stands without a value.
    #[error("argument --{option}: the value is missing, valid range is {valid}")]
    Missing {
        /// Name without dashes.
        option: String,
        /// The rule in words.
        valid: String,
    },
    /// The option has no meaning in dynamic mode.
    #[error("arguments --dynamic and --{option} cannot be configured at the same time")]
    NotWithDynamic {
        /// Name without dashes.
        option: &'static str,
    },
    /// A word that is no option where only options may stand.
    #[error("\"{}\" is not an option; options are written --name=value", one_line(.word))]
    Stray {
        /// The word.
        word: String,
    },
    /// A quote that is never closed.
    #[error("a {quote} quote is not closed")]
    OpenQuote {
        /// `'` or `"`.
        quote: char,
    },
    /// A backslash with nothing behind it.
    #[error("a backslash ends the text; write two for a backslash of its own")]
    TrailingBackslash,
}

/// A text with escapes for what is more than seen, for messages of one line.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = is_harmful(c).then(|| c.escape_default());
            let plain = (!is_harmful(c)).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

fn hint(similar: &Option<&'static str>) -> String {
    similar.map_or_else(
        || "see msprof --help for the valid options".to_owned(),
        |name| format!("did you mean --{name}?"),
    )
}

/// What a user gave, checked; options that are absent have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    given: Vec<(&'static OptionSpec, String)>,
}

impl Options {
    /// Reads `--name=value` and `--name value` words.
    pub fn parse_words<I>(words: I) -> Result<Options, OptionError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut options = Options::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let word = word.as_ref();
            let Some((name, value)) = split_option(word) else {
                return Err(OptionError::Stray {
                    word: word.to_owned(),
                });
            };
            match value {
                Some(value) => options.set(name, value)?,
                None => {
                    let spec = find(name)?;
                    let value = words.next().ok_or_else(|| OptionError::Missing {
                        option: name.to_owned(),
                        valid: spec.rule.to_string(),
                    })?;
                    options.set(name, value.as_ref())?;
                }
            }
        }
        Ok(options)
    }

    /// Sets one option; given twice, the last value counts.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let spec = find(name)?;
        if spec.group == Group::Refused {
            return Err(OptionError::NotWithDynamic { option: spec.name });
        }
        if value.is_empty() {
            return Err(OptionError::Missing {
                option: spec.name.to_owned(),
                valid: spec.rule.to_string(),
            });
        }
        spec.rule.check(spec.name, value)?;
        self.given.retain(|(other, _)| other.name != spec.name);
        self.given.push((spec, value.to_owned()));
        Ok(())
    }

    /// Replaces the output directory by a path that was made out of a checked one.
    ///
    /// Unlike [`Options::set`] it takes every path that JSON can hold: only what the user types has
    /// to keep the rule, not the working directory that is put in front of it.
    pub fn set_output(&mut self, path: &str) {
        self.given.retain(|(spec, _)| spec.name != table::OUTPUT);
        if let Ok(spec) = find(table::OUTPUT) {
            self.given.push((spec, path.to_owned()));
        }
    }

    /// What was given for an option; `None` when it was not given.
    pub fn given(&self, name: &str) -> Option<&str> {
        let found = self.given.iter().find(|(spec, _)| spec.name == name);
        found.map(|(_, value)| value.as_str())
    }

    /// What was given for an option, else its default; `None` for an unknown name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.given(name)
            .or_else(|| find(name).ok().map(|spec| spec.default))
    }

    /// Whether an option's value is `on`.
    pub fn is_on(&self, name: &str) -> bool {
        self.value(name) == Some("on")
    }

    /// All that was given, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&'static OptionSpec, &str)> {
        self.given
            .iter()
            .map(|(spec, value)| (*spec, value.as_str()))
    }

    /// The options given, and not switched off, whose data this agent does not collect itself.
    pub fn not_collected(&self) -> Vec<&'static str> {
        self.iter()
            .filter(|(spec, value)| spec.group == Group::PassedThrough && *value != "off")
            .map(|(spec, _)| spec.name)
            .collect()
    }
}

/// Finds an option of [`TABLE`] by its name without dashes.
pub fn find(name: &str) -> Result<&'static OptionSpec, OptionError> {
    let found = TABLE.iter().find(|spec| spec.name == name);
    found.ok_or_else(|| OptionError::Unknown {
        option: name.to_owned(),
        similar: most_like(name, TABLE.iter().map(|spec| spec.name)),
    })
}

/// The name that is at most two edits away from `name`, in whatever case, if there is one.
pub fn most_like(
    name: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    const MOST_EDITS: usize = 2;
    // No option is nearly as long; the bound keeps a huge word from costing time.
    if name.len() > 64 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let with_distance = known.into_iter().map(|other| (edits(&name, other), other));
    let (distance, other) = with_distance.min()?;
    // Of a very short word two edits leave nothing.
    (distance <= MOST_EDITS && distance < name.len()).then_some(other)
}

/// Edit distance in bytes.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_a_value_are_taken() {
        let options = Options::parse_words(["--runtime-api=on", "--aicpu", "on"]).expect("valid");
        assert!(options.is_on("runtime-api") && options.is_on("aicpu"));
        assert!(options.is_on("ascendcl") && !options.is_on("hccl"));
        assert_eq!(options.given("hccl"), None);
        assert_eq!(options.value("task-time"), Some("on"));
    }

    #[test]
    fn of_two_values_the_last_counts() {
        let options = Options::parse_words(["--l2=on", "--l2=off"]).expect("valid");
        assert_eq!(options.given("l2"), Some("off"));
        assert_eq!(options.iter().count(), 1);
    }

    #[test]
    fn every_refusal_is_one_line_that_names_option_value_and_range() {
        let cases: &[(&[&str], &[&str])] = &[
            (
                &["--runtime-api=yes"],
                &["--runtime-api", "\"yes\"", "on, off"],
            ),
            (
                &["--runtime-api="],
                &["--runtime-api", "missing", "on, off"],
            ),
            (&["--runtime-api"], &["--runtime-api", "missing", "on, off"]),
            (
                &["--runtime-apy=on"],
                &["--runtime-apy", "did you mean --runtime-api"],
            ),
            (&["--nonsense=on"], &["--nonsense", "unknown option"]),
            (
                &["--storage-limit=100MB"],
                &["--storage-limit", "\"100MB\"", "200MB~4294967295MB"],
            ),
            (&["--task-time=l4"], &["--task-time", "\"l4\"", "l0"]),
            (&["--output=a\nb"], &["--output", "a\\nb", "line breaks"]),
            (&["--delay=5"], &["--dynamic", "--delay", "same time"]),
            (
                &["--sys-cpu-profiling=on"],
                &["--dynamic", "--sys-cpu-profiling"],
            ),
            (&["on"], &["\"on\" is not an option"]),
        ];
        for (words, parts) in cases {
            let error = Options::parse_words(*words)
                .expect_err("refused")
                .to_string();
            assert!(!error.contains('\n'), "{error}");
            for part in *parts {
                assert!(error.contains(part), "{error}: no {part}");
            }
        }
    }

    #[test]
    fn a_refusal_shows_what_would_hide_or_turn_round_a_part_of_it() {
        for (word, part) in [
            ("--l2=of\u{202e}f", "\"of\\u{202e}f\""),
            ("--l\u{200b}2\u{9b}=on", "--l\\u{200b}2\\u{9b};"),
            ("\u{2066}on", "\"\\u{2066}on\""),
            ("--l2=算子", "\"算子\""),
        ] {
            let error = Options::parse_words([word]).expect_err("refused");
            let said = error.to_string();
            assert!(
                said.contains(part) && !said.contains(is_harmful),
                "{said:?}"
            );
        }
    }

    #[test]
    fn only_options_of_other_collectors_are_named_as_not_collected() {
        let words = [
            "--runtime-api=on",
            "--ai-core=off",
            "--host-sys=cpu",
            "--hccl=on",
        ];
        let options = Options::parse_words(words).expect("valid");
        assert_eq!(options.not_collected(), ["host-sys"]);
    }

    #[test]
    fn names_and_defaults_of_the_table_are_sound() {
        for (i, spec) in TABLE.iter().enumerate() {
            assert!(TABLE[i + 1..].iter().all(|other| other.name != spec.name));
            if !spec.default.is_empty() {
                spec.rule
                    .check(spec.name, spec.default)
                    .expect("default keeps the rule");
            }
            assert!(!spec.help.is_empty() && !spec.help.contains('\n'));
        }
    }
}
