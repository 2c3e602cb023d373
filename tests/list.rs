//! `msprof list`: what it says of real processes in every state, and that none of them is disturbed by it.

mod support;

use serde_json::{Value, json};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};
use support::artifacts::artifacts;
use support::client::{ByteClient, params};
use support::executable::copy_program;
use support::home::{Home, only_prof_dir};
use support::namespace::{Namespace, passwd, uid};
use support::proc::Proc;
use support::puppet::{self, Puppet, capturing};
use support::rules::open_complete;
use support::stock_server::StockProcess;
use support::user_namespace::{PLAIN, as_user, give};
use support::verbs::{find, json, listed, object, refused, row, run, verb};
use support::wait::{PATIENCE, wait_for, wait_until};

/// Longer than a list may take that waits a second for one process.
const BOUND: Duration = Duration::from_secs(10);

#[track_caller]
fn assert_state(row: &Value, state: &str, code: &str) {
    assert_eq!(
        (&row["state"], &row["code"]),
        (&json!(state), &json!(code)),
        "{row}"
    );
}

#[test]
fn idle_held_and_capturing_processes_are_told_apart_and_go_on() {
    let home = Home::new();
    let mut idle = Puppet::start(&home);
    assert_eq!(idle.tell("device 3 1"), "0");
    let held = Puppet::start(&home);
    let mut holder = ByteClient::open(held.socket(), &params(&home.output()));
    let (mut busy, mut client) = capturing(&home);
    assert_eq!(busy.tell("api 10 1"), "0");
    let (object, code) = json(&home, &["list"]);
    assert_eq!(code, 0);
    let us = std::process::id();

    let row_of_idle = row(&object, idle.pid());
    assert_state(row_of_idle, "idle", "ready");
    assert_eq!(row_of_idle["devices"], json!([3]));
    assert_eq!(row_of_idle["agent_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(row_of_idle["container_pid"], Value::Null);
    assert_eq!(row_of_idle["uid"], uid());
    assert_eq!(row_of_idle["reason"], Value::Null);
    let command = row_of_idle["command"].as_str().expect("a command");
    assert!(
        command.ends_with(puppet::path().to_str().expect("UTF-8")),
        "{command}"
    );
    assert_eq!(row_of_idle["socket"].as_str(), idle.socket().to_str());
    assert!(
        row_of_idle["since"]
            .as_str()
            .is_some_and(|since| since.ends_with('Z'))
    );

    let row_of_held = row(&object, held.pid());
    assert_state(row_of_held, "held", "busy");
    assert_eq!(row_of_held["held_by"], json!({"uid": uid(), "pid": us}));
    assert_eq!(row_of_held["capture"], Value::Null);

    let row_of_busy = row(&object, busy.pid());
    assert_state(row_of_busy, "capturing", "busy");
    let capture = &row_of_busy["capture"];
    assert_eq!(capture["origin"], "client");
    assert_eq!(capture["by"], json!({"uid": uid(), "pid": us}));
    let dir = only_prof_dir(&home.output());
    assert_eq!(capture["directory"].as_str(), dir.to_str());
    assert_eq!(capture["ends_in_ms"], Value::Null);

    let text = run(&home, &["list"]);
    text.expect_code(0);
    let line = |pid: u32| text.line_with(&format!("{pid} ")).to_owned();
    assert!(line(idle.pid()).contains("idle, devices 3, agent "));
    assert!(line(held.pid()).contains(&format!("held by pid {us} of uid {}", uid())));
    assert!(line(busy.pid()).contains("capturing for "));
    assert!(text.stdout[0].starts_with("PID "), "{text:#?}");

    // Sessions and the capture are as before.
    holder.start();
    holder.stop();
    holder.quit();
    assert_eq!(busy.tell("api 5 1"), "0");
    client.stop();
    assert_eq!(open_complete(&dir).api().len(), 15);
    let mut first = ByteClient::open(idle.socket(), &params(&home.output()));
    first.start();
    first.stop();
    first.quit();
}

#[test]
fn a_capture_of_the_program_itself_is_told_as_such() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    assert_eq!(
        puppet.tell(&format!("start {}", home.output().display())),
        "0"
    );
    let row = listed(&home, puppet.pid());
    assert_state(&row, "capturing", "ready");
    assert_eq!(row["capture"]["origin"], "program");
    assert_eq!(row["capture"]["by"], Value::Null);
    assert!(puppet.tell("stop").starts_with("0 "));
    assert_state(&listed(&home, puppet.pid()), "idle", "ready");
}

#[test]
fn what_a_killed_process_left_is_swept_and_the_living_are_listed() {
    let home = Home::new();
    let other = Puppet::start(&home);
    // Its own look for dead sockets is over.
    Proc::of(other.pid()).idle_resources();
    let killed = Puppet::start(&home);
    let (gone, socket) = (killed.pid(), killed.socket().clone());
    killed.kill();
    assert!(socket.exists(), "a killed process cannot tidy up");
    // Its successor may sweep it before: the list must not need it.
    let (object, code) = json(&home, &["list"]);
    assert_eq!(code, 0);
    assert_eq!(object["swept"], json!([socket]));
    let next = Puppet::start(&home);
    let (object, code) = json(&home, &["list"]);
    assert_eq!((code, &object["swept"]), (0, &json!([])));
    assert_eq!(find(&object, gone), None);
    assert_state(row(&object, other.pid()), "idle", "ready");
    assert_state(row(&object, next.pid()), "idle", "ready");
    assert!(!socket.exists() && other.socket().exists() && next.socket().exists());
    assert_eq!(home.sockets().len(), 2);
}

#[test]
fn homes_with_odd_characters_hide_nobody() {
    let place = Home::new();
    // Nobody's home but what the variable says.
    let Some(namespace) = Namespace::new(&passwd(place.path(), None)) else {
        return;
    };
    for name in [
        "under_score",
        "a blank",
        "line\nbreak",
        "Grüße-日本",
        "-dash",
        "quote'\"$",
    ] {
        let dir = place.path().join(name);
        std::fs::create_dir(&dir).expect("made");
        let program = namespace.armed(&place, puppet::path());
        let program = program.env("HOME", &dir).without("MSPROF_AGENT_SOCKET_DIR");
        let mut puppet = Puppet::start_program(&place, program);
        let socket = dir.join(format!("dynamic_profiling_socket_{}", puppet.pid()));
        wait_until("the socket", || socket.exists());
        // By the environment of the process alone.
        let list = || verb(&place, &["list"]).without("MSPROF_AGENT_SOCKET_DIR");
        let (found, code) = object(&list().arg("--json").run());
        assert_eq!(code, 0);
        let row = row(&found, puppet.pid());
        assert_state(row, "idle", "ready");
        assert_eq!(row["socket"].as_str(), socket.to_str());
        list().run().line_with(&format!("{} ", puppet.pid()));
        assert_eq!(puppet.tell("state"), "0 1 0 0");
    }
}

#[test]
fn many_processes_are_asked_at_once_and_keep_nothing_of_it() {
    let home = Home::new();
    let puppets: Vec<Puppet> = (0..12).map(|_| Puppet::start(&home)).collect();
    let (stopped, well) = puppets.split_at(4);
    let idle = |puppet: &Puppet| Proc::of(puppet.pid()).idle_resources();
    let before: Vec<_> = well.iter().map(idle).collect();
    for puppet in stopped {
        puppet.signal(libc::SIGSTOP);
    }
    for _ in 0..4 {
        let begin = Instant::now();
        let (object, code) = json(&home, &["list"]);
        assert_eq!(code, 0);
        assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
        for puppet in stopped {
            assert_state(row(&object, puppet.pid()), "no-reply", "no-reply");
        }
        for puppet in well {
            assert_state(row(&object, puppet.pid()), "idle", "ready");
        }
    }
    for (puppet, before) in well.iter().zip(&before) {
        Proc::of(puppet.pid()).wait_for_resources(before);
    }
    for puppet in stopped {
        puppet.signal(libc::SIGCONT);
    }
}

#[test]
fn a_stock_process_is_listed_and_never_connected_to() {
    let home = Home::new();
    let stock = StockProcess::start(&home);
    for _ in 0..3 {
        assert_state(&listed(&home, stock.pid()), "stock", "stock");
        run(&home, &["status", &format!("--pid={}", stock.pid())]).expect_code(0);
    }
    assert_eq!(stock.met(), [] as [String; 0]);
}

#[test]
fn a_stopped_process_delays_nobody_and_is_unharmed() {
    let home = Home::new();
    let mut stopped = Puppet::start(&home);
    let well = Puppet::start(&home);
    stopped.signal(libc::SIGSTOP);
    let begin = Instant::now();
    let (object, code) = json(&home, &["list"]);
    assert_eq!(code, 0);
    assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
    assert_state(row(&object, well.pid()), "idle", "ready");
    let row_of_stopped = row(&object, stopped.pid());
    assert_state(row_of_stopped, "no-reply", "no-reply");
    let reason = row_of_stopped["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("it is stopped (SIGSTOP or a debugger)"),
        "{reason}"
    );
    stopped.signal(libc::SIGCONT);
    wait_for("an answer", PATIENCE, || {
        (listed(&home, stopped.pid())["state"] == "idle").then_some(())
    });
    assert_eq!(stopped.tell("api 1 1"), "0");
    stopped.finish().expect_code(0);
}

#[test]
fn processes_that_cannot_be_profiled_are_listed_with_the_reason() {
    let home = Home::new();
    let without_variable = Puppet::start_program(&home, home.plain(puppet::path()));
    let without_library = home.armed("sleep").arg("60").spawn();
    let later = home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "use");
    let mut later = Puppet::start_program(&home, later);
    let (object, code) = json(&home, &["list"]);
    assert_eq!(code, 0);
    assert_state(
        row(&object, without_variable.pid()),
        "not-armed",
        "mode-missing",
    );
    assert_state(
        row(&object, without_library.pid()),
        "not-armed",
        "not-loaded",
    );
    assert_state(row(&object, later.pid()), "not-bound", "not-bound-yet");
    let text = run(&home, &["list"]);
    text.line_with("not armed: it was started without PROFILING_MODE");
    text.line_with("not bound: its MSPROF_AGENT_BIND is use");

    assert_eq!(later.tell("device 0 1"), "0");
    later.wait_socket();
    assert_state(&listed(&home, later.pid()), "idle", "ready");
}

#[test]
fn a_launcher_is_listed_with_all_and_not_among_the_tasks() {
    let home = Home::new();
    let script = r#""$0"; true"#;
    let launcher = home.armed("sh").args(["-c", script]).arg(puppet::path());
    let mut launcher = launcher.env("LD_PRELOAD", &artifacts().library).spawn();
    assert_eq!(launcher.answer(PATIENCE), "ready");
    let (object, code) = json(&home, &["list", "--all"]);
    assert_eq!(code, 0);
    assert_state(row(&object, launcher.pid()), "launcher", "launcher");
    let (object, _) = json(&home, &["list"]);
    assert_eq!(find(&object, launcher.pid()), None, "it is nobody's task");
    launcher.end_input();
}

#[test]
fn a_socket_of_somebody_else_is_told_as_such_and_not_connected_to() {
    let home = Home::new();
    let program = home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "off");
    let puppet = Puppet::start_program(&home, program);
    let listener = UnixListener::bind(puppet.socket()).expect("bound");
    listener.set_nonblocking(true).expect("a socket");
    assert_state(
        &listed(&home, puppet.pid()),
        "foreign-socket",
        "foreign-socket",
    );
    let waiting = listener.accept().expect_err("nobody connected");
    assert_eq!(waiting.kind(), std::io::ErrorKind::WouldBlock);
    drop(listener);
    assert_state(&listed(&home, puppet.pid()), "stale-socket", "stale-socket");
    assert!(
        puppet.socket().exists(),
        "the process lives, and knows better"
    );
    std::fs::remove_file(puppet.socket()).expect("removed");
}

/// Where everybody may start msprof; it may lie in a home that is closed to others.
fn copy_of_msprof(place: &Path) -> std::path::PathBuf {
    let copy = place.join("msprof");
    copy_program(&artifacts().msprof, &copy);
    copy
}

#[test]
fn processes_of_several_users_are_listed_to_root_and_named_to_others() {
    if uid() != 0 {
        support::skip::skipped(format_args!("only root can be somebody else"));
        return;
    }
    let home = Home::new();
    let roots = Puppet::start(&home);
    let place = Home::new();
    give(place.path(), PLAIN);
    let program = place.path().join("puppet");
    copy_program(puppet::path(), &program);
    let library = place.path().join("libmsprof_agent.so");
    std::fs::copy(&artifacts().library, &library).expect("copied");
    let theirs = place.armed(&program).env("LD_LIBRARY_PATH", place.path());
    let theirs = Puppet::start_program(&place, as_user(theirs, PLAIN));
    theirs.wait_socket();

    let all = verb(&home, &["list", "--json"]).without("MSPROF_AGENT_SOCKET_DIR");
    let (object_of_root, _) = object(&all.run());
    assert_state(row(&object_of_root, roots.pid()), "idle", "ready");
    let row_of_theirs = row(&object_of_root, theirs.pid());
    assert_state(row_of_theirs, "idle", "ready");
    assert_eq!(row_of_theirs["uid"], PLAIN);
    assert_eq!(row_of_theirs["user"], Value::Null, "nobody's name");

    let msprof = place.plain(copy_of_msprof(place.path()));
    let (object, code) = object(&as_user(msprof.args(["list", "--json"]), PLAIN).run());
    assert_eq!(code, 0);
    assert_state(row(&object, theirs.pid()), "idle", "ready");
    let row_of_roots = row(&object, roots.pid());
    assert_state(row_of_roots, "other-user", "other-user");
    assert_eq!(row_of_roots["uid"], 0);
    assert_eq!(row_of_roots["reason"], "run msprof as uid 0 or as root");
}

#[test]
fn the_task_of_a_prompt_is_listed_as_held_by_it_and_is_found_by_its_own_pid_afterwards() {
    let home = Home::new();
    let mut prompt = support::msprof::dynamic(&home, &home.output())
        .arg(&artifacts().task)
        // Not for ever: it outlives a prompt that is killed.
        .args(["--seconds=60", "--streams=1", "--pause-us=5000"])
        .spawn();
    let pid = prompt.line("the task", |line| {
        let pid = line.strip_prefix("pid ")?.strip_suffix(" ready")?;
        pid.parse::<u32>().ok()
    });
    let row = wait_for("the session", PATIENCE, || {
        let (object, _) = json(&home, &["list"]);
        find(&object, pid)
            .filter(|row| row["state"] == "held")
            .cloned()
    });
    assert_eq!(row["held_by"]["pid"], prompt.pid());
    let socket = row["socket"].as_str().expect("a socket");
    assert!(socket.ends_with(&format!("_{}", prompt.pid())), "{socket}");
    // The program runs on after a quit, with its socket under the number of the prompt.
    prompt.say("quit");
    wait_for("the end of the session", PATIENCE, || {
        (listed(&home, pid)["state"] == "idle").then_some(())
    });
    let output = format!("--output={}", home.output().display());
    let pid_option = format!("--pid={pid}");
    run(&home, &["start", &pid_option, &output, "--runtime-api=on"]).expect_code(0);
    run(&home, &["stop", &pid_option]).expect_code(0);
    open_complete(&only_prof_dir(&home.output()));
    prompt.signal(libc::SIGINT);
    prompt.wait_end(PATIENCE);
}

#[test]
fn an_empty_machine_and_wrong_words_have_their_answers() {
    let home = Home::new();
    let help = run(&home, &["list", "--help"]);
    help.expect_code(0);
    assert!(help.stdout[0].starts_with("usage: msprof list"));
    for words in [
        &["list", "--pid=1"][..],
        &["list", "all"],
        &["list", "--json=on"],
    ] {
        refused(&home, words);
    }
}

#[test]
fn a_long_command_is_cut_in_the_table_and_a_fitting_one_is_not() {
    let home = Home::new();
    for (length, shown) in [(40, 40), (41, 37)] {
        let seconds = format!("600.{}", "0".repeat(length - "sleep 600.".len()));
        let sleep = home.plain("sleep").arg(&seconds);
        let sleep = sleep.env("PROFILING_MODE", "dynamic").spawn();
        let whole = format!("sleep {seconds}");
        assert_eq!(whole.len(), length);
        let dots = if shown < length { "..." } else { "" };
        let pid = sleep.pid().to_string();
        // Until its exec it is still a copy of the test.
        wait_until("the line of the process", || {
            let text = run(&home, &["list"]);
            let of_it = |line: &&String| line.split(' ').next() == Some(&pid);
            let line = text.stdout.iter().find(of_it);
            line.is_some_and(|line| line.contains(&format!(" {}{dots}  ", &whole[..shown])))
        });
    }
}
