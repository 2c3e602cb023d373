//! `msprof start`, `status` and `stop`, each a call of its own, and the captures that go on in between.

mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::client::{ALREADY_STARTED, ByteClient, NOT_STARTED, START, STOP, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::msprof::{dynamic, run_script};
use support::namespace::uid;
use support::process::Finished;
use support::puppet::{self, Puppet};
use support::rules::open_complete;
use support::stock_server::StockProcess;
use support::verbs::{json, listed, object, only, refused, row, run, verb};
use support::wait::{PATIENCE, wait_for, wait_until};

/// `msprof start` of processes with the runtime-api trace, and `more`.
fn start(home: &Home, pids: &[u32], more: &[&str]) -> support::process::Program {
    let output = format!("--output={}", home.output().display());
    verb(
        home,
        &["start", &pids_of(pids), &output, "--runtime-api=on"],
    )
    .args(more)
}

fn pids_of(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    format!("--pid={}", pids.join(","))
}

/// Starts a capture of a puppet that goes on.
#[track_caller]
fn detached(home: &Home, puppet: &Puppet, more: &[&str]) -> Finished {
    let finished = start(home, &[puppet.pid()], more).run();
    finished.expect_code(0);
    finished
}

#[track_caller]
fn assert_written(dir: &Path, records: usize) {
    assert_eq!(open_complete(dir).api().len(), records);
}

#[test]
fn a_capture_goes_on_between_start_and_stop_and_is_whole() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let pid = puppet.pid();
    let (started, code) = object(&start(&home, &[pid], &["--json"]).run());
    assert_eq!(code, 0);
    let started = row(&started, pid);
    assert_eq!(
        (&started["ok"], &started["code"]),
        (&json!(true), &json!("ok"))
    );
    assert_eq!(started["stock"], false);
    assert!(started["started_ns"].as_u64().is_some_and(|ns| ns > 0));
    let dir = only_prof_dir(&home.output());
    assert_eq!(started["directory"].as_str(), dir.to_str());
    assert_eq!(puppet.tell("api 10 1"), "0");

    let listed = listed(&home, pid);
    assert_eq!(
        (&listed["state"], &listed["code"]),
        (&json!("capturing"), &json!("ready"))
    );
    let capture = &listed["capture"];
    assert_eq!(capture["origin"], "detached");
    assert_eq!(capture["by"]["uid"], uid());
    let left = capture["ends_in_ms"].as_u64().expect("a limit");
    assert!(left > 20 * 60_000 && left <= 30 * 60_000, "{left}");

    let status = wait_for("the records to be counted", PATIENCE, || {
        let status = only(&home, &["status", &pids_of(&[pid])], 0);
        (status["ledger"]["written"]["runtime-api"] == 10).then_some(status)
    });
    assert_eq!(status["state"], "capturing");
    assert_eq!(status["directory"].as_str(), dir.to_str());
    let text = run(&home, &["status", &pids_of(&[pid])]);
    text.line_with(&format!("pid {pid}: capturing for "));
    text.line_with("  records: 10 (runtime-api 10)");

    assert_eq!(puppet.tell("api 5 1"), "0");
    let stopped = only(&home, &["stop", &pids_of(&[pid])], 0);
    assert_eq!(
        (&stopped["ok"], &stopped["code"]),
        (&json!(true), &json!("ok"))
    );
    assert_eq!(stopped["directory"].as_str(), dir.to_str());
    assert_eq!(stopped["written"]["runtime-api"], 15);
    assert_eq!(stopped["lost"]["runtime-api"], 0);
    assert!(
        stopped["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes >= 15 * 40)
    );
    assert!(stopped["captured_ms"].is_u64());
    assert_written(&dir, 15);

    let status = only(&home, &["status", &pids_of(&[pid])], 0);
    assert_eq!(
        (&status["state"], &status["capture"]),
        (&json!("idle"), &Value::Null)
    );
    assert_eq!(
        status["ledger"]["written"]["runtime-api"], 15,
        "of the last capture"
    );
    assert_eq!(puppet.tell("state"), "0 1 0 1");
}

#[test]
fn people_are_told_how_a_capture_ends_that_nobody_looks_after() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let pid = puppet.pid();
    let started = detached(&home, &puppet, &[]);
    started.line_with(&format!("dynamic profiling for pid {pid} start success"));
    started.line_with(&format!(
        "  directory: {}",
        only_prof_dir(&home.output()).display()
    ));
    started.line_with(&format!("stop it with: msprof stop --pid={pid}"));
    started.line_with("it ends by itself after 30 min (--max-duration)");
    started.line_with("if the process is killed, its last milliseconds are lost");
    assert_eq!(started.stderr, [] as [String; 0]);
    let stopped = run(&home, &["stop", &pids_of(&[pid])]);
    stopped.expect_code(0);
    stopped.line_with(&format!("dynamic profiling for pid {pid} stop success"));
    stopped.line_with("  lost 0");
    let forever = detached(&home, &puppet, &["--max-duration=0"]);
    forever.line_with("nothing else ends it while the process runs (--max-duration=0)");
    assert_eq!(listed(&home, pid)["capture"]["ends_in_ms"], Value::Null);
    // With --json all of that goes to stderr, beside the object.
    let stopped = run(&home, &["stop", &pids_of(&[pid]), "--json"]);
    assert_eq!(stopped.stdout.len(), 1);
    assert!(
        stopped
            .stderr
            .iter()
            .any(|line| line.ends_with("stop success")),
        "{stopped:#?}"
    );
}

#[test]
fn a_second_start_and_a_stop_of_nothing_fail_and_change_nothing() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let pid = puppet.pid();
    let idle = only(&home, &["stop", &pids_of(&[pid])], 1);
    assert_eq!(
        (&idle["ok"], &idle["code"]),
        (&json!(false), &json!("not-started"))
    );
    detached(&home, &puppet, &[]);
    let dir = only_prof_dir(&home.output()).display().to_string();
    let way_out = format!("stop it with: msprof stop --pid={pid}");
    let record = ["--duration=1h", "--runtime-api=on"];
    for words in [&["start"][..], &[&["record"], &record[..]].concat()] {
        let again = || verb(&home, words).arg(pids_of(&[pid]));
        let (refused, code) = object(&again().arg("--json").run());
        let row = row(&refused, pid);
        assert_eq!((code, &row["code"]), (1, &json!("already-started")));
        assert_eq!(row["capture"]["directory"], dir.as_str());
        assert_eq!(row["capture"]["origin"], "detached");
        assert_eq!(row["capture"]["by"]["uid"], uid());
        let error = row["error"].as_str().expect("an error");
        let ends = format!(", in {dir}; {way_out}");
        assert!(
            error.starts_with("a capture runs already for ") && error.ends_with(&ends),
            "{error}"
        );
        let text = again().run();
        text.expect_code(1);
        let at = text
            .stderr
            .iter()
            .position(|line| line.ends_with(&format!("pid {pid} already started")));
        let told = &text.stderr[at.unwrap_or_else(|| panic!("{text:#?}")) + 1..];
        assert!(told[0].starts_with("  it runs for "), "{text:#?}");
        assert!(told[0].contains(", detached by pid "), "{text:#?}");
        assert_eq!(
            told[1..],
            [format!("  directory: {dir}"), format!("  {way_out}")]
        );
    }
    let mut prompt = dynamic(&home, &home.output()).arg(pids_of(&[pid])).spawn();
    prompt.say("start");
    prompt.line("whose it is", |line| {
        line.contains(", detached by pid ").then_some(())
    });
    prompt.line("the directory", |line| {
        (line == format!("  directory: {dir}")).then_some(())
    });
    prompt.line("the way out", |line| {
        (line == "  `stop` ends it").then_some(())
    });
    prompt.finish().expect_code(1);
    assert_eq!(puppet.tell("api 7 1"), "0");
    only(&home, &["stop", &pids_of(&[pid])], 0);
    assert_written(&only_prof_dir(&home.output()), 7);
}

#[test]
fn one_of_several_that_cannot_be_captured_is_named_and_the_others_are() {
    let home = Home::new();
    let mut good = [Puppet::start(&home), Puppet::start(&home)];
    let stranger = home.plain("sleep").arg("60").spawn();
    let pids = [good[0].pid(), stranger.pid(), good[1].pid()];
    let (started, code) = object(&start(&home, &pids, &["--json"]).run());
    assert_eq!(code, 1);
    let order: Vec<_> = started["processes"]
        .as_array()
        .expect("an array")
        .iter()
        .collect();
    assert_eq!(
        order
            .iter()
            .map(|row| row["pid"].clone())
            .collect::<Vec<_>>(),
        pids
    );
    assert_eq!(row(&started, stranger.pid())["code"], "mode-missing");
    for puppet in &mut good {
        assert_eq!(row(&started, puppet.pid())["ok"], true);
        assert_eq!(puppet.tell("api 3 1"), "0");
    }
    let (stopped, code) = json(&home, &["stop", &pids_of(&[pids[0], pids[2]])]);
    assert_eq!(code, 0);
    for puppet in &good {
        assert_eq!(row(&stopped, puppet.pid())["written"]["runtime-api"], 3);
    }
    for dir in prof_dirs(&home.output()) {
        assert_written(&dir, 3);
    }
}

#[test]
fn a_stopped_process_is_a_failure_of_its_own_and_the_other_is_captured_meanwhile() {
    let home = Home::new();
    let (stopped, mut good) = (Puppet::start(&home), Puppet::start(&home));
    stopped.signal(libc::SIGSTOP);
    let mut running = start(&home, &[stopped.pid(), good.pid()], &["--json"]).spawn();
    wait_for("the capture of the other", PATIENCE, || {
        (good.tell("state") == "0 2 0 1").then_some(())
    });
    assert!(!running.has_ended(), "the stopped one is still waited for");
    let (object, code) = object(&running.finish());
    assert_eq!(code, 1);
    assert_eq!(row(&object, stopped.pid())["code"], "no-reply");
    assert_eq!(row(&object, good.pid())["code"], "ok");
    stopped.signal(libc::SIGCONT);
    only(&home, &["stop", &pids_of(&[good.pid()])], 0);
}

#[test]
fn a_forgotten_capture_ends_at_its_limit_and_says_so() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    detached(&home, &puppet, &["--max-duration=1s"]);
    assert_eq!(puppet.tell("api 9 1"), "0");
    wait_for("the end of the capture", PATIENCE, || {
        (listed(&home, puppet.pid())["state"] == "idle").then_some(())
    });
    let status = wait_for("its account", PATIENCE, || {
        let status = only(&home, &["status", &pids_of(&[puppet.pid()])], 0);
        (status["ledger"]["state"] == "complete").then_some(status)
    });
    let notes = status["ledger"]["notes"].to_string();
    assert!(
        notes.contains("it ended at its limit of time (--max-duration)"),
        "{notes}"
    );
    let raw = |edge: &str| {
        status["ledger"][edge]["monotonic_raw_ns"]
            .as_u64()
            .expect("ns")
    };
    let captured = raw("stop") - raw("start");
    assert!(captured >= 1_000_000_000, "{captured}");
    assert_written(&only_prof_dir(&home.output()), 9);
    // The next one is as good as any.
    detached(&home, &puppet, &[]);
    assert_eq!(puppet.tell("api 2 1"), "0");
    let stopped = only(&home, &["stop", &pids_of(&[puppet.pid()])], 0);
    assert_eq!(stopped["written"]["runtime-api"], 2);
}

#[test]
fn a_process_that_ends_completes_the_capture_that_was_left_in_it() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    detached(&home, &puppet, &[]);
    assert_eq!(puppet.tell("api 11 1"), "0");
    puppet.finish().expect_code(0);
    assert_written(&only_prof_dir(&home.output()), 11);
}

#[test]
fn other_clients_come_and_go_beside_a_capture_that_was_left_and_may_stop_it() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    detached(&home, &puppet, &[]);
    assert_eq!(puppet.tell("api 4 1"), "0");
    // One that quits, and one that just goes.
    ByteClient::open(puppet.socket(), &params(&home.output())).quit();
    drop(ByteClient::open(puppet.socket(), &params(&home.output())));
    let prompt = run_script(
        dynamic(&home, &home.output()).arg(pids_of(&[puppet.pid()])),
        &["status", "quit"],
    );
    prompt.expect_code(0);
    assert!(
        prompt.text().contains("a capture runs already"),
        "{prompt:#?}"
    );
    assert_eq!(listed(&home, puppet.pid())["state"], "capturing");
    assert_eq!(puppet.tell("api 4 1"), "0");
    // A stock client, which knows nothing of all that.
    let mut stock = ByteClient::open(puppet.socket(), &params(&home.output()));
    assert_eq!(stock.command(START), ALREADY_STARTED);
    stock.stop();
    assert_eq!(stock.command(STOP), NOT_STARTED);
    stock.quit();
    assert_written(&only_prof_dir(&home.output()), 8);
}

#[test]
fn a_process_that_another_msprof_holds_is_not_commanded_and_still_tells_its_status() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let pid = puppet.pid();
    let mut prompt = dynamic(&home, &home.output()).arg(pids_of(&[pid])).spawn();
    prompt.say("start");
    prompt.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    for verb in ["stop", "start"] {
        let refused = only(&home, &[verb, &pids_of(&[pid])], 1);
        assert_eq!(refused["code"], "busy", "{refused}");
        let error = refused["error"].as_str().expect("an error");
        assert!(
            error.contains(&format!("held by pid {}", prompt.pid())),
            "{error}"
        );
    }
    let status = only(&home, &["status", &pids_of(&[pid])], 0);
    assert_eq!(
        (&status["state"], &status["held_by"]["pid"]),
        (&json!("capturing"), &json!(prompt.pid()))
    );
    assert!(status["ledger"].is_object());
    prompt.say("stop");
    prompt.finish().expect_code(0);
}

#[test]
fn a_program_that_wants_a_device_first_is_not_started_without_one() {
    let home = Home::new();
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_NEED_DEVICE", "1");
    let mut puppet = Puppet::start_armed(&home, program);
    let (refused, code) = object(&start(&home, &[puppet.pid()], &["--json"]).run());
    assert_eq!(
        (code, &row(&refused, puppet.pid())["code"]),
        (1, &json!("no-device"))
    );
    assert_eq!(puppet.tell("device 0 1"), "0");
    detached(&home, &puppet, &[]);
    only(&home, &["stop", &pids_of(&[puppet.pid()])], 0);
}

#[test]
fn an_output_that_cannot_be_made_is_a_failure_with_the_reason() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let output = "--output=/proc/no/such";
    let refused = only(&home, &["start", &pids_of(&[puppet.pid()]), output], 1);
    assert_eq!(refused["code"], "start-failed");
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|error| error.contains("/proc/no")),
        "{refused}"
    );
    assert_eq!(puppet.tell("state"), "0 1 0 0");
}

#[test]
fn a_stock_process_is_not_started_since_its_capture_would_not_go_on() {
    let home = Home::new();
    let stock = StockProcess::start(&home);
    let refused = start(&home, &[stock.pid()], &["--json"]).run();
    let (refused, code) = object(&refused);
    let row = row(&refused, stock.pid());
    assert_eq!(
        (code, &row["code"], &row["stock"]),
        (1, &json!("stock-process"), &json!(true))
    );
    let error = row["error"].as_str().expect("an error");
    assert!(
        error.contains(&format!("use msprof record --pid={}", stock.pid())),
        "{error}"
    );
    let refused = only(&home, &["stop", &pids_of(&[stock.pid()])], 1);
    assert_eq!(
        (&refused["code"], &refused["stock"]),
        (&json!("stock-process"), &json!(true))
    );
    let error = refused["error"].as_str().expect("an error");
    assert!(error.ends_with("stop it in that session"), "{error}");
    // Who connects and is killed takes the server along: it was not connected to at all.
    assert_eq!(stock.met(), [] as [&str; 0]);
}

/// Interrupts a verb, and does so again; both of the signals arrive whatever the first does.
fn interrupt_twice(running: &support::process::Running) {
    running.signal(libc::SIGINT);
    running.signal(libc::SIGTERM);
}

#[test]
fn an_interrupted_start_and_stop_say_what_they_leave() {
    let home = Home::new();
    let (late, mut good) = (Puppet::start(&home), Puppet::start(&home));
    let pids = [late.pid(), good.pid()];
    late.signal(libc::SIGSTOP);
    let said = |running: &support::process::Running, what: &str| {
        let said = format!("dynamic profiling for pid {} {what} success", pids[1]);
        wait_until(&said, || {
            running.stderr().iter().any(|line| line.contains(&said))
        });
    };
    let told = |finished: &Finished, told: &str| {
        let has = finished.stderr.iter().any(|line| line == told);
        assert!(has, "{told}: {finished:#?}");
    };

    let running = start(&home, &pids, &["--json"]).spawn();
    said(&running, "start");
    interrupt_twice(&running);
    let finished = running.finish();
    let (started, code) = object(&finished);
    assert_eq!(code, 130);
    assert_eq!(row(&started, pids[0])["code"], "interrupted");
    assert_eq!(row(&started, pids[1])["ok"], true);
    let [late_pid, pid] = pids;
    let dir = only_prof_dir(&home.output());
    told(
        &finished,
        &format!(
            "interrupted: pid {pid}: its capture goes on in {}; stop it with: msprof stop --pid={pid}",
            dir.display()
        ),
    );
    told(
        &finished,
        &format!("interrupted: pid {late_pid}: the start was not done, it is as it was before"),
    );
    assert_eq!(good.tell("api 6 1"), "0");
    assert_eq!(listed(&home, pid)["state"], "capturing");

    let running = verb(&home, &["stop", &pids_of(&pids), "--json"]).spawn();
    said(&running, "stop");
    interrupt_twice(&running);
    let finished = running.finish();
    let (stopped, code) = object(&finished);
    assert_eq!((code, &row(&stopped, pid)["ok"]), (130, &json!(true)));
    told(
        &finished,
        &format!(
            "interrupted: pid {pid}: its capture has ended, in {}",
            dir.display()
        ),
    );
    assert_written(&dir, 6);
    late.signal(libc::SIGCONT);
}

#[test]
fn without_signals_nothing_is_begun_and_that_is_said() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let pid = pids_of(&[puppet.pid()]);
    // A pair of descriptors is one too many.
    let few = "ulimit -n 4 && exec \"$0\" \"$@\"";
    for words in [&["start"][..], &["stop"], &["record", "--duration=1ms"]] {
        let msprof = &support::artifacts::artifacts().msprof;
        let program = home.plain("sh").args(["-c", few]).arg(msprof);
        let finished = program.args(words).args([&pid, "--json"]).run();
        let (refused, code) = object(&finished);
        let row = row(&refused, puppet.pid());
        assert_eq!(
            (code, &row["ok"], &row["code"]),
            (1, &json!(false), &json!("no-signals")),
            "{words:?}"
        );
    }
    assert_eq!(puppet.tell("state"), "0 1 0 0");
}

#[test]
fn pids_that_are_none_and_wrong_words_are_told_on_one_line() {
    let home = Home::new();
    let gone = home.plain("true").spawn();
    let pid = gone.pid();
    gone.finish().expect_code(0);
    for verb in ["start", "stop"] {
        let refused = only(&home, &[verb, &pids_of(&[pid])], 1);
        assert_eq!(refused["code"], "no-such-pid");
    }
    let status = only(&home, &["status", &pids_of(&[pid])], 1);
    assert_eq!(status["state"], "no-such-pid");
    for words in [
        &["start"][..],
        &["start", "--pid=0"],
        &["start", "--pid=1", "--max-duration=5"],
        &["start", "--pid=1", "--runtime-api=maybe"],
        &["start", "--pid=1", "--dynamic=on"],
        &["stop"],
        &["stop", "--pid=1", "--output=/tmp"],
        &["status", "4711"],
        &["status", "--pid="],
    ] {
        refused(&home, words);
    }
    for verb in ["start", "stop", "status"] {
        for help in ["-h", "--help"] {
            let shown = run(&home, &[verb, help]);
            shown.expect_code(0);
            assert!(shown.stdout[0].starts_with(&format!("usage: msprof {verb} ")));
        }
    }
}
