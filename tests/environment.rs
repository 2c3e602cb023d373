//! The environment is the program's: it may change it at any moment, and it is read once, at load.

mod support;

use std::path::PathBuf;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir, prof_dirs};
use support::msprof::{dynamic, run_script};
use support::proc::Proc;
use support::puppet::Puppet;
use support::rules::open_complete;
use support::wait::wait_until;

/// Rounds of everything that the agent does, while the environment changes some 100,000 times a second.
const ROUNDS: u64 = 50;

#[test]
fn a_program_that_changes_its_environment_all_the_time_goes_through_everything_unharmed() {
    let home = Home::new();
    let program = home.armed(build("tests/c/busy_environment.c", Linkage::Shared));
    let mut program = Puppet::start_armed(&home, program);
    for round in 1..=ROUNDS {
        let mut client = ByteClient::open(program.socket(), &params(&home.output()));
        client.start();
        assert_eq!(program.tell("api 100 1"), "0");
        client.stop();
        client.quit();
        let dir = prof_dirs(&home.output()).pop().expect("a capture");
        assert_eq!(open_complete(&dir).api().len(), 100, "round {round}");
        if round % 10 == 0 {
            // The socket goes and comes, in the place that the environment named at load.
            assert_eq!(program.tell("finalize"), "0");
            assert_eq!(home.sockets(), [] as [PathBuf; 0]);
            wait_until("the control thread to end", || {
                Proc::of(program.pid()).agent_threads().is_empty()
            });
            assert_eq!(program.tell("init"), "0");
            program.wait_socket();
        }
    }
    // The controller finds it by the environment that it was started with.
    let output = home.path().join("by-the-controller");
    let controller = dynamic(&home, &output).arg(format!("--pid={}", program.pid()));
    run_script(controller, &["start", "stop", "quit"]).expect_code(0);
    only_prof_dir(&output);
    assert!(program.tell("state").starts_with("0 1"));
    let changes: u64 = program.tell("changes").parse().expect("a number");
    assert!(changes > ROUNDS, "{changes} changes");
    program.finish().expect_code(0);
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
}
