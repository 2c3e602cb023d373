//! msprof(1), in the macros of man.

use crate::cli::VERBS;
use crate::command;
use crate::help::{self, EXIT_STATUS, VERSION_HELP};
use msprof_agent_core::VERSION;
use std::fmt::Write;

/// What msprof does, and where to read more.
const DESCRIPTION: &str = "\
.B msprof
starts and stops captures of AI tasks on Ascend NPUs, as often as is wanted and while they run. The tasks have
.B libmsprof_agent.so
in them: launch mode puts it there; a process that is attached to has to have been started with
.B PROFILING_MODE=dynamic
and the library in
.BR LD_PRELOAD ,
linked, or in the place of
.BR libprofapi.so .
A process with the vendor's own library can be attached to as well.
.PP
A capture is a directory
.B PROF_XXX
in the directory that
.B \\-\\-output
names, which the msprof parser exports.
.PP
An option is written
.BI \\-\\-name= value
or
.BI \\-\\-name\\  value\\fR;\\fP
of one that is given twice the last value counts. What follows the first word that is no option is the program and its
arguments.
";

const ENVIRONMENT: &str = "\
.TP
.B MSPROF_AGENT_LIB
The library that is put into a program, as
.B \\-\\-agent\\-lib
names it.
.TP
.B MSPROF_AGENT_SOCKET_DIR
The only place for control sockets, instead of the home directory and its fallbacks; of the program, where msprof finds
it too, or of msprof.
.TP
.B MSPROF_AGENT_MAX_COMMANDS
Commands of a session, 0 for no limit (default 100).
.TP
.B MSPROF_AGENT_IDLE_TIMEOUT
Seconds without a capture after which a session ends, 0 for no limit (default 1800).
.PP
The README, installed along with this page, lists those that the library itself reads.
";

const FILES: &str = "\
The library is looked for in the directory of the binary and in
.I ../lib
and
.I ../lib64
beside that; the directory with a
.I libprofapi.so
that is a link to it is
.I msprof\\-agent/cann
or
.I cann
beside the library.
";

const EXAMPLES: &str = "\
.nf
msprof \\-\\-dynamic=on \\-\\-output=/data/prof \\-\\-runtime\\-api=on python3 train.py
msprof \\-\\-dynamic=on \\-\\-output=/data/prof \\-\\-runtime\\-api=on \\-\\-pid=4711
printf \\(aqstart\\ensleep 5\\enstop\\enquit\\en\\(aq | msprof \\-\\-dynamic=on \\-\\-pid=4711 \\-\\-output=/data/prof
msprof list
msprof record \\-\\-pid=4711 \\-\\-duration=5s \\-\\-output=/data/prof \\-\\-runtime\\-api=on
msprof start \\-\\-pid=4711,4712 \\-\\-max\\-duration=10m \\-\\-output=/data/prof \\-\\-runtime\\-api=on
msprof stop \\-\\-pid=4711,4712
msprof summary /data/prof/PROF_000001_20261130120000000_ABC
msprof view /data/prof/PROF_000001_20261130120000000_ABC
msprof \\-\\-export=on \\-\\-output=/data/prof/PROF_000001_20261130120000000_ABC
.fi
";

/// The whole page.
pub fn text() -> String {
    let mut page = format!(
        ".\\\" Made from the tables of options by `make manual`; do not edit.\n\
         .TH MSPROF 1 \"\" \"msprof {VERSION}\" \"User Commands\"\n.nh\n.ad l\n"
    );
    page += ".SH NAME\nmsprof \\- capture what AI tasks on Ascend NPUs do\n";
    page += ".SH SYNOPSIS\n.nf\n";
    for line in help::usage().lines() {
        let words = line.trim_start_matches("usage:").trim_start();
        let _ = writeln!(page, "{}", plain(words));
    }
    page += ".fi\n.SH DESCRIPTION\n";
    page += DESCRIPTION;
    page += ".SH OPTIONS\n";
    for section in help::sections() {
        let _ = writeln!(
            page,
            ".SS {}",
            plain(&capital(section.title.trim_end_matches(':')))
        );
        for option in section.options {
            let head = format!("\\-\\-{}", plain(option.name));
            entry(&mut page, &head, &option.description());
        }
    }
    page += ".SS Others\n";
    entry(&mut page, "\\-h\\fR, \\fB\\-\\-help", "show the options");
    entry(&mut page, "\\-V\\fR, \\fB\\-\\-version", VERSION_HELP);
    page += ".SH COMMANDS OF THE PROMPT\n";
    verbatim(&mut page, command::HELP.trim_start_matches("commands:\n"));
    page += ".SH COMMANDS WITHOUT A PROMPT\n";
    for verb in VERBS {
        let head = format!("msprof {} {}", verb.name, verb.arguments);
        let _ = writeln!(page, ".SS {}", plain(&head));
        let _ = writeln!(page, "{}.", plain(&capital(verb.help)));
        let usage = super::usage(verb);
        let body = usage.split_once("\n\n").map_or(usage, |(_, body)| body);
        page += ".PP\n";
        verbatim(&mut page, body);
    }
    page += ".SH EXIT STATUS\n";
    let status = EXIT_STATUS
        .trim_start_matches("exit status: ")
        .replace('\n', " ");
    let _ = writeln!(page, "{}", plain(&capital(status.trim_end())));
    for (title, text) in [
        ("ENVIRONMENT", ENVIRONMENT),
        ("FILES", FILES),
        ("EXAMPLES", EXAMPLES),
    ] {
        let _ = write!(page, ".SH {title}\n{text}");
    }
    page
}

/// An option and what it is for.
fn entry(page: &mut String, head: &str, body: &str) {
    let _ = writeln!(page, ".TP\n\\fB{head}\\fR\n{}.", plain(&capital(body)));
}

/// Lines as they are.
fn verbatim(page: &mut String, text: &str) {
    page.push_str(".nf\n");
    for line in text.lines() {
        let _ = writeln!(page, "{}", plain(line));
    }
    page.push_str(".fi\n");
}

/// A text that means nothing to troff.
fn plain(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq");
    let escaped = escaped
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti");
    match escaped.starts_with(['.', '\'']) {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
