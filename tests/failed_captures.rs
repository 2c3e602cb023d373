//! Captures that fail: one that nobody attends ends by itself, its reason is known until the next begins, and its
//! process is as it was before; one whose client is there goes on until that stops it, and says why it takes nothing.

mod support;

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::msprof::dynamic;
use support::namespace::Namespace;
use support::proc::{Proc, Resources};
use support::process::Program;
use support::puppet::{self, Puppet};
use support::rules::open_complete;
use support::verbs::{listed, only, run, verb};
use support::wait::{PATIENCE, wait_for, wait_until};

fn pid_of(puppet: &Puppet) -> String {
    format!("--pid={}", puppet.pid())
}

fn start(home: &Home, puppet: &Puppet, output: &Path) -> Program {
    let output = format!("--output={}", output.display());
    verb(
        home,
        &["start", &pid_of(puppet), &output, "--runtime-api=on"],
    )
}

/// A capture that goes on; the path of its directory as the process sees it.
#[track_caller]
fn left_behind(home: &Home, puppet: &Puppet, output: &Path) -> PathBuf {
    let (started, code) = support::verbs::object(&start(home, puppet, output).arg("--json").run());
    assert_eq!(code, 0, "{started}");
    let directory = started["processes"][0]["directory"].as_str();
    PathBuf::from(directory.expect("a directory"))
}

/// Waits until `list` says that the last capture has failed, and looks at all that it says.
#[track_caller]
fn wait_failed(home: &Home, puppet: &Puppet, directory: &Path, reason: &str) -> Value {
    let row = wait_for("the end of the capture", PATIENCE, || {
        let row = listed(home, puppet.pid());
        (!row["last_failure"].is_null()).then_some(row)
    });
    assert_eq!(
        (&row["state"], &row["code"], &row["capture"]),
        (&json!("idle"), &json!("ready"), &Value::Null),
        "{row}"
    );
    let failure = &row["last_failure"];
    assert_eq!(failure["directory"].as_str(), directory.to_str());
    let error = failure["error"].as_str().expect("a reason");
    assert!(error.contains(reason), "{error}");
    let since = failure["since"].as_str().expect("a time");
    assert!(since.starts_with("20") && since.ends_with('Z'), "{since}");
    failure.clone()
}

/// What `list`, `status` and the prompt say until a next capture begins.
#[track_caller]
fn assert_known(home: &Home, puppet: &Puppet, failure: &Value) {
    let said = format!(
        "idle, the last capture failed: {}",
        failure["error"].as_str().expect("a reason")
    );
    let text = run(home, &["list"]);
    text.expect_code(0);
    let line = text.line_with(&format!("{} ", puppet.pid()));
    assert!(line.contains(&said), "{line}");
    assert_eq!(&listed(home, puppet.pid())["last_failure"], failure);

    let text = run(home, &["status", &pid_of(puppet)]);
    text.expect_code(0);
    text.line_with(&format!("pid {}: {said}", puppet.pid()));
    let status = only(home, &["status", &pid_of(puppet)], 0);
    assert_eq!(&status["last_failure"], failure);
    assert_eq!(status["directory"], failure["directory"]);
    assert_eq!(status["ledger"]["state"], "failed");

    let mut prompt = dynamic(home, &home.output()).arg(pid_of(puppet)).spawn();
    prompt.say("status");
    prompt.line("the state", |line| line.contains(&said).then_some(()));
    prompt.finish().expect_code(0);
}

/// The next stop gets the outcome, and the one after it has nothing to stop.
#[track_caller]
fn assert_told_once(home: &Home, puppet: &Puppet, failure: &Value) {
    let stopped = only(home, &["stop", &pid_of(puppet)], 1);
    assert_eq!(
        (&stopped["ok"], &stopped["code"]),
        (&json!(false), &json!("stop-failed")),
        "{stopped}"
    );
    assert_eq!(stopped["error"], failure["error"]);
    assert_eq!(stopped["directory"], failure["directory"]);
    assert!(stopped["written"].is_object(), "{stopped}");
    let again = only(home, &["stop", &pid_of(puppet)], 1);
    assert_eq!(again["code"], "not-started");
    assert_known(home, puppet, failure);
}

/// The next capture is as good as any, and with it the failure is history.
#[track_caller]
fn assert_next_is_good(home: &Home, puppet: &mut Puppet) {
    let good = home.path().join("good");
    let directory = left_behind(home, puppet, &good);
    assert_eq!(listed(home, puppet.pid())["last_failure"], Value::Null);
    assert_eq!(puppet.tell("api 30 7"), "0");
    let stopped = only(home, &["stop", &pid_of(puppet)], 0);
    assert_eq!(stopped["directory"].as_str(), directory.to_str());
    assert_eq!(stopped["written"]["runtime-api"], 30);
    assert_eq!(stopped["lost"]["runtime-api"], 0);
    assert_eq!(open_complete(&only_prof_dir(&good)).api().len(), 30);
    let status = only(home, &["status", &pid_of(puppet)], 0);
    assert_eq!(status["last_failure"], Value::Null);
    let text = run(home, &["list"]).text();
    assert!(!text.contains("the last capture failed"), "{text}");
}

/// kB that may stay in memory of what finds the rings; the rings of a capture have megabytes.
const TABLES_KB: usize = 1024;

/// kB of the memory of the rings that are there.
fn rings(puppet: &Puppet) -> usize {
    let maps = fs::read_to_string(format!("/proc/{}/smaps", puppet.pid())).expect("its mappings");
    let mut resident = 0;
    let mut is_ring = false;
    for line in maps.lines() {
        if let Some(size) = line.strip_prefix("Rss:").filter(|_| is_ring) {
            let size = size.split_whitespace().next().expect("a size");
            resident += size.parse::<usize>().expect("kB");
        } else if line
            .split(' ')
            .next()
            .is_some_and(|word| word.contains('-'))
        {
            is_ring = line.contains("memfd:");
        }
    }
    resident
}

/// What a puppet holds after a capture that was stopped, which is what one that ended by itself is to leave.
#[track_caller]
fn after_a_capture(home: &Home, puppet: &mut Puppet) -> (Resources, usize) {
    let first = home.path().join("first");
    left_behind(home, puppet, &first);
    assert_eq!(puppet.tell("api 10 5"), "0");
    only(home, &["stop", &pid_of(puppet)], 0);
    let resources = Proc::of(puppet.pid()).idle_resources();
    (resources, rings(puppet))
}

#[track_caller]
fn assert_as_before(puppet: &Puppet, (resources, memory): &(Resources, usize)) {
    Proc::of(puppet.pid()).wait_for_resources(resources);
    wait_until("the memory of the buffers to be given back", || {
        rings(puppet) <= *memory + TABLES_KB
    });
}

/// `path` as the puppet sees it.
fn inside(puppet: &Puppet, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", puppet.pid()));
    root.join(path.strip_prefix("/").expect("absolute"))
}

#[test]
fn a_capture_that_nobody_attends_ends_when_its_directory_is_removed_and_leaves_nothing() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    assert_eq!(puppet.tell("device 3 1"), "0");
    assert_eq!(puppet.tell("handler 7 plain"), "0");
    let before = after_a_capture(&home, &mut puppet);
    let directory = left_behind(&home, &puppet, &home.output());
    assert_eq!(puppet.tell("api 1000 1"), "0");
    fs::remove_dir_all(&directory).expect("removed");
    let failure = wait_failed(&home, &puppet, &directory, "No such file");
    assert_as_before(&puppet, &before);
    assert_eq!(
        puppet.tell("heard"),
        "2 2",
        "components were told of the end"
    );
    assert_eq!(puppet.tell("state"), "0 1 1 2", "idle after two captures");
    assert_eq!(puppet.tell("api 1000 2"), "0", "the program goes on");
    assert_eq!(prof_dirs(&home.output()), [] as [PathBuf; 0]);
    assert_known(&home, &puppet, &failure);
    assert_told_once(&home, &puppet, &failure);
    assert_next_is_good(&home, &mut puppet);
    assert_as_before(&puppet, &before);
    puppet.finish().expect_code(0);
}

#[test]
fn a_capture_that_nobody_attends_ends_when_its_disk_is_full_and_keeps_whole_records() {
    let home = Home::new();
    let disk = home.path().join("disk");
    fs::create_dir(&disk).expect("a directory");
    let mount = format!("mount -t tmpfs -o size=24m none '{}'\n", disk.display());
    let Some(namespace) = Namespace::new(&mount) else {
        return;
    };
    let mut puppet = Puppet::start_armed(&home, namespace.armed(&home, puppet::path()));
    let before = after_a_capture(&home, &mut puppet);
    let directory = left_behind(&home, &puppet, &disk);
    let mut tag = 0;
    wait_until("the capture to fail", || {
        tag += 1;
        assert_eq!(puppet.tell(&format!("api 20000 {tag}")), "0");
        !listed(&home, puppet.pid())["last_failure"].is_null()
    });
    let failure = wait_failed(&home, &puppet, &directory, "No space left");
    assert_as_before(&puppet, &before);
    let dir = prof_dirs(&inside(&puppet, &disk)).remove(0);
    let kept = support::prof::Prof::open(&dir);
    assert_eq!(kept.ledger()["state"], "failed");
    assert!(kept.api().len() > 100_000, "{}", kept.api().len());
    assert!(dir.join("host/end_info.done").exists());
    assert_told_once(&home, &puppet, &failure);
    assert_next_is_good(&home, &mut puppet);
    puppet.finish().expect_code(0);
}

#[test]
fn the_next_start_needs_no_stop_of_a_capture_that_failed() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    for round in 0..3 {
        let output = home.path().join(format!("out-{round}"));
        let directory = left_behind(&home, &puppet, &output);
        assert_eq!(puppet.tell("api 100 1"), "0");
        fs::remove_dir_all(&directory).expect("removed");
        wait_failed(&home, &puppet, &directory, "No such file");
    }
    assert_next_is_good(&home, &mut puppet);
    let none = only(&home, &["stop", &pid_of(&puppet)], 1);
    assert_eq!(none["code"], "not-started", "that failure is history");
    puppet.finish().expect_code(0);
}

#[test]
fn a_stop_at_the_prompt_gets_the_outcome_too() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let directory = left_behind(&home, &puppet, &home.output());
    assert_eq!(puppet.tell("api 100 1"), "0");
    fs::remove_dir_all(&directory).expect("removed");
    let failure = wait_failed(&home, &puppet, &directory, "No such file");
    let mut prompt = dynamic(&home, &home.output()).arg(pid_of(&puppet)).spawn();
    prompt.say("stop");
    let finished = prompt.finish();
    finished.expect_code(1);
    let reason = failure["error"].as_str().expect("a reason");
    let text = finished.text();
    assert!(text.contains(&format!("stop failed: {reason}")), "{text}");
    assert_next_is_good(&home, &mut puppet);
}

#[test]
fn a_capture_whose_client_is_there_goes_on_until_it_is_stopped_and_says_that_it_has_failed() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut msprof = dynamic(&home, &home.output()).arg(pid_of(&puppet)).spawn();
    msprof.say("start");
    msprof.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    let directory = only_prof_dir(&home.output());
    assert_eq!(puppet.tell("api 100 1"), "0");
    assert_eq!(
        listed(&home, puppet.pid())["capture"]["failed"],
        Value::Null
    );
    fs::remove_dir_all(&directory).expect("removed");
    let row = wait_for("the failure", PATIENCE, || {
        let row = listed(&home, puppet.pid());
        (!row["capture"]["failed"].is_null()).then_some(row)
    });
    assert_eq!(row["state"], "capturing");
    assert_eq!(row["last_failure"], Value::Null);
    let reason = row["capture"]["failed"].as_str().expect("a reason");
    assert!(reason.contains("No such file"), "{reason}");
    let said = format!(", but has failed: {reason}");
    for verb in [&["list"][..], &["status", &pid_of(&puppet)]] {
        run(&home, verb).line_with(&said);
    }
    msprof.say("status");
    msprof.line("the state", |line| line.contains(&said).then_some(()));
    // Nobody takes its end out of its client's hands.
    assert_eq!(listed(&home, puppet.pid())["state"], "capturing");
    msprof.say("stop");
    msprof.say("quit");
    let finished = msprof.finish();
    finished.expect_code(1);
    let text = finished.text();
    assert!(text.contains(&format!("stop failed: {reason}")), "{text}");
    let failure = listed(&home, puppet.pid())["last_failure"].clone();
    assert_eq!(failure["error"], reason);
    // Its client was told: the next one has nothing to stop.
    let stopped = only(&home, &["stop", &pid_of(&puppet)], 1);
    assert_eq!(stopped["code"], "not-started");
    assert_known(&home, &puppet, &failure);
    assert_next_is_good(&home, &mut puppet);
    puppet.finish().expect_code(0);
}
