//! The command line: what it asks for, or one line that says what is wrong with it.

mod error;
mod own;
mod verb;

pub use error::UsageError;
pub use own::OWN;
pub use verb::{VERBS, Verb};

use crate::command::{Command, shown};
use crate::export;
use crate::inject::Inject;
use crate::launch::{self, Application};
use msprof_agent_core::options::rule::Rule;
use msprof_agent_core::options::{self, OptionError, Options, TABLE, split_option, split_words};
use own::{AGENT_LIB, APPLICATION, DYNAMIC, ENVIRONMENT, INJECT, PID};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Show the options.
    Help,
    /// Show the versions: ours and that of the library, which `--agent-lib` may have named before.
    Version(Option<PathBuf>),
    /// `--dynamic=on`.
    Dynamic(Dynamic),
    /// `--export`, with all arguments.
    Export(Vec<OsString>),
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
        /// `--inject`.
        inject: Inject,
        /// `--agent-lib`.
        agent: Option<PathBuf>,
    },
}

/// Reads the command line, without the program's own name.
pub fn parse(arguments: Vec<OsString>) -> Result<Invocation, UsageError> {
    let first = arguments.first().and_then(|word| word.to_str());
    if let Some(verb) = VERBS.iter().find(|verb| Some(verb.name) == first) {
        let rest = arguments.into_iter().skip(1).collect();
        return Ok(Invocation::Verb(verb, rest));
    }
    if export::is_asked(&arguments) {
        return Ok(Invocation::Export(arguments));
    }
    match (first, arguments.len()) {
        (None, 0) => return Err(UsageError::Nothing),
        (Some("help"), 1) => return Ok(Invocation::Help),
        _ => {}
    }
    let mut given = Given::default();
    let mut words = arguments.into_iter().peekable();
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
            "-V" | "--version" => return Ok(Invocation::Version(given.agent)),
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
            // An option is no value; one that begins so has to be written --name=value.
            None => match words.next_if(|word| !word.as_encoded_bytes().starts_with(b"--")) {
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
        given.any = true;
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
            let known = known.chain([export::EXPORT]);
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
    /// Whether there was any option.
    any: bool,
    dynamic: bool,
    pids: Vec<u32>,
    application: Option<Vec<OsString>>,
    environment: Vec<(String, String)>,
    inject: Option<Inject>,
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
                if words.first().is_none_or(String::is_empty) {
                    return Err(invalid(APPLICATION, value, "it is empty"));
                }
                self.application = Some(words.into_iter().map(OsString::from).collect());
            }
            ENVIRONMENT => {
                self.environment = launch::parse_environment(value)
                    .map_err(|why| invalid(ENVIRONMENT, value, &why))?;
            }
            INJECT => {
                Rule::OneOf(Inject::WORDS).check(INJECT, value)?;
                self.inject = Inject::of_word(value);
            }
            AGENT_LIB => self.agent = Some(PathBuf::from(value)),
            _ => self.options.set(name, value)?,
        }
        Ok(())
    }

    /// Tells what is no program from what is one, as far as that can be told.
    fn check_trailing(&self) -> Result<(), UsageError> {
        let Some(first) = self.trailing.first() else {
            return Ok(());
        };
        let word = first.to_string_lossy().into_owned();
        if word.is_empty() {
            return Err(UsageError::EmptyProgram);
        }
        if is_prompt_command(&word) && (self.trailing.len() == 1 || !self.pids.is_empty()) {
            return Err(UsageError::PromptCommand(word));
        }
        let name = word.split_once('=').map(|(name, _)| name);
        if name.is_some_and(|name| valid_range(name).is_ok()) {
            return Err(OptionError::Stray { word }.into());
        }
        if !self.dynamic && !self.any {
            let similar = options::most_like(&word, VERBS.iter().map(|verb| verb.name));
            return Err(UsageError::NotAVerb { word, similar });
        }
        if !self.pids.is_empty() {
            return Err(UsageError::PidAndWord(word));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Invocation, UsageError> {
        self.check_trailing()?;
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
                if self.inject.is_some() {
                    return Err(UsageError::OnlyLaunch(INJECT));
                }
                if self.agent.is_some() {
                    return Err(UsageError::OnlyLaunch(AGENT_LIB));
                }
                Whom::Attach(self.pids)
            }
            (false, true) if self.agent.is_some() && self.inject == Some(Inject::None) => {
                return Err(UsageError::NothingToInject);
            }
            (false, true) => Whom::Launch {
                application: Application {
                    words,
                    environment: self.environment,
                },
                inject: self.inject.unwrap_or_default(),
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

/// Whether a word alone means something at the prompt, and hardly anything as a program.
fn is_prompt_command(word: &str) -> bool {
    matches!(
        Command::parse(word),
        Command::Start | Command::Stop | Command::Status | Command::Quit
    )
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

/// Process ids, comma-separated, each once.
pub fn pids(value: &str) -> Result<Vec<u32>, UsageError> {
    let rule = Rule::Number {
        min: 1,
        max: i32::MAX as u32,
    };
    let mut pids = Vec::new();
    for word in value.split(',') {
        if rule.check(PID, word).is_err() {
            let why = format!("\"{}\" is no process id", shown(word));
            return Err(invalid(PID, value, &why));
        }
        let pid = word.parse().ok().filter(|pid| !pids.contains(pid));
        pids.extend(pid);
    }
    Ok(pids)
}

/// The target has another working directory: it is told an absolute path.
pub fn absolute_output(path: &str) -> Result<String, UsageError> {
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
mod tests;
