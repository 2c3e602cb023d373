//! The words behind a verb: its own options, and where it takes them those of a capture.

use super::time;
use crate::cli::{self, UsageError};
use crate::command::shown;
use crate::exit::{DONE, USAGE};
use msprof_agent_core::options::{self, Options, split_option};
use std::ffi::OsString;
use std::time::Duration;

/// What a verb takes beside `--json` and `--help`.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// Its name.
    pub verb: &'static str,
    /// `--pid`, which it then needs.
    pub pids: bool,
    /// Its option for a length of time, and the bounds of that; 0 is always allowed where `zero` is.
    pub time: Option<(&'static str, Duration, bool)>,
    /// The options of a capture.
    pub capture: bool,
    /// Further words without a value.
    pub flags: &'static [&'static str],
}

/// What was given.
#[derive(Debug, Default)]
pub struct Given {
    /// `--json`.
    pub json: bool,
    /// Each once, in the order given.
    pub pids: Vec<u32>,
    /// Of the verb's option for it.
    pub time: Option<Duration>,
    /// Of a capture; the output directory is absolute.
    pub options: Options,
    /// Those of the further words.
    pub flags: Vec<&'static str>,
}

/// Longest time that can be asked for.
const TIME_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

impl Takes {
    /// Reads the words. `Err` has the exit status: help was shown, or one line says what is wrong.
    pub fn read(&self, words: &[OsString], help: &str) -> Result<Given, u8> {
        let is_help = |word: &OsString| word == "-h" || word == "--help";
        if words.iter().any(is_help) {
            crate::print(help);
            return Err(DONE);
        }
        self.parse(words).map_err(|error| {
            complain!("msprof: {}: {error}", self.verb);
            USAGE
        })
    }

    fn parse(&self, words: &[OsString]) -> Result<Given, String> {
        let mut given = Given::default();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let text = word.to_str().ok_or_else(|| {
                UsageError::NotUtf8(word.to_string_lossy().into_owned()).to_string()
            })?;
            let stray = || format!("\"{}\" is not an option; {}", shown(text), self.hint());
            let (name, value) = split_option(text).ok_or_else(stray)?;
            if name == "json" && value.is_none() {
                given.json = true;
                continue;
            }
            if let Some(flag) = self.flags.iter().find(|flag| **flag == name)
                && value.is_none()
            {
                given.flags.push(flag);
                continue;
            }
            if !self.knows(name) {
                return Err(self.unknown(name));
            }
            let value = match value {
                Some(value) => value.to_owned(),
                None => match words.next_if(|word| !word.as_encoded_bytes().starts_with(b"--")) {
                    Some(word) => word.to_string_lossy().into_owned(),
                    None => String::new(),
                },
            };
            if value.is_empty() {
                return Err(format!("argument --{name}: the value is missing"));
            }
            self.set(&mut given, name, &value)?;
        }
        if self.pids && given.pids.is_empty() {
            return Err(format!("--pid is missing; {}", self.hint()));
        }
        if self.capture {
            let output = given.options.value("output").unwrap_or(".");
            let output = cli::absolute_output(output).map_err(|error| error.to_string())?;
            given.options.set_output(&output);
        }
        Ok(given)
    }

    fn set(&self, given: &mut Given, name: &str, value: &str) -> Result<(), String> {
        match name {
            "pid" => given.pids = cli::pids(value).map_err(|error| error.to_string())?,
            _ if self.time.is_some_and(|(option, ..)| option == name) => {
                given.time = Some(self.time_of(name, value)?);
            }
            _ => {
                let set = given.options.set(name, value);
                set.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn time_of(&self, name: &str, value: &str) -> Result<Duration, String> {
        let (_, least, zero) = self.time.unwrap_or(("", Duration::ZERO, true));
        let is_good =
            |time: &Duration| (zero && time.is_zero()) || (least..=TIME_MAX).contains(time);
        let read = match value {
            "0" => Some(Duration::ZERO),
            _ => time::parse(value),
        };
        read.filter(is_good).ok_or_else(|| {
            format!(
                "argument --{name}: value \"{}\" is invalid, valid range is {}~{} with a unit, such as 200ms, 5s, 2m or 1h{}",
                shown(value),
                time::words(least),
                time::words(TIME_MAX),
                if zero { ", or 0 for no limit" } else { "" }
            )
        })
    }

    fn knows(&self, name: &str) -> bool {
        let is_time = self.time.is_some_and(|(option, ..)| option == name);
        let is_capture = || self.capture && options::find(name).is_ok();
        (self.pids && name == "pid") || is_time || is_capture()
    }

    fn unknown(&self, name: &str) -> String {
        let own = [
            Some("json"),
            self.pids.then_some("pid"),
            self.time.map(|(name, ..)| name),
        ];
        let known = own.into_iter().flatten().chain(self.flags.iter().copied());
        let table = options::TABLE.iter().filter(|_| self.capture);
        let known = known.chain(table.map(|spec| spec.name));
        let similar = options::most_like(name, known);
        let hint = similar.map_or_else(|| self.hint(), |name| format!("did you mean --{name}?"));
        format!("it has no option --{}; {hint}", shown(name))
    }

    fn hint(&self) -> String {
        format!("see msprof {} --help", self.verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: Takes = Takes {
        verb: "record",
        pids: true,
        time: Some(("duration", Duration::from_millis(1), false)),
        capture: true,
        flags: &[],
    };

    fn parse(words: &[&str]) -> Result<Given, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        RECORD.parse(&words)
    }

    #[test]
    fn a_verbs_words_are_read_in_both_forms() {
        let words = [
            "--pid=7,8,7",
            "--json",
            "--duration",
            "2m",
            "--runtime-api=on",
        ];
        let given = parse(&words).expect("good");
        assert_eq!(given.pids, [7, 8]);
        assert!(given.json && given.options.is_on("runtime-api"));
        assert_eq!(given.time, Some(Duration::from_secs(120)));
        let output = given.options.value("output").expect("set");
        assert!(output.starts_with('/'), "{output}");
    }

    #[test]
    fn what_is_wrong_is_named_with_the_way_out() {
        for (words, part) in [
            (&["--pid=0"][..], "\"0\" is no process id"),
            (&[], "--pid is missing; see msprof record --help"),
            (
                &["--pid=1", "--duration=5"],
                "\"5\" is invalid, valid range is 1 ms~30 d",
            ),
            (&["--pid=1", "--duration=0"], "is invalid"),
            (&["--pid=1", "--duration"], "the value is missing"),
            (&["--pid=1", "--durations=5s"], "did you mean --duration?"),
            (&["--pid=1", "--runtime-api=yes"], "valid range is on, off"),
            (&["--pid=1", "7"], "\"7\" is not an option"),
            (&["--pid=1", "--json=on"], "it has no option --json"),
            (&["--pid=1", "--output=/dev/null"], "is no directory"),
        ] {
            let error = parse(words).expect_err("wrong");
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
