//! docs/troubleshooting.md: what it says that is printed is printed, and what people meet most stands in it.

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/troubleshooting.md";
const SOURCES: [&str; 4] = [
    "agent/src",
    "controller/src",
    "controller/export/src",
    "ffi",
];
/// Errors that must all be on the page.
const ERRORS: [&str; 4] = [
    "agent/src/capture/request.rs",
    "agent/src/profdir/error.rs",
    "controller/src/locate/error.rs",
    "controller/src/session/error.rs",
];
/// Errors that are faults of ours or of a peer: there is nothing that a user could look up.
const UNLISTED: [&str; 7] = [
    // It is, cut at its quotes.
    "no such pid; see ",
    "this is a fault of the agent, please report it",
    "the profiling parameters are not a JSON object",
    "unreadable answer: ",
    "connection failed: ",
    "the process has ended",
    "refused: ",
];
/// Names that the source has as constants.
const NAMES: [&str; 5] = [
    "libmsprof_agent.so",
    "msprof_agent.json",
    "PROFILING_MODE",
    "MSPROF_AGENT_BIND",
    "MSPROF_AGENT_LIB",
];
/// Shorter pieces of a message say nothing.
const PIECE_MIN: usize = 4;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The source with its string literals as they are printed: continued over lines, and quotes not escaped.
fn printed(source: &str) -> String {
    let mut text = String::new();
    for part in source.split("\\\n") {
        match text.is_empty() {
            true => text.push_str(part),
            false => text.push_str(part.trim_start()),
        }
    }
    text.replace("\\\"", "\"")
}

/// The messages in the first column of the page's tables.
fn messages(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once("` |").map(|(message, _)| message))
        .collect()
}

/// What of a message is the same in all cases. What stands before a colon may be put there from another place.
fn pieces(message: &str) -> Vec<String> {
    let mut text = message.to_owned();
    for name in NAMES {
        text = text.replace(name, "…");
    }
    let text = text.replace(": ", "…");
    let pieces = text.split('…').map(|piece| piece.trim().to_owned());
    pieces.filter(|piece| piece.len() >= PIECE_MIN).collect()
}

#[test]
fn every_message_of_the_page_is_one_that_is_printed() {
    let page = read(&root().join(PAGE));
    let mut files = Vec::new();
    for dir in SOURCES {
        rust_files(&root().join(dir), &mut files);
    }
    let source: String = files.iter().map(|path| printed(&read(path))).collect();
    let found = messages(&page);
    assert!(found.len() > 50, "{} messages", found.len());
    let unknown: Vec<_> = found
        .iter()
        .flat_map(|message| {
            pieces(message)
                .into_iter()
                .map(move |piece| (message, piece))
        })
        .filter(|(_, piece)| !source.contains(piece.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// The texts of `#[error("...")]`, each cut at what is put in.
fn error_texts(source: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for attribute in source.split("#[error(").skip(1) {
        let Some(rest) = attribute.trim_start().strip_prefix('"') else {
            continue;
        };
        let text = rest.split_once('"').map_or(rest, |(text, _)| text);
        let mut fixed = Vec::new();
        for part in text.split('{') {
            let piece = part.split_once('}').map_or(part, |(_, behind)| behind);
            fixed.push(piece.to_owned());
        }
        found.push(fixed);
    }
    found
}

#[test]
fn every_error_of_start_and_of_attaching_is_on_the_page() {
    let page = read(&root().join(PAGE));
    let mut missing = Vec::new();
    for file in ERRORS {
        let source = read(&root().join(file)).replace("\\\"", "'");
        for text in error_texts(&source) {
            let whole = text.concat();
            // The page has the beginning of a long one.
            let begins = text.iter().map(|piece| -> String {
                piece.trim_matches([' ', ';']).chars().take(20).collect()
            });
            let mut telling = begins
                .filter(|begin| begin.len() >= 2 * PIECE_MIN)
                .peekable();
            if telling.peek().is_none() || UNLISTED.iter().any(|piece| whole.contains(piece)) {
                continue;
            }
            if !telling.any(|begin| page.contains(begin.trim())) {
                missing.push((file, whole));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
