//! Programs that run under an emulator (`make aarch64`) take longer: tests give them more time.

use std::sync::OnceLock;
use std::time::Duration;

/// How many times slower everything may be.
const SLOWER: &str = "MSPROF_TEST_SLOWER";

/// A limit on what a program of this machine does, for the program that is run.
pub fn stretched(limit: Duration) -> Duration {
    static FACTOR: OnceLock<u32> = OnceLock::new();
    let factor = FACTOR.get_or_init(|| match std::env::var(SLOWER) {
        Ok(text) => text.parse().expect("a whole number"),
        Err(_) => 1,
    });
    limit * *factor
}
