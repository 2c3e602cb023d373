//! The process that the agent lives in.

pub mod user;
