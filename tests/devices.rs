//! Devices that are set again and again.

mod support;

use std::time::Duration;
use support::builder::{Linkage, build};
use support::home::Home;
use support::proc::Proc;
use support::slower::stretched;

/// What a repeat may cost. It comes hundreds of times a second.
const COST: Duration = Duration::from_nanos(100);

#[test]
fn ten_thousand_repeats_of_a_set_device_tell_nobody_and_cost_next_to_nothing() {
    let home = Home::new();
    let program = home.armed(build("tests/c/same_device.c", Linkage::Shared));
    let mut running = program.args(["20", "10000"]).spawn();
    let numbers = running.line("the repeats", |line| {
        let numbers = line.strip_prefix("repeats ")?.split(' ').map(str::parse);
        numbers.collect::<Result<Vec<f64>, _>>().ok()
    });
    assert_eq!(numbers[..2], [0.0, 0.0], "failed, heard by the component");
    let most = stretched(COST).as_nanos() as f64;
    assert!(numbers[2] < most, "{} ns", numbers[2]);
    home.wait_socket(running.pid());
    assert_eq!(Proc::of(running.pid()).agent_threads(), ["msprof-ctl"]);
    running.finish().expect_code(0);
}
