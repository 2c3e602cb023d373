//! Processes that cannot be attached to, and clients of other versions: each hears why, and what is understood works.

mod support;

use serde_json::{Value, json};
use std::path::PathBuf;
use support::artifacts::artifacts;
use support::client::{ByteClient, EXTENDED, params, params_message};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::msprof::{dynamic, run_script};
use support::namespace::uid;
use support::process::{Finished, Program};
use support::puppet::{self, Puppet};
use support::rules::open_complete;
use support::wait::PATIENCE;

/// A user that is nobody's.
const NOBODY: u32 = 65_534;

/// The controller cannot attach, says so for that reason, and ends with 1.
#[track_caller]
fn assert_refused(finished: &Finished, home: &Home, reason: &str) {
    finished.expect_code(1);
    let text = finished.text();
    assert!(text.contains(reason), "{reason:?} in {finished:#?}");
    assert!(!text.contains("success"), "{finished:#?}");
    assert_eq!(prof_dirs(&home.output()), [] as [PathBuf; 0]);
}

fn attach(home: &Home, pid: u32) -> Program {
    dynamic(home, &home.output()).arg(format!("--pid={pid}"))
}

#[test]
fn a_process_that_is_not_armed_is_refused_with_what_is_missing() {
    let home = Home::new();
    let without_variable = Puppet::start_program(&home, home.plain(puppet::path()));
    let finished = run_script(attach(&home, without_variable.pid()), &["start", "stop"]);
    assert_refused(&finished, &home, "PROFILING_MODE=dynamic");

    let program = home.armed("sleep").arg("60");
    let without_library = program.spawn();
    let finished = run_script(attach(&home, without_library.pid()), &["start", "stop"]);
    assert_refused(&finished, &home, "libmsprof_agent.so is not loaded");

    let told_not_to = home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "off");
    let told_not_to = Puppet::start_program(&home, told_not_to);
    let finished = run_script(attach(&home, told_not_to.pid()), &["start", "stop"]);
    assert_refused(&finished, &home, "not armed");
}

#[test]
fn a_process_that_has_ended_is_refused() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let pid = puppet.pid();
    puppet.finish().expect_code(0);
    let finished = run_script(attach(&home, pid), &["start"]);
    assert_refused(&finished, &home, "no such pid");
}

#[test]
fn a_process_of_another_user_is_refused_and_not_disturbed() {
    if uid() != 0 {
        support::skip::skipped(format_args!("only root can be somebody else"));
        return;
    }
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let become_nobody = || {
        // SAFETY: plain system calls.
        let result = unsafe { libc::setgid(NOBODY) | libc::setuid(NOBODY) };
        match result {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes system calls only.
    let program = unsafe { attach(&home, puppet.pid()).before_exec(become_nobody) };
    let running = match program.try_spawn() {
        Ok(running) => running,
        Err(error) => {
            support::skip::skipped(format_args!(
                "nobody may not run {}: {error}",
                artifacts().msprof.display()
            ));
            return;
        }
    };
    let finished = running.finish();
    assert_refused(&finished, &home, "other user: it belongs to uid 0");
    assert_eq!(puppet.tell("state"), "0 1 0 0");
    puppet.finish().expect_code(0);
}

// ---- other versions -------------------------------------------------------------

/// Sends a frame and receives the answer to it.
fn ask(client: &mut ByteClient, id: u32, body: &Value) -> Value {
    let body = body.to_string();
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(body.as_bytes());
    client.send(&bytes);
    loop {
        let (answered, reply) = client.receive_frame();
        assert_eq!(answered, id);
        if reply["outcome"] != "progress" {
            return reply;
        }
    }
}

#[test]
fn a_controller_of_a_later_version_gets_what_this_one_knows_and_hears_what_it_does_not() {
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut params = params(&home.output());
    params["msprofAgentController"] = json!({
        "version": 99, "modelExecution": true, "later": {"keys": [1, 2]}, "compress": "zstd",
    });
    let mut client = puppet.connect();
    client.send(&params_message(&params.to_string()));
    let reply = client.receive_within(PATIENCE).expect("a reply");
    assert_eq!((reply.kind, reply.status), (0, EXTENDED));
    let (_, hello) = client.receive_frame();
    assert_eq!(hello["protocol"], 1, "it is told whom it speaks to");
    let unknown = ask(&mut client, 7, &json!({"op": "snapshot", "name": "x"}));
    assert_eq!(unknown["outcome"], "failed");
    assert!(
        !unknown["error"].as_str().unwrap_or_default().is_empty(),
        "{unknown}"
    );
    let started = ask(
        &mut client,
        8,
        &json!({"op": "start", "for": "3 s", "tags": ["a"]}),
    );
    assert_eq!(started["outcome"], "success", "{started}");
    assert_eq!(puppet.tell("api 10 1"), "0");
    let stopped = ask(&mut client, 9, &json!({"op": "stop", "later": null}));
    assert_eq!(stopped["outcome"], "success", "{stopped}");
    assert_eq!(
        ask(&mut client, 10, &json!({"op": "quit"}))["outcome"],
        "success"
    );
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(prof.api().len(), 10);
}
