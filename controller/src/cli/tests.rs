//! What command lines mean, and how they are refused.

use super::*;

fn parsed(words: &[&str]) -> Result<Invocation, UsageError> {
    parse(words.iter().map(OsString::from).collect())
}

fn dynamic(words: &[&str]) -> Dynamic {
    match parsed(words) {
        Ok(Invocation::Dynamic(dynamic)) => dynamic,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn words(dynamic: &Dynamic) -> Vec<&str> {
    match &dynamic.whom {
        Whom::Launch { application, .. } => application
            .words
            .iter()
            .filter_map(|word| word.to_str())
            .collect(),
        Whom::Attach(_) => Vec::new(),
    }
}

#[test]
fn both_forms_of_a_program_are_taken() {
    let behind = dynamic(&[
        "--dynamic=on",
        "--runtime-api=on",
        "./main",
        "--aicpu=on",
        "a b",
    ]);
    assert_eq!(words(&behind), ["./main", "--aicpu=on", "a b"]);
    assert!(!behind.options.is_on("aicpu") && behind.options.is_on("runtime-api"));
    let one_text = dynamic(&["--dynamic=on", "--application=./main arg1 'a b'"]);
    assert_eq!(words(&one_text), ["./main", "arg1", "a b"]);
    let dashes = dynamic(&["--dynamic", "on", "--", "-x"]);
    assert_eq!(words(&dashes), ["-x"]);
}

#[test]
fn pids_are_taken_once_each() {
    let attach = dynamic(&["--dynamic=on", "--pid=7,8,7"]);
    assert_eq!(attach.whom, Whom::Attach(vec![7, 8]));
}

#[test]
fn the_output_is_absolute() {
    let here = std::env::current_dir().expect("working directory");
    let default = dynamic(&["--dynamic=on", "--pid=7"]);
    assert_eq!(default.options.value("output"), here.to_str());
    let relative = dynamic(&["--dynamic=on", "--pid=7", "--output=./new//dir/"]);
    assert_eq!(
        relative.options.value("output"),
        here.join("new/dir").to_str()
    );
    let absolute = dynamic(&["--dynamic=on", "--pid=7", "--output=/no/such/dir"]);
    assert_eq!(absolute.options.value("output"), Some("/no/such/dir"));
}

#[test]
fn every_refusal_is_one_line() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "nothing to do: give --dynamic=on"),
        (&["--dynamic=off", "--pid=7"], "--dynamic=on is missing"),
        (&["--dynamic=on"], "whom to profile"),
        (&["--dynamic=maybe"], "on, off"),
        (&["--dynamic"], "argument --dynamic: the value is missing"),
        (&["--dynamic=on", "--pid=0"], "1~2147483647"),
        (&["--dynamic=on", "--pid=7,"], "--pid"),
        (&["--dynamic=on", "--pid=2147483648"], "1~2147483647"),
        (&["--dynamic=on", "--pid=x"], "\"x\""),
        (&["--dynamic=on", "--pid="], "the value is missing"),
        (
            &["--dynamic=on", "--pid=7", "./main"],
            "--pid and --application",
        ),
        (&["--dynamic=on", "--application=a", "./main"], "twice"),
        (&["--dynamic=on", "--application=a 'b"], "not closed"),
        (&["--dynamic=on", "--application= "], "it is empty"),
        (
            &["--dynamic=on", "--pid=7", "--environment=A=1"],
            "--environment needs a program",
        ),
        (
            &["--dynamic=on", "--pid=7", "--inject=none"],
            "--inject needs a program",
        ),
        (
            &["--dynamic=on", "--inject=preload,none", "a"],
            "both, preload, libprofapi, none",
        ),
        (
            &["--dynamic=on", "--environment=PROFILING_MODE=x", "a"],
            "PROFILING_MODE is set by",
        ),
        (&["--dynamic=on", "--dinamic=on"], "did you mean --dynamic"),
        (
            &["--dynamic=on", "--pid=7", "--duration=5"],
            "--dynamic and --duration",
        ),
        (
            &["--dynamic=on", "--pid=7", "--output=/etc/passwd"],
            "no directory",
        ),
        (&["-x"], "\"-x\" is not an option"),
        (&["quit"], "\"quit\" is a command of the prompt"),
        (&["--dynamic=on", "start"], "is a command of the prompt"),
        (
            &["--dynamic=on", "--pid=7", "stop"],
            "is a command of the prompt",
        ),
        (&["sumary", "x"], "did you mean summary?"),
        (&["./main", "x"], "msprof --dynamic=on ./main"),
        (&["--runtime-api=on", "./main"], "--dynamic=on is missing"),
        (&["--pid=7"], "--dynamic=on is missing"),
        (&["dynamic=on", "pid=7"], "options are written --name=value"),
        (
            &["--dynamic=on", "pid=7"],
            "options are written --name=value",
        ),
        (
            &["--dynamic=on", "--pid=7", "8"],
            "\"8\" is taken for a program",
        ),
        (&["--dynamic=on", "--pid=self"], "\"self\" is no process id"),
        (&["--dynamic=on", "--pid=7,"], "\"\" is no process id"),
        (
            &["--dynamic=on", "--aicpu", "--l2=on"],
            "--aicpu: the value is missing",
        ),
        (&["--dynamic=on", "--PID=7"], "did you mean --pid?"),
        (&["--dynamic=on", "--=7"], "see msprof --help"),
        (&["--dynamic=on", ""], "empty name"),
        (&["--dynamic=on", "--application=''"], "it is empty"),
    ];
    for (words, part) in cases {
        let error = parsed(words).expect_err("refused").to_string();
        assert!(
            error.contains(part) && !error.contains('\n'),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn help_and_version_come_before_everything_else() {
    assert_eq!(parsed(&["--pid=7", "-h"]), Ok(Invocation::Help));
    assert_eq!(parsed(&["help"]), Ok(Invocation::Help));
    assert_eq!(parsed(&["--version"]), Ok(Invocation::Version(None)));
    let named = Invocation::Version(Some("/l.so".into()));
    assert_eq!(parsed(&["--agent-lib=/l.so", "-V"]), Ok(named));
}
