//! How long a start and a stop take to return.

use crate::support::contestants::{API, Contest, Who};
use crate::support::table::{Row, Table};

/// Records in the rings when the capture is stopped: 40 MB.
const WAITING: u64 = 1_000_000;

/// Measures them. To be called last: it looks at all starts of the run.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section("Start and stop from inside the process, ms");
    let mut stop = Row::new("stop with 1,000,000 records in the rings", &["agent"]);
    let mut calls = 0;
    let mut lost = 0;
    for _ in 0..contest.reps {
        let capture = contest.agent.capture();
        calls += contest.burst::<API>(Who::Agent, 0, WAITING).calls;
        let account = capture.stop();
        stop.add("agent", account.stop_ms);
        lost += account.lost;
    }
    stop.notes.push(format!("agent lost {lost} of {calls}"));
    let mut start = Row::new("start", &["agent", "CPU of the caller"]);
    let starts = contest.agent.starts_ms.lock();
    for &(ms, cpu_ms) in starts.expect("no panic holds it").iter() {
        start.add("agent", ms);
        start.add("CPU of the caller", cpu_ms);
    }
    table.at_most(
        "start, ms, 9 of 10",
        start.samples("agent").quantile(0.9),
        10.0,
    );
    table.at_most(
        "stop with 1,000,000 records waiting (40 MB), ms, 9 of 10",
        stop.samples("agent").quantile(0.9),
        66.0,
    );
    table.row(start);
    table.row(stop);
}
