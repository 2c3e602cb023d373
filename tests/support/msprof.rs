//! The controller, driven through a pipe.

use super::artifacts::artifacts;
use super::home::Home;
use super::process::{Finished, Program, Running};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than any scripted session takes.
const LIMIT: Duration = Duration::from_secs(90);

/// `msprof --dynamic=on` with the three traces and a home.
pub fn dynamic(home: &Home, output: &Path) -> Program {
    home.plain(&artifacts().msprof)
        .arg("--dynamic=on")
        .arg(format!("--output={}", output.display()))
        .args(["--runtime-api=on", "--model-execution=on", "--aicpu=on"])
}

/// Gives commands, ends stdin, and waits for the end.
pub fn run_script(program: Program, commands: &[&str]) -> Finished {
    let mut running = program.spawn();
    give(&mut running, commands);
    running.finish_within(LIMIT)
}

/// Gives commands; a controller that has ended does not read them any more.
pub fn give(running: &mut Running, commands: &[&str]) {
    for command in commands {
        running.say(command);
    }
}

/// PROF directories that the output names.
pub fn prof_dirs_named(finished: &Finished) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = finished
        .stdout
        .iter()
        .flat_map(|line| line.split_whitespace())
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/'))
        .filter(|word| word.starts_with('/') && word.contains("/PROF_"))
        .map(PathBuf::from)
        .collect();
    found.sort();
    found.dedup();
    found
}
