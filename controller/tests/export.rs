//! `msprof --export=on`: what it says, its exit status, and what it leaves behind.

#[path = "../export/tests/support/directory.rs"]
mod directory;

use directory::Session;
use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Who has no rights of its own.
const NOBODY: u32 = 65_534;

fn msprof(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_msprof"));
    command.env_clear().env("HOME", home).current_dir(home);
    command
}

/// Runs an export of a path with more options.
fn export(home: &Path, path: impl AsRef<OsStr>, options: &[&str]) -> Output {
    let mut command = msprof(home);
    command
        .arg("--export=on")
        .arg("--output")
        .arg(path)
        .args(options);
    command.output().expect("started")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn exits(output: &Output, code: i32) {
    let said = format!("{}\n--\n{}", out(output), err(output));
    assert_eq!(output.status.code(), Some(code), "{said}");
}

/// A directory with one call in it.
fn prof(parent: &Path, name: &str) -> PathBuf {
    let prof = parent.join(name);
    let info = r#"{"version":"1.0","pid":"4321","pid_name":"python3","CPU":[{"Frequency":""}]}"#;
    let session = Session {
        wall_us: 1_700_000_000_000_000,
        monotonic_ns: 1_000_000_000,
        seconds: 1,
    };
    directory::controls(&prof, "host", info, session);
    let mut call = vec![0u8; 40];
    call[..2].copy_from_slice(&0x5A5Au16.to_le_bytes());
    call[2..4].copy_from_slice(&5000u16.to_le_bytes());
    call[4..8].copy_from_slice(&1001u32.to_le_bytes());
    call[16..24].copy_from_slice(&1_000_001_000u64.to_le_bytes());
    call[24..32].copy_from_slice(&1_000_002_500u64.to_le_bytes());
    directory::put(&prof, "host/data/aging.api_event.data.slice_0", &call);
    prof
}

/// Names in a directory's exports, without the time in them.
fn exported(prof: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(prof.join("mindstudio_profiler_output")).expect("exports");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .map(|name| name.split(|c: char| c.is_ascii_digit()).collect())
        .collect();
    names.sort();
    names
}

#[test]
fn a_directory_is_exported_and_one_line_says_so() {
    let home = tempfile::tempdir().expect("a directory");
    let prof = prof(home.path(), "PROF_1");
    let output = export(home.path(), &prof, &[]);
    exits(&output, 0);
    let name = prof.display();
    assert_eq!(
        out(&output),
        format!("{name}: 2 files in mindstudio_profiler_output, 1 call\n")
    );
    assert_eq!(err(&output), "", "no progress in a pipe");
    assert_eq!(
        exported(&prof),
        ["README.txt", "api_statistic_.csv", "msprof_.json"]
    );
}

#[test]
fn every_directory_of_a_parent_is_exported_in_the_order_of_their_names() {
    let home = tempfile::tempdir().expect("a directory");
    let names: Vec<String> = (10..30).map(|number| format!("PROF_{number}")).collect();
    for name in &names {
        prof(home.path(), name);
    }
    symlink(home.path().join("PROF_10"), home.path().join("PROF_99")).expect("a link");
    std::fs::create_dir(home.path().join("other")).expect("made");
    let output = export(home.path(), ".", &[]);
    exits(&output, 0);
    let expected: String = names
        .iter()
        .map(|name| format!("./{name}: 2 files in mindstudio_profiler_output, 1 call\n"))
        .collect();
    assert_eq!(out(&output), expected);
}

#[test]
fn one_bad_directory_of_several_is_named_and_the_others_are_exported() {
    let home = tempfile::tempdir().expect("a directory");
    let (good, bad) = (prof(home.path(), "PROF_1"), home.path().join("PROF_2"));
    std::fs::create_dir(&bad).expect("made");
    let output = export(home.path(), home.path(), &[]);
    exits(&output, 1);
    assert!(out(&output).contains("PROF_1: 2 files"), "{}", out(&output));
    assert!(
        err(&output).contains("PROF_2 is not a PROF_XXX directory"),
        "{}",
        err(&output)
    );
    assert_eq!(exported(&good).len(), 3);
    assert_eq!(std::fs::read_dir(&bad).expect("there").count(), 0);
}

#[test]
fn a_path_that_holds_no_capture_is_refused_in_one_line() {
    let home = tempfile::tempdir().expect("a directory");
    let empty = home.path().join("empty");
    std::fs::create_dir(&empty).expect("made");
    let file = home.path().join("file");
    std::fs::write(&file, "x").expect("written");
    let within = prof(home.path(), "PROF_1").join("host");
    for (path, part) in [
        (&empty, "it is no PROF_XXX directory, and none is in it"),
        (
            &file,
            "it is no directory; name a PROF_XXX directory or its parent",
        ),
        (&home.path().join("none"), "No such file or directory"),
        (&within, "it is a part of"),
    ] {
        let output = export(home.path(), path, &[]);
        exits(&output, 1);
        let said = err(&output);
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
        assert_eq!(out(&output), "");
    }
}

#[test]
fn a_capture_that_is_under_way_is_exported_and_said_to_be_so() {
    let home = tempfile::tempdir().expect("a directory");
    let prof = prof(home.path(), "PROF_1");
    std::fs::remove_file(prof.join("host/end_info")).expect("removed");
    let output = export(home.path(), &prof, &[]);
    exits(&output, 1);
    assert!(
        err(&output).contains("the capture is under way, or its process was killed"),
        "{}",
        err(&output)
    );
    assert!(err(&output).contains(&format!("msprof recover {}", prof.display())));
    assert_eq!(exported(&prof).len(), 3);
}

#[test]
fn tables_can_be_json_and_layers_of_the_timeline_left_out() {
    let home = tempfile::tempdir().expect("a directory");
    let prof = prof(home.path(), "PROF_1");
    std::fs::write(
        home.path().join("reports.json"),
        r#"{"json_process": {"cann": false, "freq": true}}"#,
    )
    .expect("written");
    let options = [
        "--summary-format=json",
        "--reports=reports.json",
        "--clear=on",
        "--type=text",
    ];
    let output = export(home.path(), &prof, &options);
    exits(&output, 0);
    assert!(
        err(&output).contains("--clear=on has nothing to do"),
        "{}",
        err(&output)
    );
    assert_eq!(exported(&prof), ["README.txt", "api_statistic_.json"]);
    std::fs::write(
        home.path().join("reports.json"),
        r#"{"json_process": {"can": true}}"#,
    )
    .expect("written");
    let output = export(home.path(), &prof, &options);
    exits(&output, 2);
    assert!(
        err(&output).contains("\"can\" is no layer"),
        "{}",
        err(&output)
    );
}

#[test]
fn wrong_usage_is_one_line_and_nothing_is_done() {
    let home = tempfile::tempdir().expect("a directory");
    for (words, part) in [
        (&["--export=on"][..], "--output is missing"),
        (&["--export=on", "--output=x", "--type=xml"], "--type"),
        (
            &["--export=on", "--output=x", "--summary-format=xml"],
            "csv",
        ),
        (
            &["--export=on", "--dynamic=on", "--output=x"],
            "cannot be configured at the same time",
        ),
        (&["--exprt=on", "--output=x"], "did you mean --export?"),
    ] {
        let output = msprof(home.path()).args(words).output().expect("started");
        exits(&output, 2);
        let said = err(&output);
        assert!(
            said.contains(part) && said.lines().count() == 1,
            "{words:?}: {said}"
        );
    }
    let output = msprof(home.path())
        .args(["--export=on", "--help"])
        .output()
        .expect("started");
    exits(&output, 0);
    assert!(out(&output).starts_with("usage: msprof --export=on"));
    for line in out(&output).lines() {
        assert!(line.len() <= 105, "{line}");
    }
}

#[test]
fn what_nobody_may_read_or_write_is_named() {
    let home = tempfile::tempdir().expect("a directory");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("set")
    };
    mode(home.path(), 0o755);
    let (locked, unwritable) = (prof(home.path(), "PROF_1"), prof(home.path(), "PROF_2"));
    mode(&locked, 0o000);
    mode(&unwritable, 0o555);
    let run = |path: &Path| {
        let mut command = msprof(home.path());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
            .arg("--export=on")
            .arg("--output")
            .arg(path)
            .output()
    };
    let Ok(output) = run(&locked) else {
        eprintln!("skipped: nobody may run the program under test");
        return;
    };
    exits(&output, 1);
    assert!(
        err(&output).contains("Permission denied"),
        "{}",
        err(&output)
    );
    let output = run(&unwritable).expect("started");
    exits(&output, 1);
    assert!(
        err(&output).contains("copy the PROF directory to where you may write"),
        "{}",
        err(&output)
    );
    assert!(
        out(&output).contains("PROF_2: not exported"),
        "{}",
        out(&output)
    );
    mode(&locked, 0o755);
}

#[test]
fn names_of_directories_and_files_cannot_play_with_the_terminal() {
    let home = tempfile::tempdir().expect("a directory");
    let prof = prof(home.path(), "PROF_\u{1b}[31m\n");
    symlink("/x", prof.join("host/data/\u{1b}]0;x\u{7}.slice_0")).expect("a link");
    let output = export(home.path(), &prof, &[]);
    exits(&output, 1);
    let said = out(&output) + &err(&output);
    assert!(!said.contains(['\u{1b}', '\u{7}']), "{said:?}");
    assert_eq!(out(&output).lines().count(), 1, "{said:?}");
}

#[test]
fn a_limit_of_file_size_is_an_error_and_nothing_of_the_file_is_left() {
    let home = tempfile::tempdir().expect("a directory");
    let prof = prof(home.path(), "PROF_1");
    let slice = "host/data/aging.api_event.data.slice_0";
    let call = std::fs::read(prof.join(slice)).expect("a slice");
    directory::put(&prof, slice, &call.repeat(200));
    let listed = |dir: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let before = (listed(home.path()), listed(&prof));
    let prof = prof.to_str().expect("UTF-8");
    for (words, why) in [
        (&["--export=on", "--output", prof][..], "File too large"),
        (
            &["--export=on", "--type=db", "--output", prof],
            "File too large (os error 27); raise the limit of file size (ulimit -f)",
        ),
        (&["view", prof], "File too large"),
    ] {
        // 512 or 1024 bytes a unit, as the shell has it.
        let mut limited = Command::new("sh");
        limited.env_clear().env("HOME", home.path());
        limited.args(["-c", r#"ulimit -f 8; exec "$0" "$@""#]);
        let program = env!("CARGO_BIN_EXE_msprof");
        let output = limited.arg(program).args(words).output().expect("started");
        exits(&output, 1);
        assert!(err(&output).contains(why), "{}", err(&output));
        let exports = Path::new(prof).join("mindstudio_profiler_output");
        let _ = std::fs::remove_dir_all(exports);
        assert_eq!((listed(home.path()), listed(Path::new(prof))), before);
    }
}

#[test]
fn a_pipe_in_the_place_of_the_switches_is_refused_and_not_waited_for() {
    let home = tempfile::tempdir().expect("a directory");
    let prof = prof(home.path(), "PROF_1");
    let pipe = home.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let reports = format!("--reports={}", pipe.display());
    let output = export(home.path(), &prof, &[&reports]);
    exits(&output, 2);
    assert!(err(&output).contains("no regular file"), "{}", err(&output));
}

#[test]
fn what_has_the_place_of_a_slice_a_device_or_a_ledger_is_named_and_the_rest_exported() {
    let home = tempfile::tempdir().expect("a directory");
    let place = |name: &str| prof(home.path(), name);
    let odd = [
        "host/data/aging.api_event.data.slice_1",
        "device_1",
        "msprof_agent.json",
        "host/data/unaging.additional.hash_dic.slice_0",
    ];
    for (number, odd) in odd.into_iter().enumerate() {
        let prof = place(&format!("PROF_{number}"));
        let path = prof.join(odd);
        match odd {
            "device_1" => std::fs::write(path, "x").expect("written"),
            _ => std::fs::create_dir(path).expect("made"),
        }
        let output = export(home.path(), &prof, &[]);
        exits(&output, 1);
        let name = odd.rsplit('/').next().expect("a name");
        assert!(err(&output).contains(name), "{odd}: {}", err(&output));
        assert!(out(&output).contains("1 call"), "{odd}: {}", out(&output));
    }
}

#[test]
fn a_host_that_does_not_say_when_it_began_has_the_clock_of_its_device() {
    let home = tempfile::tempdir().expect("a directory");
    let prof = prof(home.path(), "PROF_1");
    let session = Session {
        wall_us: 1_700_000_000_000_000,
        monotonic_ns: 1_000_000_000,
        seconds: 1,
    };
    let info = r#"{"version":"1.0","DeviceInfo":[{"id":0,"hwts_frequency":"1000"}]}"#;
    directory::controls(&prof, "device_0", info, session);
    std::fs::remove_file(prof.join("host/start_info")).expect("removed");
    let output = export(home.path(), &prof, &[]);
    exits(&output, 1);
    assert!(err(&output).contains("the start is that of the first device"));
    let entries = std::fs::read_dir(prof.join("mindstudio_profiler_output")).expect("exports");
    let timeline = entries
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|end| end == "json"))
        .expect("a timeline");
    let timeline = std::fs::read_to_string(timeline).expect("read");
    assert!(timeline.contains("\"1700000000000001.000\""), "{timeline}");
}

#[test]
fn what_cannot_be_said_changes_nothing_but_the_exit_status() {
    let home = tempfile::tempdir().expect("a directory");
    let full = || std::fs::File::options().write(true).open("/dev/full");
    let full = || full().expect("a device that is always full");
    for number in 1..=8 {
        // Each has something to be said on stderr.
        std::fs::remove_file(prof(home.path(), &format!("PROF_{number}")).join("host/end_info"))
            .expect("removed");
    }
    let mut all = msprof(home.path());
    all.args(["--export=on", "--output", "."]).stderr(full());
    exits(&all.output().expect("started"), 1);
    for number in 1..=8 {
        let prof = home.path().join(format!("PROF_{number}"));
        assert_eq!(exported(&prof).len(), 3, "{number}");
    }
    for (words, code) in [
        (&["bogus"][..], 2),
        (&["view", "none"], 1),
        (&["list", "--pid=x"], 2),
        (&["recover", "none"], 1),
    ] {
        let mut quiet = msprof(home.path());
        quiet.args(words).stderr(full());
        exits(&quiet.output().expect("started"), code);
    }
    for words in [&["list", "--json"][..], &["summary", "PROF_1"], &["--help"]] {
        let mut lost = msprof(home.path());
        lost.args(words).stdout(full());
        let output = lost.output().expect("started");
        exits(&output, 1);
        assert!(err(&output).contains("on stdout could not be written"));
    }
}
