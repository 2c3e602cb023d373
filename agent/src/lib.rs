//! Everything that libmsprof_agent does inside the profiled process.
//!
//! This crate exports no C symbol and has no constructor: the root package's `ffi/` puts the C ABI
//! over it. The controller uses what both ends share: `control`'s formats and places, `params`,
//! `options`, `process`, `profdir`, `records` and `ledger`.

pub mod agent;
pub mod arena;
pub mod capture;
pub mod clock;
pub mod components;
pub mod control;
pub mod dictionary;
mod fork;
pub mod gate;
pub mod lanes;
pub mod ledger;
mod log;
pub mod long;
pub mod options;
pub mod params;
pub mod process;
pub mod profdir;
pub mod records;
pub mod report;
pub mod ring;
pub mod sync;

// For the tests that share a module with those in tests/.
#[cfg(test)]
extern crate self as msprof_agent_core;

/// Version of the agent; the controller of the same release has the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
