//! `msprof start`: starts captures that go on when it has ended.

use super::Printer;
use super::arguments::Takes;
use super::fleet::Plan;
use crate::exit::USAGE;
use msprof_agent_core::control::extension::Detach;
use msprof_agent_core::params::Params;
use std::ffi::OsString;
use std::time::Duration;

/// Longest time of a capture when nobody says: a forgotten one is not to fill the disk.
const MAX_DURATION: Duration = Duration::from_secs(30 * 60);

const TAKES: Takes = Takes {
    verb: "start",
    pids: true,
    time: Some(("max-duration", Duration::from_secs(1), true)),
    capture: true,
    flags: &[],
};

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof start --pid=<pid>[,<pid>...] [--output=<dir>] [--runtime-api=on ...] [--json]

Starts a capture in each process and ends; the captures go on until msprof stop, a stop at the prompt,
the end of the process, or their longest time. All options of a capture can be given, as with
--dynamic=on. A process with the vendor's own library is refused, since that ends a capture with the
session that started it: use msprof record. If a process is killed, its last milliseconds are lost.

  --pid=<pids>           the processes
  --max-duration=<time>  a capture that nobody stops ends after that: 90s, 2m, 1h, ...; 0 for never
                         (default 30m)
  --json                 the result as one object on stdout

exit status: 0 all were started; 1 some were not; 2 usage; 130 after Ctrl-C or SIGTERM: captures that
were started go on, and are named
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let given = match TAKES.read(arguments, HELP) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let params = Params::from_options(&given.options, std::process::id());
    let params = match params.to_wire_text() {
        Ok(params) => params,
        Err(error) => {
            complain!("msprof: start: {error}");
            return USAGE;
        }
    };
    let mut printer = Printer::new(given.json);
    crate::tell_not_collected(&mut printer.screen, &given.options);
    let limit = given.time.unwrap_or(MAX_DURATION);
    let detach = Detach {
        limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
    };
    super::command(Plan::Start(detach), &given.pids, &params, printer)
}
