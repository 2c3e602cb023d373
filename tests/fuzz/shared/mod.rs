//! What is fuzzed: one function for each target, which takes any bytes and panics when a promise is broken.
//!
//! Used by the libFuzzer targets beside this and by tests/fuzz_replay.rs.

// Each target uses one of them.
#![allow(dead_code)]

pub mod directory;
pub mod export;
pub mod params;
pub mod profile;
pub mod recover;
pub mod wire;
