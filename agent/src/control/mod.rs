//! The control socket: where it lies, what is said on it, and the thread that serves it.

pub mod binding;
pub mod extension;
pub mod handle;
pub mod params;
pub mod places;
pub mod probe;
pub mod wire;

mod client;
mod connection;
mod operation;
mod reply;
mod server;
mod session;
