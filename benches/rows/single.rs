//! Records taken from one thread, with a live drain.

use crate::support::contestants::{ADDITIONAL, API, Burst, COMPACT, Contest, Who};
use crate::support::cores::undisturbed;
use crate::support::table::{Row, Table};

const SHORT: u64 = 40_000;
/// What the memory that is prefaulted at a start and the stock shape both hold.
const LONG: u64 = 240_000;
/// What fits the agent's 64 MiB; more than the other two hold.
const LONGEST: u64 = 1_000_000;

/// Measures them.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section(
        "Records taken, caller's times, 1 thread, live drain, CPU ns per call; the drains come to rest \
         between bursts",
    );
    let (agent, stock) = (Who::Agent.name(), Who::Stock.name());

    let api = row(contest, "api record, bursts of 40,000", |who| {
        contest.burst::<API>(who, 0, SHORT)
    });
    table.at_most(
        "api record, 1 thread, bursts of 40,000",
        api.samples(agent).median(),
        12.0,
    );
    table.at_least(
        "stock shape / agent, 1 thread",
        api.ratio(stock, agent),
        2.0,
    );
    table.row(api);

    let long = row(contest, "api record, bursts of 240,000", |who| {
        contest.burst::<API>(who, 0, LONG)
    });
    table.at_most(
        "api record, 1 thread, long bursts (240,000)",
        long.samples(agent).median(),
        10.0,
    );
    table.row(long);
    table.row(row(contest, "api record, bursts of 1,000,000", |who| {
        contest.burst::<API>(who, 0, LONGEST)
    }));
    table.row(row(
        contest,
        "api record that stays as it is, bursts of 40,000",
        |who| contest.burst_constant::<API>(who, 0, SHORT),
    ));

    let compact = row(contest, "compact record, bursts of 40,000", |who| {
        contest.burst::<COMPACT>(who, 0, SHORT)
    });
    table.at_most("compact record", compact.samples(agent).median(), 14.0);
    table.row(compact);
    let additional = row(contest, "additional record, bursts of 40,000", |who| {
        contest.burst::<ADDITIONAL>(who, 0, SHORT)
    });
    table.at_most(
        "additional record",
        additional.samples(agent).median(),
        36.0,
    );
    table.row(additional);
}

fn row(contest: &Contest, name: &str, burst: impl Fn(Who) -> Burst) -> Row {
    let columns: Vec<&str> = Who::ALL.iter().map(|who| who.name()).collect();
    let mut row = Row::new(name, &columns);
    let mut capture = contest.agent.capture();
    let mut refused = [0; Who::ALL.len()];
    let mut calls = 0;
    for rep in 0..contest.reps {
        for turn in 0..Who::ALL.len() {
            // Everybody comes after everybody else in turn.
            let index = (turn + rep) % Who::ALL.len();
            let who = Who::ALL[index];
            let before = who.drained().map(|drain| contest.doors.written(drain));
            let burst = undisturbed(|| burst(who));
            row.add(who.name(), burst.ns_per_call());
            refused[index] += burst.refused;
            match who.drained() {
                Some(drain) => {
                    let taken = burst.calls - burst.refused;
                    contest
                        .doors
                        .settle(drain, before.unwrap_or_default() + taken);
                }
                None if who == Who::Agent => {
                    calls += burst.calls;
                    capture.settle(burst.calls);
                }
                None => {}
            }
        }
    }
    let account = capture.stop();
    let (stock, rtrb) = (refused[Who::Stock as usize], refused[Who::Rtrb as usize]);
    row.notes.push(format!(
        "{}, stock shape {stock}, rtrb {rtrb}",
        account.note(calls)
    ));
    row
}
