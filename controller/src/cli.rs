//! The command line: what it asks for, or one line that says what is wrong with it.

use crate::launch::{self, Application};
use msprof_agent_core::options::rule::Rule;
use msprof_agent_core::options::{self, OptionError, Options, TABLE, split_option, split_words};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Show the options.
    Help,
    /// Show the version.
    Version,
    /// `--dynamic=on`.
    Dynamic(Dynamic),
    /// A verb and its arguments: `msprof <verb> ...`.
    Verb(&'static Verb, Vec<OsString>),
}

/// A session of dynamic mode.
#[derive(Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// The options for the agent; the output directory is absolute.
    pub options: Options,
    /// Whom to profile.
    pub whom: Whom,
}

/// Whom a session profiles.
#[derive(Debug, PartialEq, Eq)]
pub enum Whom {
    /// Processes that run, each once, in the order given.
    Attach(Vec<u32>),
    /// A program that is to be started.
    Launch {
        /// What to run.
        application: Application,
        /// `--agent-lib`.
        agent: Option<PathBuf>,
    },
}

/// A command that needs no prompt.
#[derive(Debug)]
pub struct Verb {
    /// The first word of the command line.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Does it; gives the exit status.
    pub run: fn(&[OsString]) -> u8,
}

impl PartialEq for Verb {
    fn eq(&self, other: &Verb) -> bool {
        self.name == other.name
    }
}

impl Eq for Verb {}

/// All verbs.
pub static VERBS: &[Verb] = &[Verb {
    name: "summary",
    help: "summary <PROF_XXX>: what a capture holds: top calls, records, losses",
    run: crate::summary::run,
}];

/// An option that is the controller's own.
#[derive(Debug)]
pub struct OwnOption {
    /// Name without dashes.
    pub name: &'static str,
    /// The valid range in words.
    pub valid: &'static str,
    /// One line of help.
    pub help: &'static str,
}

const DYNAMIC: &str = "dynamic";
const PID: &str = "pid";
const APPLICATION: &str = "application";
const ENVIRONMENT: &str = "environment";
const AGENT_LIB: &str = "agent-lib";

/// The controller's own options, in the order of the help.
pub static OWN: [OwnOption; 5] = [
    OwnOption {
        name: DYNAMIC,
        valid: "on, off",
        help: "profile on command: start, stop and quit at a prompt",
    },
    OwnOption {
        name: PID,
        valid: "1~2147483647, several comma-separated",
        help: "attach to running processes",
    },
    OwnOption {
        name: APPLICATION,
        valid: "a program and its arguments in one text",
        help: "program to start; or write it behind the options",
    },
    OwnOption {
        name: ENVIRONMENT,
        valid: "K=V;K2=V2",
        help: "variables for the program that is started",
    },
    OwnOption {
        name: AGENT_LIB,
        valid: "path of libmsprof_agent.so",
        help: "the agent for the program that is started",
    },
];

/// What is wrong with a command line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// An option.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A word that is no text.
    #[error("argument {0} is not UTF-8; use another name")]
    NotUtf8(String),
    /// Nothing to do.
    #[error("--dynamic=on is missing; see msprof --help")]
    NoDynamic,
    /// Nobody to profile.
    #[error("whom to profile is missing: give --pid=<pid> or a program to start")]
    Nobody,
    /// Both.
    #[error("arguments --pid and --application cannot be configured at the same time")]
    PidAndApplication,
    /// An application twice.
    #[error("the program to start is given twice: by --application and behind the options")]
    TwoApplications,
    /// An option that only a program can use.
    #[error("argument --{0} needs a program to start; it cannot be used with --pid")]
    OnlyLaunch(&'static str),
    /// The output is something else than a directory.
    #[error("argument --output: \"{}\" is no directory; name another path", .0.display())]
    OutputNotDirectory(PathBuf),
    /// The working directory cannot be used for a relative output.
    #[error("the working directory cannot be used: {0}; give --output an absolute path")]
    WorkingDirectory(String),
}

/// Reads the command line, without the program's own name.
pub fn parse(arguments: Vec<OsString>) -> Result<Invocation, UsageError> {
    let first = arguments.first().and_then(|word| word.to_str());
    if let Some(verb) = VERBS.iter().find(|verb| Some(verb.name) == first) {
        let rest = arguments.into_iter().skip(1).collect();
        return Ok(Invocation::Verb(verb, rest));
    }
    let mut given = Given::default();
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else {
            if word.as_encoded_bytes().starts_with(b"-") {
                return Err(UsageError::NotUtf8(word.to_string_lossy().into_owned()));
            }
            given.trailing = std::iter::once(word).chain(words).collect();
            break;
        };
        match text {
            "-h" | "--help" => return Ok(Invocation::Help),
            "-V" | "--version" => return Ok(Invocation::Version),
            "--" => {
                given.trailing = words.collect();
                break;
            }
            _ => {}
        }
        let Some((name, value)) = split_option(text) else {
            if text.starts_with('-') {
                return Err(OptionError::Stray {
                    word: text.to_owned(),
                }
                .into());
            }
            given.trailing = std::iter::once(word).chain(words).collect();
            break;
        };
        let valid = valid_range(name)?;
        let value = match value {
            Some(value) => value.to_owned(),
            None => match words.next() {
                Some(value) => value
                    .into_string()
                    .map_err(|value| UsageError::NotUtf8(value.to_string_lossy().into_owned()))?,
                None => String::new(),
            },
        };
        if value.is_empty() {
            return Err(OptionError::Missing {
                option: name.to_owned(),
                valid,
            }
            .into());
        }
        given.set(name, &value)?;
    }
    given.finish()
}

/// The valid range of an option in words; an error for an unknown one.
fn valid_range(name: &str) -> Result<String, OptionError> {
    if let Some(own) = OWN.iter().find(|own| own.name == name) {
        return Ok(own.valid.to_owned());
    }
    match options::find(name) {
        Ok(spec) => Ok(spec.rule.to_string()),
        Err(_) => {
            let known = OWN.iter().map(|own| own.name);
            let known = known.chain(TABLE.iter().map(|spec| spec.name));
            Err(OptionError::Unknown {
                option: name.to_owned(),
                similar: options::most_like(name, known),
            })
        }
    }
}

/// What has been read so far.
#[derive(Default)]
struct Given {
    options: Options,
    dynamic: bool,
    pids: Vec<u32>,
    application: Option<Vec<OsString>>,
    environment: Vec<(String, String)>,
    agent: Option<PathBuf>,
    trailing: Vec<OsString>,
}

impl Given {
    fn set(&mut self, name: &str, value: &str) -> Result<(), UsageError> {
        match name {
            DYNAMIC => {
                Rule::OnOff.check(DYNAMIC, value)?;
                self.dynamic = value == "on";
            }
            PID => self.pids = pids(value)?,
            APPLICATION => {
                let words = split_words(value)
                    .map_err(|error| invalid(APPLICATION, value, &error.to_string()))?;
                if words.is_empty() {
                    return Err(invalid(APPLICATION, value, "it is empty"));
                }
                self.application = Some(words.into_iter().map(OsString::from).collect());
            }
            ENVIRONMENT => {
                self.environment = launch::parse_environment(value)
                    .map_err(|why| invalid(ENVIRONMENT, value, &why))?;
            }
            AGENT_LIB => self.agent = Some(PathBuf::from(value)),
            _ => self.options.set(name, value)?,
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Invocation, UsageError> {
        if !self.dynamic {
            return Err(UsageError::NoDynamic);
        }
        let words = match (self.application.take(), self.trailing.is_empty()) {
            (Some(_), false) => return Err(UsageError::TwoApplications),
            (Some(words), true) => words,
            (None, _) => std::mem::take(&mut self.trailing),
        };
        let whom = match (words.is_empty(), self.pids.is_empty()) {
            (true, true) => return Err(UsageError::Nobody),
            (false, false) => return Err(UsageError::PidAndApplication),
            (true, false) => {
                if !self.environment.is_empty() {
                    return Err(UsageError::OnlyLaunch(ENVIRONMENT));
                }
                if self.agent.is_some() {
                    return Err(UsageError::OnlyLaunch(AGENT_LIB));
                }
                Whom::Attach(self.pids)
            }
            (false, true) => Whom::Launch {
                application: Application {
                    words,
                    environment: self.environment,
                },
                agent: self.agent,
            },
        };
        let output = absolute_output(self.options.value("output").unwrap_or("."))?;
        self.options.set_output(&output);
        Ok(Invocation::Dynamic(Dynamic {
            options: self.options,
            whom,
        }))
    }
}

fn invalid(name: &str, value: &str, why: &str) -> UsageError {
    let own = OWN.iter().find(|own| own.name == name);
    let valid = own.map_or("", |own| own.valid);
    UsageError::Option(OptionError::Value {
        option: name.to_owned(),
        value: value.to_owned(),
        valid: format!("{valid} ({why})"),
    })
}

fn pids(value: &str) -> Result<Vec<u32>, UsageError> {
    let rule = Rule::Number {
        min: 1,
        max: i32::MAX as u32,
    };
    let mut pids = Vec::new();
    for word in value.split(',') {
        rule.check(PID, word)?;
        let pid = word.parse().ok().filter(|pid| !pids.contains(pid));
        pids.extend(pid);
    }
    Ok(pids)
}

/// The target has another working directory: it is told an absolute path.
fn absolute_output(path: &str) -> Result<String, UsageError> {
    let failed = |why: &str| UsageError::WorkingDirectory(why.to_owned());
    let relative = Path::new(path);
    let joined = match relative.is_absolute() {
        true => relative.to_owned(),
        false => std::env::current_dir()
            .map_err(|error| failed(&error.to_string()))?
            .join(relative),
    };
    // Without "." and doubled slashes; ".." is left to the kernel because of symbolic links.
    let tidy: PathBuf = joined.components().collect();
    if std::fs::metadata(&tidy).is_ok_and(|meta| !meta.is_dir()) {
        return Err(UsageError::OutputNotDirectory(tidy));
    }
    let text = tidy.into_os_string().into_string();
    text.map_err(|_| failed("its name is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Invocation, UsageError> {
        parse(words.iter().map(OsString::from).collect())
    }

    fn dynamic(words: &[&str]) -> Dynamic {
        match parsed(words) {
            Ok(Invocation::Dynamic(dynamic)) => dynamic,
            other => panic!("{words:?}: {other:?}"),
        }
    }

    fn words(dynamic: &Dynamic) -> Vec<&str> {
        match &dynamic.whom {
            Whom::Launch { application, .. } => application
                .words
                .iter()
                .filter_map(|word| word.to_str())
                .collect(),
            Whom::Attach(_) => Vec::new(),
        }
    }

    #[test]
    fn both_forms_of_a_program_are_taken() {
        let behind = dynamic(&[
            "--dynamic=on",
            "--runtime-api=on",
            "./main",
            "--aicpu=on",
            "a b",
        ]);
        assert_eq!(words(&behind), ["./main", "--aicpu=on", "a b"]);
        assert!(!behind.options.is_on("aicpu") && behind.options.is_on("runtime-api"));
        let one_text = dynamic(&["--dynamic=on", "--application=./main arg1 'a b'"]);
        assert_eq!(words(&one_text), ["./main", "arg1", "a b"]);
        let dashes = dynamic(&["--dynamic", "on", "--", "-x"]);
        assert_eq!(words(&dashes), ["-x"]);
    }

    #[test]
    fn pids_are_taken_once_each() {
        let attach = dynamic(&["--dynamic=on", "--pid=7,8,7"]);
        assert_eq!(attach.whom, Whom::Attach(vec![7, 8]));
    }

    #[test]
    fn the_output_is_absolute() {
        let here = std::env::current_dir().expect("working directory");
        let default = dynamic(&["--dynamic=on", "--pid=7"]);
        assert_eq!(default.options.value("output"), here.to_str());
        let relative = dynamic(&["--dynamic=on", "--pid=7", "--output=./new//dir/"]);
        assert_eq!(
            relative.options.value("output"),
            here.join("new/dir").to_str()
        );
        let absolute = dynamic(&["--dynamic=on", "--pid=7", "--output=/no/such/dir"]);
        assert_eq!(absolute.options.value("output"), Some("/no/such/dir"));
    }

    #[test]
    fn every_refusal_is_one_line() {
        let cases: &[(&[&str], &str)] = &[
            (&[], "--dynamic=on is missing"),
            (&["--dynamic=off", "--pid=7"], "--dynamic=on is missing"),
            (&["--dynamic=on"], "whom to profile"),
            (&["--dynamic=maybe"], "on, off"),
            (&["--dynamic"], "argument --dynamic: the value is missing"),
            (&["--dynamic=on", "--pid=0"], "1~2147483647"),
            (&["--dynamic=on", "--pid=7,"], "--pid"),
            (&["--dynamic=on", "--pid=2147483648"], "1~2147483647"),
            (&["--dynamic=on", "--pid=x"], "\"x\""),
            (&["--dynamic=on", "--pid="], "the value is missing"),
            (
                &["--dynamic=on", "--pid=7", "./main"],
                "--pid and --application",
            ),
            (&["--dynamic=on", "--application=a", "./main"], "twice"),
            (&["--dynamic=on", "--application=a 'b"], "not closed"),
            (&["--dynamic=on", "--application= "], "it is empty"),
            (
                &["--dynamic=on", "--pid=7", "--environment=A=1"],
                "--environment needs a program",
            ),
            (
                &["--dynamic=on", "--environment=PROFILING_MODE=x", "a"],
                "PROFILING_MODE is set by",
            ),
            (&["--dynamic=on", "--dinamic=on"], "did you mean --dynamic"),
            (
                &["--dynamic=on", "--pid=7", "--duration=5"],
                "--dynamic and --duration",
            ),
            (
                &["--dynamic=on", "--pid=7", "--output=/etc/passwd"],
                "no directory",
            ),
            (&["-x"], "\"-x\" is not an option"),
        ];
        for (words, part) in cases {
            let error = parsed(words).expect_err("refused").to_string();
            assert!(
                error.contains(part) && !error.contains('\n'),
                "{words:?}: {error}"
            );
        }
    }

    #[test]
    fn help_and_version_come_before_everything_else() {
        assert_eq!(parsed(&["--pid=7", "-h"]), Ok(Invocation::Help));
        assert_eq!(parsed(&["--version"]), Ok(Invocation::Version));
    }
}
