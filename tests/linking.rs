//! C and C++ programs that are built against an installation, as its users build them.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::artifacts::root;
use support::builder::compiler;
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::prefix::{Prefix, assert_success, run_tool, with_library};
use support::process::{Program, words};
use support::prof::ACL;
use support::rules::open_complete;

/// Names of the ranges that the example programs have.
const RANGES: [&str; 3] = ["load batch", "forward", "backward"];
/// How often they open each.
const STEPS: u64 = 10;

/// The program captures its own ranges.
fn assert_captures_its_ranges(home: &Home, program: Program) {
    let finished = program.arg(home.output()).run();
    finished.expect_code(0);
    finished.line_with("lost 0");
    let prof = open_complete(&only_prof_dir(&home.output()));
    let calls = prof.calls();
    for name in RANGES {
        let (aging, lasting) = calls[&(ACL, name.to_owned())];
        assert_eq!(aging + lasting, STEPS, "{name}");
    }
}

/// A program that calls nothing of the agent has it nevertheless: it can be attached to.
fn assert_is_armed(home: &Home, program: Program) {
    let mut running = program.spawn();
    running.line("the program", |line| (line == "ready").then_some(()));
    let socket = home.wait_socket(running.pid());
    let mut client = ByteClient::open(&socket, &params(&home.output()));
    client.start();
    client.stop();
    client.quit();
    running.say("");
    running.finish().expect_code(0);
}

/// Writes a program that only waits for a line.
fn bystander(dir: &Path) -> PathBuf {
    let source = dir.join("bystander.c");
    let text = "#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); return getchar() == EOF; }\n";
    std::fs::write(&source, text).expect("written");
    source
}

/// What pkg-config says; `None`, said on stderr, where there is none.
fn pkg_config(prefix: &Prefix, arguments: &[&str]) -> Option<String> {
    let output = run_tool("pkg-config", |command| {
        command
            .args(arguments)
            .env("PKG_CONFIG_PATH", prefix.path("lib/pkgconfig"));
    })?;
    assert_success(&output, "pkg-config");
    Some(
        String::from_utf8(output.stdout)
            .expect("UTF-8")
            .trim()
            .to_owned(),
    )
}

fn cc() -> String {
    compiler("cc", "gcc")
}

fn cxx() -> String {
    compiler("c++", "g++")
}

/// Compiles a program, with `flags` behind its source as pkg-config's users have it.
fn compile(compiler: &str, source: &Path, before: &[&str], flags: &str, program: &Path) {
    let output = Command::new(compiler)
        .args(["-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(before)
        .arg(source)
        .arg("-o")
        .arg(program)
        .args(words(flags))
        .arg("-lm")
        .output()
        .expect("a compiler");
    assert_success(&output, flags);
}

/// How a program can be linked: its name, what pkg-config is asked for, and further flags of the compiler.
const LINKED: [(&str, &[&str], &[&str]); 3] = [
    (
        "shared",
        &["--cflags", "--libs", "msprof_agent"],
        &["-Wl,--as-needed"],
    ),
    (
        "archive",
        &["--cflags", "--libs", "msprof_agent-static"],
        &["-Wl,--as-needed"],
    ),
    (
        "static",
        &["--static", "--cflags", "--libs", "msprof_agent"],
        &["-static"],
    ),
];

/// Whether there is a C library to be linked statically with; said on stderr if not.
fn has_static_libc() -> bool {
    let output = Command::new(compiler("cc", "gcc"))
        .arg("-print-file-name=libc.a")
        .output();
    let path = String::from_utf8(output.expect("a compiler").stdout).expect("UTF-8");
    let is_there = path.contains('/');
    if !is_there {
        support::skip::skipped(format_args!("there is no libc.a"));
    }
    is_there
}

#[test]
fn programs_link_by_pkg_config() {
    let prefix = Prefix::new();
    for (name, asked, before) in LINKED {
        if before.contains(&"-static") && !has_static_libc() {
            continue;
        }
        let Some(flags) = pkg_config(&prefix, asked) else {
            return;
        };
        for (compiler, extension) in [(cc(), "c"), (cxx(), "cpp")] {
            let home = Home::new();
            let program = home.path().join(name);
            let source = root().join(format!("examples/own_ranges.{extension}"));
            compile(&compiler, &source, before, &flags, &program);
            assert_captures_its_ranges(&home, with_library(home.plain(program), &prefix));
        }
        let home = Home::new();
        let program = home.path().join(name);
        compile(&cc(), &bystander(home.path()), before, &flags, &program);
        assert_is_armed(&home, with_library(home.armed(program), &prefix));
    }
    let version = pkg_config(
        &prefix,
        &["--modversion", "msprof_agent", "msprof_agent-static"],
    );
    let own = env!("CARGO_PKG_VERSION");
    assert_eq!(version, Some(format!("{own}\n{own}")));
}

const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.13)
project(user C CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_EXE_LINKER_FLAGS "-Wl,--as-needed")
find_package(msprof_agent ${WANTED} REQUIRED)
# What has been found already is not found anew.
find_package(msprof_agent REQUIRED)
set(EXAMPLES "@EXAMPLES@")
foreach(way IN ITEMS shared static)
    add_executable(c_${way} "${EXAMPLES}/own_ranges.c")
    target_link_libraries(c_${way} PRIVATE msprof_agent::${way} m)
    add_executable(cxx_${way} "${EXAMPLES}/own_ranges.cpp")
    target_link_libraries(cxx_${way} PRIVATE msprof_agent::${way})
    add_executable(bystander_${way} bystander.c)
    target_link_libraries(bystander_${way} PRIVATE msprof_agent::${way})
endforeach()
"#;

/// Configures the project in `dir` for a version of the agent; whether that was possible, and what was said.
fn configure(prefix: &Prefix, dir: &Path, version: &str) -> Option<(bool, String)> {
    let build = dir.join(format!("build-{version}"));
    let output = run_tool("cmake", |command| {
        command
            .arg("-S")
            .arg(dir)
            .arg("-B")
            .arg(build)
            .arg(format!("-DWANTED={version}"))
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.path("").display()))
            .env("CC", cc())
            .env("CXX", cxx());
    })?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((output.status.success(), said))
}

#[test]
fn programs_link_by_cmake() {
    let prefix = Prefix::new();
    let dir = tempfile::tempdir().expect("a temporary directory");
    bystander(dir.path());
    let examples = root().join("examples");
    let project = PROJECT.replace("@EXAMPLES@", examples.to_str().expect("UTF-8"));
    std::fs::write(dir.path().join("CMakeLists.txt"), project).expect("written");
    // Ours, an earlier one of the same series, and those that it cannot stand in for.
    let own = env!("CARGO_PKG_VERSION");
    let (series, _) = own.rsplit_once('.').expect("three numbers");
    for (version, is_found) in [
        (own, true),
        (series, true),
        ("0.999", false),
        ("999", false),
    ] {
        let Some((found, said)) = configure(&prefix, dir.path(), version) else {
            return;
        };
        assert_eq!(found, is_found, "{version}: {said}");
    }
    let build = dir.path().join(format!("build-{own}"));
    let output = Command::new("cmake").arg("--build").arg(&build).output();
    assert_success(&output.expect("cmake is there"), "cmake --build");
    for way in ["shared", "static"] {
        for language in ["c", "cxx"] {
            let home = Home::new();
            // By its RUNPATH: nothing says here where the library is.
            let program = home.plain(build.join(format!("{language}_{way}")));
            assert_captures_its_ranges(&home, program);
        }
        let home = Home::new();
        assert_is_armed(&home, home.armed(build.join(format!("bystander_{way}"))));
    }
}

/// Asks for each of ASKED by itself, and says whether it was found.
const ASKING: &str = r#"
cmake_minimum_required(VERSION 3.13)
project(user C)
message("cmake ${CMAKE_VERSION}")
foreach(asked IN LISTS ASKED)
    string(REPLACE " " ";" words "${asked}")
    unset(msprof_agent_DIR CACHE)
    find_package(msprof_agent ${words} QUIET)
    if(msprof_agent_FOUND)
        message("${asked}: found ${msprof_agent_VERSION}")
    else()
        message("${asked}: not found")
    endif()
endforeach()
"#;

/// What is found by those who ask for one of these, of an installation of version `own`; and what is not.
const ANSWERS: [(&str, &str, &str); 3] = [
    (
        "0.3.2",
        ";0;0.3;0.3.0;0.3.2;0.3.2 EXACT;0.1...<1;0...0.4;0.3...<0.4;0.3.2...0.3.2;0.0.1...<3",
        "0.3.3;0.2;0.0;0.4;1;3;0.3 EXACT;0.3.3 EXACT;0.2...0.3;0.1...<0.3.2;0.3.3...<1;0.4...1;1...<2",
    ),
    (
        "0.1.0",
        ";0;0.1;0.1.0;0.1 EXACT;0.1...<1;0.1...0.1;0...1",
        "0.1.1;0.0;0.10;1;0.1.1 EXACT;0...<0.1;0.1.1...<1;0.10...<1",
    ),
    (
        "1.4.2",
        ";1;1.0;1.4;1.4.2;1.4.2 EXACT;0.9...<2;1...<2;1.4...1.5;0...<1.4.3",
        "0;0.1;0.9;1.4.3;1.5;2;14;1 EXACT;1.4 EXACT;1...1.4;1...<1.4.2;2...3;0...1",
    ),
];

#[test]
fn cmake_finds_a_release_that_serves_the_version_or_range_that_is_asked_for() {
    let prefix = Prefix::new();
    let file = prefix.path("lib/cmake/msprof_agent/msprof_agent-config-version.cmake");
    let installed = std::fs::read_to_string(&file).expect("text");
    let line = |version: &str| format!("set(PACKAGE_VERSION \"{version}\")");
    let own = line(env!("CARGO_PKG_VERSION"));
    assert!(installed.contains(&own), "{installed}");
    for (version, found, missed) in ANSWERS {
        std::fs::write(&file, installed.replace(&own, &line(version))).expect("written");
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("CMakeLists.txt"), ASKING).expect("written");
        let output = run_tool("cmake", |command| {
            command.arg("-S").arg(dir.path());
            command.arg("-B").arg(dir.path().join("build"));
            command.arg(format!("-DASKED={found};{missed}"));
            command.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.path("").display()));
        });
        let Some(output) = output else {
            return;
        };
        assert_success(&output, version);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut lines = said.lines();
        let cmake = lines.next().and_then(|line| line.strip_prefix("cmake 3."));
        let minor = cmake.and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        // It reads the words of a range as a version that nobody has.
        let has_ranges = minor.is_none_or(|minor| minor >= 19);
        let mut expected = Vec::new();
        // The first one asks for no version at all.
        for asked in found.split(';') {
            expected.push(format!("{asked}: found {version}"));
        }
        for asked in missed.split(';') {
            expected.push(format!("{asked}: not found"));
        }
        let is_asked = |line: &str| has_ranges || !line.contains("...");
        expected.retain(|line| is_asked(line));
        let answers: Vec<&str> = lines.filter(|line| is_asked(line)).collect();
        assert_eq!(answers, expected, "{version}");
    }
}

/// The example's module, from Python.
fn python(home: &Home, prefix: &Prefix, script: &str) -> Program {
    with_library(home.plain("python3"), prefix)
        .env("PYTHONPATH", prefix.path("share/doc/msprof-agent/examples"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-c", script])
        .arg(home.output())
}

#[test]
fn a_python_program_uses_the_installed_module() {
    let (home, prefix) = (Home::new(), Prefix::new());
    let script = "
import sys, msprof_agent
agent = msprof_agent.Agent()
assert agent.status().state == msprof_agent.INERT, agent.status().state
with agent.range('before'):
    # A range in which a capture begins is left out, and does no harm; neither does one in which it ends.
    agent.start(sys.argv[1], '--runtime-api=on')
assert agent.status().state == msprof_agent.CAPTURING
with agent.range('outer'):
    with agent.range('inner'):
        pass
for depth in range(1):
    with agent.range('at the end'):
        print(agent.stop())
try:
    agent.stop()
except RuntimeError as error:
    print('refused:', error)
print(agent.status().captures, agent.status().written, agent.status().lost)
";
    let finished = python(&home, &prefix, script).run();
    finished.expect_code(0);
    let dir = only_prof_dir(&home.output());
    finished.line_with(dir.to_str().expect("UTF-8"));
    finished.line_with("refused: stop: ");
    finished.line_with("1 2 0");
    let calls = open_complete(&dir).calls();
    let names: Vec<&str> = calls.keys().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["inner", "outer"]);
}
