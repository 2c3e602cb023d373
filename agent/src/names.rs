//! Names by which the agent and who looks at it from outside know each other: of variables, libraries, threads and
//! directories. One side alone must not change any of them.

use std::ffi::CStr;

/// Variable that decides at load whether there is a control socket.
pub const MODE: &str = "PROFILING_MODE";
/// Its only value with which there is one.
pub const DYNAMIC: &str = "dynamic";
/// Variable by which the stock library is told to profile on its own account.
pub const OPTIONS: &str = "PROFILING_OPTIONS";
/// Variable of a launcher: the pid by which the socket is to be named.
pub const KEY_PID: &str = "DYNAMIC_PROFILING_KEY_PID";

/// Variable that names the libraries which the loader loads first.
pub const PRELOAD: &str = "LD_PRELOAD";
/// Variable that names the directories in which the loader looks for libraries.
pub const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Variables of the agent in a program.
pub mod variable {
    /// When the control socket comes up: `load`, `use` or `off`.
    pub const BIND: &str = "MSPROF_AGENT_BIND";
    /// Value of [`BIND`]: with the load of the library.
    pub const BIND_LOAD: &str = "load";
    /// Value of [`BIND`]: with the first call of the ABI.
    pub const BIND_USE: &str = "use";
    /// Value of [`BIND`]: never.
    pub const BIND_OFF: &str = "off";
    /// Directory of the control socket, for both sides.
    pub const SOCKET_DIR: &str = "MSPROF_AGENT_SOCKET_DIR";
    /// `1`: a start wants an open device.
    pub const NEED_DEVICE: &str = "MSPROF_AGENT_NEED_DEVICE";
    /// `1`: captures may go where other users could put something in their place.
    pub const ALLOW_SHARED_DIR: &str = "MSPROF_AGENT_ALLOW_SHARED_DIR";
    /// Size of all buffers together, MB.
    pub const BUFFER_MB: &str = "MSPROF_AGENT_BUFFER_MB";
    /// `ordered` or `unordered` time stamps.
    pub const CLOCK: &str = "MSPROF_AGENT_CLOCK";
    /// Commands per connection.
    pub const MAX_COMMANDS: &str = "MSPROF_AGENT_MAX_COMMANDS";
    /// Seconds after which an idle session ends.
    pub const IDLE_TIMEOUT: &str = "MSPROF_AGENT_IDLE_TIMEOUT";
    /// Seconds that a normal exit waits for a capture to be written.
    pub const EXIT_TIMEOUT: &str = "MSPROF_AGENT_EXIT_TIMEOUT";
    /// Level of the log.
    pub const LOG: &str = "MSPROF_AGENT_LOG";
    /// File of the log.
    pub const LOG_FILE: &str = "MSPROF_AGENT_LOG_FILE";
    /// The library, for a controller that is to launch a program with it.
    pub const LIB: &str = "MSPROF_AGENT_LIB";
}

/// File name and soname of the agent.
pub const LIBRARY: &str = "libmsprof_agent.so";
/// The same for the loader: what every shared copy calls itself, whatever its file is called.
pub const LIBRARY_SONAME: &CStr = c"libmsprof_agent.so";
/// How file names of the agent begin, whatever version follows.
pub const LIBRARY_STEM: &str = "libmsprof_agent";
/// File name of the vendor's library that components report to, and of the agent in its place.
pub const PROFAPI: &str = "libprofapi.so";
/// File name of the vendor's library behind that one, and of the agent in its place.
pub const PROFIMPL: &str = "libprofimpl.so";

/// Thread that serves the control socket: a process with one is armed, which other users see as well.
pub const CONTROL_THREAD: &str = "msprof-ctl";
/// Thread that takes records out of the buffers and writes them.
pub const DRAIN_THREAD: &str = "msprof-drain";
/// Thread of a start or stop.
pub const OPERATION_THREAD: &str = "msprof-op";

/// How names of directories of captures begin.
pub const PROF_PREFIX: &str = "PROF_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_made_of_others_agree() {
        assert_eq!(LIBRARY_SONAME.to_str(), Ok(LIBRARY));
        assert_eq!(LIBRARY.strip_suffix(".so"), Some(LIBRARY_STEM));
        // What the kernel keeps of a thread's name.
        for thread in [CONTROL_THREAD, DRAIN_THREAD, OPERATION_THREAD] {
            assert!(thread.len() < 16, "{thread}");
        }
    }
}
