//! The environment variables that matter, read once at load (a later read would race with setenv).

use crate::names::{self, variable};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// When the control socket comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// In the constructor.
    Load,
    /// At the first call of the ABI.
    Use,
    /// Never.
    Off,
}

/// Everything that the environment says to the agent (design section 6).
#[derive(Clone, Debug)]
pub struct Environment {
    /// PROFILING_MODE is `dynamic`; otherwise the library is inert.
    pub dynamic: bool,
    /// DYNAMIC_PROFILING_KEY_PID, when positive.
    pub key_pid: Option<u32>,
    /// ASCEND_WORK_PATH.
    pub work_path: Option<PathBuf>,
    /// HOME.
    pub home: Option<PathBuf>,
    /// Directories of LD_LIBRARY_PATH, in its order.
    pub library_path: Vec<PathBuf>,
    /// CANN's directories, as its set-up script leaves them: ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME.
    pub cann_homes: Vec<PathBuf>,
    /// XDG_RUNTIME_DIR.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// MSPROF_AGENT_SOCKET_DIR.
    pub socket_dir: Option<PathBuf>,
    /// MSPROF_AGENT_BIND, when set to a known word.
    pub bind: Option<Bind>,
    /// MSPROF_AGENT_NEED_DEVICE=1: start answers "no device" while none is open.
    pub need_device: bool,
    /// MSPROF_AGENT_ALLOW_SHARED_DIR=1: captures may go where other users could put something in their place.
    pub allow_shared_dir: bool,
    /// MSPROF_AGENT_BUFFER_MB: bytes of all rings together.
    pub buffer_bytes: usize,
    /// MSPROF_AGENT_CLOCK=unordered: time stamps do not wait for earlier loads.
    pub unordered_clock: bool,
    /// MSPROF_AGENT_MAX_COMMANDS: commands per connection; 0 lifts the limit.
    pub max_commands: u32,
    /// MSPROF_AGENT_IDLE_TIMEOUT in seconds: idle time after which a session ends; 0 lifts the limit.
    pub idle_timeout: Duration,
    /// MSPROF_AGENT_EXIT_TIMEOUT in seconds: what a normal exit may wait for the capture to be written.
    pub exit_timeout: Duration,
    /// MSPROF_AGENT_LOG.
    pub log: Option<OsString>,
    /// MSPROF_AGENT_LOG_FILE.
    pub log_file: Option<PathBuf>,
    /// Whether LD_PRELOAD names this library: then the constructor ran at program start.
    pub preloaded: bool,
    /// Values that could not be understood and count as not set, one sentence each.
    pub complaints: Vec<String>,
}

const DEFAULT_BUFFER_MB: usize = 64;
const BUFFER_MB: std::ops::RangeInclusive<usize> = 1..=16 * 1024;
/// Longer times are cut to this, so that sums with them cannot overflow.
const SECONDS_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
const DEFAULT_MAX_COMMANDS: u32 = 100;
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const DEFAULT_EXIT_TIMEOUT: Duration = Duration::from_secs(2);

impl Environment {
    /// Reads the environment of the process. One that has rights which its user lacks (a set-user-ID program, one with
    /// capabilities) has none for us: the user would have it write to files and load libraries.
    pub fn read() -> Environment {
        if has_more_rights_than_its_user() {
            return Environment::from_lookup(|_| None);
        }
        Environment::from_lookup(|name| std::env::var_os(name))
    }

    /// Reads through `lookup`; a value that cannot be understood counts as not set.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Environment {
        let text = |name: &str| lookup(name).and_then(|value| value.into_string().ok());
        let path = |name: &str| lookup(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let complaints = RefCell::new(Vec::new());
        let complain = |name: &str, valid: &str| {
            if let Some(value) = lookup(name).filter(|value| !value.is_empty()) {
                let value = value.to_string_lossy();
                let sentence = format!("{name}: {value:?} is not {valid}; the default is used");
                complaints.borrow_mut().push(sentence);
            }
        };
        let seconds = |name: &str, default: Duration| {
            let given = text(name)
                .and_then(|value| value.trim().parse::<f64>().ok())
                .filter(|seconds| *seconds >= 0.0);
            if given.is_none() {
                complain(name, "a number of seconds");
            }
            given
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .map_or(default, |seconds| seconds.min(SECONDS_MAX))
        };
        let megabytes = text(variable::BUFFER_MB)
            .and_then(|value| value.trim().parse().ok())
            .filter(|megabytes| BUFFER_MB.contains(megabytes));
        if megabytes.is_none() {
            complain(variable::BUFFER_MB, "a number from 1 to 16384");
        }
        let max_commands = text(variable::MAX_COMMANDS).and_then(|v| v.trim().parse().ok());
        if max_commands.is_none() {
            complain(variable::MAX_COMMANDS, "a number");
        }
        let bind = match text(variable::BIND).as_deref() {
            Some(variable::BIND_LOAD) => Some(Bind::Load),
            Some(variable::BIND_USE) => Some(Bind::Use),
            Some(variable::BIND_OFF) => Some(Bind::Off),
            _ => {
                complain(variable::BIND, "load, use or off");
                None
            }
        };
        let clock = text(variable::CLOCK);
        if !matches!(clock.as_deref(), Some("ordered" | "unordered")) {
            complain(variable::CLOCK, "ordered or unordered");
        }
        let log = text(variable::LOG);
        if !matches!(
            log.as_deref(),
            Some("off" | "error" | "warn" | "info" | "debug")
        ) {
            complain(variable::LOG, "off, error, warn, info or debug");
        }
        let idle_timeout = seconds(variable::IDLE_TIMEOUT, DEFAULT_IDLE_TIMEOUT);
        let exit_timeout = seconds(variable::EXIT_TIMEOUT, DEFAULT_EXIT_TIMEOUT);
        Environment {
            dynamic: text(names::MODE).as_deref() == Some(names::DYNAMIC),
            key_pid: text(names::KEY_PID)
                .and_then(|value| value.trim().parse::<i32>().ok())
                .and_then(|pid| u32::try_from(pid).ok())
                .filter(|&pid| pid > 0),
            work_path: path("ASCEND_WORK_PATH"),
            home: path("HOME"),
            library_path: lookup(names::LIBRARY_PATH)
                .map_or_else(Vec::new, |list| directories(&list)),
            cann_homes: ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"]
                .into_iter()
                .filter_map(path)
                .collect(),
            xdg_runtime_dir: path("XDG_RUNTIME_DIR"),
            socket_dir: path(variable::SOCKET_DIR),
            bind,
            need_device: text(variable::NEED_DEVICE).as_deref() == Some("1"),
            allow_shared_dir: text(variable::ALLOW_SHARED_DIR).as_deref() == Some("1"),
            buffer_bytes: megabytes.unwrap_or(DEFAULT_BUFFER_MB) << 20,
            unordered_clock: clock.as_deref() == Some("unordered"),
            max_commands: max_commands.unwrap_or(DEFAULT_MAX_COMMANDS),
            idle_timeout,
            exit_timeout,
            log: log.map(OsString::from),
            log_file: path(variable::LOG_FILE),
            preloaded: text(names::PRELOAD).is_some_and(|list| list.contains(names::LIBRARY_STEM)),
            complaints: complaints.into_inner(),
        }
    }

    /// When the socket of this process comes up.
    pub fn bind(&self) -> Bind {
        if !self.dynamic {
            return Bind::Off;
        }
        if let Some(bind) = self.bind {
            return bind;
        }
        if is_launcher() {
            return Bind::Off;
        }
        if !self.preloaded && constructors_may_race() {
            return Bind::Use;
        }
        Bind::Load
    }
}

/// As the loader itself decides whether to heed LD_LIBRARY_PATH and LD_PRELOAD.
fn has_more_rights_than_its_user() -> bool {
    // SAFETY: getauxval takes any number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The directories of a list as the loader reads it.
fn directories(list: &OsStr) -> Vec<PathBuf> {
    list.as_bytes()
        .split(|&byte| byte == b':' || byte == b';')
        .filter(|dir| !dir.is_empty())
        .map(|dir| PathBuf::from(OsStr::from_bytes(dir)))
        .collect()
}

/// Programs that start others and do no AI work themselves.
const LAUNCHERS: [&str; 36] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "mksh",
    "fish",
    "csh",
    "tcsh",
    "busybox",
    "env",
    "nice",
    "ionice",
    "nohup",
    "timeout",
    "taskset",
    "numactl",
    "chrt",
    "setsid",
    "stdbuf",
    "xargs",
    "sudo",
    "su",
    "doas",
    "runuser",
    "setpriv",
    "gosu",
    "tini",
    "dumb-init",
    "catatonit",
    "time",
    "flock",
    "unshare",
    "nsenter",
    "chroot",
    "coreutils",
];

/// Whether this program is one of [`LAUNCHERS`].
fn is_launcher() -> bool {
    let Ok(program) = std::fs::read_link("/proc/self/exe") else {
        return false;
    };
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(is_launcher_name)
}

/// Whether a program of this name starts others and does no AI work itself.
pub fn is_launcher_name(name: &str) -> bool {
    LAUNCHERS.contains(&name)
}

/// glibc up to 2.33: a thread made by a constructor inside dlopen races with TLS set-up.
fn constructors_may_race() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: returns a static C string.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        let mut numbers = version.to_str().unwrap_or_default().split('.');
        let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
        matches!((number(), number()), (Some(2), Some(minor)) if minor <= 33)
    }
    #[cfg(not(target_env = "gnu"))]
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> Environment {
        Environment::from_lookup(|name| {
            let found = values.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_dynamic_mode_nothing_is_bound() {
        for mode in ["", "static", "Dynamic", "dynamic "] {
            let environment = read(&[("PROFILING_MODE", mode), ("MSPROF_AGENT_BIND", "load")]);
            assert_eq!(environment.bind(), Bind::Off, "{mode:?}");
        }
    }

    #[test]
    fn the_override_decides_when_to_bind() {
        for (word, bind) in [("load", Bind::Load), ("use", Bind::Use), ("off", Bind::Off)] {
            let values = [("PROFILING_MODE", "dynamic"), ("MSPROF_AGENT_BIND", word)];
            assert_eq!(read(&values).bind(), bind);
        }
    }

    #[test]
    fn directories_of_libraries_are_told_apart_as_by_the_loader() {
        let environment = read(&[
            ("LD_LIBRARY_PATH", ":/a;/b::c"),
            ("ASCEND_HOME_PATH", ""),
            ("ASCEND_TOOLKIT_HOME", "/cann"),
        ]);
        let expected = ["/a", "/b", "c"].map(PathBuf::from);
        assert_eq!(environment.library_path, expected);
        assert_eq!(environment.cann_homes, [PathBuf::from("/cann")]);
    }

    #[test]
    fn values_that_make_no_sense_count_as_not_set() {
        let environment = read(&[
            ("DYNAMIC_PROFILING_KEY_PID", "-5"),
            ("MSPROF_AGENT_BUFFER_MB", "lots"),
            ("MSPROF_AGENT_IDLE_TIMEOUT", "nan"),
            ("MSPROF_AGENT_MAX_COMMANDS", ""),
        ]);
        assert_eq!(environment.key_pid, None);
        assert_eq!(environment.buffer_bytes, 64 << 20);
        assert_eq!(environment.idle_timeout, DEFAULT_IDLE_TIMEOUT);
        assert_eq!(environment.max_commands, 100);
        assert_eq!(
            environment.complaints,
            [
                "MSPROF_AGENT_BUFFER_MB: \"lots\" is not a number from 1 to 16384; the default is used",
                "MSPROF_AGENT_IDLE_TIMEOUT: \"nan\" is not a number of seconds; the default is used",
            ]
        );
    }
}
