//! Agents of other versions: what both sides know works, and what one does not know is said.

mod support;

use msprof_agent_core::control::extension::{Op, Outcome, encode_frame};
use msprof_agent_core::control::wire::{kind, status};
use msprof_agent_core::{VERSION, VERSION_MARKER};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::mpsc::channel;
use support::*;

/// Sends a frame as it is, whatever this version thinks of its body.
fn send(client: &mut Client, id: u32, body: &Value) {
    let frame = encode_frame(id, body).expect("a frame");
    client.stream.write_all(&frame).expect("written");
}

/// Takes the params and says hello in the agent's own words.
fn greet(client: &mut Client, hello: &Value) {
    client.read_params();
    client.say(kind::PARAMS_REPLY, status::EXTENDED);
    send(client, 0, hello);
}

/// Answers every request with the same body.
fn answer_all(client: &mut Client, body: &Value) {
    while let Some((id, _)) = client.read_request() {
        send(client, id, body);
    }
}

#[test]
fn an_agent_of_a_later_version_with_more_to_say_is_understood() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        let mut later = serde_json::to_value(hello(pid)).expect("JSON");
        later["protocol"] = json!(99);
        later["capabilities"] = json!(["snapshot", {"nested": true}]);
        greet(&mut client, &later);
        let mut reply = serde_json::to_value(outcome(Outcome::Success)).expect("JSON");
        reply["throughput"] = json!({"records": 1.5});
        answer_all(&mut client, &reply);
    });
    let ended = lab.attach(&[pid]).script("start\nstop\nquit\n");
    ended.exits(0);
    for command in ["start", "stop", "quit"] {
        ended.says(&format!("pid {pid} {command} success"));
    }
    server.join();
}

#[test]
fn an_agent_of_an_earlier_version_with_less_to_say_is_understood() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        greet(
            &mut client,
            &json!({"protocol": 0, "agent_version": "0.0.1", "pid": pid}),
        );
        answer_all(&mut client, &json!({"outcome": "success"}));
    });
    let ended = lab.attach(&[pid]).script("start\nstop\nquit\n");
    ended
        .exits(0)
        .says(&format!("pid {pid} stop success"))
        .warns(&format!(
            "pid {pid}: the agent is of version 0.0.1, this msprof of {VERSION}: commands work as far as both know them"
        ))
        .warns("is not rescued");
    assert_eq!(ended.err.lines().count(), 1, "said once: {}", ended.err);
    server.join();
}

#[test]
fn nothing_is_said_of_an_agent_of_the_same_release() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        serve_extended(&mut client, pid);
    });
    let ended = lab.attach(&[pid]).script("start\nstop\nquit\n");
    ended.exits(0);
    assert_eq!(ended.err, "");
    server.join();
}

/// What `--version` prints with these further arguments before it.
fn versions(lab: &Lab, arguments: &[String]) -> String {
    let mut command = lab.msprof();
    command.args(arguments).arg("--version");
    let ended = Run::start(command).ended();
    ended.exits(0);
    assert_eq!(ended.err, "");
    ended.out
}

#[test]
fn the_version_is_told_with_that_of_the_library_and_whether_they_differ() {
    let lab = Lab::new();
    let library = lab.path("libmsprof_agent.so");
    let option = [format!("--agent-lib={}", library.display())];
    let path = library.display();
    let cases = [
        (
            format!("\x7fELF{VERSION_MARKER}{VERSION}\0"),
            format!("libmsprof_agent {VERSION}, {path}\n"),
            false,
        ),
        (
            format!("\x7fELF{VERSION_MARKER}9.8.7-rc.1\0"),
            format!("libmsprof_agent 9.8.7-rc.1, {path}\n"),
            true,
        ),
        (
            "\x7fELF, nothing that says so".to_owned(),
            format!("libmsprof_agent of an unknown version, {path}\n"),
            false,
        ),
    ];
    for (text, line, differs) in cases {
        std::fs::write(&library, text).expect("written");
        let told = versions(&lab, &option);
        let mut lines = told.split_inclusive('\n');
        assert_eq!(lines.next(), Some(format!("msprof {VERSION}\n").as_str()));
        assert_eq!(lines.next(), Some(line.as_str()));
        let warning = lines.next();
        assert_eq!(warning.is_some(), differs, "{told}");
        assert!(warning.is_none_or(|line| line.contains("of version 9.8.7-rc.1, this msprof of")));
    }
    std::fs::remove_file(&library).expect("removed");
    let told = versions(&lab, &option);
    assert!(
        told.contains("cannot be read") && told.contains("--agent-lib"),
        "{told}"
    );
}

#[test]
fn an_outcome_that_only_a_later_version_knows_is_a_failure_and_not_taken_for_success() {
    let (lab, target) = (Lab::new(), Sleeper::new());
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        greet(
            &mut client,
            &serde_json::to_value(hello(pid)).expect("JSON"),
        );
        answer_all(&mut client, &json!({"outcome": "half-done"}));
    });
    let ended = lab.attach(&[pid]).script("start\n");
    ended.exits(1).warns(&format!("pid {pid} start failed"));
    server.join();
}

#[test]
fn a_capture_is_not_left_in_an_agent_that_would_end_it() {
    // An agent is known by its thread and by who holds the socket, before it is connected to: this process is the target.
    let (lab, pid) = (Lab::new(), std::process::id());
    let (up, is_up) = channel();
    let (end, ends) = channel::<()>();
    let thread = std::thread::Builder::new().name("msprof-ctl".to_owned());
    let thread = thread.spawn(move || {
        up.send(()).expect("waited for");
        let _ = ends.recv();
    });
    is_up.recv().expect("up");
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        let (id, op) = client.read_request().expect("a farewell");
        assert_eq!(op, Op::Quit, "nothing is started");
        client.reply(id, &outcome(Outcome::Success));
    });
    let mut command = lab.msprof();
    command.args(["start", &format!("--pid={pid}"), "--json"]);
    let ended = Run::start(command).ended();
    ended.exits(1);
    let object: Value = serde_json::from_str(&ended.out).expect("JSON");
    let result = &object["processes"][0];
    assert_eq!(
        (&result["code"], &result["ok"]),
        (&json!("old-agent"), &json!(false))
    );
    ended.warns(&format!("use msprof record --pid={pid} --duration=<time>"));
    server.join();
    drop(end);
    thread.expect("begun").join().expect("ended");
}
