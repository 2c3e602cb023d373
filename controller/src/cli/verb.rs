//! Commands that need no prompt: `msprof <verb> ...`.

use std::ffi::OsString;

/// A command that needs no prompt.
#[derive(Debug)]
pub struct Verb {
    /// The first word of the command line.
    pub name: &'static str,
    /// Its arguments, for the help.
    pub arguments: &'static str,
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
    arguments: "<PROF_XXX>",
    help: "what a capture holds: calls by total time, records per trace, losses",
    run: crate::summary::run,
}];
