//! Everything that libmsprof_agent does inside the profiled process.
//!
//! This crate exports no C symbol and has no constructor: the root package's `ffi/` puts the C ABI
//! over it. The controller uses what both ends share: `control`'s formats and places, `params`,
//! `options`, `process`, `profdir`, `rescue`, `records` and `ledger`.

pub mod agent;
pub mod arena;
pub mod board;
pub mod capture;
pub mod clock;
pub mod components;
pub mod control;
mod copy;
pub mod device;
pub mod dictionary;
pub mod diverted;
mod fork;
pub mod gate;
pub mod lanes;
pub mod ledger;
mod log;
pub mod long;
pub mod marks;
pub mod names;
pub mod options;
pub mod params;
pub mod process;
pub mod profdir;
pub mod pulled;
mod readable;
pub mod records;
pub mod report;
pub mod rescue;
pub mod ring;
mod section;
#[cfg(test)]
#[path = "../../tests/support/skip.rs"]
mod skip;
pub mod sync;
pub mod visible;
pub mod waiting;

// For the tests that share a module with those in tests/.
#[cfg(test)]
extern crate self as msprof_agent_core;

/// Version of the agent; the controller of the same release has the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What stands before the version in the library's data, so that it can be read from the file: a controller does
/// not load a library to learn of which version it is.
pub const VERSION_MARKER: &str = "libmsprof_agent version ";
