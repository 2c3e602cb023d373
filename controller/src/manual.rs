//! The man page and the completions of shells, made of the same tables as `--help`.
//!
//! Made by a test and committed in packaging/, like the C header: an installation needs no binary that runs on the
//! machine that builds it. The test fails where they differ from the tables; `make manual` writes them anew.

mod completions;
mod page;

use crate::cli::{OWN, Verb};
use crate::export;
use crate::inject::Inject;
use msprof_agent_core::options;
use msprof_agent_core::options::rule::Rule;
use std::path::Path;

/// What a shell may offer as an option's value.
#[derive(Debug)]
enum Values {
    /// One of these words.
    Words(Vec<&'static str>),
    /// Some of these words, comma-separated.
    List(Vec<&'static str>),
    /// A directory.
    Directory,
    /// A file.
    File,
    /// Processes, comma-separated.
    Pids,
    /// Nothing that could be known.
    Unknown,
}

/// The values of an option that may be given.
fn values(name: &str) -> Values {
    if OWN.iter().any(|own| own.name == name) {
        return match name {
            "dynamic" => Values::Words(vec!["on", "off"]),
            "pid" => Values::Pids,
            "inject" => Values::Words(Inject::WORDS.to_vec()),
            "agent-lib" => Values::File,
            "application" | "environment" => Values::Unknown,
            _ => panic!("say here what --{name} takes"),
        };
    }
    let export = export::OPTIONS.iter().find(|option| option.name == name);
    let rule = match export.filter(|option| option.name != export::OUTPUT) {
        Some(option) if matches!(option.rule, Rule::Path) => return Values::File,
        Some(option) => option.rule,
        None => options::find(name).expect("an option of the table").rule,
    };
    match rule {
        Rule::OnOff => Values::Words(vec!["on", "off"]),
        Rule::OneOf(words) | Rule::Metrics(words) => Values::Words(words.to_vec()),
        Rule::SomeOf(words) => Values::List(words.to_vec()),
        Rule::Path => Values::Directory,
        Rule::Number { .. } | Rule::StorageLimit | Rule::Text => Values::Unknown,
    }
}

/// The same of an option behind a verb.
fn verb_values(verb: &Verb, name: &str) -> Values {
    match (verb.name, name) {
        (_, "pid") => Values::Pids,
        ("view", "output") => Values::File,
        ("view", "limit") | ("start", "max-duration") | ("record", "duration") => Values::Unknown,
        _ => values(name),
    }
}

/// Whether directories stand behind a verb.
fn takes_directories(verb: &Verb) -> bool {
    verb.arguments.contains("PROF_XXX")
}

/// What a verb's own `--help` shows.
fn usage(verb: &Verb) -> &'static str {
    match verb.name {
        "summary" => crate::summary::HELP,
        "view" => crate::view::HELP,
        "recover" => crate::recover::HELP,
        "list" => crate::verbs::list::HELP,
        "status" => crate::verbs::status::HELP,
        "start" => crate::verbs::start::HELP,
        "stop" => crate::verbs::stop::HELP,
        "record" => crate::verbs::record::HELP,
        "doctor" => crate::verbs::doctor::HELP,
        name => panic!("say here what the help of {name} is"),
    }
}

/// The options of a verb and what they are for, as its help lists them; those with a value end with the sign.
fn verb_options(verb: &Verb) -> Vec<(&'static str, &'static str)> {
    let lines = usage(verb)
        .lines()
        .filter_map(|line| line.strip_prefix("  --"));
    let parts = lines.filter_map(|line| line.split_once(' '));
    let word = |name: &'static str| name.split_inclusive('=').next().unwrap_or(name);
    parts
        .map(|(name, help)| (word(name), help.trim()))
        .collect()
}

/// Compares a file of packaging/ with what it should be, or writes it.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../packaging")
        .join(name);
    if std::env::var_os("MSPROF_UPDATE_MANUAL").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).expect("written");
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "packaging/{name} is not what the options say; run `make manual`"
    );
}

#[test]
fn the_man_page_and_the_completions_are_what_the_options_say() {
    check("msprof.1", &page::text());
    check("completions/msprof.bash", &completions::bash());
    check("completions/_msprof", &completions::zsh());
    check("completions/msprof.fish", &completions::fish());
}
