//! Directories that the stock collector made.
//!
//! Needs the environment variable MSPROF_GOLDEN, the path of a directory with them.

use super::check::{Severity, check};
use super::reader::Profile;
use super::*;

/// A copy under a name that the parser accepts, since the reference directories are renamed.
fn copy(name: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let golden = from_environment(
        "MSPROF_GOLDEN",
        "path of directories made by the stock collector",
    )?;
    let temp = tempfile::tempdir().expect("temporary directory");
    let target = temp.path().join("PROF_000001");
    let source = golden.join(name);
    for file in tree(&source) {
        let to = target.join(&file);
        std::fs::create_dir_all(to.parent().expect("has a parent")).expect("made");
        std::fs::copy(source.join(&file), to).expect("copied");
    }
    Some((temp, target))
}

/// Rules that a directory breaks, with the most severe first.
fn broken(dir: &Path) -> Vec<(Severity, &'static str)> {
    let mut rules: Vec<_> = check(dir)
        .into_iter()
        .map(|v| (v.severity, v.rule))
        .collect();
    rules.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    rules.dedup();
    rules
}

#[test]
fn no_stock_directory_breaks_a_fatal_rule() {
    for name in [
        "short_session",
        "two_devices",
        "crashed_session",
        "onnxruntime_session",
        "exported",
    ] {
        let Some((_temp, dir)) = copy(name) else {
            return;
        };
        let rules = broken(&dir);
        eprintln!("{name}: {rules:?}");
        assert!(
            rules
                .iter()
                .all(|(severity, _)| *severity < Severity::Fatal),
            "{name}: {:#?}",
            check(&dir)
        );
        let ended = rules.iter().all(|(_, rule)| *rule != "no-end-info");
        assert_eq!(ended, name != "crashed_session", "{name}");
    }
}

#[test]
fn stock_directories_are_read_to_the_last_record() {
    let Some((_temp, dir)) = copy("onnxruntime_session") else {
        return;
    };
    let profile = Profile::open(&dir).expect("opens");
    assert_eq!(profile.api().filter(Result::is_ok).count(), 195_000 / 40);
    assert_eq!(
        profile.compact("task_track").filter(Result::is_ok).count(),
        52_160 / 64
    );
    assert!(profile.type_names().expect("readable").len() > 500);
    assert!(profile.ledger().expect("readable").is_none());
    let (start, stop) = (profile.start(Place::Host), profile.stop(Place::Host));
    assert!(start.zip(stop).is_some_and(|(a, b)| a.wall_us < b.wall_us));
}
