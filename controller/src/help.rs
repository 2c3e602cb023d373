//! The text of `--help`, made of the option tables.

use crate::cli::{OWN, VERBS};
use crate::export;
use msprof_agent_core::options::rule::Rule;
use msprof_agent_core::options::{Group, TABLE};
use std::fmt::Write;

/// Column at which the description of an option begins.
const COLUMN: usize = 34;
/// Columns of a terminal that the help fits into.
const WIDTH: usize = 100;

/// The whole help.
pub fn text() -> String {
    let mut text = usage();
    text.push_str("\ncommands without a prompt:\n");
    for verb in VERBS {
        entry(
            &mut text,
            &format!("{} {}", verb.name, verb.arguments),
            verb.help,
        );
    }
    for section in sections() {
        let _ = writeln!(text, "\n{}", section.title);
        for option in section.options {
            let head = format!("--{}", option.name);
            entry(&mut text, &head, &option.description());
        }
    }
    text.push('\n');
    entry(&mut text, "-h, --help", "show this");
    entry(&mut text, "-V, --version", VERSION_HELP);
    let _ = writeln!(text, "\nat the prompt, {}", crate::command::HELP);
    text.push('\n');
    text.push_str(EXIT_STATUS);
    text
}

/// The forms of the command line.
pub fn usage() -> String {
    let mut text = String::from(
        "usage: msprof --dynamic=on [options] <program> [arguments]
       msprof --dynamic=on [options] --application=\"<program> [arguments]\"
       msprof --dynamic=on [options] --pid=<pid>[,<pid>...]
       msprof --export=on --output=<PROF_XXX | parent> [options], see msprof --export=on --help\n",
    );
    for verb in VERBS {
        let _ = writeln!(text, "       msprof {} {}", verb.name, verb.arguments);
    }
    text
}

/// What the exit status means.
pub const EXIT_STATUS: &str = "\
exit status: 0 all commands succeeded, 1 some failed, 2 usage, 130 after a second Ctrl-C with --pid;
of a program that was started its own when that is not 0, 128 + n after signal n, 126 or 127 when
it cannot be run. Each command without a prompt has a --help of its own, which tells its.
";

/// What `--version` does.
pub const VERSION_HELP: &str = "show the version, and that of the library that a program would get";

/// Options that belong together.
pub struct Section {
    /// What they are about.
    pub title: &'static str,
    /// In the order of the tables.
    pub options: Vec<Shown>,
}

/// An option as it is shown.
pub struct Shown {
    /// Name without dashes.
    pub name: &'static str,
    /// The valid range in words.
    pub valid: String,
    /// Value when it is not given; empty when there is none.
    pub default: &'static str,
    /// What it is for.
    pub help: &'static str,
}

impl Shown {
    /// All of it but the name, in one line.
    pub fn description(&self) -> String {
        let mut text = format!("{}; {}", self.help, self.valid);
        if !self.default.is_empty() {
            let _ = write!(text, " (default {})", self.default);
        }
        text
    }
}

/// All options that may be given.
pub fn sections() -> Vec<Section> {
    let own = OWN.iter().map(|own| Shown {
        name: own.name,
        valid: own.valid.to_owned(),
        default: "",
        help: own.help,
    });
    let mut sections = vec![Section {
        title: "session:",
        options: own.collect(),
    }];
    let groups = [
        (Group::Output, "output:"),
        (Group::Trace, "traces:"),
        (Group::Component, "switches of the components:"),
        (
            Group::PassedThrough,
            "handed on to the components; this agent does not collect their data itself:",
        ),
    ];
    sections.extend(groups.map(|(group, title)| {
        let specs = TABLE.iter().filter(|spec| spec.group == group);
        let options = specs.map(|spec| Shown {
            name: spec.name,
            valid: match spec.rule {
                Rule::Path => "a path".to_owned(),
                Rule::Text => "a text".to_owned(),
                rule => rule.to_string(),
            },
            default: spec.default,
            help: spec.help,
        });
        Section {
            title,
            options: options.collect(),
        }
    }));
    let export = export::OPTIONS.iter();
    let export = export.filter(|option| option.name != export::OUTPUT);
    let export = export.map(|option| Shown {
        name: option.name,
        valid: match option.rule {
            Rule::Path => "a path".to_owned(),
            rule => rule.to_string(),
        },
        default: "",
        help: option.help,
    });
    sections.push(Section {
        title: "export:",
        options: export.collect(),
    });
    sections
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
