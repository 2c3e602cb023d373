//! The control socket: where it lies, what is said on it, and the thread that serves it.
//!
//! One command goes round like this:
//!
//! ```text
//! connection --bytes--> session --Demand--> clients --Task--> operation (a thread of its own)
//! connection <--reply-- session <--Event--- clients <--Posted--'   and wakes the server up
//! ```

pub mod binding;
pub mod extension;
pub mod owner;
pub mod places;
pub mod probe;
pub mod wire;

// For the fuzz targets (tests/fuzz) alone.
#[doc(hidden)]
pub mod connection;
#[doc(hidden)]
pub mod session;

mod client;
mod clients;
mod operation;
mod reply;
mod server;
mod unattended;
