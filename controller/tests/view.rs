//! `msprof view`: where the page goes, what is said of it, and what is refused. The page itself is looked at by a browser in
//! the tests of the whole.

mod support;

use msprof_agent_core::records::level;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use support::*;

fn made(lab: &Lab) -> PathBuf {
    let mut capture = Capture::new(lab);
    capture.name(level::RUNTIME, 1001, "LaunchKernel");
    for n in 0..100 {
        capture.call(level::RUNTIME, 1001, 1_000 * n, 1_000 * n + 10);
    }
    capture.finish()
}

fn view(lab: &Lab, arguments: &[&str]) -> Ended {
    let mut command = lab.msprof();
    command.arg("view").args(arguments);
    Run::start(command).ended()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn the_page_lies_beside_the_capture_and_takes_no_files_place() {
    let lab = Lab::new();
    let prof = made(&lab);
    let before = tree(&prof);
    let beside = |end: &str| PathBuf::from(format!("{}{end}.html", prof.display()));
    for end in ["", "-1"] {
        let ended = view(&lab, &[text(&prof)]);
        let said = format!(
            "{}: 100 intervals in 1 lanes of threads and 0 of devices, ",
            beside(end).display()
        );
        ended.exits(0).says(&said);
        assert_eq!((ended.err.as_str(), ended.out.lines().count()), ("", 1));
        let page = std::fs::read_to_string(beside(end)).expect("a page");
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
        assert!(page.contains("LaunchKernel"));
        let mode = beside(end).metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777 & !0o640, 0, "{mode:o}");
    }
    assert_eq!(tree(&prof), before, "the capture is as it was");
    // By the directory that holds it, and through a link.
    let link = lab.path("link");
    symlink(&prof, &link).expect("linked");
    view(&lab, &[text(&lab.path("out"))]).exits(0);
    view(&lab, &[text(&link)]).exits(0);
    assert!(beside("-2").exists() && beside("-3").exists());
}

/// Names and lengths below a directory.
fn tree(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let meta = path.symlink_metadata().expect("there");
        if meta.is_dir() {
            found.extend(tree(&path));
        } else {
            found.push((path, meta.len()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_file_that_is_named_is_made_and_one_that_is_there_or_a_link_is_refused() {
    let lab = Lab::new();
    let prof = made(&lab);
    let file = lab.path("page.html");
    let output = format!("--output={}", file.display());
    view(&lab, &[&output, text(&prof)]).exits(0);
    let page = std::fs::read(&file).expect("a page");
    let again = view(&lab, &[text(&prof), "--output", text(&file)]);
    again
        .exits(1)
        .warns("page.html is there already: name another file by --output");
    assert_eq!(std::fs::read(&file).expect("a page"), page);
    let link = lab.path("link.html");
    symlink(lab.path("elsewhere"), &link).expect("linked");
    view(&lab, &["--output", text(&link), text(&prof)]).exits(1);
    assert!(!lab.path("elsewhere").exists());
    let nowhere = view(&lab, &["--output=/nowhere/page.html", text(&prof)]);
    nowhere
        .exits(1)
        .warns("cannot write /nowhere/page.html: No such file or directory");
    assert_eq!(nowhere.err.lines().count(), 1);
}

#[test]
fn of_more_intervals_than_the_limit_the_longest_are_written() {
    let lab = Lab::new();
    let prof = made(&lab);
    let ended = view(&lab, &["--limit=16", text(&prof)]);
    ended.exits(0).says("the longest 16 of 100 intervals");
}

#[test]
fn wrong_usage_and_what_is_no_capture_are_refused_on_one_line() {
    let lab = Lab::new();
    let prof = made(&lab);
    let prof = text(&prof);
    let home = lab.path("home");
    let cases: [(&[&str], i32, &str); 9] = [
        (&[], 2, "view takes one directory"),
        (&[prof, prof], 2, "view takes one directory"),
        (&[""], 2, "\"\" is no directory"),
        (&["--json", prof], 2, "view has no option \"--json\""),
        (
            &["--limit=0", prof],
            2,
            "--limit \"0\" is invalid, valid range is 1~10000000",
        ),
        (&["--limit=many", prof], 2, "--limit \"many\" is invalid"),
        (&[prof, "--output"], 2, "view: --output takes a value"),
        (&[text(&home)], 1, "is not a PROF_XXX directory"),
        (&["/nowhere"], 1, "No such file or directory"),
    ];
    for (arguments, code, part) in cases {
        let ended = view(&lab, arguments);
        ended.exits(code).warns(part);
        assert_eq!(
            (ended.out.as_str(), ended.err.lines().count()),
            ("", 1),
            "{}",
            ended.err
        );
    }
    let help = view(&lab, &["--help"]);
    help.exits(0).says("usage: msprof view [--output=FILE]");
    for line in help.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
