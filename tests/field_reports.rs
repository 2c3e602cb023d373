//! What is written down about the tests: the list of field reports, docs/field-reports-tests.md, names tests that exist, and
//! README.md counts those for aarch64 right.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const LIST: &str = "docs/field-reports-tests.md";
const ROWS: u32 = 42;

/// What the list has for one row.
#[derive(Debug, Default)]
struct Row {
    /// File and function of each test.
    tests: Vec<(String, String)>,
    /// Says what it waits for.
    waits: bool,
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Rows by number: headings `### N. about`, then entries that begin with a dash and may go on in the next line.
fn rows() -> BTreeMap<u32, Row> {
    let text = read(LIST);
    let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
    let mut number = 0;
    let mut file = String::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            let (found, about) = heading.split_once(". ").expect("a number and a subject");
            number = found.parse().expect("a number");
            assert!(!about.is_empty());
            let before = rows.insert(number, Row::default());
            assert!(before.is_none(), "row {number} is there twice");
            continue;
        }
        let Some(row) = rows.get_mut(&number) else {
            continue;
        };
        let names = match line.strip_prefix("- ") {
            Some(entry) if entry.starts_with('`') => {
                let (path, names) = entry.split_once(": ").expect("a file and its tests");
                file = path.trim_matches('`').to_owned();
                names
            }
            Some(remark) => {
                row.waits |= remark.starts_with("Waits for ");
                file.clear();
                continue;
            }
            None => line,
        };
        if !file.is_empty() {
            let tests = quoted(names).map(|name| (file.clone(), name.to_owned()));
            row.tests.extend(tests);
        }
    }
    rows
}

/// Whether the file has a test of that name: a function right behind its attribute.
fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}()");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines
        .windows(2)
        .any(|pair| pair[0] == "#[test]" && pair[1].starts_with(&head))
}

#[test]
fn every_row_has_tests_and_every_test_that_is_named_is_there() {
    let rows = rows();
    let numbers: Vec<u32> = rows.keys().copied().collect();
    assert_eq!(numbers, (1..=ROWS).collect::<Vec<_>>());
    let mut missing = Vec::new();
    for (number, row) in rows {
        if row.tests.is_empty() && !row.waits {
            missing.push(format!("row {number} has no test"));
        }
        for (file, name) in row.tests {
            if !has_test(&read(&file), &name) {
                missing.push(format!("row {number}: {file} has no test {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{LIST}: {missing:#?}");
}

#[test]
fn a_function_that_is_no_test_is_not_taken_for_one() {
    let text = "#[test]\nfn one() {}\nfn two() {}\n#[test]\n#[ignore]\nfn three() {}\n";
    assert!(has_test(text, "one"));
    assert!(!has_test(text, "two"));
    assert!(!has_test(text, "three"));
    assert!(!has_test(text, "on"));
}

/// Files tests/*.rs, by their names.
fn suites() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let entries = std::fs::read_dir(dir).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let suites = paths.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let mut names: Vec<String> = suites
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into())
        .collect();
    names.sort();
    names
}

/// The words of a variable of a makefile, those that are added too.
fn variable<'a>(makefile: &'a str, name: &str) -> Vec<&'a str> {
    let lines = makefile.lines().filter_map(|line| {
        let value = line.strip_prefix(name)?.trim_start();
        value.strip_prefix(":=").or(value.strip_prefix("+="))
    });
    lines.flat_map(str::split_whitespace).collect()
}

/// The number right before some words.
fn number_before(text: &str, words: &str) -> usize {
    let before = text.split_once(words).expect(words).0;
    let number = before.split_whitespace().next_back().expect(words);
    number.parse().expect(words)
}

#[test]
fn every_suite_is_tried_under_qemu_or_left_out_by_its_name_and_the_readme_counts_them() {
    let makefile = read("tests/aarch64.mk").replace("\\\n", " ");
    let mut tried = variable(&makefile, "AARCH64_TESTS");
    tried.extend(variable(&makefile, "AARCH64_TESTS_OF_STARTS"));
    let comments = makefile.lines().filter(|line| line.starts_with('#'));
    let left: BTreeSet<&str> = comments
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .collect();
    let suites = suites();
    for name in &tried {
        let count = tried.iter().filter(|other| *other == name).count();
        assert_eq!(count, 1, "{name}");
        assert!(suites.iter().any(|suite| suite == name), "{name}");
    }
    for suite in &suites {
        let named = tried.contains(&suite.as_str()) || left.contains(suite.as_str());
        assert!(
            named,
            "tests/aarch64.mk does not say what becomes of {suite}"
        );
    }

    let skipped = variable(&makefile, "AARCH64_SKIPPED");
    let mut less = 0;
    let mut useless: BTreeSet<&str> = skipped.iter().copied().collect();
    for suite in &tried {
        let text = read(&format!("tests/{suite}.rs"));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[test]") {
            let hit: Vec<&&str> = skipped
                .iter()
                .filter(|part| pair[1].contains(**part))
                .collect();
            less += usize::from(!hit.is_empty());
            useless.retain(|part| !hit.contains(&part));
        }
    }
    assert!(
        useless.is_empty(),
        "no test has this in its name: {useless:?}"
    );

    let readme = read("README.md");
    let row = readme.lines().find(|line| line.contains("under qemu"));
    let row = row.expect("a row about aarch64");
    assert_eq!(number_before(row, " of the "), tried.len());
    assert_eq!(number_before(row, " suites of `tests/`"), suites.len());
    let (_, of_tests) = row.split_once("less ").expect("what is left out");
    assert_eq!(number_before(of_tests, " tests"), less);
}
