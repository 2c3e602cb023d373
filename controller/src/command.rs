//! The commands of the prompt (spec 4 section 4.2).

use msprof_export::visible::is_harmful;
use std::time::Duration;

/// Longest `sleep`, seconds: a day.
const SLEEP_MAX: f64 = 86_400.0;
/// Characters of a mistyped command that are shown again.
const SHOWN_MAX: usize = 60;

/// What a line of input asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Nothing was typed.
    Nothing,
    /// Start a capture in every process.
    Start,
    /// Stop the captures.
    Stop,
    /// Tell the state of every process.
    Status,
    /// End the session.
    Quit,
    /// Show the commands.
    Help,
    /// Wait.
    Sleep(Duration),
    /// Not a command; the message names it.
    Wrong(String),
}

/// The commands, for `help` and for mistyped ones.
pub const HELP: &str = "\
commands:
  start            start a capture in every process
  stop             stop the captures and show what was written and lost
  status           show the state of every process, and the account of its capture so far
  sleep <seconds>  wait, for scripts; fractions are allowed
  help, h          show this
  quit, q          end profiling; running captures are finished first. The end of the input, such as
                   Ctrl-D, does the same, and so does Ctrl-C, also while a command runs
  Ctrl-C again     does not wait for the captures, which the processes finish; a program that was
                   started here is ended, and by a further one killed";

impl Command {
    /// Reads a line.
    pub fn parse(line: &str) -> Command {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            return Command::Nothing;
        };
        let argument = words.next();
        let command = match (first, argument) {
            ("start", None) => Command::Start,
            ("stop", None) => Command::Stop,
            ("status", None) => Command::Status,
            ("quit" | "q", None) => Command::Quit,
            ("help" | "h", None) => Command::Help,
            ("sleep", Some(seconds)) => match seconds.parse::<f64>() {
                Ok(s) if (0.0..=SLEEP_MAX).contains(&s) => {
                    Command::Sleep(Duration::from_secs_f64(s))
                }
                _ => {
                    return Command::Wrong(format!(
                        "sleep: \"{}\" is invalid, valid range is 0~{SLEEP_MAX} seconds",
                        shown(seconds)
                    ));
                }
            },
            ("sleep", None) => {
                return Command::Wrong("sleep: how many seconds? for example: sleep 2".to_owned());
            }
            _ => return Command::Wrong(format!("unknown command \"{}\"", shown(line.trim()))),
        };
        match words.next() {
            Some(_) => Command::Wrong(format!("unknown command \"{}\"", shown(line.trim()))),
            None => command,
        }
    }
}

/// A bounded piece of a line without what is more than seen, fit for a terminal.
pub fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_MAX)
        .map(|c| if is_harmful(c) { '?' } else { c })
        .collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_its_short_form_is_known() {
        for (line, command) in [
            ("", Command::Nothing),
            (" \t", Command::Nothing),
            ("start", Command::Start),
            ("  stop  ", Command::Stop),
            ("status", Command::Status),
            ("quit", Command::Quit),
            ("q", Command::Quit),
            ("help", Command::Help),
            ("h", Command::Help),
            ("sleep 2", Command::Sleep(Duration::from_secs(2))),
            ("sleep 0.25", Command::Sleep(Duration::from_millis(250))),
        ] {
            assert_eq!(Command::parse(line), command, "{line:?}");
        }
    }

    #[test]
    fn anything_else_is_named() {
        for line in [
            "Start",
            "start now",
            "sleep",
            "sleep x",
            "sleep -1",
            "sleep 1e9",
            "sleep inf",
            "sleep 1 2",
            "\u{1b}[2J",
        ] {
            let Command::Wrong(message) = Command::parse(line) else {
                panic!("{line:?} is taken for a command");
            };
            assert!(!message.chars().any(char::is_control), "{message:?}");
        }
        let Command::Wrong(message) = Command::parse(&"x".repeat(5000)) else {
            panic!("taken for a command");
        };
        assert!(message.len() < 100);
        assert_eq!(shown("exe.\u{202e}txt\u{1b}"), "exe.?txt?");
    }
}
