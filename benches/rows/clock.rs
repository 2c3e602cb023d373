//! The agent's clock beside the kernel's, over minutes in which captures start, run and stop.
//!
//! While a capture runs the agent computes the time from the CPU's counter; some seconds after its end it
//! asks the kernel again. benches/rows/samplers.rs says what is compared.

use super::pace::Pace;
use super::samplers::{self, Phase, Shared, Tally};
use super::stamp::FORGOTTEN;
use crate::support::agent::Account;
use crate::support::contestants::{Contest, Who};
use crate::support::cores;
use crate::support::table::{Row, Table};
use std::time::{Duration, Instant};

/// Samplers at most.
const SAMPLERS_MAX: usize = 4;
/// Light enough to leave the samplers alone.
const LOAD: u64 = 10_000;
/// Share of the time that goes to one long capture; the rest goes to short ones.
const LONG_SHARE: f64 = 0.5;
/// Short captures are this share of the time, within bounds.
const SHORT_SHARE: f64 = 1.0 / 40.0;
const SHORT_MS: (u64, u64) = (2_000, 20_000);
/// From a stop to the next start, ms, with the clock back at the kernel's.
const PAUSE_MS: u64 = 5_500;
/// A capture so brief that the first line of all is never updated: it is followed to its end.
const BRIEF_MS: u64 = 200;
/// Further pauses, ms: the clock is still at the counter; just about to change.
const QUICK_PAUSES_MS: [u64; 3] = [1_000, 3_600, 3_800];
/// When after a stop the clock changes back, ms: 4 s after its last update, which is at most 500 ms old.
const CHANGE_MS: (u64, u64) = (3_400, 4_200);
/// How long samplers go on without a break after a start: until after the first update of the line.
const CLOSE_MS: u64 = 600;
/// No time may be further from the kernel's.
const LIMIT_NS: f64 = 1000.0;

/// The task: says what it does while it does it.
struct Task<'a> {
    contest: &'a Contest,
    shared: &'a Shared,
    calls: u64,
    accounts: Vec<Account>,
}

impl Drop for Task<'_> {
    /// Ends the samplers, also when something has failed.
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Task<'_> {
    fn load(&mut self, ms: u64) {
        let pace = Pace {
            threads: 1,
            each: LOAD,
            ms,
        };
        self.calls += pace.run(self.contest, Who::Agent).calls;
    }

    fn capture(&mut self, ms: u64) {
        let contest = self.contest;
        self.shared.enter(Phase::Start, true);
        let capture = contest.agent.capture();
        self.load(CLOSE_MS.min(ms));
        self.shared.enter(Phase::Capturing, false);
        self.load(ms.saturating_sub(CLOSE_MS));
        self.shared.enter(Phase::Stop, true);
        self.accounts.push(capture.stop());
        self.shared.enter(Phase::Stop, false);
    }

    fn pause(&self, ms: u64) {
        let stopped = Instant::now();
        let until = |at: u64| {
            let left = Duration::from_millis(at.min(ms)).saturating_sub(stopped.elapsed());
            std::thread::sleep(left);
        };
        until(CHANGE_MS.0);
        if ms > CHANGE_MS.0 {
            self.shared.enter(Phase::Stop, true);
            until(CHANGE_MS.1);
        }
        if ms > CHANGE_MS.1 {
            self.shared.enter(Phase::After, false);
            until(ms);
        }
    }

    fn run(&mut self, minutes: f64) {
        let total = Duration::from_secs_f64(minutes * 60.0);
        let ms = |share: f64| (total.as_millis() as f64 * share) as u64;
        let short = ms(SHORT_SHARE).clamp(SHORT_MS.0, SHORT_MS.1);
        let begin = Instant::now();
        self.shared.enter(Phase::Before, false);
        std::thread::sleep(FORGOTTEN);
        self.capture(ms(LONG_SHARE).max(SHORT_MS.0));
        while begin.elapsed() < total {
            self.pause(PAUSE_MS);
            self.capture(BRIEF_MS);
            self.pause(PAUSE_MS);
            self.capture(short);
            for pause in QUICK_PAUSES_MS {
                self.pause(pause);
                self.capture(short);
            }
        }
        self.pause(PAUSE_MS);
    }
}

/// Measures it for about `minutes`.
pub fn add(contest: &Contest, minutes: f64, table: &mut Table) {
    let samplers = contest.cores.len().clamp(2, SAMPLERS_MAX);
    table.section(&format!(
        "The agent's clock beside CLOCK_MONOTONIC_RAW over {minutes} minutes, {samplers} threads: ns outside \
         of two reads of the kernel's around it, negative: behind"
    ));
    let shared = Shared::new();
    let begin = Instant::now();
    let (seen, cpu_ns, note) = std::thread::scope(|scope| {
        let start = |number: usize| {
            let shared = &shared;
            let core = contest.cores[number % contest.cores.len()];
            scope.spawn(move || {
                cores::pin(core);
                samplers::sample(contest.agent.time, shared)
            })
        };
        let threads: Vec<_> = (0..samplers).map(start).collect();
        let mut task = Task {
            contest,
            shared: &shared,
            calls: 0,
            accounts: Vec::new(),
        };
        task.run(minutes);
        let note = note(&task);
        drop(task);
        let mut seen = samplers::tallies();
        let mut cpu_ns = 0;
        for thread in threads {
            let (tallies, ns) = thread.join().expect("a sampler");
            cpu_ns += ns;
            for (sum, tally) in seen.iter_mut().zip(&tallies) {
                sum.merge(tally);
            }
        }
        (seen, cpu_ns, note)
    });
    let share = cpu_ns as f64 / begin.elapsed().as_nanos() as f64 / samplers as f64;
    let mut all = Tally::new();
    for ((_, name), tally) in Phase::ALL.iter().zip(&seen) {
        all.merge(tally);
        table.row(row(name, tally));
    }
    let mut whole = row("the whole run", &all);
    whole.notes.push(note);
    whole.notes.push(format!(
        "most behind at {:.3} s, most ahead at {:.3} s of the run; furthest back {} ns; the two reads of the \
         kernel's clock lay {} ns apart in the middle; each sampler took {:.1} % of a core",
        all.least_at,
        all.most_at,
        all.furthest,
        all.width.quantile(0.5).unwrap_or(0),
        share * 100.0
    ));
    table.row(whole);
    let ahead = all.outside.most().unwrap_or(0).max(0);
    let behind = all.outside.least().unwrap_or(0).min(0);
    table.at_most(
        "clock, most ahead of the kernel's, ns",
        ahead as f64,
        LIMIT_NS,
    );
    table.at_most(
        "clock, most behind the kernel's, ns",
        -behind as f64,
        LIMIT_NS,
    );
    table.at_most("clock, times backwards", all.backwards as f64, 0.0);
}

fn note(task: &Task) -> String {
    let total = task.accounts.iter().fold(
        Account {
            reported: 0,
            written: 0,
            lost: 0,
            stop_ms: 0.0,
        },
        |sum, account| Account {
            reported: sum.reported + account.reported,
            written: sum.written + account.written,
            lost: sum.lost + account.lost,
            ..sum
        },
    );
    format!(
        "{} captures, {} records/s, {}",
        task.accounts.len(),
        LOAD,
        total.note(task.calls)
    )
}

fn row(name: &str, tally: &Tally) -> Row {
    let outside = &tally.outside;
    let ns = |number: Option<i64>| number.map_or(f64::NAN, |ns| ns as f64);
    let cells = [
        ("most behind", ns(outside.least())),
        ("median", ns(outside.quantile(0.5))),
        ("most ahead", ns(outside.most())),
        ("times backwards", tally.backwards as f64),
        ("samples", outside.count() as f64),
        ("after another thread's", tally.handed as f64),
    ];
    let mut row = Row::new(name, &cells.map(|(column, _)| column));
    for (column, value) in cells {
        row.add(column, value);
    }
    row
}
