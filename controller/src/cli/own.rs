//! The options that are the controller's own; all others are the agent's table.

/// An option that is the controller's own.
#[derive(Debug)]
pub struct OwnOption {
    /// Name without dashes.
    pub name: &'static str,
    /// The valid range in words.
    pub valid: &'static str,
    /// One line of help.
    pub help: &'static str,
}

pub(super) const DYNAMIC: &str = "dynamic";
pub(super) const PID: &str = "pid";
pub(super) const APPLICATION: &str = "application";
pub(super) const ENVIRONMENT: &str = "environment";
pub(super) const INJECT: &str = "inject";
pub(super) const AGENT_LIB: &str = "agent-lib";

/// The controller's own options, in the order of the help.
pub static OWN: [OwnOption; 6] = [
    OwnOption {
        name: DYNAMIC,
        valid: "on, off",
        help: "must be on: profile on command, with start, stop and quit at a prompt",
    },
    OwnOption {
        name: PID,
        valid: "1~2147483647, several comma-separated",
        help: "attach to running processes",
    },
    OwnOption {
        name: APPLICATION,
        valid: "a program and its arguments in one text",
        help: "program to start; or write it behind the options",
    },
    OwnOption {
        name: ENVIRONMENT,
        valid: "K=V;K2=V2",
        help: "variables added for the program that is started, but not PROFILING_MODE and PROFILING_OPTIONS",
    },
    OwnOption {
        name: INJECT,
        valid: "both, preload, libprofapi, none",
        help: "how the agent gets into the program that is started: by LD_PRELOAD, in place of libprofapi.so by \
               LD_LIBRARY_PATH, by both (the default), or not at all, for one that brings it along",
    },
    OwnOption {
        name: AGENT_LIB,
        valid: "path of libmsprof_agent.so",
        help: "the agent for the program that is started, when it is not beside msprof and not in MSPROF_AGENT_LIB",
    },
];
