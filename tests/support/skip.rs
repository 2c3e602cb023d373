//! A test that cannot be made on this host says so.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Says on stderr why a test, or a part of it, was not made. Not by eprintln, which the test runner keeps to itself when
/// the test passes.
pub fn skipped(why: impl Display) {
    // In one piece, since several tests write at a time.
    let _ = stderr().write_all(format!("\nskipped: {why}\n").as_bytes());
}
