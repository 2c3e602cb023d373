//! Programs that the controller starts: environment, sockets, exit status, Ctrl-C.

mod support;

use msprof_agent_core::control::extension::Outcome;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use support::*;

fn launch(lab: &Lab, options: &[&str], program: &[&str]) -> Run {
    let mut command = lab.msprof();
    command.arg("--dynamic=on").args(options);
    command.arg(format!("--agent-lib={}", lab.library().display()));
    command.args(program);
    Run::start(command)
}

/// The words that run [`agent_role`] in a process of its own.
fn agent_words() -> Vec<String> {
    let own = std::env::current_exe().expect("own path");
    let own = own.to_str().expect("UTF-8").to_owned();
    [
        own.as_str(),
        "--ignored",
        "--exact",
        "agent_role",
        "--nocapture",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn wait_for_file(path: &Path) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !path.exists() {
        assert!(
            std::time::Instant::now() < deadline,
            "no {}",
            path.display()
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Not a test: the program that the tests launch. It does what an agent in it would do.
#[test]
#[ignore = "runs inside the tests of this file"]
fn agent_role() {
    let Some(dir) = std::env::var_os("MSPROF_AGENT_SOCKET_DIR").map(PathBuf::from) else {
        return;
    };
    if let Some(gate) = std::env::var_os("ROLE_GATE") {
        wait_for_file(Path::new(&gate));
    }
    let own = std::process::id();
    let key = match std::env::var("ROLE_KEY").as_deref() {
        Ok("own") => own.to_string(),
        _ => std::env::var("DYNAMIC_PROFILING_KEY_PID").expect("key"),
    };
    let path = dir.join(format!("dynamic_profiling_socket_{key}"));
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let (leave, peer) = (variable("ROLE_LEAVE"), variable("ROLE_PEER"));
    if let Ok(first) = std::env::var("ROLE_ENDS") {
        // Ends its first session when it is asked for something.
        let first = match first.as_str() {
            "idle" => idled(),
            _ => outcome(Outcome::Disconnected),
        };
        let ends = move |mut client: Client| {
            client.greet(own);
            let (id, _) = client.read_request().expect("a command");
            client.reply(id, &first);
        };
        let serves = move |mut client: Client| serve_extended(&mut client, own);
        Server::each(&path, vec![Box::new(ends), Box::new(serves)]).join();
        let _ = std::fs::remove_file(path);
        return;
    }
    let server = Server::once(&path, move |mut client| match leave {
        Some(prof) => {
            serve_start(&mut client, own, &prof);
            std::thread::sleep(std::time::Duration::from_millis(100));
            leave_capture(&prof, true);
        }
        None => serve_extended_with(&mut client, own, || {
            if let Some(gate) = &peer {
                // The other one is armed between the command and its answer.
                std::fs::write(gate, "").expect("written");
                wait_for_file(&gate.with_extension("up"));
            }
        }),
    });
    if let Some(up) = variable("ROLE_UP") {
        std::fs::write(up, "").expect("written");
    }
    server.join();
    let _ = std::fs::remove_file(path);
    std::process::exit(std::env::var("ROLE_EXIT").map_or(0, |code| code.parse().expect("code")));
}

#[test]
fn the_exit_status_is_the_programs_own() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["true"], 0, "ended with exit status 0"),
        (&["false"], 1, "ended with exit status 1"),
        (&["sh", "-c", "exit 7"], 7, "ended with exit status 7"),
        (
            &["sh", "-c", "kill -9 $$"],
            137,
            "ended by signal 9 (SIGKILL)",
        ),
    ];
    for (program, code, text) in cases {
        let lab = Lab::new();
        let ended = launch(&lab, &[], program).script("");
        ended.exits(*code).says(text);
        assert_eq!(ended.err, "", "{program:?}");
    }
}

#[test]
fn a_program_that_cannot_be_run_is_told_as_shells_do() {
    let lab = Lab::new();
    let ended = launch(&lab, &[], &["/no/such/program"]).script("start\n");
    ended.exits(127).warns("cannot run /no/such/program");
    let ended = launch(&lab, &[], &["/"]).script("start\n");
    ended.exits(126).warns("cannot run /");
}

#[test]
fn the_program_gets_the_documented_environment_and_an_empty_stdin() {
    let lab = Lab::new();
    let script = "cat; echo mode=$PROFILING_MODE key=$DYNAMIC_PROFILING_KEY_PID parent=$PPID \
                  bind=$MSPROF_AGENT_BIND extra=$EXTRA; echo preload=$LD_PRELOAD; \
                  echo \"config=$PROFILER_SAMPLECONFIG\"";
    let options = [
        "--runtime-api=on",
        "--environment=EXTRA=a b;LD_PRELOAD=/lib/none.so",
    ];
    let mut run = launch(&lab, &options, &["sh", "-c", script]);
    let pid = run.pid();
    run.send("sleep 0\n");
    run.close_stdin();
    let ended = run.ended();
    ended
        .exits(0)
        .says(&format!(
            "mode=dynamic key={pid} parent={pid} bind=use extra=a b"
        ))
        .says(&format!(
            "preload={}:/lib/none.so",
            lab.path("libmsprof_agent.so").display()
        ))
        .says("\"runtimeApi\":\"on\"");
}

#[test]
fn with_inject_none_no_library_is_needed_and_the_program_that_has_one_is_found() {
    let lab = Lab::new();
    let mut command = lab.msprof();
    command.args(["--dynamic=on", "--inject=none"]);
    command
        .args(agent_words())
        .env("MSPROF_AGENT_LIB", "/no/such.so");
    let ended = Run::start(command).script("start\nstop\nquit\n");
    ended.exits(0).says("start success").says("stop success");
    assert_eq!(ended.err, "");
}

#[test]
fn both_forms_run_a_session_with_the_program() {
    let words = agent_words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let one_text = format!("--application={}", words.join(" "));
    let forms: [(&[&str], &[&str]); 2] = [(&[], &words), (&[&one_text], &[])];
    for (options, program) in forms {
        let lab = Lab::new();
        let ended = launch(&lab, options, program).script("start\nstatus\nstop\nquit\n");
        ended
            .exits(0)
            .says("start success")
            .says("stop success")
            .says("quit success")
            .says("ended with exit status 0");
        assert_eq!(ended.err, "");
    }
}

#[test]
fn the_task_behind_a_script_is_found_by_the_key_and_by_its_own_pid() {
    for key in ["launcher", "own"] {
        let lab = Lab::new();
        let words = agent_words().join(" ");
        let script = format!("ROLE_KEY={key} ROLE_EXIT=4 {words}; exit $((1 + $?))");
        let run = launch(&lab, &[], &["sh", "-c", &script]);
        let ended = run.script("start\nstop\nquit\n");
        ended.exits(5).says("start success").says("stop success");
    }
}

#[test]
fn commands_wait_for_the_socket_of_the_program() {
    let lab = Lab::new();
    let gate = lab.path("gate");
    let environment = format!("--environment=ROLE_GATE={}", gate.display());
    let words = agent_words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut run = launch(&lab, &[&environment], &words);
    run.send("start\nstop\nquit\n");
    run.wait_for("start: waiting for the program to call CANN");
    std::fs::write(&gate, "").expect("written");
    run.ended()
        .exits(0)
        .says("start success")
        .says("quit success");
}

#[test]
fn a_program_that_ends_before_it_can_be_started_fails_the_command() {
    let lab = Lab::new();
    let ended = launch(&lab, &[], &["sh", "-c", "sleep 0.3"]).script("start\nstop\n");
    ended
        .exits(1)
        .warns("start failed: the program has ended before it called CANN");
}

#[test]
fn a_socket_of_somebody_else_under_our_key_is_not_touched() {
    // Sockets with every key of descendants are looked at, but only served by the program count.
    let lab = Lab::new();
    let mut run = launch(&lab, &[], &["sleep", "300"]);
    let path = lab.socket(run.pid());
    let listener = std::os::unix::net::UnixListener::bind(path).expect("bound");
    run.send("start\n");
    run.wait_for("start: waiting for the program");
    run.signal(Signal::TERM);
    let ended = run.ended();
    ended.exits(143);
    assert!(!ended.out.contains("start success"));
    drop(listener);
}

#[test]
fn after_quit_the_program_runs_on_and_is_waited_for() {
    let lab = Lab::new();
    let gate = lab.path("gate");
    let script = format!(
        "echo up; while [ ! -e {} ]; do sleep 0.05; done; exit 5",
        gate.display()
    );
    let mut run = launch(&lab, &[], &["sh", "-c", &script]);
    run.wait_for("up");
    run.send("quit\n");
    run.close_stdin();
    run.wait_for("the program runs on; waiting for it to end (Ctrl-C ends it)");
    std::fs::write(&gate, "").expect("written");
    run.ended().exits(5);
}

#[test]
fn the_first_interrupt_quits_and_the_second_ends_the_program() {
    let lab = Lab::new();
    let gate = lab.path("gate");
    let script = format!(
        "trap 'echo interrupted' INT; echo up; touch {}; while :; do sleep 0.05; done",
        gate.display()
    );
    let mut run = launch(&lab, &[], &["sh", "-c", &script]);
    run.wait_for("up");
    run.signal(Signal::INT);
    run.wait_for("Ctrl-C ends it");
    until_a_signal_is_another();
    run.signal(Signal::INT);
    run.wait_for("ending the program");
    let ended = run.ended();
    ended.exits(143).says("ended by signal 15");
    assert!(
        !ended.out.contains("interrupted"),
        "Ctrl-C is not the program's"
    );
}

#[test]
fn a_program_that_ends_while_capturing_is_no_failure() {
    let lab = Lab::new();
    let words = agent_words();
    // The server is killed in the middle of the session, as when the program exits.
    let script = format!("{} & sleep 1; kill -9 $!; exit 0", words.join(" "));
    let mut run = launch(&lab, &[], &["sh", "-c", &script]);
    run.send("start\nsleep 30\nstop\n");
    let ended = run.ended();
    ended
        .exits(0)
        .says("start success")
        .says("ended with exit status 0");
}

#[test]
fn the_capture_of_a_program_that_has_ended_is_told_with_its_own_status() {
    for code in [0, 3] {
        let lab = Lab::new();
        let prof = lab.path("out").join("PROF_000001_x");
        let environment = format!(
            "--environment=ROLE_EXIT={code};ROLE_LEAVE={}",
            prof.display()
        );
        let words = agent_words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut run = launch(&lab, &[&environment], &words);
        run.send("start\nstop\n");
        let ended = run.ended();
        ended
            .exits(code)
            .says("its capture is complete\n  directory: /")
            .says("records: 2 (runtime-api 2)\n  bytes: 80\n  lost 0\n")
            .says(&format!("ended with exit status {code}"));
        assert_eq!(ended.err, "");
    }
}

#[test]
fn armed_processes_that_the_first_start_did_not_reach_are_named() {
    let lab = Lab::new();
    let words = agent_words().join(" ");
    let gate = lab.path("gate");
    let gate = gate.display();
    let script = format!(
        "ROLE_KEY=own ROLE_GATE={gate} ROLE_UP={gate}.up {words} & other=$!; echo other=$other.; \
         ROLE_PEER={gate} {words}; kill $other"
    );
    let mut run = launch(&lab, &[], &["sh", "-c", &script]);
    run.send("start\n");
    run.wait_for("1 more processes of the program are armed and are not captured: pids ");
    run.send("stop\nquit\n");
    let ended = run.ended();
    ended.exits(0).says("start success").says("stop success");
    let (_, rest) = ended.out.split_once("other=").expect("told");
    let (other, _) = rest.split_once('.').expect("told");
    ended.warns(&format!("pids {other}; attach to them with --pid"));
}

#[test]
fn a_program_whose_agent_has_ended_the_session_is_connected_to_once_more() {
    let words = agent_words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // An agent that says that it was idle gets the same command once more; with another one the user decides.
    for (ends, commands, status) in [
        ("idle", "start\nstop\nquit\n", 0),
        ("so", "start\nstart\nstop\nquit\n", 1),
    ] {
        let lab = Lab::new();
        let environment = format!("--environment=ROLE_ENDS={ends}");
        let ended = launch(&lab, &[&environment], &words).script(commands);
        ended
            .exits(status)
            .says("start success")
            .says("stop success");
        if ends == "so" {
            ended.warns("start failed: the process has ended the session\n");
        }
    }
}

#[test]
fn a_directory_for_sockets_that_is_not_there_is_named_before_the_program_runs() {
    let lab = Lab::new();
    let (missing, ran) = (lab.path("missing"), lab.path("ran"));
    let environment = format!(
        "--environment=MSPROF_AGENT_SOCKET_DIR={}",
        missing.display()
    );
    let ended = launch(
        &lab,
        &[&environment],
        &["touch", ran.to_str().expect("UTF-8")],
    )
    .script("start\n");
    ended.exits(2).warns(&format!(
        "msprof: MSPROF_AGENT_SOCKET_DIR: there is no directory {}; make it, or name another\n",
        missing.display()
    ));
    assert!(!ran.exists());
}
