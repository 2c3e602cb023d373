//! `msprof stop`: stops captures, whoever has started them.

use super::Printer;
use super::arguments::Takes;
use super::fleet::Plan;
use crate::exit::USAGE;
use msprof_agent_core::options::Options;
use msprof_agent_core::params::Params;
use std::ffi::OsString;

const TAKES: Takes = Takes {
    verb: "stop",
    pids: true,
    time: None,
    capture: false,
    flags: &[],
};

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof stop --pid=<pid>[,<pid>...] [--json]

Stops the capture of each process that msprof start or the program itself has started, waits until it
is written, and shows what was written and lost. A process that another msprof holds is not touched,
nor one with the vendor's library, since that ends a capture with the session that started it.

  --pid=<pids>  the processes
  --json        the result as one object on stdout

exit status: 0 all were stopped; 1 some were not, such as one in which nothing was captured; 2 usage;
130 after Ctrl-C or SIGTERM: what is under way is waited for until a second one
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let given = match TAKES.read(arguments, HELP) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let params = Params::from_options(&Options::default(), std::process::id());
    let params = match params.to_wire_text() {
        Ok(params) => params,
        Err(error) => {
            complain!("msprof: stop: {error}");
            return USAGE;
        }
    };
    super::command(Plan::Stop, &given.pids, &params, Printer::new(given.json))
}
