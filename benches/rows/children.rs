//! What the preload costs programs that never use it: shells and tools that a task starts by the thousand.

use crate::support::library;
use crate::support::table::{Row, Table};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Children of each kind.
const CHILDREN: usize = 300;
/// What the preload may add to a child, ms.
const LIMIT_MS: f64 = 1.0;
/// Columns: the child as it is, with the library in it, and with the library armed.
const COLUMNS: [&str; 3] = ["without", "preloaded", "armed"];

/// Measures them in turns; sockets go below `dir`.
pub fn add(dir: &Path, table: &mut Table) {
    table.section("A child process that does nothing, from its start to its end");
    // A launcher gets no socket; any other program brings its own up and takes it away again.
    for (name, program, words) in [
        ("sh -c :, ms", "sh", ["-c", ":"].as_slice()),
        ("true, ms", "true", &[]),
    ] {
        let mut row = Row::new(name, &COLUMNS);
        for _ in 0..CHILDREN {
            for column in COLUMNS {
                row.add(column, run(dir, program, words, column));
            }
        }
        for column in &COLUMNS[1..] {
            table.at_most(
                &format!("added to {name}, {column}"),
                row.difference(column, COLUMNS[0]),
                LIMIT_MS,
            );
        }
        table.row(row);
    }
}

/// Wall time of one child, ms.
fn run(dir: &Path, program: &str, words: &[&str], column: &str) -> f64 {
    let mut command = Command::new(program);
    command
        .args(words)
        .env("MSPROF_AGENT_SOCKET_DIR", dir)
        .stdin(Stdio::null());
    if column != COLUMNS[0] {
        command.env("LD_PRELOAD", library::agent_path());
    }
    if column == COLUMNS[2] {
        command.env("PROFILING_MODE", "dynamic");
    }
    let begin = Instant::now();
    let status = command.status().expect("the child runs");
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    assert!(status.success(), "{program}: {status}");
    ms
}
