//! The text of `--help`, made of the option tables.

use crate::cli::{OWN, VERBS};
use msprof_agent_core::options::rule::Rule;
use msprof_agent_core::options::{Group, TABLE};
use std::fmt::Write;

/// Column at which the description of an option begins.
const COLUMN: usize = 34;
/// Columns of a terminal that the help fits into.
const WIDTH: usize = 100;

/// The whole help.
pub fn text() -> String {
    let mut text = String::from(
        "usage: msprof --dynamic=on [options] <program> [arguments]
       msprof --dynamic=on [options] --application=\"<program> [arguments]\"
       msprof --dynamic=on [options] --pid=<pid>[,<pid>...]\n",
    );
    for verb in VERBS {
        let _ = writeln!(text, "       msprof {} {}", verb.name, verb.arguments);
    }
    text.push_str("\ncommands without a prompt:\n");
    for verb in VERBS {
        entry(
            &mut text,
            &format!("{} {}", verb.name, verb.arguments),
            verb.help,
        );
    }
    text.push_str("\nsession:\n");
    for own in &OWN {
        option(&mut text, own.name, own.valid, "", own.help);
    }
    let groups = [
        (Group::Output, "output:"),
        (Group::Trace, "traces:"),
        (Group::Component, "switches of the components:"),
        (
            Group::PassedThrough,
            "handed on to the components; this agent does not collect their data itself:",
        ),
    ];
    for (group, title) in groups {
        let _ = writeln!(text, "\n{title}");
        for spec in TABLE.iter().filter(|spec| spec.group == group) {
            let valid = match spec.rule {
                Rule::Path => "a path".to_owned(),
                Rule::Text => "a text".to_owned(),
                rule => rule.to_string(),
            };
            option(&mut text, spec.name, &valid, spec.default, spec.help);
        }
    }
    text.push('\n');
    entry(&mut text, "-h, --help", "show this");
    entry(&mut text, "-V, --version", "show the version");
    let _ = writeln!(text, "\nat the prompt, {}", crate::command::HELP);
    text.push_str(
        "\nexit status: 0 all commands succeeded, 1 some failed, 2 usage; the program's own when it is not 0\n",
    );
    text
}

fn option(text: &mut String, name: &str, valid: &str, default: &str, help: &str) {
    let mut body = format!("{help}; {valid}");
    if !default.is_empty() {
        let _ = write!(body, " (default {default})");
    }
    entry(text, &format!("--{name}"), &body);
}

/// A head and its description, which is broken into lines at blanks.
fn entry(text: &mut String, head: &str, body: &str) {
    let mut line = format!("  {head:<width$}", width = COLUMN - 3);
    let mut empty = true;
    for word in body.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(COLUMN - 1);
        }
        let _ = write!(line, " {word}");
        empty = false;
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_help_fits_into_100_columns_and_shows_the_verbs() {
        let text = super::text();
        for line in text.lines() {
            assert!(line.chars().count() <= super::WIDTH, "{line}");
            assert_eq!(line, line.trim_end());
        }
        for verb in super::VERBS {
            assert!(text.contains(&format!("msprof {} {}", verb.name, verb.arguments)));
        }
    }

    #[test]
    fn the_help_names_every_option_that_may_be_given() {
        let text = super::text();
        for own in &super::OWN {
            assert!(text.contains(&format!("--{}", own.name)), "{}", own.name);
        }
        for spec in super::TABLE {
            let refused = spec.group == super::Group::Refused;
            let named = text.contains(&format!("  --{} ", spec.name));
            assert_eq!(named, !refused, "{}", spec.name);
        }
    }
}
