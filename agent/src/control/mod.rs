//! The control socket: where it lies, what is said on it, and the thread that serves it.
//!
//! One command goes round like this:
//!
//! ```text
//! connection --bytes--> session --Demand--> server --Task--> operation (a thread of its own)
//! connection <--reply-- session <--Event--- server <--Posted--'   and wakes the server up
//! ```

pub mod binding;
pub mod extension;
pub mod owner;
pub mod places;
pub mod probe;
pub mod wire;

mod client;
mod connection;
mod operation;
mod reply;
mod server;
mod session;
