//! What the exit statuses mean, the same for whatever msprof is asked for (`msprof --help`, docs/json.md).

/// All that was asked for was done.
pub const DONE: u8 = 0;
/// Some of it was not.
pub const FAILED: u8 = 1;
/// Wrong usage: nothing was begun.
pub const USAGE: u8 = 2;
/// A signal ended it before all was done (128 and the number of SIGINT, as shells count).
pub const INTERRUPTED: u8 = 130;
