//! Other tools in the program ask for reports by MsprofRegisterProfileCallback: they get them, and captures say so.

mod support;

use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, prof_dirs};
use support::prof::{MODEL, Prof, RUNTIME};
use support::rules::open_complete;

fn calls(prof: &Prof, level: u16) -> u64 {
    let calls = prof.calls();
    let of_level = calls.iter().filter(|((of, _), _)| *of == level);
    of_level.map(|(_, (apis, events))| apis + events).sum()
}

fn assert_third_party(program: support::process::Program, home: &Home) {
    let finished = program.arg(home.output()).run();
    finished.expect_code(0);
    let profs: Vec<Prof> = prof_dirs(&home.output())
        .iter()
        .map(|dir| open_complete(dir))
        .collect();
    let [all, given_back, inner, hanging] = profs.as_slice() else {
        panic!("four captures: {finished:#?}");
    };
    // Batches of four are all that is not asked for.
    assert_eq!((all.api().len(), all.aicpu().len()), (0, 4));
    assert_eq!(all.compact("node_basic_info").len(), 0);
    assert!(!all.host.contains_key("unaging.variable.capture_op_info"));
    assert_eq!(
        all.notes_with("another tool"),
        [
            "1 api, 1 event, 1 compact and 3 additional reports went to another tool in the program that had asked for them, and are not in this capture"
        ]
    );
    let name = all.types.get(&(RUNTIME, 1003)).map(String::as_str);
    assert_eq!(name, Some("KernelLaunch"), "names are for both");
    assert!(all.hashes.values().any(|text| text == "conv1"));
    // One of each kind, and one more api record.
    assert_eq!(calls(given_back, RUNTIME), 2);
    assert_eq!(calls(given_back, MODEL), 1);
    assert_eq!(given_back.compact("node_basic_info").len(), 1);
    assert_eq!(given_back.aicpu().len(), 2);
    let variable = given_back.host.get("unaging.variable.capture_op_info");
    assert!(variable.is_some());
    assert!(
        given_back.notes_with("another tool")[0]
            .starts_with("2 api, 1 event, 1 compact and 3 additional"),
        "{:?}",
        given_back.notes_with("another tool")
    );
    assert_eq!((inner.api().len(), inner.aicpu().len()), (0, 4));
    assert!(inner.notes_with("another tool")[0].starts_with("1 api and 1 event reports went"));
    assert_eq!((hanging.api().len(), hanging.aicpu().len()), (1, 4));
    assert!(hanging.notes_with("another tool")[0].starts_with("1 api reports went"));
}

#[test]
fn another_tool_gets_the_reports_that_it_asks_for_and_captures_say_so() {
    let home = Home::new();
    let program = build("tests/c/third_party.c", Linkage::Shared);
    assert_third_party(home.armed(program), &home);
}

#[test]
fn another_tool_gets_its_reports_where_nothing_but_the_program_captures() {
    let home = Home::new();
    let program = build("tests/c/third_party.c", Linkage::Shared);
    assert_third_party(home.plain(program), &home);
}

#[test]
fn what_a_callback_throws_goes_to_whoever_has_reported() {
    let home = Home::new();
    let program = build("tests/c/throwing_callback.cpp", Linkage::Shared);
    let finished = home.armed(program).arg(home.output()).run();
    finished.expect_code(0);
    finished.line_with("caught 6");
    open_complete(&support::home::only_prof_dir(&home.output()));
}

#[test]
fn a_client_is_told_at_the_start_what_another_tool_gets() {
    let home = Home::new();
    let program = build("tests/c/asks_for_reports.c", Linkage::Shared);
    let mut program = home.armed(program).spawn();
    program.line("the program", |line| (line == "ready").then_some(()));
    let mut client = ByteClient::connect(&home.wait_socket(program.pid()));
    client.introduce_extended(&params(&home.output()));
    let reply = client.ask("start");
    let text = reply.to_string();
    assert!(
        text.contains("another tool in the program has asked for api and compact reports"),
        "{text}"
    );
    client.ask("stop");
    drop(client);
    program.finish().expect_code(0);
}
