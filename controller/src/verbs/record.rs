//! `msprof record`: start, wait and stop in one call.

use super::Printer;
use super::arguments::Takes;
use super::fleet::Plan;
use crate::exit::USAGE;
use msprof_agent_core::params::Params;
use std::ffi::OsString;
use std::time::Duration;

const TAKES: Takes = Takes {
    verb: "record",
    pids: true,
    time: Some(("duration", Duration::from_millis(1), false)),
    capture: true,
    flags: &[],
};

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof record --pid=<pid>[,<pid>...] --duration=<time> [--output=<dir>] [--runtime-api=on ...] [--json]

Captures each process for that long, all at the same time, and shows what was written and lost. All
options of a capture can be given, as with --dynamic=on. Ctrl-C and SIGTERM end the captures early and
keep them; a second Ctrl-C does not wait for them, the processes finish them (one with the vendor's
library is waited for all the same). A process that ends before has its capture finished, and that is said.

  --pid=<pids>       the processes
  --duration=<time>  how long: 200ms, 5s, 2m, 1h, ...
  --json             the result as one object on stdout

exit status: 0 all were captured; 1 some were not, or their captures are not complete; 2 usage;
130 after a second Ctrl-C
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let given = match TAKES.read(arguments, HELP) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let Some(duration) = given.time else {
        complain!(
            "msprof: record: --duration is missing: how long is to be captured, such as --duration=5s?"
        );
        return USAGE;
    };
    let params = Params::from_options(&given.options, std::process::id());
    let params = match params.to_wire_text() {
        Ok(params) => params,
        Err(error) => {
            complain!("msprof: record: {error}");
            return USAGE;
        }
    };
    let mut printer = Printer::new(given.json);
    crate::tell_not_collected(&mut printer.screen, &given.options);
    super::command(Plan::Record(duration), &given.pids, &params, printer)
}
