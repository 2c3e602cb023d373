//! Exporting a directory in any state. Its seeds are those of the target `profile`.

use super::directory;
use msprof_export::db::write_db;
use msprof_export::source::Source;
use msprof_export::text::{Format, OUTPUT, Options, export};
use std::path::{Path, PathBuf};

const DATABASE: &str = "msprof_20260605155111.db";

pub fn run(data: &[u8]) {
    let dir = directory::make(data);
    let Ok(source) = Source::open(&dir.path) else {
        return;
    };
    let before = entries(&dir.path);
    let options = Options {
        format: match data.first() {
            Some(byte) if byte % 2 == 1 => Format::Json,
            _ => Format::Csv,
        },
        ..Options::default()
    };
    let report = export(&source, &options, &mut |_| {});
    assert!(report.failed.is_none(), "{report:?}");
    assert_eq!(entries(&dir.path), before, "only {OUTPUT} is written");
    for file in &report.files {
        let text = std::fs::read(report.path.join(&file.file)).expect("made");
        if file.file.ends_with(".json") {
            serde_json::from_slice::<serde_json::Value>(&text).expect("JSON");
        }
    }
    let database = write_db(&source, &dir.path, DATABASE, &mut |_| {}).expect("a database");
    let head = std::fs::read(&database.path).expect("made");
    assert!(head.starts_with(b"SQLite format 3\0"));
    std::fs::remove_file(&database.path).expect("removed");
    assert_eq!(entries(&dir.path), before, "only {DATABASE} is written");
}

/// What is in a directory, two levels deep, but for the exports.
fn entries(path: &Path) -> Vec<PathBuf> {
    let within = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let mut found: Vec<PathBuf> = within(path)
        .filter(|path| !path.ends_with(OUTPUT))
        .flat_map(|path| within(&path).chain([path.clone()]).collect::<Vec<_>>())
        .collect();
    found.sort();
    found
}
