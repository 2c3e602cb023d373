//! How the agent gets into programs that the controller starts: LD_PRELOAD, LD_LIBRARY_PATH and what stands in them.

mod support;

use msprof_agent_core::VERSION_MARKER;
use std::path::{Path, PathBuf};
use support::*;

/// LD_PRELOAD and LD_LIBRARY_PATH of a program that is launched with these options.
fn loader_variables(lab: &Lab, options: &[String], before: [&str; 2]) -> [String; 2] {
    let mut command = lab.msprof();
    command
        .arg("--dynamic=on")
        .args(options)
        .env("LD_PRELOAD", before[0])
        .env("LD_LIBRARY_PATH", before[1])
        .args(["sh", "-c"])
        .arg("echo \"preload=$LD_PRELOAD.\"; echo \"path=$LD_LIBRARY_PATH.\"; \
              echo mode=$PROFILING_MODE bind=$MSPROF_AGENT_BIND key=${DYNAMIC_PROFILING_KEY_PID:+set}");
    let ended = Run::start(command).script("");
    ended.exits(0).says("mode=dynamic bind=use key=set");
    ["preload=", "path="].map(|name| {
        let line = ended.out.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.strip_suffix('.'));
        value.expect("the program says it").to_owned()
    })
}

#[test]
fn another_agent_in_the_preload_is_refused_under_any_name() {
    let lab = Lab::new();
    let library = lab.library();
    let other = lab.path("libother.so");
    std::fs::write(&other, format!("\x7fELF{VERSION_MARKER}0.0.1\0")).expect("written");
    let mut command = lab.msprof();
    command
        .arg("--dynamic=on")
        .arg(format!("--agent-lib={}", library.display()))
        .env("LD_PRELOAD", &other)
        .args(["sh", "-c", "echo ran"]);
    let ended = Run::start(command).script("");
    ended.exits(2);
    let refusal = format!("holds another agent library, {}", other.display());
    assert!(ended.err.contains(&refusal), "{}", ended.err);
    assert!(!ended.out.contains("ran"), "{}", ended.out);
}

#[test]
fn the_agent_gets_into_the_program_the_way_that_is_asked_for() {
    let lab = Lab::new();
    let library = lab.library().display().to_string();
    let cann = lab.path("cann").display().to_string();
    let named = format!("--agent-lib={library}");
    // Another library that can be preloaded.
    let other = lab.shared("libother.so", "");
    let before = [other.to_str().expect("UTF-8"), ":/a"];
    let (preload, path) = (format!("{library}:{}", before[0]), format!("{cann}::/a"));
    for (inject, expected) in [
        ("", [preload.as_str(), &path]),
        ("both", [&preload, &path]),
        ("preload", [&preload, before[1]]),
        ("libprofapi", [before[0], &path]),
        ("none", before),
    ] {
        let mut options = Vec::new();
        if !inject.is_empty() {
            options.push(format!("--inject={inject}"));
        }
        if inject != "none" {
            options.push(named.clone());
        }
        let found = loader_variables(&lab, &options, before);
        assert_eq!(found, expected, "{inject}");
    }
    // What is there already stays where it is.
    let before = [
        format!("{}:{library}", other.display()),
        format!("{cann}:/a"),
    ];
    let before = before.each_ref().map(String::as_str);
    assert_eq!(
        loader_variables(&lab, std::slice::from_ref(&named), before),
        before
    );
    assert_eq!(loader_variables(&lab, &[named], ["", ""]), [library, cann]);
}

/// The links by which `dir/$LIB` and `dir/${LIB}` are `dir` itself, whatever the loader has for it.
fn link_for_every_loader(dir: &Path) {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    for name in ["lib", "lib64", machine.as_str()] {
        std::os::unix::fs::symlink(".", dir.join(name)).expect("linked");
    }
}

#[test]
fn what_only_the_loader_can_replace_in_a_preload_is_kept_and_ours_is_recognised() {
    let lab = Lab::new();
    let library = lab.library().display().to_string();
    let named = [
        format!("--agent-lib={library}"),
        "--inject=preload".to_owned(),
    ];
    let other = lab.shared("libother.so", "").display().to_string();
    let dir = lab.path("").display().to_string();
    link_for_every_loader(&lab.path(""));
    // Ours under a name that the loader makes a path of.
    for ours in ["$LIB/libmsprof_agent.so", "${LIB}/libmsprof_agent.so"] {
        for before in [
            format!("{dir}{ours}"),
            format!("{other} {dir}{ours}:/none.so"),
        ] {
            let [after, _] = loader_variables(&lab, &named, [&before, ""]);
            assert_eq!(after, before);
        }
    }
    // Somebody else's, or one that is not there, or one that is another file in each program.
    for before in [
        format!("{dir}$LIB/libother.so"),
        format!("{dir}${{LIB}}/libother.so:{dir}$LIB/none.so"),
        format!("{dir}$PLATFORM/libmsprof_agent.so"),
        "$ORIGIN/../lib/libmsprof_agent.so ${ORIGIN}/a.so:$LIB".to_owned(),
    ] {
        let [after, _] = loader_variables(&lab, &named, [&before, ""]);
        assert_eq!(after, format!("{library}:{before}"));
    }
}

#[test]
fn another_agent_is_refused_also_by_a_path_that_the_loader_makes() {
    let lab = Lab::new();
    let library = lab.library();
    let text = format!("{VERSION_MARKER}0.0.1");
    let other = lab.shared("libother.so", &text);
    link_for_every_loader(&lab.path(""));
    let mut command = lab.msprof();
    command
        .arg("--dynamic=on")
        .arg(format!("--agent-lib={}", library.display()))
        .env("LD_PRELOAD", lab.path("$LIB/libother.so"))
        .args(["sh", "-c", "echo ran"]);
    let ended = Run::start(command).script("");
    ended
        .exits(2)
        .warns("LD_PRELOAD holds another agent library, ");
    let name = other.file_name().and_then(|name| name.to_str());
    ended.warns(name.expect("UTF-8"));
    assert!(!ended.out.contains("ran"), "{}", ended.out);
}

#[test]
fn variables_of_any_bytes_are_passed_on_as_they_are() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let lab = Lab::new();
    let library = lab.library();
    let said = lab.path("said");
    let before = b"/n\xffne.so /a\x01/$$LIB.so::$ /\xc3(.so: ";
    let path = b"/\xfe/$LIB;;/b/$ORIGIN:";
    let mut command = lab.msprof();
    command
        .arg("--dynamic=on")
        .arg(format!("--agent-lib={}", library.display()))
        .env("LD_PRELOAD", std::ffi::OsStr::from_bytes(before))
        .env("LD_LIBRARY_PATH", std::ffi::OsStr::from_bytes(path))
        .args([
            "sh",
            "-c",
            "printf '%s\\n%s' \"$LD_PRELOAD\" \"$LD_LIBRARY_PATH\" >\"$0\"",
        ])
        .arg(&said);
    Run::start(command).script("").exits(0);
    let in_front = |first: PathBuf, rest: &[u8]| {
        let first = first.into_os_string().into_vec();
        [&first, &b":"[..], rest].concat()
    };
    let expected = [in_front(library, before), in_front(lab.path("cann"), path)];
    assert_eq!(
        std::fs::read(said).expect("said"),
        expected.join(&b'\n'),
        "byte for byte"
    );
}

#[test]
fn a_library_that_tells_no_version_is_named_before_the_program_runs() {
    let lab = Lab::new();
    let library = lab.shared("libmsprof_agent.so", "");
    let named = format!("--agent-lib={}", library.display());
    let mut command = lab.msprof();
    // Both to one stream, in the order in which they are written.
    command
        .args(["--dynamic=on", "--inject=preload", &named])
        .args(["sh", "-c", "echo ran >&2"]);
    let ended = Run::start(command).script("");
    ended.exits(0);
    let expected = format!(
        "note: {} is perhaps no libmsprof_agent.so, or a damaged one: it tells no version\nran\n",
        library.display()
    );
    assert_eq!(ended.err, expected);
}
