//! Waiting for conditions, with a deadline.

use super::slower::stretched;
use std::time::{Duration, Instant};

/// Long enough for anything on a loaded machine; reaching it is a failure.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until `condition` gives a value; panics after `limit`, stretched.
pub fn wait_for<T>(what: &str, limit: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let limit = stretched(limit);
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        std::thread::sleep(LOOK);
    }
}

/// Waits until `condition` holds; panics after [`PATIENCE`].
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, PATIENCE, || condition().then_some(()));
}
