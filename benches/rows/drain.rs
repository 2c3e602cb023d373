//! What the drain threads cost.

use super::pace::Pace;
use crate::support::contestants::{API, Contest, Who};
use crate::support::cores;
use crate::support::table::{Row, Table};

const PACED: Pace = Pace {
    threads: 1,
    each: 1_000_000,
    ms: 400,
};
/// Records of a burst that leaves the drain with work for a while; fits every ring.
const BURST: u64 = 240_000;
const WHO: [(Who, &str); 3] = [
    (Who::Agent, "msprof-drain"),
    (Who::Stock, "bench-stock"),
    (Who::Rtrb, "bench-rtrb"),
];

/// Measures them.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section("Drain threads, CPU ns per api record written, by the clocks of these threads");
    let paced = row(contest, "at 1 M records/s", &|who| {
        let burst = PACED.run(contest, who);
        (burst.calls, burst.refused)
    });
    table.at_most(
        "drain, CPU ns per record at 1 M/s",
        paced.samples(Who::Agent.name()).median(),
        22.0,
    );
    table.row(paced);
    let fast = row(contest, "bursts of 4 x 240,000 at full speed", &|who| {
        let refused = (0..4).map(|_| {
            let burst = contest.burst::<API>(who, 0, BURST);
            std::thread::sleep(std::time::Duration::from_millis(10));
            burst.refused
        });
        (4 * BURST, refused.sum())
    });
    table.at_most(
        "drain, CPU ns per record at full speed",
        fast.samples(Who::Agent.name()).median(),
        22.0,
    );
    table.row(fast);
}

/// `produce` reports records and tells how many calls it made and how many were refused.
fn row(contest: &Contest, name: &str, produce: &dyn Fn(Who) -> (u64, u64)) -> Row {
    let columns: Vec<&str> = WHO.iter().map(|(who, _)| who.name()).collect();
    let mut row = Row::new(name, &columns);
    let mut capture = contest.agent.capture();
    let mut lost = [0; WHO.len()];
    for _ in 0..contest.reps {
        for (index, (who, thread)) in WHO.into_iter().enumerate() {
            let tid = cores::thread_named(thread);
            let written = who.drained().map(|drain| contest.doors.written(drain));
            let before = cores::cpu_ns_of(tid);
            let (calls, refused) = produce(who);
            let taken = calls - refused;
            match who.drained() {
                Some(drain) => {
                    contest
                        .doors
                        .wait(drain, written.unwrap_or_default() + taken);
                }
                None => capture.settle(calls),
            }
            let cpu_ns = cores::cpu_ns_of(tid) - before;
            row.add(who.name(), cpu_ns as f64 / taken as f64);
            lost[index] += refused;
            contest.doors.trim();
        }
    }
    let calls = capture.calls;
    let account = capture.stop();
    row.notes.push(format!(
        "{}, stock shape {}, rtrb {}",
        account.note(calls),
        lost[1],
        lost[2]
    ));
    row
}
