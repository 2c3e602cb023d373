//! The control socket: where it lies, what is said on it, and the thread that serves it.

pub mod binding;
pub mod extension;
pub mod params;
pub mod places;
pub mod probe;
pub mod server;
pub mod wire;

mod connection;
mod operation;
mod session;
