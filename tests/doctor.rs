//! `msprof doctor`: each cause that it knows, from a real process that has it, and what it says to do.

mod support;

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use support::artifacts::{artifacts, root};
use support::builder::{Linkage, build, compiler};
use support::client::{ByteClient, params};
use support::executable::copy_program;
use support::home::Home;
use support::namespace::uid;
use support::process::{Finished, Program, Running};
use support::puppet::{self, Puppet};
use support::stock_server::StockProcess;
use support::user_namespace::{PLAIN, as_user, give};
use support::verbs::{object, row, run, verb};
use support::wait::{PATIENCE, wait_until};

fn doctor(home: &Home, pid: u32) -> Program {
    verb(home, &["doctor", &format!("--pid={pid}")])
}

/// The object of the process and the codes of what was found.
#[track_caller]
fn examined(finished: &Finished, pid: u32) -> (Value, Vec<String>) {
    let (object, code) = object(finished);
    let row = row(&object, pid).clone();
    assert_eq!(code == 0, row["ok"] == true, "{row}");
    let findings = row["findings"].as_array().expect("an array");
    let codes = findings
        .iter()
        .map(|finding| finding["code"].as_str().expect("a code").to_owned());
    (row.clone(), codes.collect())
}

/// The only problem has this code, and its text names the way out; the same is told to people.
#[track_caller]
fn assert_problem(home: &Home, pid: u32, code: &str, way_out: &str) {
    assert_problem_of(|| doctor(home, pid), pid, code, way_out);
}

#[track_caller]
fn assert_problem_of(doctor: impl Fn() -> Program, pid: u32, code: &str, way_out: &str) {
    let (row, _) = examined(&doctor().arg("--json").run(), pid);
    let findings = row["findings"].as_array().expect("an array");
    let problems: Vec<_> = findings
        .iter()
        .filter(|finding| finding["kind"] == "problem")
        .collect();
    assert_eq!(problems.len(), 1, "{row}");
    assert_eq!(problems[0]["code"], code, "{row}");
    let text = problems[0]["text"].as_str().expect("a text");
    assert!(text.contains(way_out), "{way_out:?} in {text:?}");
    assert_eq!((&row["ok"], &row["next"]), (&json!(false), &Value::Null));
    let finished = doctor().run();
    finished.expect_code(1);
    finished.line_with(&format!("pid {pid}"));
    finished.line_with(&format!("  problem {code}: "));
    assert!(
        finished.stdout[0].ends_with(": cannot be profiled now"),
        "{finished:#?}"
    );
}

#[test]
fn a_process_that_is_ready_is_told_so_with_what_to_type() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let pid = puppet.pid();
    let (row, codes) = examined(&doctor(&home, pid).arg("--json").run(), pid);
    assert_eq!(codes, ["no-device"]);
    assert_eq!((&row["ok"], &row["code"]), (&json!(true), &json!("ready")));
    assert_eq!(puppet.tell("device 0 1"), "0");
    let finished = doctor(&home, pid).run();
    finished.expect_code(0);
    assert_eq!(finished.stdout.len(), 2, "{finished:#?}");
    assert!(finished.stdout[0].ends_with(": can be profiled"));
    finished.line_with(&format!(
        "  next: msprof start --pid={pid} --output=<dir> --runtime-api=on"
    ));

    let output = format!("--output={}", home.output().display());
    run(&home, &["start", &format!("--pid={pid}"), &output]).expect_code(0);
    let (row, codes) = examined(&doctor(&home, pid).arg("--json").run(), pid);
    assert_eq!(codes, ["capturing"]);
    assert_eq!(row["next"], format!("msprof stop --pid={pid}"));
}

#[test]
fn what_is_missing_in_the_environment_is_named() {
    let home = Home::new();
    let puppet = |program: Program| Puppet::start_program(&home, program);
    let without = puppet(home.plain(puppet::path()));
    assert_problem(
        &home,
        without.pid(),
        "mode-missing",
        "start it with PROFILING_MODE=dynamic",
    );
    let other = puppet(home.plain(puppet::path()).env("PROFILING_MODE", "static"));
    assert_problem(
        &home,
        other.pid(),
        "mode-other",
        "its PROFILING_MODE is \"static\"",
    );
    let off = puppet(home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "off"));
    assert_problem(
        &home,
        off.pid(),
        "bind-off",
        "start it without that variable",
    );
    let later = puppet(home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "use"));
    assert_problem(
        &home,
        later.pid(),
        "not-bound-yet",
        "with the first call of CANN",
    );
    let unloaded = home.armed("sleep").arg("60").spawn();
    assert_problem(&home, unloaded.pid(), "not-loaded", "add it to LD_PRELOAD");
}

#[test]
fn a_program_that_nothing_can_be_preloaded_into_is_named() {
    let home = Home::new();
    let program = home.path().join("static");
    let compiled = Command::new(compiler("cc", "gcc"))
        .args(["-static", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(root().join("tests/c/sleeper.c"))
        .status();
    assert!(compiled.expect("a compiler").success());
    let mut running = home
        .armed(&program)
        .env("LD_PRELOAD", &artifacts().library)
        .spawn();
    assert_eq!(running.answer(PATIENCE), "ready");
    assert_problem(
        &home,
        running.pid(),
        "static-program",
        "link it with libmsprof_agent.a",
    );
}

#[test]
fn a_program_of_musl_is_named() {
    let home = Home::new();
    let program = home.path().join("musl");
    let compiled = Command::new("musl-gcc")
        .args(["-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(root().join("tests/c/sleeper.c"))
        .status();
    match compiled {
        Ok(status) => assert!(status.success()),
        Err(_) => {
            support::skip::skipped(format_args!(
                "musl-gcc is not installed (package musl-tools)"
            ));
            return;
        }
    }
    let mut running = home.armed(&program).spawn();
    assert_eq!(running.answer(PATIENCE), "ready");
    assert_problem(
        &home,
        running.pid(),
        "musl-program",
        "use a program or an image with glibc",
    );
}

#[test]
fn a_program_with_more_rights_than_its_user_is_named() {
    if uid() != 0 {
        support::skip::skipped(format_args!("only root can give such rights"));
        return;
    }
    let home = Home::new();
    let program = home.path().join("rights");
    copy_program(build("tests/c/sleeper.c", Linkage::Without), &program);
    give(home.path(), PLAIN);
    give(&program, PLAIN);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("set");
    let program = home.armed(&program).env("LD_PRELOAD", &artifacts().library);
    let mut running = program.spawn();
    assert_eq!(running.answer(PATIENCE), "ready");
    assert_problem(
        &home,
        running.pid(),
        "more-rights",
        "start it as the user that it becomes",
    );
}

#[test]
fn of_a_launcher_the_task_is_named() {
    let home = Home::new();
    let preloaded = |script: &str| {
        let shell = home.armed("sh").args(["-c", script]);
        shell
            .env("LD_PRELOAD", &artifacts().library)
            .arg(puppet::path())
    };
    let mut launcher = preloaded(r#""$0"; true"#).spawn();
    assert_eq!(launcher.answer(PATIENCE), "ready");
    let sockets = || home.sockets();
    wait_until("the socket of the task", || sockets().len() == 1);
    let task = sockets()[0]
        .to_str()
        .and_then(|path| path.rsplit_once('_'))
        .expect("a name")
        .1
        .to_owned();
    assert_problem(
        &home,
        launcher.pid(),
        "launcher",
        &format!("use its task, pid {task}"),
    );
    launcher.end_input();
    let mut alone = preloaded("echo ready; read nothing").spawn();
    assert_eq!(alone.answer(PATIENCE), "ready");
    assert_problem(&home, alone.pid(), "launcher", "has started none yet");
}

/// An armed puppet, whose socket is to lie in that directory and nowhere else.
fn puppet_of(home: &Home, dir: &Path) -> Puppet {
    let program = home.armed(puppet::path());
    Puppet::start_program(home, program.env("MSPROF_AGENT_SOCKET_DIR", dir))
}

/// A doctor without directions of its own.
fn undirected(home: &Home, pid: u32) -> Program {
    doctor(home, pid).without("MSPROF_AGENT_SOCKET_DIR")
}

/// Waits until the agent has given up.
fn wait_no_socket(home: &Home, times: usize) {
    wait_until("the agent to give up", || {
        let log = home.log();
        log.lines()
            .filter(|line| {
                line.contains("no control socket: ") || line.contains("no control socket, ")
            })
            .count()
            >= times
    });
}

#[test]
fn a_process_without_a_place_for_a_socket_is_told_why() {
    let home = Home::new();
    let none = home.path().join("none");
    let missing = puppet_of(&home, &none);
    wait_no_socket(&home, 1);
    let of_missing = || undirected(&home, missing.pid());
    assert_problem_of(
        of_missing,
        missing.pid(),
        "socket-dir-missing",
        "make it, or name another",
    );
    // The same of ours: nothing would be found there.
    let ours = || doctor(&home, missing.pid()).env("MSPROF_AGENT_SOCKET_DIR", &none);
    assert_problem_of(
        ours,
        missing.pid(),
        "socket-dir-missing",
        "make it, or name another",
    );

    let long = home.path().join("x".repeat(100));
    std::fs::create_dir(&long).expect("made");
    let cramped = puppet_of(&home, &long);
    wait_no_socket(&home, 2);
    let of_cramped = || undirected(&home, cramped.pid());
    assert_problem_of(
        of_cramped,
        cramped.pid(),
        "no-usable-place",
        "is too long for a socket's path",
    );

    // The kernel's own directory takes no files.
    let closed = puppet_of(&home, Path::new("/proc/sys"));
    wait_no_socket(&home, 3);
    let (row, codes) = examined(
        &undirected(&home, closed.pid()).arg("--json").run(),
        closed.pid(),
    );
    assert!(
        ["no-usable-place", "no-socket"].contains(&codes[0].as_str()),
        "{row}"
    );
}

#[test]
fn a_home_that_may_not_be_written_to_is_named_with_its_mode() {
    if uid() != 0 {
        support::skip::skipped(format_args!("only root can be somebody else"));
        return;
    }
    let home = Home::new();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).expect("set");
    let program = home.path().join("puppet");
    copy_program(puppet::path(), &program);
    std::fs::copy(&artifacts().library, home.path().join("libmsprof_agent.so")).expect("copied");
    let closed = home.path().join("closed");
    std::fs::create_dir(&closed).expect("made");
    let program = home.armed(&program).env("LD_LIBRARY_PATH", home.path());
    let program = program
        .env("MSPROF_AGENT_SOCKET_DIR", &closed)
        .without("MSPROF_AGENT_LOG_FILE");
    let puppet = Puppet::start_program(&home, as_user(program, PLAIN));
    let doctor = || undirected(&home, puppet.pid());
    assert_problem_of(
        doctor,
        puppet.pid(),
        "no-usable-place",
        "may not be written to by its user (mode 755)",
    );
}

#[test]
fn a_socket_that_nobody_or_somebody_else_answers_on_is_named() {
    let home = Home::new();
    let off = home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "off");
    let puppet = Puppet::start_program(&home, off);
    let listener = UnixListener::bind(puppet.socket()).expect("bound");
    assert_problem(
        &home,
        puppet.pid(),
        "foreign-socket",
        "set MSPROF_AGENT_SOCKET_DIR for both sides",
    );
    drop(listener);
    assert_problem(&home, puppet.pid(), "stale-socket", "nobody answers on it");
    std::fs::remove_file(puppet.socket()).expect("removed");
}

#[test]
fn a_process_that_is_held_stopped_or_off_is_told_so() {
    let home = Home::new();
    let held = Puppet::start(&home);
    let mut client = ByteClient::open(held.socket(), &params(&home.output()));
    let us = format!(
        "held by pid {} of uid {}: quit there",
        std::process::id(),
        uid()
    );
    assert_problem(&home, held.pid(), "busy", &us);
    client.start();
    client.stop();
    client.quit();

    let stopped = Puppet::start(&home);
    stopped.signal(libc::SIGSTOP);
    assert_problem(
        &home,
        stopped.pid(),
        "no-reply",
        "it is stopped (SIGSTOP or a debugger)",
    );
    stopped.signal(libc::SIGCONT);

    let broken = home.armed(build("tests/c/broken_write.c", Linkage::Shared));
    let mut broken = Puppet::start_armed(&home, broken);
    wait_until("the agent to log its socket", || {
        home.log().contains(&broken.socket().display().to_string())
    });
    assert_eq!(broken.tell("break msprof-drain"), "0");
    let mut client = ByteClient::open(broken.socket(), &params(&home.output()));
    let _ = client.command(support::client::START);
    wait_until("the agent to be off", || {
        broken.tell("state").starts_with("0 4 ")
    });
    drop(client);
    wait_until("its session to be over", || {
        let (row, _) = examined(
            &doctor(&home, broken.pid()).arg("--json").run(),
            broken.pid(),
        );
        row["held_by"].is_null()
    });
    assert_problem(&home, broken.pid(), "disabled", "start the program anew");
}

#[test]
fn a_program_that_wants_a_device_first_is_told_so() {
    let home = Home::new();
    let program = home
        .armed(puppet::path())
        .env("MSPROF_AGENT_NEED_DEVICE", "1");
    let mut puppet = Puppet::start_armed(&home, program);
    assert_problem(
        &home,
        puppet.pid(),
        "need-device",
        "try again when the program has set its device",
    );
    assert_eq!(puppet.tell("device 2 1"), "0");
    let (row, codes) = examined(
        &doctor(&home, puppet.pid()).arg("--json").run(),
        puppet.pid(),
    );
    assert_eq!((codes.len(), &row["devices"]), (0, &json!([2])));
}

#[test]
fn a_stock_process_is_told_from_ours_and_left_alone() {
    let home = Home::new();
    let stock = StockProcess::start(&home);
    let (row, codes) = examined(&doctor(&home, stock.pid()).arg("--json").run(), stock.pid());
    assert_eq!(codes, ["stock"]);
    let next = row["next"].as_str().expect("a command");
    assert!(
        next.starts_with(&format!("msprof record --pid={}", stock.pid())),
        "{next}"
    );
    assert_eq!(stock.met(), [] as [String; 0]);
}

#[test]
fn a_process_of_another_user_and_one_that_is_closed_to_us_are_named() {
    if uid() != 0 {
        support::skip::skipped(format_args!("only root can be somebody else"));
        return;
    }
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let place = Home::new();
    give(place.path(), PLAIN);
    let msprof = place.path().join("msprof");
    copy_program(&artifacts().msprof, &msprof);
    let pid = puppet.pid();
    let as_plain = || {
        let program = place
            .plain(&msprof)
            .args(["doctor", &format!("--pid={pid}")]);
        as_user(program, PLAIN)
    };
    assert_problem_of(
        as_plain,
        pid,
        "other-user",
        "run msprof as uid 0 or as root",
    );

    // The same user with fewer rights, as in a container beside the task's.
    let without = "-sys_ptrace,-perfmon,-sys_admin";
    let environ = format!("/proc/{pid}/environ");
    let sees = Program::new("setpriv")
        .args(["--bounding-set", without, "cat", &environ])
        .try_spawn();
    if !matches!(sees.map(Running::finish), Ok(ended) if !ended.status.success()) {
        support::skip::skipped(format_args!(
            "there is no setpriv, or root sees as much without those rights here"
        ));
        return;
    }
    let closed = || {
        let program = place.plain("setpriv").args(["--bounding-set", without]);
        program
            .arg(&artifacts().msprof)
            .args(["doctor", &format!("--pid={pid}")])
    };
    assert_problem_of(
        closed,
        pid,
        "no-permission",
        "run msprof as uid 0 or with CAP_SYS_PTRACE",
    );
}

#[test]
fn a_number_that_is_no_process_and_wrong_words_are_told() {
    let home = Home::new();
    let gone = home.plain("true").spawn();
    let pid = gone.pid();
    gone.finish().expect_code(0);
    assert_problem(&home, pid, "no-such-pid", "see msprof list");
    let refused = run(&home, &["doctor"]);
    refused.expect_code(2);
    assert!(
        refused.stderr[0].contains("--pid is missing"),
        "{refused:#?}"
    );
    run(&home, &["doctor", "--help"])
        .expect_code(0)
        .line_with("usage: msprof doctor");
}
