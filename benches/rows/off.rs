//! Reports while nothing is captured.

use crate::support::contestants::{ADDITIONAL, API, COMPACT, Contest, Who};
use crate::support::cores::undisturbed;
use crate::support::table::{Row, Table};

/// Calls per repetition.
const CALLS: u64 = 200_000;

/// Measures them.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section("Reports while nothing is captured, CPU ns per call");
    let api = row::<API>(contest, "api record, capture off");
    table.at_most(
        "off: ns above an empty call through the same door",
        api.difference(Who::Agent.name(), Who::Empty.name()),
        2.0,
    );
    table.row(api);
    table.row(row::<COMPACT>(contest, "compact record, capture off"));
    table.row(row::<ADDITIONAL>(contest, "additional record, capture off"));
}

fn row<const W: usize>(contest: &Contest, name: &str) -> Row {
    let mut row = Row::new(name, &[Who::Agent.name(), Who::Empty.name()]);
    for _ in 0..contest.reps {
        for who in [Who::Agent, Who::Empty] {
            row.add(
                who.name(),
                undisturbed(|| contest.burst::<W>(who, 0, CALLS)).ns_per_call(),
            );
        }
    }
    row
}
