//! Why a process has no socket, by its environment and what is loaded into it.

use super::places::{self as known, our_dir_missing};
use crate::command::shown;
use crate::process::{self, Environ, Libraries, Process};
use crate::screen::clean;
use msprof_agent_core::control::places;
use msprof_agent_core::names::{
    DYNAMIC, MODE,
    variable::{BIND, BIND_OFF, BIND_USE},
};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Tasks of a launcher that are named.
const TASKS: usize = 5;

/// What is probably missing, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// A short word for it that stays the same.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a process is in dynamic mode.
pub fn is_dynamic(environ: &Environ) -> bool {
    environ.is(MODE, DYNAMIC)
}

/// Whether a process was started to be profiled, and opens a socket then.
pub(super) fn will_open_socket(pid: u32) -> bool {
    // One that has ended is told by the next look.
    let Some(process) = Process::find(pid) else {
        return true;
    };
    let environ = process.environ().unwrap_or_default();
    is_dynamic(&environ) && !environ.is(BIND, BIND_OFF)
}

/// What is probably missing in a process without a socket.
pub fn why_not_armed(process: &Process) -> Hint {
    let hint = |code, text| Hint { code, text };
    // Our own places come first, as they are looked at.
    if let Some(dir) = our_dir_missing() {
        let text = format!("{}: {}", places::SOCKET_DIR_VARIABLE, no_directory(&dir));
        return hint("socket-dir-missing", text);
    }
    // In a container beside ours, mostly.
    if process.is_closed_to_us() {
        let text = format!(
            "its files and its environment cannot be seen from here: run msprof as uid {} or with CAP_SYS_PTRACE, or \
             set {} to a directory that both see, for both",
            process.uid,
            places::SOCKET_DIR_VARIABLE
        );
        return hint("no-permission", text);
    }
    let environ = process.environ();
    let variable = |name| environ.as_ref().and_then(|environ| environ.get(name));
    let mode = variable(MODE);
    if mode.as_deref() != Some(DYNAMIC.as_ref()) {
        let armed = "start it with PROFILING_MODE=dynamic and libmsprof_agent.so in LD_PRELOAD";
        return match mode {
            Some(mode) => hint(
                "mode-other",
                format!("its PROFILING_MODE is \"{}\": {armed}", words(&mode)),
            ),
            None if environ.is_some_and(|environ| !environ.is_empty()) => hint(
                "mode-missing",
                format!("it was started without PROFILING_MODE: {armed}"),
            ),
            None => hint("mode-missing", armed.to_owned()),
        };
    }
    if variable(BIND).is_some_and(|bind| bind == BIND_OFF) {
        let text = format!(
            "its {BIND} is off, so that it opens no socket: start it without that variable"
        );
        return hint("bind-off", text);
    }
    let libraries = process.libraries();
    if let Some(hint) = libraries.and_then(|libraries| why_not_loaded(process, libraries)) {
        return hint;
    }
    if process.is_launcher() {
        return hint("launcher", launcher(process));
    }
    let dir = variable(places::SOCKET_DIR_VARIABLE).map(PathBuf::from);
    let missing = dir.filter(|dir| dir.is_absolute() && !process.sees_directory(dir));
    if let Some(dir) = missing {
        let text = format!(
            "its {}: {}",
            places::SOCKET_DIR_VARIABLE,
            no_directory(&dir)
        );
        return hint("socket-dir-missing", text);
    }
    if variable(BIND).is_some_and(|bind| bind == BIND_USE) {
        let text = format!(
            "its {BIND} is use, so that it opens its socket with the first call of CANN: try again then"
        );
        return hint("not-bound-yet", text);
    }
    if let Some(obstacles) = known::obstacles(process) {
        let text = format!(
            "it can have a socket nowhere: {obstacles}; set {} to a directory that its user may write to, for both",
            places::SOCKET_DIR_VARIABLE
        );
        return hint("no-usable-place", text);
    }
    hint(
        "no-socket",
        "it is perhaps only starting, or has ended its profiling; try again".to_owned(),
    )
}

/// Of a process that has neither our library nor the vendor's.
fn why_not_loaded(process: &Process, libraries: Libraries) -> Option<Hint> {
    let Libraries {
        agent,
        profapi,
        loader,
        musl,
    } = libraries;
    if process.gains_rights() {
        return Some(Hint {
            code: "more-rights",
            text: "its program gives it rights that its user lacks (set-user-ID or set-group-ID), so that neither \
                   LD_PRELOAD nor the agent's variables mean anything to it: start it as the user that it becomes"
                .to_owned(),
        });
    }
    if agent || profapi {
        return None;
    }
    if !loader && process.is_static() == Some(true) {
        return Some(Hint {
            code: "static-program",
            text: "its program is linked statically, so that nothing can be preloaded into it: link it with \
                   libmsprof_agent.a, or dynamically"
                .to_owned(),
        });
    }
    if musl {
        return Some(Hint {
            code: "musl-program",
            text: "its C library is musl, with which libmsprof_agent.so does not run: use a program or an image \
                   with glibc"
                .to_owned(),
        });
    }
    Some(Hint {
        code: "not-loaded",
        text: "its PROFILING_MODE is dynamic, but libmsprof_agent.so is not loaded: add it to LD_PRELOAD".to_owned(),
    })
}

/// Of a shell and the like: whom it has started that can be profiled.
fn launcher(process: &Process) -> String {
    let program = process.program().unwrap_or_default();
    let name = words(program.file_name().unwrap_or_default());
    let family = process::family(process.pid).into_iter().skip(1);
    let tasks = family.filter(|pid| Process::find(*pid).is_some_and(|child| child.has_agent()));
    let tasks: Vec<String> = tasks.map(|pid| pid.to_string()).collect();
    let begun = format!("it is {name}, which only starts others and opens no socket");
    match tasks.as_slice() {
        [] => format!("{begun}, and has started none yet that can be profiled: try again"),
        [only] => format!("{begun}: use its task, pid {only}"),
        several => {
            let more = if several.len() > TASKS { ", ..." } else { "" };
            let first: Vec<_> = several.iter().take(TASKS).map(String::as_str).collect();
            format!(
                "{begun}: use one of its tasks, pids {}{more}",
                first.join(", ")
            )
        }
    }
}

/// A variable's value as a terminal may show it.
fn words(value: &OsStr) -> String {
    shown(&value.to_string_lossy())
}

/// What is said of a place for sockets that is none.
pub fn no_directory(dir: &Path) -> String {
    format!(
        "there is no directory {}; make it, or name another",
        clean(&dir.display().to_string())
    )
}
