//! What the end-to-end tests share: real processes, a client that speaks bytes, and a reader of
//! PROF directories that owes nothing to the product's own.

// Every test file compiles this module for itself and uses a part of it.
#![allow(dead_code)]

pub mod artifacts;
pub mod builder;
pub mod client;
pub mod counting;
pub mod home;
pub mod msprof;
pub mod parser;
pub mod proc;
pub mod process;
pub mod prof;
pub mod puppet;
pub mod rules;
pub mod task;
pub mod wait;
