//! What the drain threads cost, and what of it the kernel takes for the bytes alone.

use super::pace::Pace;
use crate::support::contestants::{API, Contest, Who};
use crate::support::cores;
use crate::support::table::{Row, Table};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Heading of the column of a thread that writes as many bytes from memory that it has at hand, in pieces of the agent's
/// size and at the producers' pace, to a file beside the captures: the least that a drain can cost at that moment.
const WRITE_ALONE: &str = "write() alone";
const RECORD_BYTES: u64 = 40;
/// Bytes of one write().
const PIECE: usize = 64 * 1024;

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
    let paced = row(contest, "at 1 M records/s", PACED.each, &|who| {
        let burst = PACED.run(contest, who);
        (burst.calls, burst.refused)
    });
    table.at_most(
        "drain, CPU ns per record at 1 M/s",
        paced.samples(Who::Agent.name()).median(),
        22.0,
    );
    table.row(paced);
    let fast = row(
        contest,
        "bursts of 4 x 240,000 at full speed",
        u64::MAX,
        &|who| {
            let refused = (0..4).map(|_| {
                let burst = contest.burst::<API>(who, 0, BURST);
                std::thread::sleep(std::time::Duration::from_millis(10));
                burst.refused
            });
            (4 * BURST, refused.sum())
        },
    );
    table.at_most(
        "drain, CPU ns per record at full speed",
        fast.samples(Who::Agent.name()).median(),
        22.0,
    );
    table.row(fast);
}

/// `produce` reports records, `each` a second at most, and tells how many calls it made and how many were refused.
fn row(contest: &Contest, name: &str, each: u64, produce: &dyn Fn(Who) -> (u64, u64)) -> Row {
    let names = WHO.iter().map(|(who, _)| who.name());
    let columns: Vec<&str> = names.chain([WRITE_ALONE]).collect();
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
            if who == Who::Agent {
                let cpu_ns = write_alone(contest.agent.output(), calls, each);
                row.add(WRITE_ALONE, cpu_ns as f64 / calls as f64);
            }
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

/// CPU time, ns, of writing the bytes of `records` to a new file in `dir`, `each` records a second at most.
fn write_alone(dir: &Path, records: u64, each: u64) -> u64 {
    let path = dir.join("alone.bin");
    let mut file = File::create(&path).expect("the directory is there");
    let piece = vec![1; PIECE];
    let begin = cores::wall_ns();
    let pieces = records * RECORD_BYTES / PIECE as u64;
    let cpu_ns = cores::cpu_of(|| {
        for written in 0..pieces {
            if each != u64::MAX {
                let records = written * PIECE as u64 / RECORD_BYTES;
                cores::sleep_until(begin + records * 1_000_000_000 / each);
            }
            file.write_all(&piece).expect("room for the records");
        }
    });
    std::fs::remove_file(&path).expect("the file is ours");
    cpu_ns
}
