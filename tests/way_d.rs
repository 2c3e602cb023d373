//! The library as libprofimpl.so, behind a libprofapi.so like the vendor's.

mod support;

use std::path::PathBuf;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::proc::Proc;
use support::process::Running;
use support::prof::Prof;
use support::rules::{assert_named, lost, open_complete};
use support::stock::{Callbacks, Stock, Strings};
use support::task::{EASY, Task, Way, program};
use support::wait::wait_until;

/// Starts the demo over the stand-in, with our library behind it.
fn start_demo(home: &Home, stock: &Stock) -> Task {
    let program = stock.before(program(home, Way::None, EASY));
    let task = Task::start_program(home, program, true);
    let proc = Proc::of(task.pid());
    assert!(proc.maps_file("/release/libmsprof_agent.so"));
    assert!(!proc.maps_file("/cann/libprofapi.so"), "the plain stand-in");
    task
}

/// Captures some of the demo; its own account is the last of the task.
fn capture_demo(callbacks: Callbacks, strings: Strings) -> (Prof, support::counting::Window) {
    let home = Home::new();
    let stock = Stock::new(callbacks, strings);
    let mut task = start_demo(&home, &stock);
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    wait_until("records on disk", || {
        prof_dirs(&home.output()).first().is_some_and(|dir| {
            let slice = dir.join("host/data/aging.api_event.data.slice_0");
            slice.metadata().is_ok_and(|slice| slice.len() > 40_000)
        })
    });
    client.stop();
    client.quit();
    let window = task.window(1);
    assert_eq!(window.bad_commands(), 0);
    for component in ["runtime", "acl", "ge"] {
        for kind in ["start", "stop"] {
            assert_eq!(window.commands(component, kind), 1, "{component} {kind}");
        }
    }
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    task.terminate();
    assert_eq!(
        home.sockets(),
        [] as [PathBuf; 0],
        "no socket after the end"
    );
    (prof, window)
}

fn assert_diverted(strings: Strings) {
    let (prof, window) = capture_demo(Callbacks::Called, strings);
    assert_named(&prof);
    window.assert_matches(&prof);
    assert!(window.records()["aicpu"] > 0);
}

#[test]
fn diverted_reports_and_names_are_captured_whatever_the_strings_old() {
    assert_diverted(Strings::Old);
}

#[test]
fn diverted_reports_and_names_are_captured_whatever_the_strings_new() {
    assert_diverted(Strings::New);
}

#[test]
fn a_preloaded_agent_that_is_also_behind_is_one_agent() {
    let home = Home::new();
    let stock = Stock::new(Callbacks::Called, Strings::New);
    let program = stock.before(program(&home, Way::Preload, EASY));
    let mut task = Task::start_program(&home, program, true);
    Proc::of(task.pid()).wait_for_control_thread_alone();
    let mut client = ByteClient::open(task.socket(), &params(&home.output()));
    client.start();
    support::task::wait_runs(&home.output(), 20);
    client.stop();
    client.quit();
    let window = task.window(1);
    window.assert_matches(&open_complete(&only_prof_dir(&home.output())));
    task.terminate();
}

fn assert_popped(callbacks: Callbacks, strings: Strings) {
    let (prof, window) = capture_demo(callbacks, strings);
    window.assert_totals_without_aicpu(&prof);
    assert!(window.calls("runtime")["KernelLaunch"] > 0);
    // Its names never reach us; those that everybody knows are there.
    let calls = prof.calls();
    let has = |name: &str| calls.keys().any(|(_, known)| known == name);
    assert!(has("ModelExecute") && !has("KernelLaunch"), "{calls:?}");
}

#[test]
fn what_waits_in_buffers_is_captured_whatever_the_strings_old() {
    assert_popped(Callbacks::Missing, Strings::Old);
}

#[test]
fn what_waits_in_buffers_is_captured_whatever_the_strings_new() {
    assert_popped(Callbacks::Missing, Strings::New);
}

#[test]
fn callbacks_that_are_taken_and_never_called_are_seen_through() {
    assert_popped(Callbacks::Taken, Strings::New);
}

// ---- a program that does what it is told ---------------------------------------

struct Behind {
    home: Home,
    _stock: Stock,
    program: Running,
}

impl Behind {
    fn start(callbacks: Callbacks) -> Behind {
        let home = Home::new();
        let stock = Stock::new(callbacks, Strings::New);
        let source = build("tests/c/behind.c", Linkage::Without);
        let program = home.armed(source).env("MSPROF_AGENT_BUFFER_MB", "8");
        let program = stock.before(program).spawn();
        let mut behind = Behind {
            home,
            _stock: stock,
            program,
        };
        assert_eq!(behind.program.tell("ready"), "0");
        behind
    }

    fn tell(&mut self, order: &str) {
        assert_eq!(self.program.tell(order), "0", "{order}");
    }

    fn client(&self) -> ByteClient {
        let socket = self.home.wait_socket(self.program.pid());
        ByteClient::open(&socket, &params(&self.home.output()))
    }
}

#[test]
fn records_of_each_size_come_out_of_the_buffers_whole() {
    let mut behind = Behind::start(Callbacks::Missing);
    // Before the capture: in none.
    behind.tell("report 7");
    let mut client = behind.client();
    client.start();
    for _ in 0..5 {
        behind.tell("report 100");
        wait_until("the buffers to be emptied", || {
            behind.program.tell("waiting") == "0"
        });
    }
    behind.tell("report 3");
    client.stop();
    client.quit();
    behind.program.finish().expect_code(0);
    let prof = open_complete(&only_prof_dir(&behind.home.output()));
    assert_eq!(prof.api().len(), 503);
    assert_eq!(prof.compact("node_basic_info").len(), 503);
    assert_eq!(prof.additional("tensor_info").len(), 503);
    assert_eq!(prof.aicpu().len(), 503);
    let counts = prof.counts_by_trace();
    // Compact, additional and long ones.
    assert_eq!(counts["task"], 3 * 503);
    assert_eq!(lost(&prof.ledger()), 0);
}

#[test]
fn buffers_are_emptied_while_nothing_is_captured() {
    let mut behind = Behind::start(Callbacks::Missing);
    for _ in 0..3 {
        behind.tell("report 50");
        wait_until("the buffers to be emptied", || {
            behind.program.tell("waiting") == "0"
        });
    }
    assert_eq!(prof_dirs(&behind.home.output()), [] as [PathBuf; 0]);
    behind.program.finish().expect_code(0);
}

#[test]
fn buffers_are_within_the_bound_on_ours_and_there_are_none_without_need() {
    for (callbacks, most) in [(Callbacks::Missing, 8 << 20), (Callbacks::Called, 0)] {
        let mut behind = Behind::start(callbacks);
        let slots: u64 = behind.program.tell("slots").parse().expect("a number");
        assert!(slots <= most / 1000, "{slots}");
        assert_eq!(slots > 0, callbacks == Callbacks::Missing);
        behind.program.finish().expect_code(0);
    }
}

#[test]
fn buffers_that_go_and_come_back_are_no_longer_and_again_emptied() {
    let mut behind = Behind::start(Callbacks::Missing);
    for number in 1..=3 {
        let mut client = behind.client();
        client.start();
        behind.tell("report 10");
        // Ends the capture, with what waits, and gives the buffers back.
        behind.tell("finalize");
        let dirs = prof_dirs(&behind.home.output());
        assert_eq!(dirs.len(), number);
        assert_eq!(open_complete(&dirs[number - 1]).api().len(), 10);
        behind.tell("init");
    }
    behind.program.finish().expect_code(0);
}

#[test]
fn a_capture_that_the_end_of_the_program_cuts_has_what_waited() {
    for callbacks in [Callbacks::Missing, Callbacks::Called] {
        let mut behind = Behind::start(callbacks);
        let mut client = behind.client();
        client.start();
        behind.tell("report 100");
        behind.program.finish().expect_code(0);
        let prof = open_complete(&only_prof_dir(&behind.home.output()));
        assert_eq!(prof.api().len(), 100, "{callbacks:?}");
    }
}

#[test]
fn children_of_a_program_take_their_own_records() {
    for callbacks in [Callbacks::Missing, Callbacks::Called] {
        let mut behind = Behind::start(callbacks);
        let mut client = behind.client();
        client.start();
        behind.tell("report 5");
        behind.tell("child");
        behind.tell("report 5");
        client.stop();
        client.quit();
        behind.program.finish().expect_code(0);
        let prof = open_complete(&only_prof_dir(&behind.home.output()));
        assert_eq!(prof.api().len(), 10, "{callbacks:?}");
    }
}

#[test]
fn a_kind_that_the_vendors_library_does_not_divert_comes_by_its_buffers() {
    let mut behind = Behind::start(Callbacks::Partly);
    let mut client = behind.client();
    client.start();
    behind.tell("report 100");
    client.stop();
    client.quit();
    behind.program.finish().expect_code(0);
    let prof = open_complete(&only_prof_dir(&behind.home.output()));
    assert_eq!(prof.api().len(), 100);
    assert_eq!(prof.compact("node_basic_info").len(), 100);
    assert_eq!(prof.additional("tensor_info").len(), 100);
    assert_eq!(prof.aicpu().len(), 100);
}

#[test]
fn a_capture_has_what_waited_when_the_program_ends_the_vendors_profiling_and_says_so() {
    let mut behind = Behind::start(Callbacks::Missing);
    let mut client = behind.client();
    client.start();
    behind.tell("report 100");
    behind.tell("stop");
    client.stop();
    client.quit();
    behind.program.finish().expect_code(0);
    let prof = open_complete(&only_prof_dir(&behind.home.output()));
    assert_eq!(prof.api().len(), 100);
    assert_eq!(prof.counts_by_trace()["task"], 300);
    let notes = prof.ledger()["notes"].to_string();
    assert!(notes.contains("is not counted"), "{notes}");
    assert!(notes.contains("MsprofStop"), "{notes}");
}

#[test]
fn the_buffers_of_a_child_that_uses_the_library_are_emptied() {
    let mut behind = Behind::start(Callbacks::Missing);
    behind.tell("orphan");
    behind.program.finish().expect_code(0);
}

#[test]
fn a_function_that_was_taken_away_runs_no_more() {
    let mut behind = Behind::start(Callbacks::Missing);
    behind.tell("slow");
    behind.program.finish().expect_code(0);
}

#[test]
fn outside_of_dynamic_mode_the_vendors_own_library_behind_is_called() {
    let home = Home::new();
    let stock = Stock::new(Callbacks::Missing, Strings::New);
    let theirs = stock.library().with_file_name("libprofimpl.so");
    support::builder::build_library("tests/c/vendor_profimpl.c", &theirs);
    let source = build("tests/c/behind.c", Linkage::Without);
    let program = stock.ours_first(home.plain(source)).env("THEIRS", &theirs);
    let mut program = program.spawn();
    assert_eq!(program.tell("ready"), "0");
    assert_eq!(program.tell("theirs"), "init 255, 1 device, api pop 1");
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn outside_of_dynamic_mode_no_call_comes_back_for_ever_to_a_preloaded_agent_that_is_also_behind() {
    let home = Home::new();
    let stock = Stock::new(Callbacks::Called, Strings::New);
    let program = build("tests/c/behind.c", Linkage::Without);
    let program = stock.before(home.plain(program));
    let library = &support::artifacts::artifacts().library;
    let mut program = program.env("LD_PRELOAD", library).spawn();
    for order in ["ready", "init", "finalize", "ready"] {
        assert_eq!(program.tell(order), "0", "{order}");
    }
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}

#[test]
fn outside_of_dynamic_mode_nothing_happens_where_the_vendors_own_is_missing() {
    let home = Home::new();
    let stock = Stock::new(Callbacks::Called, Strings::New);
    let source = build("tests/c/behind.c", Linkage::Without);
    let mut program = stock.before(home.plain(source)).spawn();
    assert_eq!(program.tell("ready"), "0");
    assert_eq!(program.tell("slots"), "0");
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}
