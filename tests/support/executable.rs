//! Copies of programs that are run at once.

use std::path::Path;
use std::process::Command;

/// Copies a program, by a process of its own: another thread of the tests that starts one meanwhile would inherit a
/// descriptor with which this one writes the copy, and until that one's exec the kernel would not run it (ETXTBSY).
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp")
        .arg(from.as_ref())
        .arg(to.as_ref())
        .status()
        .expect("cp runs");
    assert!(
        copied.success(),
        "{} was not copied to {}",
        from.as_ref().display(),
        to.as_ref().display()
    );
}
