//! The stock parser, where it is at hand.

use super::process::{Program, Running};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Exports take seconds, on a loaded machine a minute.
const LIMIT: Duration = Duration::from_secs(300);

/// `$MSPROF_PARSER`, or a line that says why nothing is tested.
pub fn stock_parser() -> Option<PathBuf> {
    let path = std::env::var_os("MSPROF_PARSER")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    if path.is_none() {
        super::skip::skipped(format_args!(
            "set MSPROF_PARSER to the stock parser's msprof.py"
        ));
    }
    path
}

/// Exports timeline and summary; the exit status says nothing.
pub fn export(parser: &Path, prof: &Path) {
    for kind in ["timeline", "summary"] {
        let run: Running = Program::new("python3")
            .arg(parser)
            .args(["export", kind, "-dir"])
            .arg(prof)
            .env("HOME", prof.parent().expect("a parent"))
            .spawn();
        run.finish_within(LIMIT);
    }
}

/// The only exported file of a name, such as `api_statistic_<time>.csv`; `None` if there is none.
pub fn exported(prof: &Path, prefix: &str, extension: &str) -> Option<String> {
    let dir = prof.join("mindstudio_profiler_output");
    let entries = std::fs::read_dir(&dir).ok()?;
    let mut found = entries
        .map(|entry| entry.expect("entry").path())
        .filter(|path| {
            let name = path.file_name().expect("named").to_string_lossy();
            let time = name
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_suffix(extension));
            time.is_some_and(|time| time.chars().all(|c| c.is_ascii_digit()))
        });
    let path = found.next()?;
    assert!(found.next().is_none(), "one {prefix}*{extension}");
    Some(std::fs::read_to_string(path).expect("text"))
}

/// Rows of a csv by column name.
pub fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let columns = fields(lines.next().expect("a header"));
    lines
        .map(|line| {
            let fields = fields(line);
            assert_eq!(fields.len(), columns.len(), "{line}");
            columns.iter().cloned().zip(fields).collect()
        })
        .collect()
}

/// Fields of a line, which are quoted where they hold a comma or a quote.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        let field = fields.last_mut().expect("one");
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => field.push(c),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}
