//! Producers that run at once.

use crate::support::contestants::{API, Burst, Contest, Who};
use crate::support::cores;
use crate::support::stats::Samples;
use crate::support::table::{Row, Table};
use crate::support::together;

/// Records per thread: both together fit what is prefaulted at a start, and the stock shape.
const EACH_OF_TWO: u64 = 100_000;
const EACH_OF_MANY: u64 = 12_500;
/// Records of each thread before it is let go: its first one costs it a lane and a ring.
const WARM_UP: u64 = 64;
/// Column of the cache line's latency.
const LINE: &str = "line ns, one way";

/// Measures them.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section(
        "Producers at once, api records, CPU ns per call; with the cache-line latency between the two \
         cores at that moment",
    );
    let (agent, stock) = (Who::Agent.name(), Who::Stock.name());
    let [first, second, ..] = contest.cores[..] else {
        eprintln!("  left out: one core only");
        return;
    };
    let pair = row(contest, "2 producers", &[first, second], EACH_OF_TWO);
    table.at_most(
        "api record, 2 producers at once",
        pair.samples(agent).median(),
        14.0,
    );
    table.at_least(
        "stock shape / agent, 2 at once",
        pair.ratio(stock, agent),
        5.0,
    );
    table.row(pair);
    let many: Vec<usize> = (0..16).map(|i| [first, second][i % 2]).collect();
    let many = row(contest, "16 threads on 2 cores", &many, EACH_OF_MANY);
    table.at_most("api record, 16 threads", many.samples(agent).median(), 14.0);
    table.row(many);
}

fn row(contest: &Contest, name: &str, on: &[usize], each: u64) -> Row {
    let mut columns: Vec<&str> = Who::ALL.iter().map(|who| who.name()).collect();
    columns.push(LINE);
    let mut row = Row::new(name, &columns);
    let mut capture = contest.agent.capture();
    let mut refused = [0; Who::ALL.len()];
    let mut overlaps = Samples::default();
    let mut fifo = true;
    for rep in 0..contest.reps {
        row.add(LINE, cores::line_latency([on[0], on[1]]));
        for turn in 0..Who::ALL.len() {
            let index = (turn + rep) % Who::ALL.len();
            let who = Who::ALL[index];
            let before = who.drained().map(|drain| contest.doors.written(drain));
            let run = together::run(on, |thread, gate| {
                let warm_up = contest.burst::<API>(who, thread, WARM_UP);
                gate.wait();
                [warm_up, contest.burst::<API>(who, thread, each)]
            });
            fifo &= run.fifo;
            let bursts: Vec<Burst> = run.results.iter().map(|[_, burst]| *burst).collect();
            let intervals: Vec<_> = bursts.iter().map(|burst| burst.interval).collect();
            if who != Who::Empty {
                overlaps.add(together::overlap(&intervals) * 100.0);
            }
            row.add(who.name(), Burst::sum(&bursts).ns_per_call());
            let all = Burst::sum(run.results.as_flattened());
            refused[index] += all.refused;
            match who.drained() {
                Some(drain) => {
                    let taken = all.calls - all.refused;
                    contest
                        .doors
                        .settle(drain, before.unwrap_or_default() + taken);
                }
                None if who == Who::Agent => capture.settle(all.calls),
                None => {}
            }
        }
    }
    let calls = capture.calls;
    let account = capture.stop();
    let (stock, rtrb) = (refused[Who::Stock as usize], refused[Who::Rtrb as usize]);
    row.notes.push(format!(
        "{}, stock shape {stock}, rtrb {rtrb}",
        account.note(calls)
    ));
    if on.len() == 2 {
        let how = if fifo {
            "SCHED_FIFO, pinned"
        } else {
            "pinned, not SCHED_FIFO"
        };
        row.notes.push(format!(
            "{how}; the threads overlapped for {} % of a run",
            overlaps.text()
        ));
    } else {
        row.notes
            .push(format!("pinned, {} threads a core", on.len() / 2));
    }
    row
}
