//! The committed header: what it declares, that C and C++ programs work with it, and that each call does
//! what it says there.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::artifacts::{artifacts, root};
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::elf::Elf;
use support::home::{Home, only_prof_dir, prof_dirs};
use support::process::{Finished, Program};
use support::prof::{ACL, AICPU, Api, MODEL, Prof, RUNTIME};
use support::puppet::Puppet;
use support::rules::{assert_checked, open_by_rules, open_complete};

/// Names of the ranges of the example programs, and how often each is opened.
const STEPS: usize = 10;
const RANGES: [&str; 3] = ["load batch", "forward", "backward"];

// ---- the header and the symbols ----------------------------------------------

#[test]
fn the_committed_header_is_the_one_that_the_sources_give() {
    let generated = fs::read_to_string(env!("MSPROF_AGENT_GENERATED_HEADER")).expect("generated");
    let committed = fs::read_to_string(root().join("include/msprof_agent.h")).expect("committed");
    assert!(
        generated == committed,
        "run `make header` and commit include/msprof_agent.h"
    );
}

/// Dynamic symbols that the library defines.
fn exported() -> BTreeSet<String> {
    Elf::of(&artifacts().library).exports()
}

fn committed(list: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("tests").join(list)).expect("a list");
    text.lines().map(str::to_owned).collect()
}

fn missing(from: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Vec<String> {
    wanted.difference(from).cloned().collect()
}

#[test]
fn calls_between_exported_functions_are_bound_within_the_library() {
    // Else those of another library that comes first in the order of symbols would be called.
    let output = Command::new("readelf")
        .arg("-rW")
        .arg(&artifacts().library)
        .output()
        .expect("readelf, of binutils");
    let relocations = String::from_utf8(output.stdout).expect("text");
    assert!(relocations.contains("JUMP_SLO") || relocations.contains("GLOB_DAT"));
    let exported = exported();
    let bound_late = relocations.split_whitespace().filter_map(|word| {
        let name = word.split('@').next()?;
        exported.contains(name).then_some(name)
    });
    assert_eq!(bound_late.collect::<Vec<_>>(), [] as [&str; 0]);
}

#[test]
fn every_symbol_of_the_stock_library_is_exported() {
    let stock = committed("stock_symbols.txt");
    assert_eq!(stock.len(), 72, "the list is whole");
    assert_eq!(missing(&exported(), &stock), [] as [String; 0]);
}

#[test]
fn every_exported_function_that_a_program_may_call_is_declared_in_the_header() {
    let header = fs::read_to_string(root().join("include/msprof_agent.h")).expect("committed");
    let is_declared = |name: &String| header.contains(&format!("{name}("));
    let undeclared: BTreeSet<String> = exported()
        .into_iter()
        .filter(|name| !is_declared(name))
        .collect();
    // Those are for the vendor's libprofapi.so.
    assert_eq!(undeclared, committed("impl_symbols.txt"));
}

/// What a compiler has to say of a source that only includes the header.
fn complaints(compiler: &str, dialect: &str, source: &Path) -> String {
    let output = Command::new(compiler)
        .args([
            dialect,
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wundef",
        ])
        .args(["-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(source)
        .output()
        .expect("a compiler");
    match output.status.success() {
        true => String::new(),
        false => String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn the_header_is_clean_in_every_dialect_of_c_and_cxx() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // Twice, and before anything that it might want.
    let include = "#include \"msprof_agent.h\"\n#include \"msprof_agent.h\"\n";
    let calls = "int use(MsprofApi *api);\n\
        int use(MsprofApi *api) { return MsprofReportApi(0, api) + MsprofNotifySetDevice(0, 0, true); }\n";
    let c = [
        "c89",
        "iso9899:199409",
        "c99",
        "c11",
        "c17",
        "gnu89",
        "gnu17",
    ];
    let cxx = ["c++98", "c++11", "c++14", "c++17", "c++20", "gnu++98"];
    for (compiler, extension, dialects) in [("cc", "c", &c[..]), ("c++", "cpp", &cxx)] {
        let source = dir.path().join(format!("user.{extension}"));
        std::fs::write(&source, [include, calls].concat()).expect("written");
        for dialect in dialects {
            let dialect = format!("-std={dialect}");
            assert_eq!(complaints(compiler, &dialect, &source), "", "{dialect}");
        }
    }
}

// ---- programs with named ranges ----------------------------------------------

/// Runs a program that captures its own ranges; checks what it prints and returns the capture.
fn run_ranges(home: &Home, program: Program) -> (Finished, Prof) {
    let finished = program.run();
    finished.expect_code(0);
    let dir = only_prof_dir(&home.output());
    finished.line_with(dir.to_str().expect("UTF-8"));
    (finished, open_complete(&dir))
}

/// Acl records of a name.
fn ranges(prof: &Prof, name: &str) -> Vec<Api> {
    let mut found: Vec<Api> = prof
        .api()
        .into_iter()
        .filter(|record| record.level == ACL && prof.name_of(record) == name)
        .collect();
    found.sort_by_key(|record| record.begin);
    found
}

/// The three named ranges follow each other in every step and are all that there is.
fn assert_ranges(prof: &Prof, others: usize) {
    let [load, forward, backward] = RANGES.map(|name| ranges(prof, name));
    for found in [&load, &forward, &backward] {
        assert_eq!(found.len(), STEPS);
    }
    for step in 0..STEPS {
        assert!(load[step].end <= forward[step].begin);
        assert!(forward[step].end <= backward[step].begin);
        assert!(step + 1 == STEPS || backward[step].end <= load[step + 1].begin);
    }
    assert_eq!(prof.api().len(), 3 * STEPS + others);
}

#[test]
fn a_c_program_captures_its_named_ranges() {
    let home = Home::new();
    let program = build("examples/own_ranges.c", Linkage::Shared);
    let (finished, prof) = run_ranges(&home, home.plain(program).arg(home.output()));
    finished.line_with("records written 30, lost 0");
    assert_ranges(&prof, 0);
    assert_eq!(
        home.sockets(),
        [] as [PathBuf; 0],
        "no PROFILING_MODE, no socket"
    );
}

#[test]
fn a_cxx_program_captures_ranges_that_nest() {
    let home = Home::new();
    let program = build("examples/own_ranges.cpp", Linkage::Shared);
    let (finished, prof) = run_ranges(&home, home.plain(program).arg(home.output()));
    finished.line_with("records written 40, lost 0");
    assert_ranges(&prof, STEPS);
    let steps = ranges(&prof, "step");
    assert_eq!(steps.len(), STEPS);
    for name in RANGES {
        for (outer, inner) in steps.iter().zip(ranges(&prof, name)) {
            assert!(
                outer.begin <= inner.begin && inner.end <= outer.end,
                "{name} lies in its step"
            );
            assert_eq!(outer.thread, inner.thread);
        }
    }
}

#[test]
fn a_statically_linked_c_program_captures_its_named_ranges() {
    let home = Home::new();
    let program = build("examples/own_ranges.c", Linkage::Static);
    let (_, prof) = run_ranges(&home, home.plain(program).arg(home.output()));
    assert_ranges(&prof, 0);
}

#[test]
fn a_python_program_captures_its_named_ranges() {
    let home = Home::new();
    let program = home
        .plain("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(root().join("examples/own_ranges.py"))
        .arg(home.output())
        .arg(&artifacts().library);
    let (finished, prof) = run_ranges(&home, program);
    finished.line_with("records written 30, lost 0");
    assert_ranges(&prof, 0);
}

#[test]
fn an_example_says_why_it_cannot_capture() {
    let home = Home::new();
    let program = build("examples/own_ranges.c", Linkage::Shared);
    let finished = home.plain(program).arg("/dev/null/below").run();
    finished.expect_code(1);
    assert!(finished.text().contains("/dev/null/below"), "{finished:#?}");
}

// ---- every call --------------------------------------------------------------

/// What `every_call` leaves in its first capture.
fn assert_every_record(dir: &Path) {
    let prof = open_by_rules(dir);
    let calls = prof.calls();
    let count = |level, name: &str| calls.get(&(level, name.to_owned())).copied();
    assert_eq!(count(RUNTIME, "KernelLaunch"), Some((3, 0)));
    assert_eq!(count(MODEL, "ModelExecute"), Some((0, 2)));
    assert_eq!(count(ACL, "outer"), Some((1, 0)));
    assert_eq!(count(ACL, "deep"), Some((64, 0)));
    assert_eq!(prof.compact("node_basic_info").len(), 1);
    // Two calls, each: four good records one by one and four in a batch.
    assert_eq!(prof.aicpu().len(), 2 * (4 + 4));
    assert!(prof.aicpu().iter().all(|record| record.level == AICPU));
    assert!(prof.host.contains_key("unaging.variable.capture_op_info"));
    assert!(prof.ledger()["unreadable"].as_u64().is_some_and(|n| n > 0));
    let text = fs::read_to_string(dir.join("host/data/unaging.additional.type_info_dic.slice_0"));
    let text = text.expect("names");
    assert_eq!(
        text.lines()
            .filter(|line| line.ends_with(":KernelLaunch"))
            .count(),
        1
    );
}

#[test]
fn every_call_does_what_the_header_says_without_dynamic_mode() {
    let home = Home::new();
    let program = build("tests/c/every_call.c", Linkage::Shared);
    home.plain(program).arg(home.output()).run().expect_code(0);
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), 3);
    assert_every_record(&dirs[0]);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn every_call_does_what_the_header_says_in_dynamic_mode() {
    let home = Home::new();
    let program = build("tests/c/every_call.c", Linkage::Shared);
    home.armed(program).arg(home.output()).run().expect_code(0);
    let dirs = prof_dirs(&home.output());
    assert_eq!(dirs.len(), 3);
    assert_every_record(&dirs[0]);
    assert_eq!(
        home.sockets(),
        [] as [PathBuf; 0],
        "no socket after the end"
    );
}

#[test]
fn the_check_of_a_directory_counts_records_of_the_old_reporter_interface() {
    let home = Home::new();
    let program = build("tests/c/every_call.c", Linkage::Shared);
    home.plain(program).arg(home.output()).run().expect_code(0);
    assert_checked(&prof_dirs(&home.output())[0]);
}

#[test]
fn stamp_calls_succeed() {
    let home = Home::new();
    let program = build("tests/c/stamps.c", Linkage::Shared);
    home.armed(program).run().expect_code(0);
}

#[test]
fn a_variable_record_that_lies_about_its_length_does_not_spoil_the_others() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    // Length of the record, and what its head says of the data behind it.
    for (len, data_len) in [(300, 276), (300, 10), (300, 60_000), (300, 276)] {
        let result = puppet.tell(&format!("variable {len} {data_len}"));
        assert!(["0", "-1"].contains(&result.as_str()), "{result}");
    }
    client.stop();
    client.quit();
    open_complete(&only_prof_dir(&home.output()));
}
