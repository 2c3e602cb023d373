//! `msprof list`: every process of this machine that can be profiled, or why it cannot be.

use super::arguments::Takes;
use super::time::words;
use super::{Printer, row};
use crate::exit::DONE;
use crate::locate;
use crate::look::{self, Look};
use crate::paint::Paint;
use crate::screen::clean;
use crate::table::{Kind, Table};
use msprof_agent_core::process::user::passwd_name;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;

/// Columns of a command that are shown.
const COMMAND_SHOWN: usize = 40;
const ALL: &str = "all";

const TAKES: Takes = Takes {
    verb: "list",
    pids: false,
    time: None,
    capture: false,
    flags: &[ALL],
};

/// What `--help` shows.
pub const HELP: &str = "\
usage: msprof list [--all] [--json]

Shows every process of this machine that can be profiled, with what it does right now: idle, capturing,
held by another msprof. Processes that have to do with profiling and cannot be profiled are shown with
the reason; msprof doctor --pid=<pid> tells more. No process is disturbed by that, no session taken.
Sockets of dead processes of this user are removed from the usual places.

  --all   shells and other programs that only start others as well
  --json  the result as one object on stdout

exit status: 0 shown, whatever the processes are like; 2 usage
";

/// Runs the verb; returns the exit status.
pub fn run(arguments: &[OsString]) -> u8 {
    let given = match TAKES.read(arguments, HELP) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let swept = locate::sweep_all();
    let mut looks = look::look_at(&look::candidates(), false);
    let all = given.flags.contains(&ALL);
    looks.retain(|look| look.concerns() && (all || row::state(look).0 != "launcher"));
    let mut printer = Printer::new(given.json);
    for path in &swept {
        let path = clean(&path.display().to_string());
        printer.warn(&format!("removed {path}: its process has ended"));
    }
    if !given.json {
        printer.say(table(&looks).trim_end());
    }
    printer.object(|| object(&looks, &swept));
    DONE
}

fn object(looks: &[Look], swept: &[PathBuf]) -> Value {
    let processes: Vec<Value> = looks.iter().map(row::object).collect();
    let swept: Vec<_> = swept.iter().map(|path| path.to_string_lossy()).collect();
    json!({ "processes": processes, "swept": swept })
}

/// The processes in columns as wide as they need.
fn table(looks: &[Look]) -> String {
    if looks.is_empty() {
        return "no process here can be profiled; start one with msprof --dynamic=on <program>, or with \
                PROFILING_MODE=dynamic and libmsprof_agent.so in LD_PRELOAD"
            .to_owned();
    }
    let mut table = Table::new(&[
        (Kind::Label, "PID"),
        (Kind::Text, "USER"),
        (Kind::Short(COMMAND_SHOWN), "COMMAND"),
        (Kind::Text, "SINCE"),
        (Kind::Text, "STATE"),
    ]);
    for look in looks {
        let process = &look.process;
        let pid = match process.own_pid == process.pid {
            true => process.pid.to_string(),
            false => format!("{} ({})", process.pid, process.own_pid),
        };
        let user = passwd_name(process.euid).unwrap_or_else(|| process.euid.to_string());
        table.row(vec![
            pid,
            clean(&user),
            process.command(),
            words(process.age()),
            row::text(look),
        ]);
    }
    table.text(&Paint::of_stdout())
}
