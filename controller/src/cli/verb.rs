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
pub static VERBS: &[Verb] = &[
    Verb {
        name: "list",
        arguments: "[--all] [--json]",
        help: "every process here that can be profiled, with what it does, or why it cannot be",
        run: crate::verbs::list::run,
    },
    Verb {
        name: "status",
        arguments: "--pid=<pid>[,<pid>...] [--json]",
        help: "what processes do right now, beside another msprof",
        run: crate::verbs::status::run,
    },
    Verb {
        name: "start",
        arguments: "--pid=<pid>[,<pid>...] [options]",
        help: "start captures that go on until they are stopped",
        run: crate::verbs::start::run,
    },
    Verb {
        name: "stop",
        arguments: "--pid=<pid>[,<pid>...] [--json]",
        help: "stop captures, and show what was written and lost",
        run: crate::verbs::stop::run,
    },
    Verb {
        name: "record",
        arguments: "--pid=<pid>[,<pid>...] --duration=<time> [options]",
        help: "capture for that long: start, wait and stop in one call",
        run: crate::verbs::record::run,
    },
    Verb {
        name: "doctor",
        arguments: "--pid=<pid>[,<pid>...] [--json]",
        help: "why a process cannot be profiled, and what to do",
        run: crate::verbs::doctor::run,
    },
    Verb {
        name: "summary",
        arguments: "<PROF_XXX>",
        help: "what a capture holds: calls by total time, runs of models, records per trace, losses",
        run: crate::summary::run,
    },
    Verb {
        name: "view",
        arguments: "<PROF_XXX>",
        help: "write a capture as one HTML file: timeline, calls by total time, losses",
        run: crate::view::run,
    },
    Verb {
        name: "recover",
        arguments: "<PROF_XXX | parent>...",
        help: "finish a capture whose process was killed, and say what was kept and what is lost",
        run: crate::recover::run,
    },
];
