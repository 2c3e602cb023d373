//! The text of `--help`, made of the option tables.

use crate::cli::{OWN, VERBS};
use msprof_agent_core::options::{Group, TABLE};
use std::fmt::Write;

/// Column at which the description of an option begins.
const COLUMN: usize = 34;

/// The whole help.
pub fn text() -> String {
    let mut text = String::from(
        "usage: msprof --dynamic=on [options] <program> [arguments]
       msprof --dynamic=on [options] --application=\"<program> [arguments]\"
       msprof --dynamic=on [options] --pid=<pid>[,<pid>...]\n",
    );
    for verb in VERBS {
        let _ = writeln!(text, "       msprof {:<26} {}", verb.name, verb.help);
    }
    text.push_str("\nsession:\n");
    for own in &OWN {
        line(&mut text, own.name, own.valid, "", own.help);
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
                msprof_agent_core::options::rule::Rule::Path => "path".to_owned(),
                rule => rule.to_string(),
            };
            line(&mut text, spec.name, &valid, spec.default, spec.help);
        }
    }
    text.push_str("\n  -h, --help                      show this\n");
    text.push_str("  -V, --version                   show the version\n\nat the prompt, ");
    text.push_str(crate::command::HELP);
    text.push_str(
        "\n\nexit status: 0 all commands succeeded, 1 some failed, 2 usage; the program's own when it is not 0
",
    );
    text
}

fn line(text: &mut String, name: &str, valid: &str, default: &str, help: &str) {
    let mut head = format!("  --{name}");
    while head.len() < COLUMN {
        head.push(' ');
    }
    let _ = write!(text, "{head}{help}; {valid}");
    if !default.is_empty() {
        let _ = write!(text, " (default {default})");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
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
