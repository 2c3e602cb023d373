//! A fake agent that speaks byte by byte what a test tells it, and a runner for the controller.

#![allow(dead_code, unused_imports, clippy::unwrap_used)]

mod capture;
mod client;
mod lab;
mod run;
mod server;
#[path = "../../../tests/support/skip.rs"]
pub mod skip;
pub mod stock;
mod terminal;

pub use capture::*;
pub use client::*;
pub use lab::*;
pub use run::*;
pub use server::*;
pub use terminal::*;

use std::time::Duration;

/// No test waits longer for anything.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Waits out the time in which a signal that was told of and comes again is the same one (`controller/src/signals.rs`).
pub fn until_a_signal_is_another() {
    std::thread::sleep(Duration::from_millis(250));
}
