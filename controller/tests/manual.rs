//! The man page and the completions in packaging/ against the options that `msprof --help` lists, and in their shells.

mod support;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::*;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../packaging")
        .join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(packaging(name)).expect("committed")
}

/// The options of a help, without dashes.
fn options(arguments: &[&str]) -> Vec<String> {
    let mut command = Lab::new().msprof();
    command.args(arguments).arg("--help").current_dir("/");
    let ended = Run::start(command).ended();
    ended.exits(0);
    let heads = ended.out.lines().filter_map(|line| {
        let line = line.strip_prefix("  ")?;
        let line = line
            .strip_prefix("-h, ")
            .or(line.strip_prefix("-V, "))
            .unwrap_or(line);
        line.strip_prefix("--")?
            .split([' ', '='])
            .next()
            .map(str::to_owned)
    });
    heads.collect()
}

#[test]
fn every_option_of_the_help_is_in_the_man_page_and_the_completions() {
    let (page, bash) = (read("msprof.1"), read("completions/msprof.bash"));
    let (zsh, fish) = (read("completions/_msprof"), read("completions/msprof.fish"));
    let all = options(&[]);
    assert!(
        all.len() > 40 && all.iter().any(|name| name == "inject"),
        "{all:?}"
    );
    for name in &all {
        let escaped = format!("\\-\\-{}\\fR", name.replace('-', "\\-"));
        assert!(page.contains(&escaped), "msprof.1: --{name}");
        let mut words = bash.split([' ', '"']);
        let in_bash = words.any(|word| word.trim_end_matches('=') == format!("--{name}"));
        assert!(in_bash, "bash: --{name}");
        let in_zsh =
            zsh.contains(&format!("'--{name}=[")) || zsh.contains(&format!("--{name}}}'["));
        assert!(in_zsh, "zsh: --{name}");
        assert!(fish.contains(&format!(" -l {name} ")), "fish: --{name}");
    }
    for (verb, at_least) in [
        ("summary", 1),
        ("view", 2),
        ("recover", 2),
        ("list", 2),
        ("status", 2),
        ("start", 3),
        ("stop", 2),
        ("record", 3),
        ("doctor", 2),
    ] {
        let own = options(&[verb]);
        assert!(own.len() >= at_least, "{verb}: {own:?}");
        for name in own {
            assert!(
                page.contains(&format!("\\-\\-{}", name.replace('-', "\\-"))),
                "msprof.1: {verb} --{name}"
            );
            let has = |text: &str, ends: [String; 2]| ends.iter().any(|end| text.contains(end));
            let ends = [format!("--{name} "), format!("--{name}= ")];
            assert!(has(&bash, ends), "bash: {verb} --{name}");
            let ends = [format!("'--{name}["), format!("'--{name}=[")];
            assert!(has(&zsh, ends), "zsh: {verb} --{name}");
            let seen = format!("__fish_seen_subcommand_from {verb}' -l {name} ");
            assert!(fish.contains(&seen), "fish: {verb} --{name}");
        }
    }
}

/// `None`, said on stderr, where there is no such program.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            support::skip::skipped(format_args!("there is no {program}"));
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

#[test]
fn the_shells_and_troff_take_what_was_made_for_them() {
    let page = packaging("msprof.1").display().to_string();
    let cases: [(&str, Vec<&str>, &str); 4] = [
        ("bash", vec!["-n"], "completions/msprof.bash"),
        ("zsh", vec!["-n"], "completions/_msprof"),
        ("fish", vec!["--no-config", "-n"], "completions/msprof.fish"),
        ("groff", vec!["-man", "-Tutf8", "-ww", "-z"], "msprof.1"),
    ];
    for (program, mut arguments, file) in cases {
        let path = packaging(file).display().to_string();
        arguments.push(&path);
        let Some(output) = run(program, &arguments) else {
            continue;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{program}: {said}"
        );
    }
    assert!(Path::new(&page).exists());
}

/// What bash would offer for the last of these words, which it has cut at the equals signs.
fn offered(words: &[&str]) -> Option<Vec<String>> {
    let script = format!(
        "source '{}'; COMP_WORDS=(msprof \"$@\"); COMP_CWORD=$#; _msprof; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        packaging("completions/msprof.bash").display()
    );
    let arguments = [&["--norc", "-c", &script, "bash"][..], words].concat();
    let output = run("bash", &arguments)?;
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(
        text.lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

#[test]
fn bash_offers_what_may_stand_where_the_cursor_is() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--runtime"], &["--runtime-api="]),
        (&["--dynamic", "=", "on", "--inj"], &["--inject="]),
        (&["--dynamic", "on", "--model"], &["--model-execution="]),
        (
            &["--inject", "="],
            &["both", "preload", "libprofapi", "none"],
        ),
        (&["--inject", "=", "p"], &["preload"]),
        (&["--inject", "p"], &["preload"]),
        (&["--task-time", "=", "l"], &["l0", "l1", "l2", "l3"]),
        (&["--host-sys", "=", "cpu,m"], &["cpu,mem"]),
        (&["--aic-freq", "=", "1"], &[]),
        (&["recover", "--f"], &["--force"]),
        (&["record", "--pi"], &["--pid="]),
        (&["record", "--json", "--dur"], &["--duration="]),
        (&["record", "--runtime-api", "="], &["on", "off"]),
        (&["record", "--pid", "1", "--runtime-api", "of"], &["off"]),
        (&["start", "--duration", "=", ""], &[]),
        (&["list", ""], &["--all", "--json", "--help"]),
        (&["list", "s"], &[]),
        // Those are the program's own options.
        (&["--dynamic", "=", "on", "python3", "--runtime"], &[]),
        (&["--", "--runtime"], &[]),
    ];
    for (words, expected) in cases {
        let Some(found) = offered(words) else {
            return;
        };
        assert_eq!(&found, expected, "{words:?}");
    }
    let own = std::process::id().to_string();
    let found = offered(&["--pid", "=", &format!("1,{own}")]).expect("bash is there");
    assert!(found.contains(&format!("1,{own}")), "{found:?}");
    let found = offered(&["record", "--pid", "=", &format!("1,{own}")]).expect("bash is there");
    assert!(found.contains(&format!("1,{own}")), "{found:?}");
    assert!(
        offered(&["summ"])
            .expect("bash is there")
            .contains(&"summary".to_owned())
    );
}

/// An interactive bash with the completion, in a directory that holds another one.
fn shell(lab: &Lab) -> Option<Terminal> {
    run("bash", &["--version"])?;
    let rc = lab.path("rc");
    let source = packaging("completions/msprof.bash");
    std::fs::write(
        &rc,
        format!("PS1='ready> '\nsource '{}'\n", source.display()),
    )
    .expect("written");
    std::fs::create_dir(lab.path("out/inside")).expect("made");
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--rcfile"])
        .arg(&rc)
        .arg("-i")
        .env("HOME", lab.path("home"))
        .env("INPUTRC", "/dev/null")
        .current_dir(lab.path("out"));
    let mut terminal = Terminal::of_width(bash, 200);
    terminal.wait_for("ready> ");
    Some(terminal)
}

#[test]
fn tab_in_an_interactive_bash_completes_an_option_of_a_verb_and_then_its_value() {
    let lab = Lab::new();
    let Some(mut bash) = shell(&lab) else {
        return;
    };
    // What is typed behind the completion shows where the cursor stood: no escaped sign, no blank.
    bash.type_in("msprof record --pi\t7x");
    bash.wait_for("msprof record --pid=7x");
    bash.type_in("\u{15}msprof record --runtime-api=of\t");
    bash.wait_for("--runtime-api=off ");
    bash.type_in("\u{15}msprof record --output=ins\t");
    bash.wait_for("--output=inside/");
    // A word without a value is complete.
    bash.type_in("\u{15}msprof list --al\t--js\t");
    bash.wait_for("msprof list --all --json ");
    bash.type_in("\u{15}msprof summary ins\t");
    bash.wait_for("msprof summary inside/");
    // The first one puts in what all have in common, the third shows them.
    bash.type_in("\u{15}msprof list \t\t\t");
    bash.wait_for("--all");
    bash.wait_for("ready> msprof list --");
    let offered = std::mem::take(&mut bash.seen);
    assert!(!offered.contains("inside"), "{offered}");
    bash.type_in("\u{15}msprof list ins\t--al");
    // The terminal rings: nothing begins so.
    bash.wait_for("msprof list ins\u{7}--al");
}

#[test]
fn fish_offers_the_values_of_a_verbs_option_and_no_directories_where_none_may_stand() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("out/inside")).expect("made");
    let source = packaging("completions/msprof.fish");
    let offered = |line: &str| {
        let script = format!(
            "cd '{}'; source '{}'; complete -C '{line}'",
            lab.path("out").display(),
            source.display()
        );
        let output = run("fish", &["--no-config", "-c", &script])?;
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let words = text.lines().filter_map(|line| line.split('\t').next());
        Some(words.map(str::to_owned).collect::<Vec<_>>())
    };
    let Some(found) = offered("msprof record --runtime-api=") else {
        return;
    };
    assert_eq!(found, ["--runtime-api=off", "--runtime-api=on"]);
    let own = std::process::id().to_string();
    let found = offered("msprof stop --pid ").expect("fish is there");
    assert!(found.contains(&own), "{found:?}");
    assert_eq!(offered("msprof list i"), Some(Vec::new()));
    assert_eq!(
        offered("msprof summary i"),
        Some(vec!["inside/".to_owned()])
    );
}
